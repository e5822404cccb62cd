"""Runs operations and bookkeeping for pages without blocking the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from trellis.admin.submitted import SentBefore
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate, Result
from trellis.core.idempotency import KeyReused, RecordGone, StillRunning
from trellis.core.operation import Call, SessionEnded
from trellis.errors import LongRead, Refused, refuse_faults
from trellis.http.asgi import Receive
from trellis.http.large import LargeRequests, run_by_size
from trellis.http.reading import LimitedReads, SharedRead, follow_fork, make_long_reads, read_in_thread
from trellis.http.withdrawal import wait_for_write
from trellis.sentences import drop_advice, say, separate_limits
from trellis.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

_WAITS = 50  # how often a write that was sent twice checks whether the first one has ended
_WAIT = 0.1  # seconds between two checks
_MOST_PROBLEMS = 100  # how many a check lists


class SignInNeeded(Exception):
    """The session of the administrator who sent a form ended while its write waited; the panel asks them to sign in."""


class PasswordNeeded(Exception):
    """A page requires that the password was entered in the last 15 minutes; the panel asks for it."""


class Runner:
    """Passes operations to the gate, and runs the functions of `core.admins` that do bookkeeping.

    On SQLite a read runs in place, since a thread would cost more than the read, until it turns out to be long: then it runs in one
    of a few threads. On PostgreSQL it runs in a thread. Writes wait for the one writer without blocking anything else. With the
    `receive` of an ASGI request, a write whose client has disconnected is withdrawn if it has not begun.
    """

    def __init__(
        self, gate: Gate, settings: Settings, large: LargeRequests | None = None, long_reads: LimitedReads | None = None
    ) -> None:
        self.gate = gate
        check = partial(gate.run, Call("check.list", TERMINAL, {"limit": _MOST_PROBLEMS}))
        self._checking: SharedRead[Result] = SharedRead("trellis-check", check)
        self._large = large or LargeRequests(settings.busy_timeout)
        self._long = long_reads or make_long_reads(settings)
        self.settings = settings
        self.receive: Receive | None = None
        self._read_seconds = settings.database_pool_timeout + settings.database_read_timeout

    def serving(self, receive: Receive) -> Self:
        """Return a runner for one request, whose body must be read before anything is written."""
        runner = copy(self)
        runner.receive = receive
        return runner

    async def check(self) -> Result:
        """Check the database for somebody who may. Callers share one check at a time, since it reads every row. Raises Refused."""
        try:
            async with asyncio.timeout(None if self.gate.store.reads_inline else self._read_seconds):
                return await self._checking.run()
        except TimeoutError:
            raise Refused("BUSY", say("The database check takes too long here: run `trellis check` in a terminal.")) from None

    async def perform(self, call: Call, *, slow: bool = False, size: int = 0) -> Result:
        """Run an operation; a `slow` read runs in a thread on either engine.

        Raises Refused, as people read it: without advice on what a program should send to a field, and with separators in limits.
        Raises SignInNeeded if the session has ended, in which case nothing has changed. `size` is the size in bytes of the form
        that caused the call.
        """
        try:
            return await self._perform(call, slow=slow, size=size)
        except Refused as refused:
            if not refused.faults:
                raise
            refused.faults = tuple(replace(fault, detail=separate_limits(drop_advice(fault.detail))) for fault in refused.faults)
            refused.detail = refuse_faults(*refused.faults).detail if not refused.more_faults else refused.detail
            raise

    async def _perform(self, call: Call, *, slow: bool, size: int) -> Result:
        operation = self.gate.catalogue.find(call.operation)
        if operation.writes:
            try:
                if operation.fork is not None:
                    call = await follow_fork(self.gate, call, self._read_seconds)
                async with self._large.take_turn(size):
                    return await self._wait_for(await run_by_size(size, self.gate.submit, call))
            except SessionEnded:
                raise SignInNeeded from None
        if slow:
            return await self._long.run(partial(self.gate.run, call))
        if not self.gate.store.reads_inline:
            return await read_in_thread(self._read_seconds, self.gate.run, call)
        try:
            with self.gate.store.reading_briefly():
                return self.gate.run(call)
        except LongRead:
            return await self._long.run(partial(self.gate.run, call))

    async def perform_once(self, call: Call, *, size: int) -> Result:
        """Run a write with a token, after waiting for an earlier one with the same token: a form may be sent twice at once.

        Raises Refused, and SentBefore if the token belongs to other values, or if what the earlier write created is gone: the texts
        of these refusals are for programs.
        """
        await self._wait_until_ended(call)
        try:
            return await self.perform(call, size=size)
        except StillRunning as refused:
            refused.detail = say("This form is still being processed. Wait a moment, then send it again.")
            raise
        except KeyReused as refused:
            raise SentBefore(is_gone=isinstance(refused, RecordGone)) from None

    async def find_response(self, call: Call) -> Any:
        """Return the response to an earlier write with the same token, once that write has ended; None if there was none."""
        await self._wait_until_ended(call)
        return await self.read(Gate.find_response, call)

    async def _wait_until_ended(self, call: Call) -> None:
        for _ in range(_WAITS):
            if not self.gate.is_running(call):
                break
            await asyncio.sleep(_WAIT)

    async def read(self, function: Callable[Concatenate[Gate, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that reads bookkeeping: `await runner.read(find_session, token)`."""
        if self.gate.store.reads_inline:
            return function(self.gate, *args, **kwargs)
        return await read_in_thread(self._read_seconds, function, self.gate, *args, **kwargs)

    async def write(self, function: Callable[Concatenate[Gate, P], Future[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that writes bookkeeping, and wait until the write is durable."""
        return await asyncio.wrap_future(function(self.gate, *args, **kwargs))

    async def _wait_for(self, future: Future[T]) -> T:
        waiting = asyncio.wrap_future(future)
        if self.receive is None:
            return await waiting
        return await wait_for_write(future, waiting, self.receive, self.settings.busy_timeout)
