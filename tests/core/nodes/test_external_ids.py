"""External ids: what another system calls a node, and every way of naming it by that."""

import threading
from typing import Any

import pytest

from tests.community import Community
from tests.conftest import runner
from tests.database_state import DatabaseState
from tests.fixture_types import Events, Run, RunForEvent
from tests.node_rows import write_by_hand
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.passwords import digests as passwords
from trellis.errors import Refused
from trellis.settings import Settings


def test_a_node_has_none_until_one_is_given(run: Run) -> None:
    made = run("forums.create", name="News")
    assert made["externalId"] is None
    given = run("forums.update", made["id"], externalId="news")
    assert given["externalId"] == "news"
    assert run("forums.update", made["id"], name="Olds")["externalId"] == "news"
    assert run("forums.update", made["id"], externalId=None)["externalId"] is None


def test_it_is_unique_in_its_kind(run: Run, database: DatabaseState) -> None:
    first = run("forums.create", name="News", externalId="news")
    other = run("forums.create", name="Other")
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("forums.create", name="Again", externalId="news")
    assert (refused.value.message, refused.value.status) == ("EXTERNAL_ID_TAKEN", 409)
    assert refused.value.facts == {"id": first["id"]}
    with database.unchanged(), pytest.raises(Refused, match="EXTERNAL_ID_TAKEN"):
        run("forums.update", other["id"], externalId="news")
    assert run("calendars.create", name="News", externalId="news")["externalId"] == "news"
    assert run("forums.update", first["id"], externalId="news", name="Newer")["name"] == "Newer"


def test_the_names_of_built_in_groups_in_documents_are_theirs(run: Run, do: RunForEvent, database: DatabaseState) -> None:
    mods = run("groups.create", name="Moderators", externalId="mods")
    for operation, target, name in (
        ("groups.create", None, "All"),
        ("groups.update", mods["id"], "Moderators"),
        ("groups.put_external", None, "All"),
    ):
        with database.unchanged(), pytest.raises(Refused) as refused:
            run(operation, target, externalId="members", name=name)
        assert (refused.value.message, refused.value.facts) == ("EXTERNAL_ID_TAKEN", {"id": 3})
    assert run("forums.create", name="All", externalId="members")["externalId"] == "members"
    given = do("groups.update", 3, externalId="everybody")
    assert run("groups.update", mods["id"], externalId="members")["externalId"] == "members"
    for operation, target, raw in (("groups.update", 3, {"externalId": None}), ("events.restore", given, {})):
        with database.unchanged(), pytest.raises(Refused, match="already has the external id 'members'"):
            run(operation, target, **raw)
    exported = run("structure.export")
    assert [entry["externalId"] for entry in exported["groups"]] == ["administrators", "everybody", "guests", "members"]
    run("structure.plan", document=exported)
    assert run("check.list")["count"] == 0


def test_it_is_255_visible_characters_at_most(run: Run) -> None:
    for wrong in ("a b", "x" * 256, "tab\t", "zero\u200bwidth", 5, True, ["a"], "\ud800"):
        with pytest.raises(Refused, match="INVALID_VALUE"):
            run("forums.create", name="News", externalId=wrong)


@pytest.mark.parametrize("unseen", ["\u1160", "\u2800", "a\u034fb"])
def test_it_holds_nothing_that_nobody_can_see(
    run: Run, settings: Settings, community: Community, unseen: str, database: DatabaseState
) -> None:
    """A node that has such a one from before is found by it, and changed, as long as it is given no other of that sort."""
    for operation, target in (("forums.create", None), ("forums.put_external", None), ("forums.update", community.news)):
        with database.unchanged(), pytest.raises(Refused) as refused:
            run(operation, target, externalId=unseen, name="News")
        assert [(fault.field, fault.message) for fault in refused.value.faults] == [("externalId", "INVALID_VALUE")]
        assert "must not contain invisible characters; there is U+" in refused.value.detail
    write_by_hand(settings, f"UPDATE nodes SET external_id = '{unseen}' WHERE kind = 'forums' AND id = {community.news}")  # noqa: S608

    found = run("forums.get_external", externalId=unseen)
    assert found["id"] == community.news
    assert run("forums.update", community.news, name="Newer")["externalId"] == unseen
    assert run("forums.update", community.news, **found)["name"] == "News"
    assert run("forums.put_external", externalId=unseen, name="Newest")["id"] == community.news
    assert run("forums.create", name="Below", parentExternalId=unseen)["parentId"] == community.news
    document = run("structure.export")
    assert run("structure.plan", document=document, adopt=True)["counts"].get("create", 0) == 0
    with pytest.raises(Refused, match="invisible"):
        run("forums.update", community.news, externalId=f"{unseen}2")
    told = [(one["resource"], one["id"], one["problem"], one["repairable"]) for one in run("check.list")["problems"]]
    assert told == [("forums", community.news, "external id", False)]
    run("forums.update", community.news, externalId="news")
    assert run("check.list")["problems"] == []


def test_an_external_id_leads_to_its_node(run: Run) -> None:
    made = run("forums.create", name="News", externalId="übersicht/1")
    below = run("forums.create", name="Deep", externalId="deep", parentId=run("forums.create", name="B", parentId=made["id"])["id"])
    assert run("forums.get_external", externalId="übersicht/1") == run("forums.get", made["id"])
    assert run("forums.get_external", externalId="deep") == run("forums.get", below["id"])
    with pytest.raises(Refused, match="INVALID_ID"):
        run("forums.get_external", externalId="nowhere")


def test_a_put_makes_a_node_and_then_changes_it(run: Run, database: DatabaseState) -> None:
    with database.new_events() as events:
        made = run("forums.put_external", externalId="news", name="News", minContent=3)
    assert [event["operation"] for event in events()] == ["forums.create"]
    with database.new_events() as events:
        changed = run("forums.put_external", externalId="news", name="Bulletin")
    assert [event["operation"] for event in events()] == ["forums.update"]
    assert (changed["id"], changed["name"], changed["minContent"]) == (made["id"], "Bulletin", 3)
    with database.new_events() as events:
        assert run("forums.put_external", externalId="news", name="Bulletin") == changed
    assert events() == []


def test_a_put_can_be_run_dry_and_refused(run: Run, database: DatabaseState) -> None:
    with database.unchanged():
        assert run("forums.put_external", externalId="news", name="News", dryRun=True)["externalId"] == "news"
        with pytest.raises(Refused, match="NO_TITLE"):
            run("forums.put_external", externalId="news")
        with pytest.raises(Refused, match="dryRun must be true or false"):
            run("forums.put_external", externalId="news", name="News", dryRun="maybe")


def test_a_delete_by_external_id_is_the_delete(run: Run, database: DatabaseState) -> None:
    made = run("forums.create", name="News", externalId="news")
    run("forums.create", name="Below", parentExternalId="news")
    with database.unchanged(), pytest.raises(Refused, match="HAS_CHILDREN"):
        run("forums.delete_external", externalId="news")
    plan = run("forums.delete_external", externalId="news", deleteChildrenOrMove=-1, dryRun=True)
    assert plan["deleted"]["count"] == 2
    with database.new_events() as events:
        assert run("forums.delete_external", externalId="news", deleteChildrenOrMove=-1) is None
    assert [(event["operation"], event["resourceId"]) for event in events()] == [("forums.delete", made["id"])]


@pytest.mark.parametrize("missing", ["forums.create", "forums.update"])
def test_a_put_needs_both_grants(gate: Gate, missing: str, database: DatabaseState) -> None:
    key = Actor("key", 7, "Plugin", frozenset({"forums.create", "forums.update"} - {missing}))
    with database.unchanged(), pytest.raises(Refused) as refused:
        gate.run(Call("forums.put_external", key, {"externalId": "news", "name": "News"}))
    assert refused.value.facts == {"missingOperation": missing}


def test_a_parent_is_named_by_its_external_id(run: Run) -> None:
    parent = run("forums.create", name="News", externalId="news")
    child = run("forums.create", name="Child", parentExternalId="news")
    assert child["parentId"] == parent["id"]
    assert [one["id"] for one in run("forums.list", parentExternalId="news")["results"]] == [child["id"]]
    other = run("forums.create", name="Other")
    assert run("forums.update", other["id"], parentExternalId="news")["parentId"] == parent["id"]
    assert run("forums.copy", other["id"], parentExternalId="news")["parentId"] == parent["id"]
    for wrong in ({"parentExternalId": "nowhere"}, {"parentExternalId": "news", "parentId": parent["id"]}):
        with pytest.raises(Refused, match="INVALID_PARENT"):
            run("forums.create", name="Child", **wrong)


def test_groups_are_named_by_their_external_ids(run: Run) -> None:
    group = run("groups.create", name="Moderators", externalId="mods")["id"]
    made = run("forums.create", name="News", permissions={"view": "*", "add": [{"externalId": "mods"}, 3], "reply": [group]})
    assert made["permissions"]["add"] == [3, group]
    assert made["permissions"]["reply"] == [group]
    with pytest.raises(Refused) as refused:
        run("forums.create", name="News", permissions={"add": [{"externalId": "nobody"}]})
    assert [(fault.field, fault.message) for fault in refused.value.faults] == [("permissions.add", "INVALID_GROUP")]
    for wrong in ([{"externalId": ""}], [{"id": 3}], [{"externalId": "mods", "id": 3}], {"externalId": "mods"}):
        with pytest.raises(Refused, match="INVALID_VALUE"):
            run("forums.create", name="News", permissions={"add": wrong})


def test_a_copy_has_none(run: Run) -> None:
    made = run("forums.create", name="News", externalId="news")
    assert run("forums.copy", made["id"])["externalId"] is None


def _undo(gate: Gate, run: Run) -> Any:
    last = run("events.list", order="newest", limit=1)["results"][0]
    return runner(gate)("events.restore", last["seq"])


def test_undo_brings_it_back(gate: Gate, run: Run) -> None:
    made = run("forums.create", name="News", externalId="news")
    run("forums.update", made["id"], externalId="newer")
    _undo(gate, run)
    assert run("forums.get", made["id"])["externalId"] == "news"
    run("forums.delete", made["id"])
    _undo(gate, run)
    assert run("forums.get_external", externalId="news")["id"] == made["id"]


def test_undo_is_refused_while_another_has_it(gate: Gate, run: Run, database: DatabaseState) -> None:
    made = run("forums.create", name="News", externalId="news")
    run("forums.delete", made["id"])
    deleted = run("events.list", order="newest", limit=1)["results"][0]["seq"]
    other = run("forums.create", name="Other", externalId="news")
    with database.unchanged(), pytest.raises(Refused) as refused:
        run("events.restore", deleted)
    assert refused.value.facts == {"id": other["id"]}


def test_a_password_that_is_put_becomes_a_digest_before_the_writer_and_the_same_is_no_change(
    gate: Gate, run: Run, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    original = passwords.hash_password

    def digest(password: str, cost: passwords.Cost) -> str:
        threads.append(threading.current_thread().name)
        return original(password, cost)

    monkeypatch.setattr(passwords, "hash_password", digest)
    for _ in range(2):
        run("forums.put_external", externalId="crm-1", name="Staff", password="open sesame")
    assert len(events()) == 1
    run("forums.put_external", externalId="crm-1", password="another")
    assert events()[-1]["changed"] == ["password"]
    assert threads == ["trellis-passwords"] * 2
