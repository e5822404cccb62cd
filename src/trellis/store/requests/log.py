"""Writing the request log in batches, and counting requests by key and day, by key and quarter of an hour, and by hour."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, compress, repeat
from operator import itemgetter, methodcaller, not_
from typing import Any, Final

import sqlalchemy as sa

from trellis.store.engine import Transaction, upsert
from trellis.store.requests.request import (
    LONGEST_DURATION,
    Request,
    Shape,
    find_shape,
    get_at,
    get_duration,
    get_is_example,
    get_path,
    get_request_id,
)
from trellis.store.requests.shapes import find_or_insert
from trellis.store.requests.size import count_bytes, delete_and_count
from trellis.store.tables import key_quarters, key_uses, request_hours, request_shapes, requests

_COLUMNS: Final = ("at", "shape", "path", "duration", "request_id")
_PER_STATEMENT: Final = 150  # requests in one statement; some builds of SQLite accept only 999 parameters
_MINUTE: Final = itemgetter(slice(16))  # of a timestamp


@cache
def _insert(count: int, *, sqlite: bool) -> str:
    """Build one statement for many requests. With a statement for each, threads would hand over the interpreter lock each time."""
    row = f"({', '.join('?' if sqlite else '%s' for _ in _COLUMNS)})"
    return f"INSERT INTO {requests.name} ({', '.join(_COLUMNS)}) VALUES {', '.join([row] * count)}"  # noqa: S608  # no values


_COUNT_USES = upsert(
    key_uses,
    "times = key_uses.times + excluded.times, "
    "last_at = CASE WHEN excluded.last_at > key_uses.last_at THEN excluded.last_at ELSE key_uses.last_at END",
)
_COUNT_QUARTER = upsert(key_quarters, "times = key_quarters.times + excluded.times")
_COUNT_HOUR = upsert(request_hours, "times = request_hours.times + excluded.times")


def append(tx: Transaction, batch: Sequence[Request]) -> None:
    """Write completed requests; count uses of keys by day and by quarter of an hour, and requests by hour.

    Examples of requests without a valid key are written but not counted, since `append_keyless` counts them. Work on each request
    is done by `map` and similar functions in C: while this thread runs Python code, no request is answered.
    """
    batch = sorted(batch, key=get_at)
    received, shapes = list(map(get_at, batch)), list(map(find_shape, batch))
    ids, new = find_or_insert(tx, dict.fromkeys(shapes))
    numbers = list(map(ids.__getitem__, shapes))
    # A NUL character or a number too large for PostgreSQL in one row would keep the whole batch out of the log.
    paths = map(methodcaller("replace", "\0", "\ufffd"), map(get_path, batch))
    durations = map(min, map(get_duration, batch), repeat(LONGEST_DURATION))
    rows = list(zip(received, numbers, paths, durations, map(get_request_id, batch), strict=True))
    for first in range(0, len(rows), _PER_STATEMENT):
        part = rows[first : first + _PER_STATEMENT]
        tx.raw.execute(_insert(len(part), sqlite=tx.sqlite), tuple(chain.from_iterable(part)))
    count_bytes(tx, batch, new)
    counted = list(map(not_, map(get_is_example, batch)))
    by_number = {number: shape for shape, number in ids.items()}
    _count(tx, list(compress(received, counted)), compress(numbers, counted), by_number)


def _count(tx: Transaction, received: Sequence[str], numbers: Iterable[int], shapes: Mapping[int, tuple[Any, ...]]) -> None:
    """Count requests by when they were received, the oldest first, and by the numbers of their shapes."""
    alike = list(zip(map(_MINUTE, received), numbers, strict=True))
    newest = dict(zip(alike, received, strict=True))
    uses, used = Counter[tuple[str, int, str, int]](), dict[tuple[str, int, str, int], str]()
    for one, times in Counter(alike).items():
        minute, number = one
        shape = Shape._make(shapes[number])
        if shape.key_id is not None:
            use = _find_quarter(minute), shape.key_id, shape.operation or "", shape.status
            uses[use] += times
            used[use] = max(newest[one], used.get(use, ""))
    of_keys, of_hours = Counter[tuple[str, int, int]](), Counter[tuple[str, int]]()
    for (quarter, key, operation, status), times in uses.items():
        params = {"key_id": key, "day": quarter[:10], "operation": operation, "status": status}
        tx.execute(_COUNT_USES, **params, times=times, last_at=used[quarter, key, operation, status])
        of_keys[quarter, key, status // 100] += times
        of_hours[quarter[:13], status // 100] += times
    for (quarter, key, digit), times in of_keys.items():
        tx.execute(_COUNT_QUARTER, key_id=key, quarter=quarter, digit=digit, times=times)
    for (hour, digit), times in of_hours.items():
        count_hour(tx, hour, digit, times)


def count_hour(tx: Transaction, hour: str, digit: int, times: int) -> None:
    """Add to the number of requests in an hour with a first digit of the status."""
    tx.execute(_COUNT_HOUR, hour=hour, digit=digit, times=times)


def _find_quarter(minute: str) -> str:
    return f"{minute[:14]}{int(minute[14:] or 0) // 15 * 15:02}"


def purge(tx: Transaction, *, successes_before: str, failures_before: str, uses_before: str = "", most: int = 5000) -> int:
    """Delete expired requests, at most `most` at a time, and expired counts; return the number of rows deleted."""
    status, at = request_shapes.c.status, requests.c.at
    old = sa.or_(sa.and_(status < 400, at < successes_before), sa.and_(status >= 400, at < failures_before))
    joined = requests.join(request_shapes, request_shapes.c.id == requests.c.shape)
    stale = sa.select(requests.c.id).select_from(joined).where(at < max(successes_before, failures_before), old).limit(most)
    gone = delete_and_count(tx, stale)
    gone += tx.connection.execute(sa.delete(key_uses).where(key_uses.c.day < uses_before[:10])).rowcount
    gone += tx.connection.execute(sa.delete(key_quarters).where(key_quarters.c.quarter < uses_before[:16])).rowcount
    return gone + tx.connection.execute(sa.delete(request_hours).where(request_hours.c.hour < uses_before[:13])).rowcount
