"""One JSON column of all nodes of a kind, for whoever looks through all of them."""

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
