"""The size of the request log, in bytes: counted with every row that comes and goes, so that it can have a bound.

Counted, not measured: after a delete neither engine gives space back at once, so that the size of the file or table says nothing
about the rows, and to count millions of rows takes a second each time. A row weighs its texts and, for itself and its entries in
the indexes, what rows were found to take on the average, and so does a shape; the sum is within a fifth of what they occupy.
"""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from trellis.store.engine import Statement, Transaction
from trellis.store.requests.request import Request, Shape
from trellis.store.requests.shapes import delete_unused
from trellis.store.tables import counters, request_shapes, requests

_COUNTER: Final = "request log bytes"
_OVERHEAD: Final = {True: 150, False: 260}  # bytes of a row beside its texts, on SQLite and on PostgreSQL
_SHAPE_OVERHEAD: Final = 200
_MOST: Final = 20_000  # rows that one call deletes
_PER_STATEMENT: Final = 1000

_c, _s = requests.c, request_shapes.c
# The id stands in an index as well, and so do all texts of a shape; some of them in two.
_TEXTS: Final = sa.func.length(_c.path) + 2 * sa.func.length(_c.request_id)
_SHAPE_TEXTS: Final = sum(2 * sa.func.length(_s[name]) for name in ("operation", "method", "address", "error")) + _SHAPE_OVERHEAD
_READ: Final = Statement(sa.select(counters.c.total).where(counters.c.name == _COUNTER))
_ADD: Final = Statement(
    sa.text(
        "INSERT INTO counters (name, last, total) VALUES (:name, 0, :bytes) "
        "ON CONFLICT (name) DO UPDATE SET total = counters.total + excluded.total"
    )
)
_SET: Final = Statement(sa.update(counters).where(counters.c.name == _COUNTER).values(total=sa.bindparam("bytes")))


def count_bytes(tx: Transaction, batch: Sequence[Request], new: Sequence[Shape]) -> None:
    """Add a batch of requests that was written, and the shapes among theirs that are new."""
    if batch:
        texts = sum(len(one.path) + 2 * len(one.request_id) for one in batch)
        tx.execute(_ADD, name=_COUNTER, bytes=texts + len(batch) * _OVERHEAD[tx.sqlite] + sum(map(_weigh, new)))


def _weigh(shape: Shape) -> int:
    texts = shape.operation or "", shape.method, shape.address, shape.error or ""
    return 2 * sum(map(len, texts)) + _SHAPE_OVERHEAD


def delete_and_count(tx: Transaction, ids: sa.Select[tuple[int]]) -> int:
    """Delete requests, with the shapes that no other one has, and take them off the size; return their number."""
    deleted = tx.connection.execute(sa.delete(requests).where(_c.id.in_(ids)).returning(_TEXTS, _c.shape)).all()
    if deleted:
        rows = sum(texts for texts, _ in deleted) + len(deleted) * _OVERHEAD[tx.sqlite]
        shapes = sum(map(_weigh, delete_unused(tx, (shape for _, shape in deleted))))
        tx.execute(_ADD, name=_COUNTER, bytes=-rows - shapes)
    return len(deleted)


def trim(tx: Transaction, most: int) -> int:
    """Delete the oldest requests until the log has at most so many bytes, but no more than one write can; return their number."""
    gone = 0
    while gone < _MOST and read_size(tx) > most:
        oldest = sa.select(_c.id).order_by(_c.id).limit(_PER_STATEMENT)
        if not (deleted := delete_and_count(tx, oldest)):
            tx.connection.execute(sa.delete(request_shapes))  # somebody else has emptied the table
            tx.execute(_SET, bytes=0)
            break
        gone += deleted
    return gone


def read_size(tx: Transaction) -> int:
    """Return the size of the log as it is counted."""
    rows = tx.fetch(_READ)
    return int(rows[0][0]) if rows else 0


def _measure(tx: Transaction) -> int:
    rows, shapes = sa.func.sum(_TEXTS + _OVERHEAD[tx.sqlite]), sa.func.sum(_SHAPE_TEXTS)
    return sum(int(tx.connection.execute(sa.select(sa.func.coalesce(total, 0))).scalar_one()) for total in (rows, shapes))


def check_size(tx: Transaction) -> tuple[int, int]:
    """Return the size that is counted, and the one that the rows add up to."""
    return read_size(tx), _measure(tx)


def repair_size(tx: Transaction) -> None:
    """Count the size anew."""
    tx.execute(_ADD, name=_COUNTER, bytes=_measure(tx) - read_size(tx))
