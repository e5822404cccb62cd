"""Deleted-id counts: finding the n-th node by id without counting the nodes before it.

Ids are assigned in sequence and never reused, so the id of the n-th node is n plus the number of nodes deleted before it.
For each range of 256 ids, and for each of 65,536, the number of deleted ids is stored: a row for each prefix, `id >> shift`.
A create changes nothing here; a delete and its undo do. At a million ids, finding a node adds up 16 coarse and up to
256 fine ranges, and skips fewer than 256 rows of the index.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.counters import last_number
from trellis.store.engine import OfRows, Row, Statement, Transaction
from trellis.store.tables import deleted_id_counts, nodes

_SHIFTS: Final = (16, 8)  # from the coarse ranges to the fine ones
_d, _c = deleted_id_counts.c, nodes.c

_ADD: Final = Statement(
    OfRows(
        "INSERT INTO deleted_id_counts (kind, shift, prefix, deleted) SELECT :kind, shift, prefix, deleted FROM {rows} WHERE true "
        "ON CONFLICT (kind, shift, prefix) DO UPDATE SET deleted = deleted_id_counts.deleted + excluded.deleted",
        {"shift": "INTEGER", "prefix": "BIGINT", "deleted": "BIGINT"},
    )
)


def record_deleted(tx: Transaction, kind: str, ids: Iterable[int]) -> None:
    """Add ids whose nodes were deleted to the counts."""
    _add(tx, kind, ids, 1)


def record_restored(tx: Transaction, kind: str, ids: Iterable[int]) -> None:
    """Subtract ids whose nodes exist again from the counts."""
    _add(tx, kind, ids, -1)


def _add(tx: Transaction, kind: str, ids: Iterable[int], by: int) -> None:
    ranges = Counter((shift, node >> shift) for node in ids for shift in _SHIFTS)
    if ranges:
        rows = [(shift, prefix, by * count) for (shift, prefix), count in ranges.items()]
        tx.execute_rows(_ADD, rows, kind=kind)


_RANGES: Final = Statement(
    sa.select(_d.prefix, _d.deleted)
    .where(_d.kind == bindparam("kind"), _d.shift == bindparam("shift"), _d.prefix.between(bindparam("first"), bindparam("last")))
    .order_by(_d.prefix)
)


def find_nth(tx: Transaction, kind: str, rank: int) -> tuple[int, int]:
    """Find the node with `rank` others before it by id: return an id to start at, and how many nodes to skip from there.

    With ids 1…1,000 of which 10 were deleted below 256, rank 500 is (256, 255): the range from 256 on begins at rank 245.
    """
    left = rank + 1  # counts an imaginary node 0, so that ranges begin at multiples of their size
    coarse, fine = _SHIFTS
    rows = tx.fetch(_RANGES, kind=kind, shift=coarse, first=0, last=2**47)
    prefix, left = _skip_ranges(rows, 0, 1 << coarse, left)
    first = prefix << (coarse - fine)
    rows = tx.fetch(_RANGES, kind=kind, shift=fine, first=first, last=first + (1 << (coarse - fine)) - 1)
    prefix, left = _skip_ranges(rows, first, 1 << fine, left)
    return (prefix << fine, left) if prefix else (1, left - 1)


def _skip_ranges(rows: Iterable[Row], prefix: int, size: int, left: int) -> tuple[int, int]:
    """Skip whole ranges from `prefix` on, each with `size` ids; return the range that contains the node, and the node's rank in it.

    `rows` are those ranges that have deleted ids. Between two of them, all ids exist.
    """
    for at, deleted in rows:
        if left < (at - prefix) * size:
            break
        left -= (at - prefix) * size
        prefix = at
        if left < size - deleted:
            return prefix, left
        left -= size - deleted
        prefix += 1
    return prefix + left // size, left % size


# --- the check ----------------------------------------------------------------------------------------------------


def check(tx: Transaction, kind: str) -> int:
    """Count the ranges whose stored counts are wrong. The work grows with the nodes and stored counts, not with the ids."""
    last, living, kept = _find_highest(tx, kind), _count_living(tx, kind), _read_kept(tx, kind)
    wrong = sum(kept[key] != 0 for key in kept if key[0] not in _SHIFTS)
    for shift in _SHIFTS:
        known = {prefix for at, prefix in (living.keys() | kept.keys()) if at == shift}
        wrong += sum(_count_ids(last, shift, at) - living[shift, at] != kept.get((shift, at), 0) for at in known)
        ranges = (last >> shift) + 1 if last > 0 else 0
        wrong += ranges - sum(0 <= at < ranges for at in known)  # in all others, each id is deleted, which is not stored
    return wrong


def repair(tx: Transaction, kind: str) -> None:
    """Count the deleted ids of a kind again, and replace the stored counts."""
    tx.connection.execute(sa.delete(deleted_id_counts).where(_d.kind == kind))
    tx.execute_rows(_ADD, [*_count(tx, kind)], kind=kind)


_KIND: Final = _c.kind == bindparam("kind")
_KEPT: Final = Statement(sa.select(_d.shift, _d.prefix, _d.deleted).where(_d.kind == bindparam("kind")))
_HIGHEST: Final = Statement(sa.select(sa.func.max(_c.id)).where(_KIND))


@cache
def _living(fine: int) -> Statement:
    prefix = sa.literal_column(f"id >> {fine}", sa.BigInteger)
    return Statement(sa.select(prefix, sa.func.count()).where(_KIND, _c.id > 0).group_by(prefix))


def _read_kept(tx: Transaction, kind: str) -> dict[tuple[int, int], int]:
    return {(shift, prefix): deleted for shift, prefix, deleted in tx.fetch(_KEPT, kind=kind)}


def _find_highest(tx: Transaction, kind: str) -> int:
    """Return the highest id that was assigned."""
    return max(last_number(tx, kind), tx.fetch(_HIGHEST, kind=kind)[0][0] or 0)


def _count_living(tx: Transaction, kind: str) -> Counter[tuple[int, int]]:
    """Count the nodes in each range, (shift, prefix)."""
    fine = _SHIFTS[-1]
    living: Counter[tuple[int, int]] = Counter()
    for prefix, count in tx.fetch(_living(fine), kind=kind):
        for shift in _SHIFTS:
            living[shift, prefix << fine >> shift] += count
    return living


def _count_ids(last: int, shift: int, prefix: int) -> int:
    """Count the ids of a range, from 1 on, that were assigned."""
    return max(0, min(last, ((prefix + 1) << shift) - 1) - max(1, prefix << shift) + 1)


def _count(tx: Transaction, kind: str) -> Iterator[tuple[int, int, int]]:
    """Count the deleted ids of each range that has some: those assigned minus those that exist."""
    last, living = _find_highest(tx, kind), _count_living(tx, kind)
    for shift in _SHIFTS:
        for prefix in range((last >> shift) + 1):
            if deleted := _count_ids(last, shift, prefix) - living[shift, prefix]:
                yield shift, prefix, deleted
