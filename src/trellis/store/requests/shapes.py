"""The shapes of requests: what many have in common stands in the log once."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import IdIn, Statement, Transaction
from trellis.store.requests.request import Shape
from trellis.store.tables import request_shapes, requests

_c = request_shapes.c
_COLUMNS: Final = tuple(_c[name] for name in Shape._fields)
_FIND: Final = Statement(sa.select(_c.id).where(*(column == bindparam(column.name) for column in _COLUMNS)))
_INSERT: Final = Statement(
    sa.insert(request_shapes).values({column.name: bindparam(column.name) for column in _COLUMNS}).returning(_c.id)
)
_DELETE_UNUSED: Final = Statement(
    sa.delete(request_shapes).where(IdIn(_c.id, "shapes"), ~sa.exists().where(requests.c.shape == _c.id)).returning(*_COLUMNS)
)


def find_or_insert(tx: Transaction, shapes: Iterable[tuple[Any, ...]]) -> tuple[dict[tuple[Any, ...], int], list[Shape]]:
    """Return the id of each of these shapes, and those of them that are new. Of all writers one is at work at a time."""
    ids: dict[tuple[Any, ...], int] = {}
    new: list[Shape] = []
    for one in shapes:
        shape = Shape(*one)
        stored = encode(shape)
        if rows := tx.fetch(_FIND, **stored):
            ids[one] = rows[0][0]
        else:
            ids[one] = tx.fetch(_INSERT, **stored)[0][0]
            new.append(shape)
    return ids, new


def delete_unused(tx: Transaction, shapes: Iterable[int]) -> list[Shape]:
    """Delete those of some shapes that no request has any more; return them."""
    wanted = sorted(set(shapes))
    return [decode(row) for row in tx.fetch(_DELETE_UNUSED, shapes=tx.id_list(wanted))] if wanted else []


def encode(shape: Shape) -> dict[str, Any]:
    """Return the columns of a shape, which has no null: nulls would never be the same."""
    return shape._asdict() | {"key_id": shape.key_id or 0, "operation": shape.operation or "", "error": shape.error or ""}


def decode(row: Sequence[Any]) -> Shape:
    """Return the shape that has these columns."""
    key_id, operation, method, address, status, error = row
    return Shape(key_id or None, operation or None, method, address, status, error or None)
