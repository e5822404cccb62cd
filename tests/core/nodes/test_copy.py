"""Copying nodes: what is taken along, where the copy stands, subtrees, and taking it back."""

from typing import Any

import pytest

from tests.community import COMMUNITY_URL, Community
from tests.fixture_types import Clock, Events, Run
from tests.node_rows import order, rows_of
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused

OWN = {"id", "url", "name", "path", "position", "parentId", "createdAt", "updatedAt"}


def content(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in OWN}


def refused(run: Run, operation: str, target: int, message: str, **raw: Any) -> Refused:
    with pytest.raises(Refused) as refusal:
        run(operation, target, **raw)
    assert refusal.value.message == message, refusal.value
    return refusal.value


@pytest.mark.parametrize(("kind", "which"), [("forums", "releases"), ("calendars", "meetups"), ("categories", "dark_skins")])
def test_a_copy_has_the_fields_and_permissions_of_the_original(
    run: Run, community: Community, events: Events, clock: Clock, kind: str, which: str
) -> None:
    original = run(f"{kind}.get", getattr(community, which))
    clock.move(hours=1)
    known = len(events())
    made = run(f"{kind}.copy", original["id"], name="Another")
    assert content(made) == content(original)
    assert made == run(f"{kind}.get", made["id"])
    assert (made["name"], made["createdAt"], made["updatedAt"]) == ("Another", clock.text, clock.text)
    assert made["url"] == f"{COMMUNITY_URL}/{kind}/{made['id']}-another/"
    assert made.get("parentId") == original.get("parentId")
    (event,) = events()[known:]
    assert (event["operation"], event["resourceId"], event["before"]) == (f"{kind}.copy", made["id"], None)
    assert (event["after"], event["touched"]) == (made, [])
    assert event["type"].endswith(".copied")


def test_without_a_name_it_is_called_like_the_original_and_stands_last(run: Run, community: Community) -> None:
    run("forums.copy", community.releases)
    assert order(run, community.news) == ["Releases", "Interviews", "Releases"]


def test_a_place_can_be_chosen(run: Run, community: Community) -> None:
    run("forums.copy", community.releases, name="First", position=0)
    run("forums.copy", community.releases, name="Before", before=community.interviews)
    run("forums.copy", community.releases, name="Top", parentId=None, after=community.news)
    assert order(run, community.news) == ["First", "Releases", "Before", "Interviews"]
    assert order(run)[:2] == ["News", "Top"]
    run("calendars.copy", community.meetups, name="Then", before=community.holidays)
    listed = run("calendars.list", sortBy="position")["results"]
    assert [calendar["name"] for calendar in listed] == ["Meetups", "Then", "Holidays"]


def test_the_password_is_taken_along_and_never_shown(gate: Gate, run: Run, community: Community, events: Events) -> None:
    run("forums.update", community.help, password="sesame")
    made = run("forums.copy", community.help)
    kept = rows_of(gate)
    assert made["passwordProtected"] is True
    assert kept[made["id"]]["fields"]["password"] == kept[community.help]["fields"]["password"]
    assert "password" not in events()[-1]["after"]
    assert "argon2" not in str(events()[-1])


def test_a_subtree_is_copied_in_its_order_with_parents_before_children(
    gate: Gate, run: Run, community: Community, events: Events
) -> None:
    run("forums.update", community.interviews, position=0)
    made = run("forums.copy", community.news, name="Bulletin", withChildren=True)
    assert order(run)[-1] == "Bulletin"
    assert order(run, made["id"]) == ["Interviews", "Releases"]
    kept = rows_of(gate)
    copies = {node: row for node, row in kept.items() if node >= made["id"]}
    assert len(copies) == 4
    assert all(row["parent_id"] is None or row["parent_id"] < node for node, row in copies.items())
    (betas,) = (row for row in copies.values() if row["name"] == "Betas")
    assert betas["permissions"] == kept[community.betas]["permissions"]
    assert run("forums.get", betas["id"])["path"] == "Bulletin > Releases > Betas"
    touched = events()[-1]["touched"]
    assert touched == [{"resource": "forums", "id": node, "how": "made"} for node in sorted(copies)[1:]]
    assert run("check.list")["problems"] == []


def test_without_its_children_a_node_is_copied_alone(run: Run, community: Community) -> None:
    made = run("forums.copy", community.news)
    assert run("forums.list", parentId=made["id"])["totalResults"] == 0


@pytest.mark.parametrize("into", ["news", "releases", "betas"])
def test_a_subtree_can_be_copied_into_itself(run: Run, community: Community, into: str) -> None:
    made = run("forums.copy", community.news, name="Inside", parentId=getattr(community, into), position=0, withChildren=True)
    assert order(run, getattr(community, into))[0] == "Inside"
    assert order(run, made["id"]) == ["Releases", "Interviews"]
    assert run("forums.list")["totalResults"] == 7 + 4
    assert run("check.list")["problems"] == []


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
def test_many_siblings_are_copied_with_their_order(gate: Gate, run: Run) -> None:
    """More than are read at a time, and than a block has room for."""
    top = run("forums.create", name="Top")["id"]
    names = [f"Forum {number}" for number in range(130)]
    bodies = [{"name": name, "parentId": top, "position": 0} for name in names]
    run("core.batch", operations=[{"operation": "forums.create", "body": body} for body in bodies])
    told: list[tuple[int, int]] = []
    call = Call("forums.copy", TERMINAL, {"withChildren": True}, top, progress=lambda done, total: told.append((done, total)))
    made = gate.run(call).value
    assert order(run, made["id"]) == names[::-1]
    assert told[-1] == (130, 130)
    assert run("check.list")["problems"] == []
    run("forums.create", name="Between", parentId=made["id"], position=65)
    assert order(run, made["id"])[64:67] == ["Forum 65", "Between", "Forum 64"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"name": ""}, "NO_TITLE"),
        ({"parentId": 999}, "INVALID_PARENT"),
        ({"before": 999}, "INVALID_POSITION"),
        ({"position": 0, "after": 1}, "INVALID_POSITION"),
        ({"type": "questions"}, "UNKNOWN_PARAMETER"),
        ({"withChildren": "maybe"}, "INVALID_VALUE"),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(
    gate: Gate, run: Run, community: Community, events: Events, raw: dict[str, Any], message: str
) -> None:
    before = rows_of(gate), events()
    with pytest.raises(Refused) as refusal:
        run("forums.copy", community.news, **raw)
    assert message in {refusal.value.message, *(fault.message for fault in refusal.value.faults)}
    assert (rows_of(gate), events()) == before


def test_nothing_is_copied_under_a_redirect(run: Run, community: Community) -> None:
    refused(run, "forums.copy", community.help, "INVALID_PARENT", parentId=community.wiki)
    assert run("forums.copy", community.wiki)["type"] == "redirect"


def test_an_unknown_original_has_a_code_of_its_own(run: Run, community: Community) -> None:
    assert refused(run, "forums.copy", 999, "INVALID_ID").code == "1F363/9"


def test_a_dry_run_tells_the_record_and_leaves_nothing(gate: Gate, run: Run, community: Community, events: Events) -> None:
    before = rows_of(gate), events()
    told = run("forums.copy", community.news, withChildren=True, dryRun=True)
    assert (rows_of(gate), events()) == before
    assert told == run("forums.copy", community.news, withChildren=True)


# --- taking it back -----------------------------------------------------------------------------------------------


def copied(run: Run, *target: Any, **raw: Any) -> int:
    run("forums.copy", *target, **raw)
    return int(run("events.list", order="newest", limit=1)["results"][0]["seq"])


def test_to_undo_a_copy_deletes_what_it_made(gate: Gate, run: Run, community: Community, events: Events) -> None:
    before = rows_of(gate)
    event = copied(run, community.news, withChildren=True, position=0)
    made = [node for node in rows_of(gate) if node not in before]
    answer = run("events.restore", event)
    assert rows_of(gate) == before
    assert answer["record"] is None
    assert answer["deleted"] == {"count": 4, "ids": made}
    told = events()[-1]
    assert (told["operation"], told["undoes"], told["after"]) == ("forums.restore", event, None)
    assert [one["how"] for one in told["touched"]] == ["deleted"] * 3
    assert refused(run, "events.restore", event, "NOT_RESTORABLE").facts == {"undoneBy": told["seq"]}
    assert run("check.list")["problems"] == []


def test_the_undo_can_be_undone_and_then_done_again(gate: Gate, run: Run, community: Community, events: Events) -> None:
    event = copied(run, community.news, withChildren=True, position=0)
    made = rows_of(gate)
    run("events.restore", event)
    run("events.restore", events()[-1]["seq"])
    assert rows_of(gate) == made
    run("events.restore", event)
    assert len(rows_of(gate)) == len(made) - 4


def test_what_was_done_to_a_copy_since_is_not_lost(run: Run, community: Community, events: Events) -> None:
    event = copied(run, community.news, name="Bulletin", withChildren=True)
    made = events()[-1]["resourceId"]
    below = run("forums.list", parentId=made, sortBy="position")["results"]
    run("forums.update", below[0]["id"], name="Renamed")
    refusal = refused(run, "events.restore", event, "CHANGED_SINCE")
    assert refusal.facts["differences"] == [{"field": "name", "then": "Releases", "now": "Renamed"}]
    run("forums.update", below[0]["id"], name="Releases")
    run("forums.create", name="New", parentId=below[1]["id"])
    refusal = refused(run, "events.restore", event, "CHANGED_SINCE")
    assert refusal.facts["differences"] == [{"field": "children", "then": 3, "now": 4}]
    run("forums.delete", events()[-1]["resourceId"])
    run("forums.delete", below[1]["id"])
    assert refused(run, "events.restore", event, "CHANGED_SINCE").facts["deletedBy"] == events()[-1]["seq"]
    run("events.restore", events()[-1]["seq"])
    assert run("events.restore", event)["deleted"]["count"] == 4


def test_siblings_and_lost_groups_do_not_stand_in_the_way(run: Run, community: Community) -> None:
    event = copied(run, community.betas, parentId=None, position=0)
    run("forums.create", name="Before it", position=0)
    run("groups.delete", community.patrons)
    assert run("events.restore", event)["deleted"]["count"] == 1


def test_a_copy_that_was_changed_can_be_taken_back_as_long_as_changes_are_kept(
    run: Run, community: Community, clock: Clock
) -> None:
    event = copied(run, community.help)
    untouched = copied(run, community.help)
    run("groups.delete", community.patrons)
    run("forums.update", run("events.get", event)["resourceId"], minContent=5)
    clock.move(days=31)
    refused(run, "events.restore", event, "NO_LONGER_KEPT")
    assert run("events.restore", untouched)["deleted"]["count"] == 1


def test_undoing_a_copy_takes_no_parent(run: Run, community: Community) -> None:
    event = copied(run, community.help)
    refused(run, "events.restore", event, "INVALID_PARENT", parentId=community.news)


def test_groups_and_blogs_are_not_copied(gate: Gate) -> None:
    copying = {name for name, operation in gate.catalogue.items() if name.endswith(".copy")}
    assert copying == {f"{kind.name}.copy" for kind in gate.environment.kinds if kind.over_rest is None}
    assert not {"groups.copy", "blogs.copy"} & copying
