"""The size of the request log in bytes, which is updated with every insert and delete so that it can be limited.

It is counted, not measured: neither engine returns space at once after a delete, so the size of the file or table tells nothing
about the rows, and counting millions of rows takes a second each time. A row or a shape counts as the length of its texts plus a
measured average for the row itself and its index entries. The sum is within a fifth of the space that they occupy.
"""

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from trellis.store.counters import add_to_total, read_total, set_counter
from trellis.store.engine import Transaction
from trellis.store.requests.request import Request, Shape, get_path, get_request_id
from trellis.store.requests.shapes import delete_unused
from trellis.store.tables import request_shapes, requests

_COUNTER: Final = "request log bytes"
_OVERHEAD: Final = {True: 150, False: 260}  # bytes of a row in addition to its texts, on SQLite (True) and on PostgreSQL
_SHAPE_OVERHEAD: Final = 200
_MOST: Final = 20_000  # rows that one call deletes
_PER_STATEMENT: Final = 1000

_c, _s = requests.c, request_shapes.c
_SHAPE_TEXTS: Final = ("operation", "method", "address", "error")
# The request id is in an index as well, and so are all texts of a shape, some of them in two.
_LENGTH: Final = sa.func.length(_c.path) + 2 * sa.func.length(_c.request_id)
_SHAPE_LENGTH: Final = sum(2 * sa.func.length(_s[name]) for name in _SHAPE_TEXTS) + _SHAPE_OVERHEAD


def count_bytes(tx: Transaction, batch: Sequence[Request], new: Sequence[Shape]) -> None:
    """Add the sizes of a batch of requests that was written, and of the new shapes among them."""
    if batch:
        texts = sum(map(len, map(get_path, batch))) + 2 * sum(map(len, map(get_request_id, batch)))
        add_to_total(tx, _COUNTER, texts + len(batch) * _OVERHEAD[tx.sqlite] + sum(map(_weigh, new)))


def _weigh(shape: Shape) -> int:
    return sum(2 * len(getattr(shape, name) or "") for name in _SHAPE_TEXTS) + _SHAPE_OVERHEAD


def delete_and_count(tx: Transaction, ids: sa.Select[tuple[int]]) -> int:
    """Delete requests and the shapes that no other request has, and subtract their sizes; return the number of requests."""
    deleted = tx.connection.execute(sa.delete(requests).where(_c.id.in_(ids)).returning(_LENGTH, _c.shape)).all()
    if deleted:
        rows = sum(texts for texts, _ in deleted) + len(deleted) * _OVERHEAD[tx.sqlite]
        shapes = sum(map(_weigh, delete_unused(tx, (shape for _, shape in deleted))))
        add_to_total(tx, _COUNTER, -rows - shapes)
    return len(deleted)


def trim(tx: Transaction, most: int) -> int:
    """Delete the oldest requests until the log has at most `most` bytes; return their number, about 20,000 at most."""
    gone = 0
    while gone < _MOST and read_size(tx) > most:
        oldest = sa.select(_c.id).order_by(_c.id).limit(_PER_STATEMENT)
        if not (deleted := delete_and_count(tx, oldest)):
            tx.connection.execute(sa.delete(request_shapes))  # somebody else has emptied the table of requests
            set_counter(tx, _COUNTER, 0)
            break
        gone += deleted
    return gone


def read_size(tx: Transaction) -> int:
    """Return the counted size of the log."""
    return read_total(tx, _COUNTER)


def _measure(tx: Transaction) -> int:
    rows, shapes = sa.func.sum(_LENGTH + _OVERHEAD[tx.sqlite]), sa.func.sum(_SHAPE_LENGTH)
    return sum(int(tx.connection.execute(sa.select(sa.func.coalesce(total, 0))).scalar_one()) for total in (rows, shapes))


def check_size(tx: Transaction) -> tuple[int, int]:
    """Return the counted size, and the sum over all rows."""
    return read_size(tx), _measure(tx)


def repair_size(tx: Transaction) -> None:
    """Replace the counted size by the sum over all rows."""
    set_counter(tx, _COUNTER, 0, _measure(tx))
