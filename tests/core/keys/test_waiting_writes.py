"""A write of a key that waits for its turn, while the key is changed."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from tests.fixture_types import Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.errors import Refused

NEWS = {"name": "News"}


@pytest.fixture
def holder(gate: Gate, run: Run) -> Actor:
    """Whoever presents key 1, which may create and list forums."""
    made = run("keys.create", name="Sync", grants=["forums.create", "forums.list"])
    with gate.store.reading() as tx:
        return authenticate(tx, made["key"], gate.now()).actor


@contextmanager
def _waiting(gate: Gate) -> Iterator[None]:
    """Let writes wait until the end of the block."""
    go = threading.Event()
    gate.store.write(lambda _: go.wait(30), quiet=True)
    try:
        yield
    finally:
        go.set()


@pytest.mark.parametrize(
    ("operation", "raw", "refusal"),
    [
        ("keys.revoke", {}, "INVALID_API_KEY"),
        ("keys.pause", {}, "INVALID_API_KEY"),
        ("keys.rotate", {}, "INVALID_API_KEY"),
        ("keys.update", {"ungrant": ["forums.create"]}, "NO_PERMISSION"),
        ("keys.rotate", {"overlapDays": 1}, None),
        ("keys.update", {"name": "Synchroniser"}, None),
    ],
    ids=["revoked", "paused", "new secret", "grant taken", "new secret beside the old one", "renamed"],
)
def test_it_is_judged_by_the_key_at_its_turn(
    gate: Gate, run: Run, holder: Actor, operation: str, raw: Mapping[str, Any], refusal: str | None
) -> None:
    with _waiting(gate):
        changed = gate.submit(Call(operation, TERMINAL, raw, holder.id))
        late = gate.submit(Call("forums.create", holder, NEWS))
    changed.result(30)
    if refusal is None:
        assert late.result(30).value["name"] == "News"
        assert run("events.list", type="forum.created")["results"][0]["actor"]["name"] == run("keys.get", holder.id)["name"]
        return
    with pytest.raises(Refused, match=f"^{refusal}: "):
        late.result(30)
    assert run("forums.list")["totalResults"] == 0


def test_the_secret_before_the_last_one_ends_for_what_waits_too(gate: Gate, run: Run, holder: Actor) -> None:
    run("keys.rotate", holder.id, overlapDays=1)
    assert gate.run(Call("forums.create", holder, NEWS)).value["name"] == "News"  # by the old secret
    with _waiting(gate):
        again = gate.submit(Call("keys.rotate", TERMINAL, {}, holder.id))
        late = gate.submit(Call("forums.create", holder, NEWS))
    again.result(30)
    with pytest.raises(Refused, match=r"^INVALID_API_KEY: "):
        late.result(30)


@pytest.mark.parametrize("is_tried", [False, True])
def test_of_writes_that_share_a_commit_those_before_the_change_are_done(gate: Gate, holder: Actor, is_tried: bool) -> None:
    with _waiting(gate):
        early = [gate.submit(Call("forums.create", holder, {"name": name})) for name in ("One", "Two")]
        changed = gate.submit(Call("keys.update", TERMINAL, {"ungrant": ["forums.create"], "dryRun": is_tried}, holder.id))
        late = [gate.submit(Call("forums.create", holder, {"name": name})) for name in ("Three", "Four")]
    assert [one.result(30).value["name"] for one in early] == ["One", "Two"]
    assert changed.result(30).dry is is_tried
    if is_tried:
        assert [one.result(30).value["name"] for one in late] == ["Three", "Four"]
        return
    for one in late:
        with pytest.raises(Refused, match=r"^NO_PERMISSION: "):
            one.result(30)
