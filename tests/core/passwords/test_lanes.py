"""Lanes: at most two pieces of work at once, in turns, and no more waiting than there may."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from tests.no_threads import without_new_threads
from trellis.core.passwords import Lanes, chain
from trellis.errors import Refused

_PATIENCE = 60


class Held:
    """Lanes whose two threads are held until `release`, and the order in which the work behind them was done."""

    def __init__(self) -> None:
        self.lanes = Lanes(on_idle=lambda: None)
        self.done: list[str] = []
        self.running = self.most = 0
        self._gate, self._guard = threading.Event(), threading.Lock()
        begun = [threading.Event() for _ in range(2)]
        self.futures: list[Future[Any]] = [self.lanes.submit(f"keys/{number}", self._hold(begun[number])) for number in range(2)]
        assert all(one.wait(_PATIENCE) for one in begun)

    def _hold(self, begun: threading.Event) -> Callable[[], None]:
        def hold() -> None:
            begun.set()
            self._gate.wait(_PATIENCE)

        return hold

    def put(self, lane: str, name: str = "") -> Future[None]:
        """Put work into a lane that notes its name."""

        def work() -> None:
            with self._guard:
                self.running += 1
                self.most = max(self.most, self.running)
                self.done.append(name or lane)
            with self._guard:
                self.running -= 1

        self.futures.append(future := self.lanes.submit(lane, work))
        return future

    def release(self) -> None:
        """Let everything run, and wait for it."""
        self._gate.set()
        for future in self.futures:
            future.result(_PATIENCE)


@pytest.fixture
def held() -> Iterator[Held]:
    held = Held()
    yield held
    held.release()


def test_the_owner_passes_thirty_strangers_who_came_before(held: Held) -> None:
    for number in range(30):
        held.put(f"strangers/192.0.2.{number}", "stranger")
    held.put("people/browser/mira", "owner")
    held.release()
    assert "owner" in held.done[:4]  # two threads, of which each may have taken a stranger first
    assert held.most <= 2


def test_the_lanes_of_a_group_take_turns(held: Held) -> None:
    for _ in range(10):
        held.put("strangers/192.0.2.1", "many")
    held.put("strangers/192.0.2.2", "one")
    held.release()
    assert "one" in held.done[:4]


def test_a_full_lane_refuses_and_the_others_do_not(held: Held) -> None:
    for _ in range(16):
        held.put("strangers/192.0.2.1")
    with pytest.raises(Refused, match=r"^TOO_MANY_PASSWORDS") as refused:
        held.put("strangers/192.0.2.1")
    assert refused.value.status == 503
    assert refused.value.refusal.headers["Retry-After"] == "1"
    held.put("strangers/192.0.2.2")
    held.put("people/browser/mira")


def test_strangers_from_any_number_of_addresses_are_bounded_and_shut_nobody_else_out(held: Held) -> None:
    for number in range(128):
        held.put(f"strangers/192.0.2.{number}")
    with pytest.raises(Refused, match=r"^TOO_MANY_PASSWORDS"):
        held.put("strangers/198.51.100.1")
    held.put("people/browser/mira")
    held.put("keys/key/7")


def test_an_error_is_raised_where_it_is_awaited_and_the_next_work_is_done(held: Held) -> None:
    def fail() -> None:
        raise ValueError("no")

    failed = held.lanes.submit("people/1", fail)
    held.put("people/2")
    held.release()
    with pytest.raises(ValueError, match="no"):
        failed.result(_PATIENCE)


def test_what_was_cancelled_is_not_begun(held: Held) -> None:
    begun: list[int] = []

    def then(_: None) -> Future[None]:
        begun.append(1)
        return Future()

    both = chain(held.put("keys/1", "cancelled"), then)
    assert both.cancel()
    held.futures.pop()
    held.release()
    assert (begun, "cancelled" in held.done) == ([], False)


def test_what_waits_for_its_second_step_can_be_cancelled_and_what_has_begun_that_cannot() -> None:
    firsts, seconds = [Future[int]() for _ in range(3)], [Future[str]() for _ in range(3)]
    chained = [chain(first, seconds.__getitem__) for first in firsts]
    for number, first in enumerate(firsts):
        first.set_result(number)
    assert chained[0].cancel()
    assert (seconds[0].cancelled(), chained[0].cancelled()) == (True, True)
    assert seconds[1].set_running_or_notify_cancel()
    assert not chained[1].cancel()
    seconds[1].set_result("done")
    assert chained[1].result(_PATIENCE) == "done"
    seconds[2].cancel()
    assert chained[2].cancelled()


def test_where_no_thread_can_be_started_work_is_refused_and_later_work_is_done() -> None:
    lanes, done = Lanes(on_idle=lambda: None), list[str]()
    with without_new_threads():
        for _ in range(3):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                lanes.submit("people/1", lambda: done.append("refused"))
    lanes.submit("people/1", lambda: done.append("later")).result(_PATIENCE)
    assert done == ["later"]


def test_where_no_second_thread_can_be_started_the_first_does_the_work() -> None:
    lanes, go = Lanes(on_idle=lambda: None), threading.Event()
    first = lanes.submit("people/1", lambda: go.wait(_PATIENCE))
    with without_new_threads():
        second = lanes.submit("people/2", lambda: "done")
    go.set()
    assert (first.result(_PATIENCE), second.result(_PATIENCE)) == (True, "done")
