"""The rows of request shapes, which store once what many requests have in common."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa

from trellis.store.engine import IdIn, OfRows, Statement, Transaction
from trellis.store.requests.request import Shape
from trellis.store.tables import request_shapes, requests

_c = request_shapes.c
_COLUMNS: Final = tuple(_c[name] for name in Shape._fields)
_NAMES: Final = ", ".join(Shape._fields)
_TYPES: Final = {name: {"key_id": "BIGINT", "status": "INTEGER"}.get(name, "TEXT") for name in Shape._fields}
_FIND: Final = Statement(
    OfRows(
        f"SELECT request_shapes.id, {', '.join(f'request_shapes.{name}' for name in Shape._fields)} "  # noqa: S608  # our own text
        f"FROM {{rows}} JOIN request_shapes ON {' AND '.join(f'request_shapes.{name} = given.{name}' for name in Shape._fields)}",
        _TYPES,
    )
)
_INSERT: Final = Statement(
    OfRows(f"INSERT INTO request_shapes ({_NAMES}) SELECT {_NAMES} FROM {{rows}} RETURNING id, {_NAMES}", _TYPES)  # noqa: S608  # our own text
)
_DELETE_UNUSED: Final = Statement(
    sa.delete(request_shapes).where(IdIn(_c.id, "shapes"), ~sa.exists().where(requests.c.shape == _c.id)).returning(*_COLUMNS)
)


def find_or_insert(tx: Transaction, shapes: Collection[tuple[Any, ...]]) -> tuple[dict[tuple[Any, ...], int], list[Shape]]:
    """Return the id of each of these shapes, and the new shapes among them. This is safe because only one writer runs at a time."""
    stored = {one: _encode(*one) for one in shapes}
    ids = _run(tx, _FIND, set(stored.values()))
    if new := set(stored.values()) - ids.keys():
        ids |= _run(tx, _INSERT, new)
    return {one: ids[row] for one, row in stored.items()}, [decode(row) for row in new]


def _run(tx: Transaction, statement: Statement, rows: Collection[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
    found = tx.fetch(statement, rows=tx.encode(sorted(rows)))
    return {tuple(row[1:]): row[0] for row in found}


def delete_unused(tx: Transaction, shapes: Iterable[int]) -> list[Shape]:
    """Delete and return the shapes among some that no request has any more."""
    wanted = sorted(set(shapes))
    return [decode(row) for row in tx.fetch(_DELETE_UNUSED, shapes=tx.id_list(wanted))] if wanted else []


def _encode(
    key_id: int | None, operation: str | None, method: str, address: str, status: int, error: str | None
) -> tuple[int, str, str, str, int, str]:
    """Return the columns of a shape, none of which is null, since a null would not be equal to another null."""
    return key_id or 0, operation or "", method, address, status, error or ""


def decode(row: Sequence[Any]) -> Shape:
    """Return the shape from its columns."""
    key_id, operation, method, address, status, error = row
    return Shape(key_id or None, operation or None, method, address, status, error or None)
