"""Counters: the last number assigned in each sequence, and the current number of rows."""

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Transaction
from trellis.store.tables import counters

_NEXT = Statement(
    sa.text(
        "INSERT INTO counters (name, last, total) VALUES (:name, 1, :more) "
        "ON CONFLICT (name) DO UPDATE SET last = counters.last + 1, total = counters.total + :more RETURNING last"
    )
)
_ADD = Statement(sa.update(counters).where(counters.c.name == bindparam("name")).values(total=counters.c.total + bindparam("more")))


def next_number(tx: Transaction, sequence: str, count: int = 0) -> int:
    """Take the next number of a sequence, and add `count` to its total.

    If the transaction does not commit, the number is not used up; a committed one is never assigned again.
    """
    return int(tx.fetch(_NEXT, name=sequence, more=count)[0][0])


_NEXT_MANY = Statement(
    sa.text(
        "INSERT INTO counters (name, last, total) VALUES (:name, :count, :more) "
        "ON CONFLICT (name) DO UPDATE SET last = counters.last + :count, total = counters.total + :more RETURNING last"
    )
)


def next_numbers(tx: Transaction, sequence: str, count: int, more: int | None = None) -> range:
    """Take the next `count` numbers of a sequence, and add `more`, or as many, to its total. See `next_number`."""
    last = int(tx.fetch(_NEXT_MANY, name=sequence, count=count, more=count if more is None else more)[0][0])
    return range(last - count + 1, last + 1)


def add_to_total(tx: Transaction, sequence: str, count: int) -> None:
    """Add a number of rows, which may be negative, to the total of a sequence."""
    tx.execute(_ADD, name=sequence, more=count)
