"""The panel's way to the gate and the database without holding up the event loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from trellis.core.admins import NewPassword
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call
from trellis.settings import Settings
from trellis.store.engine import Transaction

T = TypeVar("T")


class House:
    """Where a page's acts go: operations to the gate, the panel's own bookkeeping to the store.

    On SQLite a read runs in place, since a thread would cost more than the read; on PostgreSQL it runs in a thread. Writes
    wait for the one writer without holding up anybody else.
    """

    def __init__(self, gate: Gate, settings: Settings) -> None:
        self.gate = gate
        self.settings = settings

    async def perform(self, call: Call, *, slow: bool = False) -> Result:
        """Run an operation; a `slow` read runs in a thread everywhere. Raises Refused, and then nothing was changed."""
        operation = self.gate.catalogue.find(call.operation)
        if operation.writes:
            if any(isinstance(field.type, NewPassword) for field in operation.fields):  # a slow digest, on purpose
                return await asyncio.wrap_future(await asyncio.to_thread(self.gate.submit, call))
            return await asyncio.wrap_future(self.gate.submit(call))
        if self.gate.store.reads_inline and not slow:
            return self.gate.run(call)
        return await asyncio.to_thread(self.gate.run, call)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Read bookkeeping, in a snapshot."""
        if self.gate.store.reads_inline:
            return self._read(work)
        return await asyncio.to_thread(self._read, work)

    def _read(self, work: Callable[[Transaction], T]) -> T:
        with self.gate.store.reading() as tx:
            return work(tx)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Write bookkeeping. What is an act on the community goes through `perform` instead."""
        return await asyncio.wrap_future(self.gate.store.write(work, quiet=True))
