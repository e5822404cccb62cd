"""`trellis restore`."""

import orjson
import pytest

from tests.cli.conftest import Trellis, TrellisJson, slowly
from tests.community import Community
from tests.fixture_types import Events, Run


def test_a_deleted_branch_comes_back(community: Community, run: Run, events: Events, trellis: Trellis) -> None:
    run("forums.delete", community.news, deleteChildrenOrMove=-1)
    seq = events()[-1]["seq"]

    result = trellis("restore", seq, "--reason", "by mistake")

    assert result.exit_code == 0
    assert result.stdout == (f"Event {seq} (forums.delete) is undone, by event {seq + 1}: News\n  4 records in all come back.\n")
    assert run("forums.get", community.betas)["path"] == "News > Releases > Betas"
    event = events()[-1]
    assert (event["type"], event["undoes"], event["reason"], event["actor"]["type"]) == (
        "forum.restored",
        seq,
        "by mistake",
        "terminal",
    )


def test_a_dry_run_changes_nothing(community: Community, run: Run, events: Events, trellis: Trellis) -> None:
    run("calendars.update", community.meetups, name="Trips")
    before = events()

    result = trellis("restore", before[-1]["seq"], "--dry-run")

    assert result.exit_code == 0
    assert result.stdout.endswith("(calendars.update) would be undone: Meetups\n")
    assert result.stderr == "This was a dry run: nothing was changed.\n"
    assert events() == before


def test_a_parent_that_is_gone_is_replaced_with_to(community: Community, run: Run, events: Events, trellis: Trellis) -> None:
    run("forums.delete", community.betas)
    seq = events()[-1]["seq"]
    run("forums.delete", community.releases)

    refused = trellis("restore", seq)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("PARENT_NEEDED: It cannot go back to where it was")

    assert trellis("restore", seq, "--to", community.staff).exit_code == 0
    assert run("forums.get", community.betas)["path"] == "Staff > Betas"


def test_what_could_not_come_back_is_told(community: Community, run: Run, events: Events, trellis: Trellis) -> None:
    run("forums.delete", community.releases, deleteChildrenOrMove=community.help)
    seq = events()[-1]["seq"]
    run("forums.update", community.betas, parentId=community.staff)
    assert (
        f"  forums {community.betas} stays as it is. It was moved elsewhere since.\n"
        in trellis("restore", seq, "--to", "root").stdout
    )

    run("groups.delete", community.patrons)
    seq = events()[-1]["seq"]
    assert "  It stands in the permissions of 4 records again.\n" in trellis("restore", seq).stdout


def test_json(community: Community, run: Run, events: Events, trellis_json: TrellisJson) -> None:
    run("blogs.delete", community.notebook)
    run("groups.delete", community.patrons)
    answer = trellis_json("restore", events()[-2]["seq"])
    assert (answer["operation"], answer["lostGroups"]) == ("blogs.delete", [community.patrons])


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [((999,), 1, "INVALID_ID: There is no event with the id 999."), (("x",), 2, "'x'"), ((0,), 2, "0")],
)
def test_what_is_typed_wrongly(
    community: Community, trellis: Trellis, arguments: tuple[object, ...], code: int, expected: str
) -> None:
    result = trellis("restore", *arguments)
    assert result.exit_code == code
    assert expected in result.stderr


def test_a_slow_undo_shows_its_progress_beside_the_output(
    community: Community, run: Run, events: Events, trellis: Trellis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis.cli.terminal._PATIENCE", 0.2)
    monkeypatch.setattr("trellis.cli.operations.act", slowly)
    run("forums.delete", community.news, deleteChildrenOrMove=-1)
    seq = events()[-1]["seq"]

    result = trellis("restore", seq, "--json")

    assert orjson.loads(result.stdout)["restored"]["count"] == 4
    assert result.stderr == f"Undoing event {seq}: 4 of 4\n"
