"""A tree of which a key's grants are for a part, and what runs operations as that key."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.fixture_types import MakeKey, Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate, Result
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.errors import Refused

Act = Callable[..., Result]
MakeActor = Callable[..., Actor]


@pytest.fixture
def actor(gate: Gate, key: MakeKey) -> MakeActor:
    """Make a key with bounds, and return who calls with it."""

    def make(grants: Iterable[str], **bounds: dict[str, Any]) -> Actor:
        text = key(grants, bounds={name.replace("__", "."): bound for name, bound in bounds.items()})
        return gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor

    return make


@pytest.fixture
def act(gate: Gate) -> Act:
    """Run an operation as an actor."""

    def run(actor: Actor, operation: str, target: int | None = None, /, **raw: Any) -> Result:
        return gate.run(Call(operation, actor, raw, target))

    return run


@pytest.fixture
def refused(act: Act) -> Callable[..., Refused]:
    """Run an operation that has to be refused, and return the refusal."""

    def run(*arguments: Any, **raw: Any) -> Refused:
        with pytest.raises(Refused) as caught:
            act(*arguments, **raw)
        return caught.value

    return run


@pytest.fixture
def forums(run: Run) -> dict[str, int]:
    """A tree: News > Part > (Inner > Leaf, Other), and beside it Away > Child. `Part` is what grants are limited to."""
    made: dict[str, int] = {}
    for name, parent in (
        ("News", None),
        ("Part", "News"),
        ("Inner", "Part"),
        ("Leaf", "Inner"),
        ("Other", "Part"),
        ("Away", None),
        ("Child", "Away"),
    ):
        made[name] = run("forums.create", name=name, externalId=name.lower(), parentId=made[parent] if parent else None)["id"]
    return made


@pytest.fixture
def bot(actor: MakeActor, forums: dict[str, int]) -> Actor:
    """A key that may do everything with forums within Part, and read the feed and documents there."""
    grants = [f"forums.{verb}" for verb in ("list", "get", "create", "update", "delete", "copy", "restore")]
    grants += ["events.list", "structure.export", "structure.plan", "structure.apply"]
    under = {"under": [f"forums:{forums['Part']}"]}
    return actor([*grants, "groups.list"], **{name.replace(".", "__"): under for name in grants})
