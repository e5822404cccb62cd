"""Documents get nothing by what their key was not granted: neither read nor written."""

import sys
from functools import partial
from typing import Any, Final

import pytest

from tests.database_state import DatabaseState
from tests.fixture_types import Clock, Run
from trellis.core.actor import Actor
from trellis.core.bounds import Bound
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.structure import matching
from trellis.errors import Refused

SECTIONS: Final = ("groups", "forums", "calendars", "categories")
BEFORE: Final = {
    "format": "trellis/1",
    "name": "site",
    "forums": [{"externalId": "old", "name": "Old"}, {"externalId": "gone", "name": "Gone"}],
    "calendars": [{"externalId": "c", "name": "C"}],
}
AFTER: Final = {
    "format": "trellis/1",
    "name": "site",
    "forums": [{"externalId": "new", "name": "New"}, {"externalId": "old", "name": "Renamed"}],
    "calendars": [],
    "categories": [{"externalId": "d", "name": "D"}],
}
OPTIONS: Final[dict[str, Any]] = {"document": AFTER, "prune": True, "allowEmpty": True}
READS: Final = frozenset(["groups.list", "forums.list", "calendars.list", "categories.list"])
WRITES: Final = frozenset(["forums.create", "forums.update", "forums.delete", "calendars.delete", "categories.create"])


def ask(gate: Gate, operation: str, grants: frozenset[str], **raw: Any) -> Any:
    return gate.run(Call(operation, Actor("key", 7, "Plugin", grants | {operation}), raw)).value


def refuse(gate: Gate, operation: str, grants: frozenset[str], **raw: Any) -> str:
    with pytest.raises(Refused) as refused:
        ask(gate, operation, grants, **raw)
    assert refused.value.message == "NO_PERMISSION"
    return str(refused.value.facts["missingOperation"])


@pytest.fixture(autouse=True)
def _before(run: Run) -> None:
    run("structure.apply", document=BEFORE)


def test_applying_needs_each_grant_that_it_uses(gate: Gate, database: DatabaseState) -> None:
    for missing in sorted(READS | WRITES):
        with database.unchanged():
            assert refuse(gate, "structure.apply", (READS | WRITES) - {missing}, **OPTIONS) == missing


def test_with_all_of_them_it_is_done(gate: Gate, run: Run) -> None:
    plan = ask(gate, "structure.plan", READS, **OPTIONS)
    assert ask(gate, "structure.apply", READS | WRITES, plan=plan["plan"], **OPTIONS)["counts"] == plan["counts"]
    assert [forum["name"] for forum in run("forums.list", sortBy="position")["results"]] == ["New", "Renamed"]


def test_planning_needs_the_grants_to_list_and_names_those_to_write(gate: Gate, database: DatabaseState) -> None:
    with database.unchanged():
        for missing in sorted(READS):
            assert refuse(gate, "structure.plan", READS - {missing}, **OPTIONS) == missing
        assert ask(gate, "structure.plan", READS, **OPTIONS)["missingOperations"] == sorted(WRITES)
        some = READS | {"forums.create"}
        assert ask(gate, "structure.plan", some, **OPTIONS)["missingOperations"] == sorted(WRITES - {"forums.create"})


def test_a_plan_names_grants_from_the_time_at_which_they_end(gate: Gate, clock: Clock) -> None:
    later = clock.text.replace("2026", "2027")
    bounds = {"forums.create": Bound(until=clock.text), "forums.update": Bound(until=later)}
    caller = Actor("key", 7, "Plugin", READS | WRITES | {"structure.plan", "structure.apply"}, bounds)
    assert gate.run(Call("structure.plan", caller, OPTIONS)).value["missingOperations"] == ["forums.create"]
    with pytest.raises(Refused, match="GRANT_ENDED"):
        gate.run(Call("structure.apply", caller, OPTIONS))


@pytest.mark.parametrize("section", ["groups", "blogs"])
def test_what_only_the_panel_makes_is_not_made_by_a_key(gate: Gate, database: DatabaseState, section: str) -> None:
    wanted = {"format": "trellis/1", "name": "site", section: [{"externalId": "x", "name": "X"}]}
    with database.unchanged():
        missing = refuse(gate, "structure.apply", READS | WRITES, document=wanted)
    assert missing == {"groups": "groups.create", "blogs": "blogs.list"}[section]


def test_nobody_is_sent_to_grant_what_no_key_can_be_granted(gate: Gate) -> None:
    wanted = {"format": "trellis/1", "name": "site", "groups": [{"externalId": "x", "name": "X"}]}
    with pytest.raises(Refused) as refused:
        ask(gate, "structure.apply", READS | WRITES, document=wanted)
    assert refused.value.detail == (
        "No key can be granted groups.create. An administrator can do this in the panel or at the terminal."
    )


def test_what_a_key_may_not_list_is_left_out_of_an_export(gate: Gate, run: Run) -> None:
    run("blogs.create", name="Diary")
    run("categories.create", name="Files")
    may = frozenset(["groups.list", "forums.list"])
    assert set(ask(gate, "structure.export", may)) == {"format", "name", "groups", "forums"}
    text = ask(gate, "structure.export", may, format="yaml").text
    assert "Diary" not in text
    assert "Files" not in text
    assert "# The section blogs is left out: the caller may not list it." in text
    assert refuse(gate, "structure.export", may, sections=["calendars"]) == "calendars.list"
    assert refuse(gate, "structure.export", may - {"groups.list"}, sections=["forums"]) == "groups.list"
    assert refuse(gate, "structure.export", frozenset()) == "groups.list"


def test_a_section_that_a_key_may_not_list_any_more_is_left_out_of_an_export(gate: Gate, run: Run, clock: Clock) -> None:
    run("categories.create", name="Files")
    caller = Actor("key", 7, "Plugin", READS | {"structure.export"}, {"categories.list": Bound(until=clock.text)})
    assert set(gate.run(Call("structure.export", caller)).value) == {"format", "name", "groups", "forums", "calendars"}
    with pytest.raises(Refused, match="GRANT_ENDED"):
        gate.run(Call("structure.export", caller, {"sections": ["categories"]}))


def test_a_plan_within_bounds_is_outdated_after_many_changes_outside(gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["trellis.core.structure.operations"], "_PAGE", 10)  # its package has a function of that name
    old, new = (one["id"] for one in run("forums.list")["results"])
    inside, gone = (run("forums.create", name=name, externalId=name.lower(), parentId=old)["id"] for name in ("Inside", "Lost"))
    bound = Bound(under=(f"forums:{old}",))
    actor = Actor(
        "key",
        7,
        "Plugin",
        READS | WRITES | {"structure.plan", "structure.apply"},
        bounds=dict.fromkeys(("forums.list", "forums.create", "forums.update", "forums.delete"), bound),
    )
    new_one = {"externalId": "more", "name": "More", "children": [{"externalId": name, "name": name} for name in "yx"]}
    entries = [new_one, {"externalId": "inside", "name": "Planned"}]
    raw: dict[str, Any] = {"document": {"format": "trellis/1", "name": "site", "under": "old", "forums": entries}}
    raw["plan"] = gate.run(Call("structure.plan", actor, raw)).value["plan"]
    run("forums.create", name="Outside")  # with the id that a node of the plan would have had
    assert gate.run(Call("structure.apply", actor, raw | {"dryRun": True})).value["counts"]["create"] == 3
    for number in range(11):
        run("forums.update", new, name=f"Outside {number}")
    for change, ids in (
        (partial(run, "forums.delete", gone), [gone]),
        (partial(run, "forums.update", inside, name="By hand"), [gone, inside]),
    ):
        change()
        with pytest.raises(Refused, match="PLAN_OUTDATED") as refused:
            gate.run(Call("structure.apply", actor, raw))
        assert [one["id"] for one in refused.value.facts["changes"]] == ids
    assert run("forums.get", inside)["name"] == "By hand"


def test_how_many_records_are_out_of_reach_makes_no_difference_to_a_plan(
    gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "_MOST", 2)
    mine = run("calendars.get_external", externalId="c")["id"]
    bound = Bound(under=(f"calendars:{mine}",))
    actor = Actor("key", 7, "Plugin", READS | {"structure.plan"}, {"calendars.list": bound})
    document = {"format": "trellis/1", "name": "site", "calendars": [{"externalId": "c", "name": "Mine"}]}
    for number in range(3):
        plan = gate.run(Call("structure.plan", actor, {"document": document, "prune": True})).value
        assert [(one["action"], one["id"]) for one in plan["changes"]] == [("update", mine)]
        run("calendars.create", name=f"Not mine {number}")


TRIED: Final = {
    "none": None,
    "all": Bound(),
    "dry run": Bound(dry_run_only=True),
    "proposal": Bound(level="propose"),
    "ended": Bound(until="2001-01-01T00:00:00.000Z"),
}


def list_doors(password: str, of: int) -> list[tuple[str, int | None, dict[str, Any]]]:
    """Return calls that set a password, of a forum with the external id old, without keeping it."""
    entry = {"externalId": "old", "name": "Old", "password": password}
    steps = [{"operation": "forums.update", "id": of, "body": {"password": password}}]
    document = {"format": "trellis/1", "name": "site", "forums": [entry]}
    failing = {"operation": "forums.create", "body": {"name": "A", "type": {"$ref": "old.updatedAt"}}}  # its refusal shows this
    return [
        ("structure.plan", None, {"document": document}),
        ("structure.apply", None, {"document": document, "dryRun": True}),
        ("forums.update", of, {"password": password, "dryRun": True}),
        ("forums.put_external", None, {"externalId": "old", "password": password, "dryRun": True}),
        ("core.batch", None, {"operations": steps, "dryRun": True}),
        ("core.batch", None, {"operations": [steps[0] | {"as": "old"}, failing]}),
    ]


def test_nobody_finds_out_whether_a_guess_at_a_password_is_right_without_setting_it(gate: Gate, run: Run, clock: Clock) -> None:
    forum = run("forums.update", run("forums.get_external", externalId="old")["id"], password="open sesame")["id"]

    def try_all(actor: Actor, password: str) -> list[Any]:
        answers = []
        for operation, target, raw in list_doors(password, forum):
            try:
                answers.append(gate.run(Call(operation, actor, raw, target)).value)
            except Refused as refused:
                answers.append((refused.message, refused.detail))
        for answer in answers:
            if "counts" in answer:
                answer.pop("plan")  # it is computed from the password, with a key that nobody knows
        return answers

    clock.move(hours=1)
    for tried, bound in TRIED.items():
        grants = READS | {"structure.plan", "structure.apply", "forums.create"} | (set() if bound is None else {"forums.update"})
        actor = Actor("key", 7, "Plugin", grants, {} if bound is None else {"forums.update": bound})
        right = try_all(actor, "open sesame")
        assert right == try_all(actor, "a guess"), tried
        assert right[0]["changes"][0]["differences"] == [{"member": "password", "before": None, "after": None}], tried


def test_a_plan_of_somebody_who_may_only_read_can_be_applied(gate: Gate, run: Run) -> None:
    """It says that a password would change although it would not, and is the same plan."""
    run("forums.update", run("forums.get_external", externalId="old")["id"], password="open sesame")
    forums = [{"externalId": "old", "name": "Renamed", "password": "open sesame"}, {"externalId": "gone", "name": "Gone"}]
    raw = {"document": {"format": "trellis/1", "name": "site", "forums": forums}}
    plan = ask(gate, "structure.plan", READS, **raw)["plan"]
    assert run("structure.plan", **raw)["plan"] == plan
    (change,) = run("structure.apply", **raw, plan=plan)["changes"]
    assert [one["member"] for one in change["differences"]] == ["name"]


@pytest.mark.parametrize("missing", ["path", "fail"])
def test_an_export_names_no_group_that_is_out_of_reach(gate: Gate, run: Run, missing: str) -> None:
    mine, other = (run("groups.create", name=name, externalId=eid)["id"] for name, eid in (("Mine", "mine"), ("Hidden", None)))
    calendar = run("calendars.create", name="D", externalId="d", permissions={"view": [mine]})["id"]
    actor = Actor("key", 7, "Plugin", READS | {"structure.export"}, bounds={"groups.list": Bound(under=(f"groups:{mine}",))})
    call = Call("structure.export", actor, {"sections": ["calendars", "groups"], "externalIds": missing})
    written = gate.run(call).value
    assert [one["externalId"] for one in written["groups"]] == ["mine"]
    assert written["calendars"][-1]["permissions"]["view"] == ["mine"]
    run("calendars.update", calendar, permissions={"view": [mine, other]})
    with pytest.raises(Refused) as refused:
        gate.run(call)
    assert refused.value.message == "OUT_OF_BOUNDS"
    assert "hidden" not in str(refused.value.detail).lower()
