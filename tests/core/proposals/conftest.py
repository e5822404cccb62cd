"""A key that may read and propose, an administrator, and calls by them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate, Result
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.errors import Refused

MakeAgent = Callable[..., Actor]


@dataclass(frozen=True)
class Act:
    """Runs operations as actors: `act(agent, "forums.delete", 3)`; `call` are members of the call itself."""

    gate: Gate
    database: DatabaseState

    def __call__(self, actor: Actor, operation: str, target: int | None = None, /, *, call: Any = None, **raw: Any) -> Result:
        return self.gate.run(Call(operation, actor, raw, target, **call or {}))

    def refuse(self, *about: Any, call: Any = None, **raw: Any) -> Refused:
        """Run an operation that is refused and so changes nothing; return the refusal."""
        with self.database.unchanged(), pytest.raises(Refused) as refused:
            self(*about, call=call, **raw)
        return refused.value


@pytest.fixture
def make_agent(gate: Gate, key: MakeKey) -> MakeAgent:
    """Make a key that may propose some operations, and run others by itself."""

    def make(*proposed: str, grants: tuple[str, ...] = (), **settings: Any) -> Actor:
        bounds = {name: {"level": "propose"} for name in proposed}
        text = key([*proposed, *grants], **{"name": "Agent", "bounds": bounds} | settings)
        return gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor

    return make


@pytest.fixture
def agent(make_agent: MakeAgent) -> Actor:
    """A key that may propose to create, change, delete and restore forums."""
    return make_agent(
        "forums.create", "forums.update", "forums.delete", "forums.restore", grants=("forums.get", "calendars.create")
    )


@pytest.fixture
def ada(run: Run) -> Actor:
    """An administrator."""
    made = run("admins.create", name="Ada", login="ada", password="correct horse battery staple")
    return Actor("admin", made["id"], "Ada")


@pytest.fixture
def act(gate: Gate, database: DatabaseState) -> Act:
    """Run operations as actors."""
    return Act(gate, database)
