"""Reading one JSON column of all nodes of a kind, for code that examines all of them."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import nodes

_c = nodes.c
_KIND = _c.kind == bindparam("kind")


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
