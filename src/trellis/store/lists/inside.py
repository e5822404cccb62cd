"""The ids of all nodes inside a part of a tree, in an order: cached by each process, and brought up to date from the journal."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from trellis.store.engine import Row, Transaction
from trellis.store.lists import journal, statements
from trellis.store.lists.filters import SORT_COLUMNS
from trellis.store.lists.journal import Delta
from trellis.store.lists.results import DELTA_COLUMNS, Order

_MAX_PLACED: Final = 50  # changed nodes that are put into place one by one; if there are more, all are sorted again
_PROBES: Final = 64  # ids whose sort keys are read at once, about
_ALL: Final = 2**31 - 1
BY_ID: Final[Order] = ("id", False)


@dataclass(frozen=True, slots=True)
class Inside:
    """The ids as of journal entry `seq`."""

    seq: int
    ids: "array[int]"


def find_ids_inside(
    tx: Transaction, kind: str, roots: Iterable[int], order: Order = BY_ID, other_than: int | None = None
) -> "array[int]":
    """Return the ids of all nodes of a kind inside the roots, in an order, without one of them if `other_than` is given.

    The array is shared: do not change it.
    """
    tops = sorted(roots)
    key = ("inside", kind, order, other_than, *tops)
    names = ("inside",) if other_than is None else ("other_than", "inside")
    params = {"kind": kind, "inside": tx.id_list(tops), "other_than": other_than}
    kept: Inside | None = tx.cache.get(key)
    delta = None if kept is None else journal.find_delta(tx, names, params, kept.seq)
    if kept is not None and delta is not None:
        if delta.last == kept.seq:
            return kept.ids
        if order == BY_ID or len(delta.removed) + len(delta.added) <= _MAX_PLACED:
            return _keep(tx, key, Inside(delta.last, _apply_delta(tx, kind, kept.ids, order, delta)))
    seq = journal.find_range(tx).last
    rows = tx.fetch(statements.page(statements.ONLY_IDS, names, *order, "filter", "first"), **params, limit=_ALL, offset=0)
    return _keep(tx, key, Inside(seq, array("q", (row[0] for row in rows))))


def _keep(tx: Transaction, key: tuple[Any, ...], inside: Inside) -> "array[int]":
    tx.cache.put(key, inside, weight=len(inside.ids))
    return inside.ids


def _apply_delta(tx: Transaction, kind: str, before: "array[int]", order: Order, delta: Delta) -> "array[int]":
    """Return the ids as of `delta.last`.

    The ids of changed nodes are removed first. The sort keys of the others are the same as when they were sorted, so that the
    places of the changed nodes can be found with the keys that are stored now.
    """
    ids = array("q", before)
    for row in delta.removed:
        if order != BY_ID:
            with suppress(ValueError):  # it is not in the list
                ids.remove(row[0])
        elif (at := bisect_left(ids, row[0])) < len(ids) and ids[at] == row[0]:
            del ids[at]
    for row in delta.added:
        at = bisect_left(ids, row[0]) if order == BY_ID else _find_place(tx, kind, ids, order, row)
        if order != BY_ID or at == len(ids) or ids[at] != row[0]:
            ids.insert(at, row[0])
    return ids


def _find_place(tx: Transaction, kind: str, ids: "array[int]", order: Order, row: Row) -> int:
    """Return the index in the sorted ids before which a row belongs. Each step reads the keys of some ids, evenly spread."""
    sort_by, descending = order
    key = row[DELTA_COLUMNS.index(SORT_COLUMNS[sort_by])]
    low, high = 0, len(ids)
    while low < high:
        probes = range(low, high, max(1, (high - low) // _PROBES))
        keys = _read_keys(tx, kind, order, (ids[at] for at in probes))
        for at in probes:
            other = keys[ids[at]]
            # Equal keys are sorted by ascending id in both directions.
            if (other == key and ids[at] < row[0]) or (other != key and (other > key) is descending):
                low = at + 1
            else:
                high = at
                break
    return low


def _read_keys(tx: Transaction, kind: str, order: Order, ids: Iterable[int]) -> dict[int, Any]:
    return {row[1]: row[0] for row in tx.fetch(statements.keys_of(order[0]), kind=kind, ids=tx.id_list(list(ids)))}
