"""A write of a key that waits for its turn, while the key is changed."""

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.fixture_types import Clock, Run
from tests.wait import wait_until
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate, Result
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.store import keys
from trellis.store.engine import Transaction
from trellis.store.keys import Key

NEWS = {"name": "News"}


@pytest.fixture
def holder(gate: Gate, run: Run) -> Actor:
    """Whoever presents key 1, which may create and list forums."""
    made = run("keys.create", name="Sync", grants=["forums.create", "forums.list"])
    with gate.store.reading() as tx:
        return authenticate(tx, made["key"], gate.now()).actor


def _find_key(gate: Gate, holder: Actor) -> Key | None:
    with gate.store.reading() as tx:
        return keys.find(tx, holder.id or 0)


def _see_judged(run: Run, late: Future[Result], refusal: str | None) -> None:
    """See that a write which has waited is done, or refused with this message without having changed anything."""
    if refusal is None:
        assert late.result(30).event is not None
        return
    with pytest.raises(Refused, match=f"^{refusal}: "):
        late.result(30)
    assert run("forums.list")["totalResults"] == 0


@contextmanager
def _waiting(gate: Gate) -> Iterator[None]:
    """Let writes wait until the end of the block."""
    began, go = threading.Event(), threading.Event()

    def hold(_: Transaction) -> None:
        began.set()
        go.wait(30)

    gate.store.write(hold, quiet=True)
    assert began.wait(30)
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


@pytest.mark.parametrize(
    ("address", "refusal"),
    [("192.0.2.7", "IP_ADDRESS_NOT_ALLOWED"), ("::ffff:198.51.100.9", None), ("", None)],
    ids=["left out", "still among them", "from no address"],
)
def test_it_is_judged_by_the_addresses_of_the_key_at_its_turn(
    gate: Gate, run: Run, holder: Actor, address: str, refusal: str | None
) -> None:
    with _waiting(gate):
        changed = gate.submit(Call("keys.update", TERMINAL, {"addresses": ["198.51.100.0/24"]}, holder.id))
        late = gate.submit(Call("forums.create", holder, NEWS, address=address))
    changed.result(30)
    _see_judged(run, late, refusal)


@pytest.mark.parametrize(
    ("ends", "refusal"),
    [
        ({"expires": "1h"}, "INVALID_API_KEY"),
        ({"bounds": {"forums.create": {"until": "1h"}}}, "GRANT_ENDED"),
        ({"expires": "2d", "bounds": {"forums.create": {"until": "2d"}}}, None),
    ],
    ids=["key", "grant", "neither"],
)
def test_what_ends_while_a_write_waits_has_ended_for_it(
    gate: Gate, run: Run, clock: Clock, ends: Mapping[str, Any], refusal: str | None
) -> None:
    made = run("keys.create", name="Sync", grants=["forums.create"], **ends)
    with gate.store.reading() as tx:
        holder = authenticate(tx, made["key"], gate.now()).actor
    with _waiting(gate):
        late = gate.submit(Call("forums.create", holder, NEWS))
        clock.move(hours=2)
    _see_judged(run, late, refusal)


def test_an_old_secret_that_ends_while_a_write_waits_has_ended_for_it(gate: Gate, run: Run, clock: Clock, holder: Actor) -> None:
    run("keys.rotate", holder.id, overlapDays=1)
    gate.run(Call("forums.create", holder, NEWS))
    key = replace(holder, key=_find_key(gate, holder))  # as it is by now, and presented by the old secret
    with _waiting(gate):
        late = gate.submit(Call("forums.create", key, NEWS))
        clock.move(days=2)
    with pytest.raises(Refused, match=r"^INVALID_API_KEY: "):
        late.result(30)


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


@pytest.mark.parametrize(
    ("operation", "raw", "refusal"),
    [
        ("keys.revoke", {}, "INVALID_API_KEY"),
        ("keys.update", {"addresses": ["198.51.100.0/24"]}, "IP_ADDRESS_NOT_ALLOWED"),
        ("keys.update", {"ungrant": ["forums.list"]}, "NO_PERMISSION"),
        ("keys.update", {"bound": {"forums.list": {"perDay": 5, "under": ["forums:99"]}}}, None),
    ],
    ids=["revoked", "address left out", "grant taken", "bound to nothing"],
)
def test_a_counted_read_is_judged_by_the_key_at_its_turn(
    gate: Gate, run: Run, operation: str, raw: Mapping[str, Any], refusal: str | None
) -> None:
    made = run("keys.create", name="Reader", grants=["forums.list"], bounds={"forums.list": {"perDay": 5}})
    run("forums.create", **NEWS)
    with gate.store.reading() as tx:
        reader = authenticate(tx, made["key"], gate.now()).actor
    with ThreadPoolExecutor(1) as pool:
        with _waiting(gate):
            changed = gate.submit(Call(operation, TERMINAL, raw, made["id"]))
            late = pool.submit(gate.run, Call("forums.list", reader, address="192.0.2.7"))
            wait_until(lambda: gate.store.writer.waiting == 2)
        changed.result(30)
        if refusal is None:
            assert late.result(30).value["totalResults"] == 0
            return
        with pytest.raises(Refused, match=f"^{refusal}: "):
            late.result(30)


def test_a_repeated_write_of_a_key_that_is_revoked_meanwhile_gets_no_response(gate: Gate, holder: Actor) -> None:
    call = Call("forums.create", holder, NEWS, token="once", fingerprint="news")
    gate.run(call)
    assert gate.run(call).replayed
    with _waiting(gate):
        changed = gate.submit(Call("keys.revoke", TERMINAL, {}, holder.id))
        late = gate.submit(call)
    changed.result(30)
    with pytest.raises(Refused, match=r"^INVALID_API_KEY: "):
        late.result(30)
