"""The request log and the last use of keys, which are collected in memory and written in batches.

Callers without a key must not be able to fill memory or disk: requests without a valid key are counted by address and minute, and
only a few of them are logged as examples.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from trellis.core.gate import Gate
from trellis.core.keys import Keyring
from trellis.core.networks import find_network
from trellis.errors import Refused
from trellis.store import keys, requests
from trellis.store.engine import Transaction
from trellis.store.requests import KeylessCount, Request

log = logging.getLogger(__name__)

_MAX_WAITING: Final = 50_000  # the most requests in memory; the oldest are dropped if the database cannot be written to
_URGENT: Final = 100  # from so many requests in memory on they are written early: writing many keeps others waiting
_BATCH: Final = 10_000  # large, since SQLite has to refill its cache after each
_ADDRESSES: Final = 100  # that are counted separately in a minute; further ones are counted together
_EXAMPLES: Final = 5  # per address and minute
_MOST_EXAMPLES: Final = 100  # per minute, of all addresses together
_OTHERS: Final = "others"
_MINUTE: Final = 60  # seconds


class RequestLog:
    """The completed requests that are still to be written. `urgent` is set when there are many of them."""

    def __init__(self, gate: Gate, keyring: Keyring, most_bytes: int) -> None:
        self.urgent = asyncio.Event()
        self._gate = gate
        self._keyring = keyring
        self._most_bytes = most_bytes
        self._waiting: deque[Request] = deque(maxlen=_MAX_WAITING)
        self._keyless = KeylessTally()

    def record(self, request: Request) -> None:
        """Add a completed request to the log; one without a valid key is counted, and added only if one more example is wanted."""
        if request.is_example and not self._keyless.count(request):
            return
        self._waiting.append(request)
        if len(self._waiting) == _URGENT:
            self.urgent.set()

    async def flush(self) -> None:
        """Write everything collected so far. What is refused is kept for the next time; the store has logged why.

        Requests that are completed meanwhile wait for the next time; otherwise, ever smaller batches would each cost a commit. The
        counts are a write of their own, so that they are not lost with a batch, but usually share its commit.
        """
        await asyncio.gather(self._write_counts(), self._write_requests(len(self._waiting)))

    async def _write_counts(self) -> None:
        """Write the uses of keys and the counts of requests without one."""
        uses, counted = self._keyring.take_uses(), self._keyless.take()
        if not uses and not counted:
            return

        def write(tx: Transaction) -> None:
            requests.append_keyless(tx, counted)
            keys.record_uses(tx, uses)

        try:
            await asyncio.wrap_future(self._gate.store.write(write, quiet=True))
        except Refused:
            self._keyring.put_back(uses)
            self._keyless.put_back(counted)
        except Exception:
            told = "The last uses of %d keys and the counts of %d requests without a valid key could not be written."
            log.exception(told, len(uses), sum(one.times for one in counted))

    async def _write_requests(self, count: int) -> None:
        """Write a number of the oldest requests. Those that are refused are kept as far as there is room."""
        while count > 0:
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, count))]
            count -= len(batch)
            try:
                await asyncio.wrap_future(self._gate.store.write(partial(self._write_batch, batch), quiet=True))
            except Refused:
                room = _MAX_WAITING - len(self._waiting)
                self._waiting.extendleft(reversed(batch[max(0, len(batch) - room) :]))
                return
            except Exception:
                log.exception("%d requests could not be written to the request log.", len(batch))

    def _write_batch(self, batch: Sequence[Request], tx: Transaction) -> None:
        requests.append(tx, batch)
        requests.trim(tx, self._most_bytes)


class KeylessTally:
    """The counts of requests without a valid key: a limited number of rows a minute, however many callers send them."""

    def __init__(self) -> None:
        self._minute = ""
        self._began = 0.0  # when this minute began, on the monotonic clock
        self._examples: dict[str, int] = {}  # examples of each address this minute; the addresses in it are counted separately
        self._logged = 0  # examples this minute
        self._counted: Counter[tuple[str, str, int, str]] = Counter()

    def count(self, request: Request) -> bool:
        """Count a request; return whether it is to be logged as an example."""
        minute, now = request.at[:16], time.monotonic()
        # A request that was received in an earlier minute begins no other one, unless the machine's clock was set back.
        if minute > self._minute or now - self._began >= _MINUTE:
            self._minute, self._began = minute, now
            self._examples.clear()
            self._logged = 0
        address = find_network(request.address)
        if address not in self._examples and len(self._examples) >= _ADDRESSES:
            address = _OTHERS
        self._add((minute, address, request.status, request.error or ""), 1)
        had = self._examples.setdefault(address, 0)
        if had >= _EXAMPLES or self._logged >= _MOST_EXAMPLES:
            return False
        self._examples[address] = had + 1
        self._logged += 1
        return True

    def take(self) -> list[KeylessCount]:
        """Return the counts that are not yet written, and forget them."""
        counted, self._counted = self._counted, Counter()
        return [KeylessCount(*row, times) for row, times in counted.items()]

    def put_back(self, counted: Iterable[KeylessCount]) -> None:
        """Add counts that could not be written, as far as there is room."""
        for minute, address, status, error, times in counted:
            self._add((minute, address, status, error), times)

    def _add(self, row: tuple[str, str, int, str], times: int) -> None:
        if row in self._counted or len(self._counted) < _MAX_WAITING:
            self._counted[row] += times
