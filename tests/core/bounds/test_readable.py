"""What a key may not read it learns only the number of, when a group that records name is deleted or restored."""

from typing import Any

import pytest

from tests.core.bounds.conftest import MakeActor
from tests.fixture_types import Run
from trellis.core.actor import Actor
from trellis.core.bounds import Bound
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused

GROUPS = {"groups.list", "groups.get", "groups.create", "groups.delete", "groups.restore"}
PLAN = {"structure.plan", "structure.apply"}
DOCUMENT: dict[str, Any] = {
    "document": {"format": "trellis/1", "name": "site", "groups": []},
    "prune": True,
    "allowEmpty": True,
}


@pytest.fixture
def group(run: Run) -> int:
    """A group that two forums and a calendar name."""
    group = int(run("groups.create", name="Moderators", externalId="m")["id"])
    for name in ("Secret", "Open"):
        run("forums.create", name=name, permissions={"view": [group]})
    run("calendars.create", name="Secret too", permissions={"view": [group]})
    return group


def name_keys(forum: int) -> dict[str, tuple[set[str], dict[str, Bound], list[tuple[str, int]]]]:
    """Return keys: their grants, bounds, and what they may read of what names the group."""
    return {
        "groups alone": (set(), {}, []),
        "ended": ({"forums.list"}, {"forums.list": Bound(until="2001-01-01T00:00:00.000Z")}, []),
        "one forum": ({"forums.get"}, {"forums.get": Bound(under=(f"forums:{forum}",))}, [("forums", forum)]),
        "calendars": ({"calendars.list"}, {}, [("calendars", 1)]),
    }


@pytest.mark.parametrize("which", name_keys(0))
def test_what_names_a_group_is_only_counted_for_who_may_not_read_it(gate: Gate, run: Run, group: int, which: str) -> None:
    forum = run("forums.list", search="Open")["results"][0]["id"]
    grants, bounds, readable = name_keys(forum)[which]
    actor = Actor(
        "key", 7, "Plugin", frozenset(GROUPS | PLAN | grants | {"events.list"}), bounds | {"events.list": Bound(own_only=True)}
    )

    def ask(operation: str, target: int | None = None, **raw: Any) -> Any:
        return gate.run(Call(operation, actor, raw, target))

    def list_named(found: list[dict[str, Any]]) -> list[tuple[str, int]]:
        return [(one["resource"], one["id"]) for one in found]

    plan = ask("groups.delete", group, dryRun=True).value
    assert (plan["changed"]["count"], list_named(plan["changed"]["nodes"])) == (3, readable)
    for operation, raw in (("structure.plan", {}), ("structure.apply", {"dryRun": True})):
        (change,) = ask(operation, **DOCUMENT, **raw).value["changes"]
        assert list_named(change["touched"]) == readable
    event = ask("groups.delete", group).event
    (told,) = ask("events.list").value["results"]
    assert list_named(told["touched"]) == readable
    for raw in ({"dryRun": True}, {}):
        undone = ask("events.restore", event, **raw).value
        assert (undone["changed"]["count"], list_named(undone["changed"]["nodes"])) == (3, readable)


def test_a_refused_undo_counts_them_too(gate: Gate, run: Run) -> None:
    actor = Actor("key", 7, "Plugin", frozenset(GROUPS))
    made = gate.run(Call("groups.create", actor, {"name": "Mine"}))
    for kind in ("forums", "calendars"):
        run(f"{kind}.create", name="Secret", permissions={"view": [made.value["id"]]})

    def refuse(grants: set[str]) -> str:
        with pytest.raises(Refused, match="CHANGED_SINCE") as refused:
            gate.run(
                Call("events.restore", Actor("key", 7, "Plugin", frozenset(GROUPS | grants)), {"deleteCreated": True}, made.event)
            )
        return str(refused.value.detail)

    assert " by 2 others: " in refuse(set())
    assert " by forums 1, 1 other: " in refuse({"forums.get"})
    assert " by calendars 1, forums 1: " in refuse({"forums.get", "calendars.get"})


def test_a_proposal_shows_its_proposer_what_that_may_read_and_others_everything(
    gate: Gate, run: Run, group: int, actor: MakeActor
) -> None:
    proposer = actor(["groups.delete"], groups__delete={"level": "propose"})
    proposal = gate.run(Call("groups.delete", proposer, {}, group)).value
    (shown,) = gate.run(Call("proposals.get", proposer, {}, proposal["id"])).value["effects"]
    assert (shown["touched"], shown["touchedCount"], proposal["effects"]) == ([], 3, [shown])
    (whole,) = run("proposals.get", proposal["id"])["effects"]
    assert len(whole["touched"]) == 3
