"""Counters: for each sequence, the last number assigned and the current number of rows."""

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Statement, Taken, Transaction, upsert
from trellis.store.tables import counters

_TAKE = upsert(
    counters, "last = counters.last + excluded.last, total = counters.total + excluded.total RETURNING last", beside_taken=True
)
_ADD = upsert(counters, "total = counters.total + excluded.total")
_SET = upsert(counters, "last = excluded.last, total = excluded.total")
_NAMED = counters.c.name == bindparam("name")
_LAST = Statement(sa.select(counters.c.last).where(_NAMED), beside_taken=True)
_TOTAL = Statement(sa.select(counters.c.total).where(_NAMED))


def next_number(tx: Transaction, sequence: str) -> int:
    """Take the next number of a sequence, and leave its total as it is.

    If the transaction does not commit, the number can be taken again. Once committed, a number is never assigned again.
    """
    return next_numbers(tx, sequence, 1, 0)[0]


def next_numbers(tx: Transaction, sequence: str, count: int, more: int | None = None) -> range:
    """Take the next `count` numbers of a sequence, and add `more` (by default `count`) to its total. See `next_number`.

    The first numbers that a transaction takes are written at once. Further ones are written together, before the transaction
    commits or before a statement reads the counters.
    """
    more = count if more is None else more
    if (known := tx.taken.get(sequence)) is None:
        last = int(tx.fetch(_TAKE, name=sequence, last=count, total=more)[0][0])
        tx.taken[sequence] = Taken(last)
    else:
        last = known.last + count
        tx.taken[sequence] = Taken(last, known.more + more, is_written=False)
    return range(last - count + 1, last + 1)


def find_last(tx: Transaction, sequence: str) -> int | None:
    """Return the last number of a sequence; None if there is no such sequence."""
    if (known := tx.taken.get(sequence)) is not None:
        return known.last
    rows = tx.fetch(_LAST, name=sequence)
    return int(rows[0][0]) if rows else None


def last_number(tx: Transaction, sequence: str) -> int:
    """Return the last number that was taken from a sequence; 0 if none has been taken."""
    return find_last(tx, sequence) or 0


def read_total(tx: Transaction, sequence: str) -> int:
    """Return the total of a sequence; 0 if there is no such sequence."""
    rows = tx.fetch(_TOTAL, name=sequence)
    return int(rows[0][0]) if rows else 0


def add_to_total(tx: Transaction, sequence: str, count: int) -> None:
    """Add a number of rows to the total of a sequence. The number may be negative."""
    tx.execute(_ADD, name=sequence, last=0, total=count)


def set_counter(tx: Transaction, sequence: str, last: int, total: int = 0) -> None:
    """Set the last number and the total of a sequence, whether it exists or not."""
    tx.execute(_SET, name=sequence, last=last, total=total)


def read_counters(tx: Transaction) -> dict[str, tuple[int, int]]:
    """Read all counters: name → (last number assigned, total)."""
    return {name: (last, total) for name, last, total in tx.connection.execute(sa.select(counters))}
