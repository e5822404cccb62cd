"""`trellis restore`."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tests.cli.conftest import Trellis, TrellisJson
from tests.community import Community
from tests.fixture_types import Events, Run


def test_a_deleted_branch_comes_back(community: Community, run: Run, events: Events, trellis: Trellis) -> None:
    run("forums.delete", community.news, deleteChildrenOrMove=-1)
    seq = events()[-1]["seq"]

    result = trellis("restore", seq, "--reason", "by mistake")

    assert result.exit_code == 0
    assert result.stdout == (f"Event {seq} (forums.delete) is undone, by event {seq + 1}: News\n  4 records are restored in all.\n")
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
    assert refused.stderr.startswith("PARENT_NEEDED: The node cannot go back to its old parent")
    assert "(--to)" in refused.stderr

    assert trellis("restore", seq, "--to", community.staff).exit_code == 0
    assert run("forums.get", community.betas)["path"] == "Staff > Betas"


def test_what_could_not_come_back_is_told(community: Community, run: Run, events: Events, trellis: Trellis) -> None:
    run("forums.delete", community.releases, deleteChildrenOrMove=community.help)
    seq = events()[-1]["seq"]
    run("forums.update", community.betas, parentId=community.staff)
    assert (
        f"  forums {community.betas} is not changed. It has been moved elsewhere since.\n"
        in trellis("restore", seq, "--to", "root").stdout
    )

    run("groups.delete", community.patrons)
    seq = events()[-1]["seq"]
    assert "  It returns to the permissions of 4 records.\n" in trellis("restore", seq).stdout


def test_json(community: Community, run: Run, events: Events, trellis_json: TrellisJson) -> None:
    run("blogs.delete", community.notebook)
    run("groups.delete", community.patrons)
    answer = trellis_json("restore", events()[-2]["seq"])
    assert (answer["operation"], answer["lostGroups"]) == ("blogs.delete", [community.patrons])


def test_a_copy_is_deleted(community: Community, run: Run, events: Events, trellis: Trellis) -> None:
    run("forums.copy", community.news, withChildren=True)
    seq = events()[-1]["seq"]

    dry = trellis("restore", seq, "--dry-run")
    assert (dry.exit_code, dry.stdout) == (0, f"Event {seq} (forums.copy) would be undone.\n  4 records are deleted.\n")

    result = trellis("restore", seq)
    assert result.stdout == f"Event {seq} (forums.copy) is undone, by event {seq + 1}.\n  4 records are deleted.\n"
    assert run("forums.list", name="News")["totalResults"] == 1


def test_what_was_created_is_deleted_where_that_is_asked_for(
    community: Community, run: Run, events: Events, trellis: Trellis
) -> None:
    run("forums.create", name="Late", parentId=community.news)
    seq = events()[-1]["seq"]

    refused = trellis("restore", seq)
    assert refused.exit_code == 1
    assert refused.stderr.rstrip().endswith("To undo that, delete it. Or send deleteCreated (--delete-created).")

    result = trellis("restore", seq, "--delete-created")
    assert result.stdout == f"Event {seq} (forums.create) is undone, by event {seq + 1}.\n  1 record is deleted.\n"
    assert run("forums.list", name="Late")["totalResults"] == 0


def test_a_change_of_a_key_is_undone(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("run", "keys.create", "name=Plugin")
    trellis("run", "keys.update", "1", "name=Other")

    answer = trellis_json("restore", 2)
    assert (answer["record"]["name"], answer["restored"], answer["deleted"]) == (
        "Plugin",
        {"count": 1, "ids": [1]},
        {"count": 0, "ids": []},
    )
    assert trellis("restore", 3).stdout == "Event 3 (keys.restore) is undone, by event 4: Other\n"


@pytest.mark.either_engine
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


@pytest.mark.either_engine
def test_a_slow_undo_shows_its_progress_beside_the_output(
    community: Community, run: Run, events: Events, trellis: Trellis, monkeypatch: pytest.MonkeyPatch, slowly: Callable[..., Any]
) -> None:
    monkeypatch.setattr("trellis.cli.operations.undo.act", slowly)
    run("forums.delete", community.news, deleteChildrenOrMove=-1)
    seq = events()[-1]["seq"]

    result = trellis("restore", seq, "--json")

    assert orjson.loads(result.stdout)["restored"]["count"] == 4
    assert result.stderr == f"Undoing event {seq}: 4 of 4, finishing\n"


def test_a_change_set_is_undone(trellis: Trellis, trellis_json: TrellisJson, run: Run, events: Events) -> None:
    wanted = '[{"operation": "forums.create", "body": {"name": "A"}}, {"operation": "forums.create", "body": {"name": "B"}}]'
    trellis_json("run", "core.batch", f"operations:={wanted}")
    number = events()[-1]["changeSet"]
    before = events()

    dry = trellis("restore", "--change-set", number, "--dry-run")
    assert dry.stdout == "2 events would be undone.\n"
    assert events() == before

    assert trellis("restore", "--change-set", number).stdout == "2 events undone.\n"
    assert run("forums.list", name="A")["totalResults"] == 0


def test_a_change_set_is_undone_in_parts(trellis: Trellis, trellis_json: TrellisJson, run: Run, events: Events) -> None:
    wanted = '[{"operation": "forums.create", "body": {"name": "A"}}, {"operation": "forums.create", "body": {"name": "B"}}]'
    trellis_json("run", "core.batch", f"operations:={wanted}")
    first, second = events()[-2:]
    assert trellis("restore", "--change-set", first["changeSet"], "--after", first["seq"]).stdout == "1 event undone.\n"
    assert [one["name"] for one in run("forums.list")["results"]] == ["A"]
    assert trellis("restore", "--change-set", second["changeSet"]).stdout == "1 event undone.\n"


def test_conflicts_of_a_change_set_are_listed(trellis: Trellis, trellis_json: TrellisJson, run: Run, events: Events) -> None:
    trellis_json("run", "core.batch", 'operations:=[{"operation": "forums.create", "body": {"name": "A"}}]')
    made = events()[-1]
    run("forums.update", made["resourceId"], name="B")

    refused = trellis("restore", "--change-set", made["changeSet"])
    assert refused.exit_code == 1
    assert "skipConflicts" in refused.stderr
    skipped = trellis("restore", "--change-set", made["changeSet"], "--skip-conflicts")
    assert skipped.exit_code == 0
    assert f"Event {made['seq']} (forums.create) cannot be undone." in skipped.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("5", "--change-set", "1"),
        ("--key", "1"),
        ("--since", "1h"),
        ("--key", "1", "--since", "yesterday"),
        ("--key", "1", "5"),
        ("5", "--after", "4"),
        ("5", "--skip-conflicts"),
        ("--change-set", "1", "--to", "root"),
        ("--key", "1", "--since", "1h", "--to", "2"),
        ("1", "--to", ""),
        ("--change-set", "1", "--delete-created"),
    ],
)
@pytest.mark.usefixtures("community")
def test_what_is_to_be_undone_must_be_clear(trellis: Trellis, arguments: tuple[str, ...]) -> None:
    assert trellis("restore", *arguments).exit_code == 2


@pytest.mark.usefixtures("community")
def test_what_a_key_did_lately_is_undone(trellis: Trellis, run: Run) -> None:
    number = run("keys.create", name="Sync")["id"]
    assert trellis("restore", "--key", number, "--since", "1h").stdout == "0 events undone.\n"


@pytest.mark.usefixtures("community")
def test_nothing_is_undone_of_a_key_that_does_not_exist(trellis: Trellis) -> None:
    refused = trellis("restore", "--key", 9, "--since", "1h")
    assert (refused.exit_code, refused.stderr) == (1, "INVALID_ID: There is no key with the id 9.\n")
