"""Where the n-th node stands by id: ids are given out in a row, so that only those that are gone need counting.

Of each block of 256 ids, and of each of 65,536, it is kept how many were given out and are no node any more. A create
changes nothing here; a delete and its undoing do.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Row, Statement, Transaction
from trellis.store.tables import counters, gaps, nodes

_LEVELS: Final = (16, 8)  # from the coarse to the fine
_g, _c = gaps.c, nodes.c

_ROWS: Final = {
    True: "SELECT :kind, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') "
    "FROM json_each(:rows) WHERE true",
    False: "SELECT :kind, CAST(value ->> 0 AS INTEGER), CAST(value ->> 1 AS BIGINT), CAST(value ->> 2 AS BIGINT) "
    "FROM jsonb_array_elements(CAST(:rows AS JSONB))",
}
_NOTE: Final = {
    sqlite: Statement(
        sa.text(
            f"INSERT INTO node_gaps (kind, level, block, gone) {rows} "
            "ON CONFLICT (kind, level, block) DO UPDATE SET gone = node_gaps.gone + excluded.gone"
        )
    )
    for sqlite, rows in _ROWS.items()
}


def open_up(tx: Transaction, kind: str, ids: Iterable[int]) -> None:
    """Take note that these nodes are gone."""
    _note(tx, kind, ids, 1)


def close_up(tx: Transaction, kind: str, ids: Iterable[int]) -> None:
    """Take note that nodes are back under these ids."""
    _note(tx, kind, ids, -1)


def _note(tx: Transaction, kind: str, ids: Iterable[int], by: int) -> None:
    blocks = Counter((level, node >> level) for node in ids for level in _LEVELS)
    if blocks:
        rows = [(level, block, by * count) for (level, block), count in blocks.items()]
        tx.change(_NOTE[tx.sqlite], kind=kind, rows=tx.encoded(rows))


_BETWEEN: Final = Statement(
    sa.select(_g.block, _g.gone)
    .where(_g.kind == bindparam("kind"), _g.level == bindparam("level"), _g.block.between(bindparam("first"), bindparam("last")))
    .order_by(_g.block)
)


def place(tx: Transaction, kind: str, rank: int) -> tuple[int, int]:
    """Say where the node stands that so many others precede by id: it is so many nodes behind the first from an id on."""
    left = rank + 1  # as if there were a node 0
    coarse, fine = _LEVELS
    rows = tx.rows(_BETWEEN, kind=kind, level=coarse, first=0, last=2**47)
    block, left = _descend(rows, 0, 1 << coarse, left)
    first = block << (coarse - fine)
    rows = tx.rows(_BETWEEN, kind=kind, level=fine, first=first, last=first + (1 << (coarse - fine)) - 1)
    block, left = _descend(rows, first, 1 << fine, left)
    return (block << fine, left) if block else (1, left - 1)


def _descend(rows: Iterable[Row], block: int, size: int, left: int) -> tuple[int, int]:
    """Find the block in which the node behind `left` others is, counted from `block` on; give it and what is left."""
    for at, gone in rows:
        if left < (at - block) * size:
            break
        left -= (at - block) * size
        block = at
        if left < size - gone:
            return block, left
        left -= size - gone
        block += 1
    return block + left // size, left % size


# --- the check ----------------------------------------------------------------------------------------------------


def wrong(tx: Transaction, kind: str) -> int:
    """Count the blocks of which another number is kept than there is."""
    there, kept = _there(tx, kind), _kept(tx, kind)
    return sum(there.get(block, 0) != kept.get(block, 0) for block in there.keys() | kept.keys())


def count_anew(tx: Transaction, kind: str) -> None:
    """Count the gaps of a kind."""
    tx.connection.execute(sa.delete(gaps).where(_g.kind == kind))
    rows = [(level, block, gone) for (level, block), gone in _there(tx, kind).items() if gone]
    tx.change(_NOTE[tx.sqlite], kind=kind, rows=tx.encoded(rows))


def _kept(tx: Transaction, kind: str) -> dict[tuple[int, int], int]:
    found = tx.connection.execute(sa.select(_g.level, _g.block, _g.gone).where(_g.kind == kind))
    return {(level, block): gone for level, block, gone in found}


def _there(tx: Transaction, kind: str) -> Mapping[tuple[int, int], int]:
    """Count what is gone in each block: what was given out less what there is."""
    given = tx.connection.execute(sa.select(counters.c.last).where(counters.c.name == kind)).scalar() or 0
    highest = tx.connection.execute(sa.select(sa.func.max(_c.id)).where(_c.kind == kind)).scalar() or 0
    last, fine = max(given, highest), _LEVELS[-1]
    block = sa.literal_column(f"id >> {fine}", sa.BigInteger)
    counted = tx.connection.execute(sa.select(block, sa.func.count()).where(_c.kind == kind).group_by(block))
    living = {int(row[0]): int(row[1]) for row in counted}
    there: Counter[tuple[int, int]] = Counter()
    for at in range((last >> fine) + 1 if last else 0):
        given_out = min(last, ((at + 1) << fine) - 1) - max(1, at << fine) + 1
        gone = given_out - living.get(at, 0)
        for level in _LEVELS:
            there[level, at << fine >> level] += gone
    return there
