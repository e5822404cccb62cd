"""Lanes: queues for slow work, mostly on passwords, which is done outside the writer and event loops, at most two pieces at once.

A digest of a sign-in password takes 64 MiB and 50 ms, and anybody can ask for one. So each key, person, known browser and address
has a lane of its own. The groups of lanes take turns, and so do the lanes within a group, so that many who wait in one group or
lane do not hold up the others.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from trellis.errors import Refused
from trellis.sentences import say

T = TypeVar("T")
U = TypeVar("U")

KEYS: Final = "keys"
PEOPLE: Final = "people"  # known callers: signed-in administrators, browsers that have signed in, owners of passkeys, the terminal
STRANGERS: Final = "strangers"

_MOST: Final = 20  # passwords that one call may set through the calls that it runs
_THREADS: Final = 2
_LANE: Final = 16  # pieces of work that may wait in a lane
_GROUP: Final = 128  # pieces of work that may wait in all lanes of a group


def check_number(count: int) -> None:
    """Refuse too many passwords in the calls that one call runs. Raises Refused (SETS_TOO_MANY_PASSWORDS)."""
    if count > _MOST:
        detail = say(
            "This request sets {count:,} passwords, but at most {most} are allowed. Nothing was done. Set fewer of them at once.",
            count=count,
            most=_MOST,
        )
        raise Refused("SETS_TOO_MANY_PASSWORDS", detail)


def refuse_proposed() -> Refused:
    """Return the refusal of a password in a call that somebody else has to approve: it would have to be stored in clear text."""
    return Refused(
        "PASSWORD_IN_PROPOSAL",
        say(
            "A password cannot be proposed, since it would have to be stored until somebody approves it. Nothing was done. "
            "Leave it out, and ask an administrator to set it."
        ),
    )


def _refuse_waiting() -> Refused:
    return Refused(
        "TOO_MANY_PASSWORDS", say("Too many passwords are waiting to be checked or stored. Nothing was changed; try again.")
    )


class Lanes:
    """The lanes of one process, each named `group/caller`. Threads are started when there is work, and end when there is none.

    `on_idle` is called in a thread before it ends.
    """

    def __init__(self, on_idle: Callable[[], None]) -> None:
        self._on_idle = on_idle
        self._groups: dict[str, dict[str, deque[tuple[Callable[[], Any], Future[Any]]]]] = {}
        self._guard = threading.Lock()
        self._threads = 0

    def submit(self, lane: str, work: Callable[[], T], refuse: Callable[[], Refused] = _refuse_waiting) -> Future[T]:
        """Put a piece of work into a lane.

        Raises what `refuse` returns, by default TOO_MANY_PASSWORDS, if the lane or its group is full, and RuntimeError if no thread
        can be started for it.
        """
        future: Future[T] = Future()
        with self._guard:
            self._require_room(lane, refuse)
            if self._threads < _THREADS:
                self._start_thread()
            self._groups.setdefault(_group(lane), {}).setdefault(lane, deque()).append((work, future))
        return future

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._serve, name="trellis-passwords", daemon=True).start()
        except RuntimeError:  # the system allows no more threads now
            if self._threads == 0:
                raise
        else:
            self._threads += 1

    def _require_room(self, lane: str, refuse: Callable[[], Refused]) -> None:
        lanes = self._groups.get(_group(lane), {})
        if len(lanes.get(lane, ())) >= _LANE or sum(map(len, lanes.values())) >= _GROUP:
            raise refuse()

    def _serve(self) -> None:
        while (job := self._take()) is not None:
            work, future = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  # it is raised where the future is awaited
                future.set_exception(error)

    def _take(self) -> tuple[Callable[[], Any], Future[Any]] | None:
        """Take the next piece of work from the group, and its lane, that was served the longest ago; None if there is none."""
        with self._guard:
            if self._groups:
                group = next(iter(self._groups))
                lanes = self._groups.pop(group)
                lane = next(iter(lanes))
                waiting = lanes.pop(lane)
                job = waiting.popleft()
                if waiting:
                    lanes[lane] = waiting  # behind the others
                if lanes:
                    self._groups[group] = lanes
                return job
            self._threads -= 1
        self._on_idle()
        return None


def _group(lane: str) -> str:
    return lane.partition("/")[0]


def chain(first: Future[T], then: Callable[[T], Future[U]]) -> Future[U]:
    """Return the future of what `then` starts with the result of the first. Cancelling it cancels what has not begun."""
    both: _Chained[U] = _Chained(first)
    first.add_done_callback(lambda done: both.go_on(lambda: then(done.result())))
    return both


class _Chained(Future[U]):
    """The future of the second of two steps, which is started when the first has ended."""

    def __init__(self, first: Future[Any]) -> None:
        super().__init__()
        self._first = first
        self._second: Future[U] | None = None
        self._guard = threading.RLock()  # cancelling a future runs its callbacks in the same thread

    def cancel(self) -> bool:
        """Cancel the step that is waiting; return False if the second step has begun."""
        with self._guard:
            if self._second is not None and not self._second.cancel():
                return False
            cancelled = super().cancel()
        self._first.cancel()
        return cancelled

    def go_on(self, start: Callable[[], Future[U]]) -> None:
        """Start the second step, unless this future was cancelled."""
        with self._guard:
            if not self.cancelled():
                try:
                    self._second = start()
                except BaseException as error:  # noqa: BLE001  # as above
                    self.set_exception(error)
        if self._second is not None:
            self._second.add_done_callback(self._finish)

    def _finish(self, second: Future[U]) -> None:
        if second.cancelled():
            super().cancel()
        elif (error := second.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(second.result())
