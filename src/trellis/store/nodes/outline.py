"""What the panel's trees and pages of groups ask beside records: the way up, who is allowed what."""

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
_DEEPEST: Final = 1000  # a way up that is longer is cut off


def way_to(tx: Transaction, kind: str, node: int) -> list[Node]:
    """Read the nodes from the top level down to one, which is the last; nothing if there is no such node."""
    way: list[Node] = []
    at: int | None = node
    while at is not None and len(way) < _DEEPEST:
        if (found := rows.find(tx, kind, at)) is None:
            break
        way.append(found)
        at = found.parent_id
    return way[::-1]


@cache
def _all_of(column: Literal["permissions", "fields"]) -> Statement:
    return Statement(sa.select(_c.id, _c[column]).where(_KIND).order_by(_c.id))


def every(tx: Transaction, kind: str, column: Literal["permissions", "fields"]) -> Iterator[tuple[int, Any]]:
    """Read one JSON column of all nodes of a kind, by id. Equal texts are decoded once, so do not change what you get."""
    known: dict[str, Any] = {}
    for node, held in tx.rows(_all_of(column), kind=kind):
        if not isinstance(held, str):
            yield node, held
            continue
        if held not in known:
            known[held] = tx.decoded(held)
        yield node, known[held]
