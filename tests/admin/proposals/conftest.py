"""A key that may only propose, and its calls."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.fixture_types import MakeKey
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call

Propose = Callable[..., int]
PROPOSED = ("forums.create", "forums.update", "forums.delete", "groups.delete", "structure.apply", "webhooks.create")


@pytest.fixture
def agent(key: MakeKey) -> str:
    """The text of a key that may only propose."""
    return key([*PROPOSED, "forums.list", "groups.list"], name="Agent", bounds={name: {"level": "propose"} for name in PROPOSED})


@pytest.fixture
def propose(gate: Gate, agent: str) -> Propose:
    """Propose a call; return the number of the proposal."""

    def perform(operation: str, target: int | None = None, /, *, reason: str | None = None, **raw: Any) -> int:
        actor = gate.store.read_single(lambda tx: authenticate(tx, agent, gate.now())).actor
        return int(gate.run(Call(operation, actor, raw, target, reason=reason)).value["id"])

    return perform
