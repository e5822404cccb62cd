"""An undo puts back what was there; another parent is a move, which a key must be allowed to make."""

from typing import Any

import pytest

from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from trellis.core.actor import Actor
from trellis.core.bounds import Bound
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.errors import Refused

RESTORE = {"forums.delete", "forums.restore"}


def ask(gate: Gate, actor: Actor, operation: str, target: int | None = None, **raw: Any) -> Any:
    return gate.run(Call(operation, actor, raw, target)).value


def delete(gate: Gate, actor: Actor, forum: int) -> int:
    return int(gate.run(Call("forums.delete", actor, {}, forum)).event or 0)


@pytest.mark.parametrize("door", ["event", "batch"])
def test_an_agent_proposes_to_restore_what_it_has_deleted_under_another_parent(
    gate: Gate, run: Run, community: Community, key: MakeKey, door: str
) -> None:
    text = key([*RESTORE, "forums.update"], bounds={"forums.restore": {"ownOnly": True}, "forums.update": {"level": "propose"}})
    agent = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    event = delete(gate, agent, community.betas)
    steps = [{"operation": "events.restore", "id": event, "body": {"parentId": community.help}}]
    if door == "batch":
        proposal = ask(gate, agent, "core.batch", operations=steps)
    else:
        proposal = ask(gate, agent, "events.restore", event, parentId=community.help)
    assert (proposal["state"], proposal["counts"]["created"]) == ("open", 1)
    assert community.betas not in {one["id"] for one in run("forums.list", perPage=1000)["results"]}
    assert ask(gate, agent, "events.restore", event, parentId=community.help, dryRun=True)["record"]["path"] == "Help > Betas"
    if door == "event":
        run("proposals.approve", proposal["id"])
        assert run("forums.get", community.betas)["path"] == "Help > Betas"
    else:
        ask(gate, agent, "events.restore", event)  # back to where it was
        assert run("forums.get", community.betas)["parentId"] == community.releases


@pytest.mark.parametrize(
    ("grants", "bounds", "message"),
    [
        (RESTORE, {}, "NO_PERMISSION"),
        (RESTORE | {"forums.update"}, {"forums.update": Bound(until="2001-01-01T00:00:00.000Z")}, "GRANT_ENDED"),
        (RESTORE | {"forums.update"}, {"forums.update": Bound(dry_run_only=True)}, "DRY_RUN_ONLY"),
        (RESTORE | {"forums.update"}, {"forums.update": Bound(under=("forums:1",))}, "OUT_OF_BOUNDS"),
    ],
)
def test_a_key_that_may_not_move_a_node_restores_it_where_it_was(
    gate: Gate, run: Run, community: Community, grants: set[str], bounds: dict[str, Bound], message: str
) -> None:
    bounds = {name: Bound(under=(f"forums:{community.news}",)) if bound.under else bound for name, bound in bounds.items()}
    actor = Actor("key", 7, "Plugin", frozenset(grants), bounds)
    event = delete(gate, actor, community.betas)
    with DatabaseState(gate).unchanged(), pytest.raises(Refused) as refused:
        ask(gate, actor, "events.restore", event, parentId=community.help)
    assert refused.value.message == message
    ask(gate, actor, "events.restore", event)
    assert run("forums.get", community.betas)["parentId"] == community.releases
