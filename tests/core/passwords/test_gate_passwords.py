"""Passwords on their way through the gate: judged first, digested in lanes, before the writer and outside of it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from tests.fixture_types import Events, Run
from tests.wait import wait_until
from trellis.core.actor import TERMINAL, Actor
from trellis.core.admins import create_first_run_token
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call
from trellis.core.passwords import digests as passwords
from trellis.core.passwords import lanes
from trellis.errors import Refused

_PATIENCE = 60
_WORD = "open sesame"


class Slow:
    """Makes digests that wait until they are let go, and counts them with the threads in which they are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[str] = []
        self.begun, self.go = threading.Event(), threading.Event()
        original = passwords.hash_password

        def digest(password: str, cost: passwords.Cost) -> str:
            self.threads.append(threading.current_thread().name)
            self.begun.set()
            self.go.wait(_PATIENCE)
            return original(password, passwords.Cost(1, 8, 1))

        monkeypatch.setattr(passwords, "hash_password", digest)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    return Slow(monkeypatch)


def _call(operation: str, target: int | None = None, /, actor: Actor = TERMINAL, **raw: Any) -> Call:
    return Call(operation, actor, raw, target)


def _batch(operation: str, target: int, **raw: Any) -> Call:
    return _call("core.batch", operations=[{"operation": operation, "id": target, "body": raw}])


@pytest.mark.parametrize("dry", [False, True])
def test_while_a_digest_is_made_other_writes_go_on(gate: Gate, slow: Slow, run: Run, dry: bool) -> None:
    waiting = gate.submit(_call("forums.create", name="Staff", password=_WORD, dryRun=dry))
    assert slow.begun.wait(_PATIENCE)
    run("forums.create", name="News")  # is done while the other still waits
    assert not waiting.done()
    slow.go.set()
    result = waiting.result(_PATIENCE)
    assert (result.value["passwordProtected"], result.dry) == (True, dry)
    assert "trellis-writer" not in slow.threads


def test_a_call_without_a_password_waits_for_no_digest(gate: Gate, slow: Slow, run: Run) -> None:
    waiting = gate.submit(_call("forums.create", name="Staff", password=_WORD))
    assert slow.begun.wait(_PATIENCE)
    forum = run("forums.create", name="News", password=None)
    assert run("forums.update", forum["id"], password="")["passwordProtected"] is False
    slow.go.set()
    assert waiting.result(_PATIENCE).value["passwordProtected"] is True


def test_what_is_refused_anyway_costs_no_digest(gate: Gate, slow: Slow, events: Events) -> None:
    slow.go.set()
    reader = Actor("key", 7, "Reader", frozenset({"forums.list"}))
    for call, refusal in (
        (_call("forums.create", name="F", password=_WORD, nonsense=1), "UNKNOWN_PARAMETER"),
        (_call("forums.update", 999, password=_WORD), "INVALID_ID"),
        (_call("forums.create", actor=reader, name="Staff", password=_WORD), "NO_PERMISSION"),
        (_call("admins.begin", name="M", login="m", password="correct horse battery", link="guess"), "LINK_SPENT"),
    ):
        with pytest.raises(Refused, match=rf"^{refusal}"):
            gate.run(call)
    assert (slow.threads, events()) == ([], [])


def test_a_good_link_costs_one_digest_and_is_judged_again_in_the_writer(gate: Gate, slow: Slow) -> None:
    link = create_first_run_token(gate)
    raw: dict[str, Any] = {"name": "M", "password": "correct horse battery", "link": link}
    first = gate.submit(_call("admins.begin", login="first", **raw))
    second = gate.submit(_call("admins.begin", login="second", **raw))  # is judged while the first is not there yet
    assert slow.begun.wait(_PATIENCE)
    slow.go.set()
    outcomes = [future.exception(_PATIENCE) for future in (first, second)]
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "Refused"]


def test_a_password_that_is_sent_again_is_no_change(run: Run, events: Events) -> None:
    forum = run("forums.create", name="Staff", password=_WORD)
    run("forums.update", forum["id"], password=_WORD)
    assert len(events()) == 1
    run("forums.update", forum["id"], password="another")
    assert events()[-1]["changed"] == ["password"]


@pytest.mark.parametrize("before", [None, "the one before"])
@pytest.mark.parametrize("within", [_call, _batch], ids=["alone", "in batches"])
def test_the_same_new_password_twice_at_the_same_moment_is_one_change(
    gate: Gate, slow: Slow, run: Run, events: Events, before: str | None, within: Callable[..., Call]
) -> None:
    forum = run("forums.create", name="Staff")["id"]
    slow.go.set()
    run("forums.update", forum, password=before)
    slow.go.clear()
    known, made = len(events()), len(slow.threads)
    both = [gate.submit(within("forums.update", forum, password=_WORD)) for _ in range(2)]
    wait_until(lambda: len(slow.threads) == made + 2)  # both have found the password that there was before
    slow.go.set()
    changed = [future.result(_PATIENCE).event is not None for future in both]
    assert ["password" in event["changed"] for event in events()[known:]] == [True]
    assert sorted(changed) == [False, True]
    assert "trellis-writer" not in slow.threads


def test_another_password_at_the_same_moment_is_another_change(gate: Gate, slow: Slow, run: Run, events: Events) -> None:
    forum = run("forums.create", name="Staff")["id"]
    both = [gate.submit(_call("forums.update", forum, password=word)) for word in (_WORD, "another")]
    wait_until(lambda: len(slow.threads) == 2)
    slow.go.set()
    assert all(future.result(_PATIENCE).event for future in both)
    assert ["password" in event["changed"] for event in events()[1:]] == [True, True]
    assert "trellis-writer" not in slow.threads


def _submit_until_refused(gate: Gate, slow: Slow, actor: Actor) -> tuple[list[Future[Result]], Call]:
    """Submit calls with passwords until one finds no room, and none will get any; return the others, and the one refused."""
    running: list[Future[Result]] = []
    for number in range(30):
        call = Call("forums.create", actor, {"name": "F", "password": _WORD}, token=f"t-{number}", fingerprint="f")
        try:
            running.append(gate.submit(call))
            if len(running) == lanes._THREADS:  # each has taken its work, so that no room is made later
                wait_until(lambda: len(slow.threads) == lanes._THREADS)
        except Refused as refused:
            if refused.message == "TOO_MANY_PASSWORDS":
                return running, call
            raise
    raise AssertionError("nothing was refused")


def test_the_requests_of_one_key_wait_behind_two_digests_and_no_other_does(gate: Gate, slow: Slow) -> None:
    plugin, other = (Actor("key", number, "Plugin", frozenset({"forums.create"})) for number in (7, 8))
    running, _ = _submit_until_refused(gate, slow, plugin)
    elsewhere = gate.submit(Call("forums.create", other, {"name": "Other", "password": _WORD}))
    assert 16 <= len(running) <= 18
    assert len(slow.threads) <= 2
    slow.go.set()
    assert all(future.result(_PATIENCE).event for future in (*running, elsewhere))


def test_an_approval_that_finds_no_room_is_told_of_no_passwords(gate: Gate, slow: Slow) -> None:
    plugin = Actor("key", 7, "Plugin", frozenset({"forums.create", "proposals.approve"}))
    running, _ = _submit_until_refused(gate, slow, plugin)
    with pytest.raises(Refused, match=r"^BUSY: Too many writes are already waiting") as refused:
        gate.submit(_call("proposals.approve", 1, plugin))
    assert refused.value.status == 503
    slow.go.set()
    for future in running:
        future.result(_PATIENCE)


def test_a_call_that_found_no_room_can_be_sent_again_under_its_idempotency_key(gate: Gate, slow: Slow) -> None:
    plugin = Actor("key", 7, "Plugin", frozenset({"forums.create"}))
    running, refused = _submit_until_refused(gate, slow, plugin)
    slow.go.set()
    for future in running:
        future.result(_PATIENCE)
    assert gate.run(refused).event is not None


def test_the_passwords_in_a_batch_become_digests_before_the_writer(gate: Gate, slow: Slow, run: Run, events: Events) -> None:
    forum = run("forums.create", name="Staff")["id"]
    slow.go.set()
    run("forums.update", forum, password=_WORD)
    made = len(slow.threads)
    steps = [
        {"operation": "forums.create", "as": "new", "body": {"name": "New", "password": _WORD}},
        {"operation": "forums.update", "id": forum, "body": {"password": _WORD}},  # no change
        {"operation": "forums.update", "id": {"$ref": "new.id"}, "body": {"password": "another"}},
    ]
    before = len(events())
    run("core.batch", operations=steps)
    assert [event["operation"] for event in events()[before:]] == ["forums.create", "forums.update"]
    assert slow.threads[made:] == ["trellis-passwords"] * 2
    with pytest.raises(Refused, match=r"^BATCH_REFUSED"):
        run("core.batch", operations=[{"operation": "forums.update", "id": 999, "body": {"password": _WORD}}])
    assert len(slow.threads) == made + 2


def test_a_write_with_a_password_that_is_withdrawn_while_it_waits_for_the_writer_is_never_begun(gate: Gate, run: Run) -> None:
    go_on = threading.Event()
    held = gate.store.write(lambda _: go_on.wait(_PATIENCE))
    wait_until(lambda: not gate.store.writer.waiting)
    waiting = gate.submit(_call("forums.create", name="Staff", password=_WORD))
    wait_until(lambda: gate.store.writer.waiting == 1)
    assert waiting.cancel()
    go_on.set()
    assert held.result(_PATIENCE)
    run("forums.create", name="News")
    assert [forum["name"] for forum in run("forums.list")["results"]] == ["News"]
