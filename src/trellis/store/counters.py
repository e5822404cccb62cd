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


def add(tx: Transaction, sequence: str, more: int) -> None:
    """Count `more` rows, or fewer where it is negative, in the total of a sequence."""
    tx.change(_ADD, name=sequence, more=more)
