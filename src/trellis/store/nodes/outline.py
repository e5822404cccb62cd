"""What the panel reads of many nodes at once: the path to a node, and one column of all."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.nodes import rows
from trellis.store.nodes.rows import Node
from trellis.store.tables import nodes

_c = nodes.c
_KIND = _c.kind == bindparam("kind")
_MAX_DEPTH: Final = 1000  # a longer path, such as that of a damaged tree with a cycle, is cut off


def find_path(tx: Transaction, kind: str, node: int) -> list[Node]:
    """Read the nodes from the top level down to one, which is the last; an empty list if there is no such node."""
    path: list[Node] = []
    at: int | None = node
    while at is not None and len(path) < _MAX_DEPTH:
        if (found := rows.find(tx, kind, at)) is None:
            break
        path.append(found)
        at = found.parent_id
    return path[::-1]


@cache
def _all_of(column: Literal["permissions", "fields"]) -> Statement:
    return Statement(sa.select(_c.id, _c[column]).where(_KIND).order_by(_c.id))


def read_column(tx: Transaction, kind: str, column: Literal["permissions", "fields"]) -> Iterator[tuple[int, Any]]:
    """Read one JSON column of all nodes of a kind: pairs of id and value, by id.

    Equal texts are parsed once and share one value, which must not be changed.
    """
    parsed: dict[str, Any] = {}
    for node, value in tx.fetch(_all_of(column), kind=kind):
        if not isinstance(value, str):
            yield node, value
            continue
        if value not in parsed:
            parsed[value] = tx.decode(value)
        yield node, parsed[value]
