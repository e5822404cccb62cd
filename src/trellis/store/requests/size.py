"""The size of the request log, in bytes: counted with every row that comes and goes, so that it can have a bound.

Counted, not measured: after a delete neither engine gives space back at once, so that the size of the file or table says nothing
about the rows, and to count millions of rows takes a second each time. A row weighs its texts and, for itself and its entries in
five indexes, what rows were found to take on the average; the sum is within a fifth of what the rows occupy.
"""

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from trellis.store.engine import Statement, Transaction
from trellis.store.requests.request import Request
from trellis.store.tables import counters, requests

_COUNTER: Final = "request log bytes"
_OVERHEAD: Final = {True: 260, False: 520}  # bytes of a row beside its texts, on SQLite and on PostgreSQL
_MOST: Final = 20_000  # rows that one call deletes
_PER_STATEMENT: Final = 1000

_c = requests.c


def _length(column: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    return sa.func.length(sa.func.coalesce(column, ""))


# Operation and address stand in an index as well.
_TEXTS: Final = (
    _length(_c.method)
    + _length(_c.path)
    + 2 * _length(_c.operation)
    + 2 * _length(_c.address)
    + _length(_c.request_id)
    + _length(_c.error)
)
_READ: Final = Statement(sa.select(counters.c.total).where(counters.c.name == _COUNTER))
_ADD: Final = Statement(
    sa.text(
        "INSERT INTO counters (name, last, total) VALUES (:name, 0, :bytes) "
        "ON CONFLICT (name) DO UPDATE SET total = counters.total + excluded.total"
    )
)
_SET: Final = Statement(sa.update(counters).where(counters.c.name == _COUNTER).values(total=sa.bindparam("bytes")))


def count_bytes(tx: Transaction, batch: Sequence[Request]) -> None:
    """Add a batch of requests that was written."""
    texts = sum(
        len(one.method)
        + len(one.path)
        + 2 * len(one.operation or "")
        + 2 * len(one.address)
        + len(one.request_id)
        + len(one.error or "")
        for one in batch
    )
    if batch:
        tx.execute(_ADD, name=_COUNTER, bytes=texts + len(batch) * _OVERHEAD[tx.sqlite])


def delete_and_count(tx: Transaction, ids: sa.Select[tuple[int]]) -> int:
    """Delete requests, and take them off the size; return their number."""
    deleted = tx.connection.execute(sa.delete(requests).where(_c.id.in_(ids)).returning(_TEXTS)).scalars().all()
    if deleted:
        tx.execute(_ADD, name=_COUNTER, bytes=-sum(deleted) - len(deleted) * _OVERHEAD[tx.sqlite])
    return len(deleted)


def trim(tx: Transaction, most: int) -> int:
    """Delete the oldest requests until the log has at most so many bytes, but no more than one write can; return their number."""
    gone = 0
    while gone < _MOST and read_size(tx) > most:
        oldest = sa.select(_c.id).order_by(_c.id).limit(_PER_STATEMENT)
        if not (deleted := delete_and_count(tx, oldest)):
            tx.execute(_SET, bytes=0)  # somebody else has emptied the table
            break
        gone += deleted
    return gone


def read_size(tx: Transaction) -> int:
    """Return the size of the log as it is counted."""
    rows = tx.fetch(_READ)
    return int(rows[0][0]) if rows else 0


def _measure(tx: Transaction) -> int:
    total = sa.select(sa.func.coalesce(sa.func.sum(_TEXTS + _OVERHEAD[tx.sqlite]), 0))
    return int(tx.connection.execute(total).scalar_one())


def check_size(tx: Transaction) -> tuple[int, int]:
    """Return the size that is counted, and the one that the rows add up to."""
    return read_size(tx), _measure(tx)


def repair_size(tx: Transaction) -> None:
    """Count the size anew."""
    tx.execute(_ADD, name=_COUNTER, bytes=_measure(tx) - read_size(tx))
