"""The ids of all nodes inside of a part of a tree, in order: kept by each process, and brought up to date from the journal."""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trellis.store.engine import Transaction
from trellis.store.lists import journal, statements
from trellis.store.lists.journal import Delta

_NAMES = ("within",)


@dataclass(frozen=True, slots=True)
class Inside:
    """The ids as of entry `seq` of the journal, in ascending order."""

    seq: int
    ids: Sequence[int]

    def apply_delta(self, delta: Delta) -> "Inside":
        """Return the ids as of `delta.last`."""
        ids = array("q", self.ids)
        for row in delta.removed:
            at = bisect_left(ids, row[0])
            if at < len(ids) and ids[at] == row[0]:
                del ids[at]
        for row in delta.added:
            at = bisect_left(ids, row[0])
            if at == len(ids) or ids[at] != row[0]:
                ids.insert(at, row[0])
        return Inside(delta.last, ids)


def find_all_inside(tx: Transaction, params: dict[str, Any], key: tuple[Any, ...]) -> Sequence[int]:
    """Return the ids of all nodes of `:kind` inside of `:within`, in order. `key` is what they are kept by."""
    kept: Inside | None = tx.cache.get(key)
    delta = None if kept is None else journal.find_delta(tx, _NAMES, params, kept.seq)
    if kept is None or delta is None:
        seq = journal.find_bounds(tx).last
        kept = Inside(seq, array("q", sorted(row[0] for row in tx.fetch(statements.FIND_ALL_INSIDE, **params))))
    elif delta.last != kept.seq:
        kept = kept.apply_delta(delta)
    else:
        return kept.ids
    tx.cache.put(key, kept)
    return kept.ids
