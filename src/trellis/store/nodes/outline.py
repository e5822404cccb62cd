"""Reading one JSON column of all nodes of a kind, for code that examines all of them."""

from collections.abc import Callable, Iterator
from functools import cache
from hashlib import blake2b
from typing import Any, Final, Literal, TypeVar

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.nodes.rows import AT_ONCE
from trellis.store.tables import nodes

T = TypeVar("T")
_c = nodes.c
_KIND = _c.kind == bindparam("kind")
_FIRST: Final = -(2**63)


@cache
def _next_of(column: Literal["permissions", "fields"]) -> Statement:
    found = sa.select(_c.id, _c[column]).where(_KIND, _c.id > bindparam("after")).order_by(_c.id)
    return Statement(found.limit(bindparam("most", type_=sa.Integer)))


def examine_column(
    tx: Transaction, kind: str, column: Literal["permissions", "fields"], examine: Callable[[Any], T]
) -> Iterator[tuple[int, T]]:
    """Read one JSON column of all nodes of a kind, some at a time: pairs of id and the result of `examine` for the value, by id.

    Equal texts are parsed and examined once, and share the result, which must not be changed. PostgreSQL's driver returns parsed
    values.
    """
    known: dict[bytes, T] = {}  # by a digest of the text: there may be very many different, long texts
    after = _FIRST
    while rows := tx.fetch(_next_of(column), kind=kind, after=after, most=AT_ONCE):
        for node, value in rows:
            if not isinstance(value, str):
                yield node, examine(value)
                continue
            digest = blake2b(value.encode(), digest_size=16).digest()
            if digest not in known:
                known[digest] = examine(tx.decode(value))
            yield node, known[digest]
        after = rows[-1][0]
