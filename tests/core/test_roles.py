"""Roles of administrators: what each may run, judged in the gate for every operation, and never from what was known before."""

import threading
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.community import CATALOGUE
from tests.fixture_types import Events, Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.roles import OWN, OWNER, ROLES
from trellis.core.roles.table import is_match
from trellis.core.structure.document import FORMAT
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.store import keys, requests
from trellis.store.webhooks import endpoints

MakeAdmin = Callable[..., Actor]
KIND_NAMES: Final = [kind.name for kind in KINDS]
GROUPS: Final = [kind.name for kind in KINDS if kind.is_group]
# What is on an administrator and not for everybody on themselves. A new operation on administrators is in here or in OWN.
OWNERS_ONLY: Final = {
    f"admins.{verb}"
    for verb in (
        "disable",
        "enable",
        "set_role",
        "reset_second_factor",
        "renew_invitation",
        "withdraw_invitation",
        "follow_groups",
        "turn_away",
    )
}


@pytest.fixture
def make_admin(gate: Gate, run: Run) -> MakeAdmin:
    """Makes an administrator with a role, and gives the actor as a session does."""

    def make(role: str, *kinds: str) -> Actor:
        name = f"{role} {' '.join(kinds)}".strip()
        made = run("admins.create", name=name, login=name, password="correct horse battery", role=role, kinds=list(kinds))
        permit = gate.environment.permits.find(role, ",".join(kinds) or None)
        return Actor.administrator(made["id"], name, permit)

    return make


def refusal_of(gate: Gate, call: Call) -> str:
    """Run a call, and return the message of its refusal, or ""."""
    try:
        gate.run(call)
    except Refused as refused:
        return refused.message
    return ""


# --- the table ----------------------------------------------------------------------------------------------------


def test_every_operation_is_for_a_role_and_stands_in_it_once() -> None:
    for operation in CATALOGUE.values():
        for role in ROLES.values():
            matching = [pattern for pattern in role.patterns if is_match(pattern, operation, KIND_NAMES)]
            assert len(matching) <= 1, (role.name, operation.name, matching)
        assert is_match("*.*", operation, KIND_NAMES)


def test_every_pattern_has_something() -> None:
    for role in ROLES.values():
        for pattern in role.patterns:
            assert any(is_match(pattern, one, KIND_NAMES, GROUPS) for one in CATALOGUE.values()), (role.name, pattern)


def test_what_is_on_administrators_is_for_owners_or_on_oneself() -> None:
    about = {name for name, one in CATALOGUE.items() if one.resource == "admins" and one.has_target}
    assert about == OWN | OWNERS_ONLY
    for role in ROLES.values():
        if role.name != OWNER:
            writes = [one.name for one in CATALOGUE.values() if one.resource == "admins" and one.writes]
            assert not [name for name in writes if any(is_match(p, CATALOGUE[name], KIND_NAMES) for p in role.patterns)]


def test_an_auditor_changes_nothing_and_only_owners_repair() -> None:
    may = {
        name: {role.name for role in ROLES.values() if any(is_match(p, one, KIND_NAMES) for p in role.patterns)}
        for name, one in CATALOGUE.items()
    }
    own = {"filters.create", "filters.update", "filters.delete"}  # how they look at it
    assert {name for name, roles in may.items() if "auditor" in roles and CATALOGUE[name].writes} == own
    assert {name for name, roles in may.items() if "auditor" not in roles} == {n for n, o in CATALOGUE.items() if o.writes} - own
    assert may["check.repair"] == may["admins.set_role"] == may["events.restore_of_key"] == {OWNER}
    assert may["keys.create"] == may["webhooks.rotate"] == {OWNER, "key-manager"}
    assert may["proposals.approve"] == {OWNER, "approver"}
    assert may["forums.create"] == may["structure.apply"] == may["core.batch"] == {OWNER, "structure-editor"}


# --- the gate -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("role", "kinds"), [*((name, ()) for name in ROLES), ("structure-editor", ("forums",))], ids=str)
def test_the_gate_runs_what_the_role_has_and_refuses_the_rest(
    role: str, kinds: tuple[str, ...], gate: Gate, make_admin: MakeAdmin, events: Events
) -> None:
    actor = make_admin(role, *kinds)
    before = events()
    chosen = list(kinds) or KIND_NAMES
    for operation in CATALOGUE.values():
        if operation.name in {"admins.create", "admins.begin"} or operation.fork is not None or not operation.grants:
            allowed = any(is_match(p, operation, chosen, set(GROUPS) - set(chosen)) for p in ROLES[role].patterns)
        else:
            wanted = [CATALOGUE[name] for name in operation.needed]
            allowed = all(any(is_match(p, one, chosen, set(GROUPS) - set(chosen)) for p in ROLES[role].patterns) for one in wanted)
        call = Call(operation.name, actor, {"nonsense": 1}, 999)  # refused for this, at the latest, and so never done
        message = refusal_of(gate, call)
        assert (message == "ROLE_NEEDED") is not allowed, (operation.name, message)
    assert events() == before


def test_a_refusal_says_what_and_whose_it_is(gate: Gate, make_admin: MakeAdmin) -> None:
    auditor = make_admin("auditor")
    with pytest.raises(Refused) as refused:
        gate.run(Call("forums.create", auditor, {"name": "News"}))
    assert (refused.value.status, refused.value.message) == (403, "ROLE_NEEDED")
    assert refused.value.facts == {"missingOperation": "forums.create", "roles": ["owner", "structure-editor"]}
    assert "forums.create is for owners and structure editors." in refused.value.detail
    assert "is an auditor." in refused.value.detail


def test_what_a_batch_or_a_document_runs_is_judged_too(gate: Gate, run: Run, make_admin: MakeAdmin) -> None:
    editor = make_admin("structure-editor", "forums")
    calendar = run("calendars.create", name="Meetings")["id"]
    both = [
        {"operation": "forums.create", "body": {"name": "News"}},
        {"operation": "calendars.delete", "id": calendar},
    ]
    with pytest.raises(Refused) as refused:
        gate.run(Call("core.batch", editor, {"operations": both}))
    assert refused.value.message == "BATCH_REFUSED"
    assert "calendars.delete is for owners and structure editors." in str(refused.value.facts)
    document = {"format": FORMAT, "name": "x", "calendars": [{"externalId": "a", "name": "A"}]}
    for operation in ("structure.plan", "structure.apply"):
        assert refusal_of(gate, Call(operation, editor, {"document": document})) == "ROLE_NEEDED"
    assert run("forums.list")["totalResults"] == 0
    assert run("calendars.get", calendar)["name"] == "Meetings"


def test_a_plan_tells_nothing_that_the_role_does_not_see(gate: Gate, run: Run, make_admin: MakeAdmin) -> None:
    run("keys.create", name="Plugin", grants=["forums.list"])
    keys = {"format": FORMAT, "name": "x", "keys": [{"name": "Plugin", "grants": ["forums.get"]}]}
    for editor in (make_admin("structure-editor"), make_admin("structure-editor", "forums")):
        assert refusal_of(gate, Call("structure.plan", editor, {"document": keys})) == "ROLE_NEEDED"
        for plan in ({}, {"plan": "0-x"}):  # it is not told of events that have outdated one, either
            assert refusal_of(gate, Call("structure.apply", editor, {"document": keys, **plan})) == "ROLE_NEEDED"
        keys["forums"] = [{"externalId": "a", "name": "A", "type": "redirect"}]  # this would be refused when it is created
        assert refusal_of(gate, Call("structure.apply", editor, {"document": keys})) == "ROLE_NEEDED"
    group = run("groups.create", name="Gardeners", externalId="gardeners")["id"]
    run("calendars.create", name="Meetings", permissions={"view": [group]})
    gone = {"document": {"format": FORMAT, "name": "x", "groups": []}, "prune": True, "allowEmpty": True}
    told = gate.run(Call("structure.plan", make_admin("owner"), gone)).value["changes"]
    assert [one["resource"] for one in told[0]["touched"]] == ["calendars"]
    assert refusal_of(gate, Call("structure.plan", editor, gone)) == "ROLE_NEEDED"


def test_undo_is_judged_by_what_it_undoes(gate: Gate, run: Run, make_admin: MakeAdmin, events: Events) -> None:
    editor, manager = make_admin("structure-editor", "forums"), make_admin("key-manager")
    run("forums.delete", run("forums.create", name="News")["id"])
    forum = events()[-1]["seq"]
    run("calendars.delete", run("calendars.create", name="Meetings")["id"])
    calendar = events()[-1]["seq"]
    owner = run("admins.create", name="Ada", login="ada", password="correct horse battery", role="owner")
    admin = events()[-1]["seq"]
    assert refusal_of(gate, Call("events.restore", manager, {}, forum)) == "ROLE_NEEDED"
    assert refusal_of(gate, Call("events.restore", editor, {}, calendar)) == "INVALID_ID"  # of which it may not even know
    assert refusal_of(gate, Call("events.restore", editor, {}, admin)) == "INVALID_ID"
    assert refusal_of(gate, Call("events.restore", editor, {}, forum)) == ""
    assert run("forums.list")["totalResults"] == 1
    assert run("admins.get", owner["id"])["role"] == "owner"


def test_an_editor_of_some_kinds_sees_these_and_the_groups(gate: Gate, run: Run, make_admin: MakeAdmin) -> None:
    run("forums.create", name="News")
    run("calendars.create", name="Meetings")
    editor = make_admin("structure-editor", "forums")
    manager = make_admin("key-manager")

    def seen(actor: Actor) -> set[str]:
        listed = gate.run(Call("events.list", actor)).value["results"]
        searched = gate.run(Call("events.search", actor)).value["results"]
        assert [one["seq"] for one in listed] == [one["seq"] for one in reversed(searched)]
        return {one["resource"] for one in listed}

    assert seen(editor) == {"forums"}
    assert seen(manager) == {"forums", "calendars"}
    assert seen(make_admin("auditor")) >= {"forums", "calendars", "admins"}
    numbers = gate.run(Call("overview.get", editor)).value
    assert set(numbers["nodes"]) == {"forums", *GROUPS}
    assert (numbers["keys"], numbers["hours"], numbers["webhooks"]) == (None, None, None)
    assert refusal_of(gate, Call("events.get", editor, {}, 2)) == "INVALID_ID"
    exported = gate.run(Call("structure.export", editor)).value
    assert "forums" in exported
    assert "calendars" not in exported
    text = gate.run(Call("structure.export", editor, {"format": "yaml"})).value.text
    assert "# The section calendars is left out: the caller may not list it.\n" in text  # it is not about a key


def test_what_events_tell_of_others_is_hidden_too(gate: Gate, run: Run, make_admin: MakeAdmin, events: Events) -> None:
    editor = make_admin("structure-editor", "forums")
    group = run("groups.create", name="Gardeners")["id"]
    for kind in ("forums", "calendars"):
        run(f"{kind}.create", name="News", permissions={"view": [group]})
    run("groups.delete", group)
    number = events()[-1]["seq"]
    assert {one["resource"] for one in events()[-1]["touched"]} == {"forums", "calendars"}
    listed = gate.run(Call("events.list", editor)).value["results"][-1]
    searched = gate.run(Call("events.search", editor)).value["results"][0]
    for told in (listed, searched, gate.run(Call("events.get", editor, {}, number)).value):
        assert (told["seq"], {one["resource"] for one in told["touched"]}) == (number, {"forums"})
    both = {"forums": [{"externalId": "a", "name": "A"}], "keys": [{"name": "Plugin", "grants": ["forums.list"]}]}
    work = gate.run(Call("structure.apply", TERMINAL, {"document": {"format": FORMAT, "name": "x", **both}})).change_set
    seen = gate.run(Call("events.search", editor, {"changeSet": work})).value["results"]
    assert gate.run(Call("events.get", editor, {}, seen[0]["seq"])).value["changeSetCount"] == len(seen) == 1
    plan = gate.run(Call("changesets.restore", editor, {"dryRun": True}, work)).value
    assert (plan["undoneCount"], plan["conflicts"], plan["conflictCount"]) == (1, [], 1)
    with pytest.raises(Refused) as refused:
        gate.run(Call("changesets.restore", editor, {}, work))
    assert (refused.value.message, refused.value.facts["conflicts"]) == ("RESTORE_CONFLICTS", [])
    assert "1 of 2 events cannot be undone. They are about records that your role cannot see." in refused.value.detail


def test_the_overview_reads_nothing_that_it_does_not_show(
    gate: Gate, make_admin: MakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("read for nobody")

    for name in ("find_expiring", "find_unused", "count_active"):
        monkeypatch.setattr(keys, name, refuse)
    monkeypatch.setattr(requests, "count_by_hour", refuse)
    monkeypatch.setattr(endpoints, "list_failing", refuse)
    shown = gate.run(Call("overview.get", make_admin("structure-editor"))).value
    assert {name for name, one in shown.items() if one is not None} == {"nodes"}


def test_everybody_may_change_their_own_password_and_nobody_elses(gate: Gate, make_admin: MakeAdmin) -> None:
    manager, owner = make_admin("key-manager"), make_admin("owner")
    raw = {"password": "quite another sentence"}
    assert refusal_of(gate, Call("admins.set_password", manager, raw, owner.id)) == "ROLE_NEEDED"
    assert refusal_of(gate, Call("admins.sign_in", manager, {}, owner.id)) == "ROLE_NEEDED"
    assert refusal_of(gate, Call("admins.set_role", manager, {"role": "owner"}, manager.id)) == "ROLE_NEEDED"
    assert refusal_of(gate, Call("admins.set_password", manager, raw, manager.id)) == ""


def test_a_write_that_waits_is_judged_by_the_role_at_its_turn(gate: Gate, run: Run, make_admin: MakeAdmin) -> None:
    """A demotion that is acknowledged binds what was let in before."""
    owner = make_admin("owner")
    run("admins.create", name="Bo", login="bo", password="correct horse battery")
    go = threading.Event()
    gate.store.write(lambda _: go.wait(30), quiet=True)
    demoted = gate.submit(Call("admins.set_role", TERMINAL, {"role": "auditor"}, owner.id))
    late = gate.submit(Call("forums.create", owner, {"name": "News"}))
    go.set()
    assert demoted.result(30).value["role"] == "auditor"
    with pytest.raises(Refused, match=r"^ROLE_NEEDED"):
        late.result(30)
    assert run("forums.list")["totalResults"] == 0


def test_nothing_that_waits_is_done_for_whoever_is_disabled_meanwhile(gate: Gate, run: Run, make_admin: MakeAdmin) -> None:
    ada = make_admin("owner")
    run("admins.create", name="Bo", login="bo", password="correct horse battery")
    go = threading.Event()
    gate.store.write(lambda _: go.wait(30), quiet=True)
    disabled = gate.submit(Call("admins.disable", TERMINAL, {}, ada.id))
    late = gate.submit(Call("admins.create", ada, {"name": "Cy", "login": "cy", "password": "correct horse battery"}))
    go.set()
    assert disabled.result(30).value["disabledAt"]
    with pytest.raises(Refused, match=r"^NO_PERMISSION: owner was disabled"):
        late.result(30)
    assert [one["login"] for one in run("admins.list")["results"]] == ["owner", "bo"]
    run("admins.enable", ada.id)
    assert gate.run(Call("forums.create", ada, {"name": "News"})).value["name"] == "News"


# --- giving roles -------------------------------------------------------------------------------------------------


def test_the_last_owner_stays_one(gate: Gate, run: Run, make_admin: MakeAdmin, events: Events) -> None:
    ada = make_admin("owner").id
    make_admin("auditor")
    before: Any = events()
    for operation, raw in (("admins.set_role", {"role": "auditor"}), ("admins.disable", {})):
        assert refusal_of(gate, Call(operation, TERMINAL, raw, ada)) == "LAST_ADMINISTRATOR"
    assert events() == before
    make_admin("structure-editor")
    assert refusal_of(gate, Call("admins.disable", TERMINAL, {}, ada)) == "LAST_ADMINISTRATOR"
    run("admins.create", name="Bo", login="bo", password="correct horse battery")
    assert run("admins.set_role", ada, role="structure-editor", kinds=["calendars", "forums"])["kinds"] == ["forums", "calendars"]
    assert events()[-1]["changed"] == ["role", "kinds"]
    assert run("admins.set_role", ada, role="auditor")["kinds"] == []


def test_kinds_are_for_structure_editors_and_without_groups(run: Run, make_admin: MakeAdmin) -> None:
    ada = make_admin("auditor").id
    for raw in (
        {"role": "auditor", "kinds": ["forums"]},
        {"role": "structure-editor", "kinds": ["nonsense"]},
        {"role": "structure-editor", "kinds": ["groups"]},
        {"role": "emperor"},
    ):
        with pytest.raises(Refused, match=r"^INVALID_VALUE"):
            run("admins.set_role", ada, **raw)
