"""Numbered sequences: the last number that was given out, and how many rows there are now."""

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


def next_number(tx: Transaction, sequence: str, more: int = 0) -> int:
    """Take the next number of a sequence, and count `more` in its total.

    The number is given back if the transaction does not commit, and never used twice.
    """
    return int(tx.rows(_NEXT, name=sequence, more=more)[0][0])


_NEXT_MANY = Statement(
    sa.text(
        "INSERT INTO counters (name, last, total) VALUES (:name, :many, :many) "
        "ON CONFLICT (name) DO UPDATE SET last = counters.last + :many, total = counters.total + :many RETURNING last"
    )
)


def next_numbers(tx: Transaction, sequence: str, many: int) -> range:
    """Take the next numbers of a sequence, and count them all in its total. See `next_number`."""
    last = int(tx.rows(_NEXT_MANY, name=sequence, many=many)[0][0])
    return range(last - many + 1, last + 1)


def add(tx: Transaction, sequence: str, more: int) -> None:
    """Count `more` rows, or fewer where it is negative, in the total of a sequence."""
    tx.change(_ADD, name=sequence, more=more)
