"""Runs operations and bookkeeping for pages without blocking the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Concatenate, ParamSpec, TypeVar

from trellis.core.admins import NewPassword
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call
from trellis.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")


class Runner:
    """Hands operations to the gate, and runs the functions of `core.admins` that do bookkeeping.

    On SQLite a read runs in place, since a thread would cost more than the read; on PostgreSQL it runs in a thread. Writes
    wait for the one writer without blocking anything else.
    """

    def __init__(self, gate: Gate, settings: Settings) -> None:
        self.gate = gate
        self.settings = settings

    async def perform(self, call: Call, *, slow: bool = False) -> Result:
        """Run an operation; a `slow` read runs in a thread on either engine. Raises Refused, and then nothing was changed."""
        operation = self.gate.catalogue.find(call.operation)
        if operation.writes:
            if any(isinstance(field.type, NewPassword) for field in operation.fields):  # a slow digest, on purpose
                return await asyncio.wrap_future(await asyncio.to_thread(self.gate.submit, call))
            return await asyncio.wrap_future(self.gate.submit(call))
        if self.gate.store.reads_inline and not slow:
            return self.gate.run(call)
        return await asyncio.to_thread(self.gate.run, call)

    async def read(self, function: Callable[Concatenate[Gate, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that reads bookkeeping: `await runner.read(find_session, token)`."""
        if self.gate.store.reads_inline:
            return function(self.gate, *args, **kwargs)
        return await asyncio.to_thread(function, self.gate, *args, **kwargs)

    async def write(self, function: Callable[Concatenate[Gate, P], Future[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that writes bookkeeping, and wait until that is durable."""
        return await asyncio.wrap_future(function(self.gate, *args, **kwargs))
