"""The change journal: the latest changes of nodes, from which stored results are brought up to date.

Triggers on `nodes` write it (see migrations 0021 and 0040), so it records every change of a row other than of its slot. Each entry
has the columns that filters and orders use, as they were before the change; for an insert only the parent is set. Two kinds of
entries are written by code: that the order of siblings has changed (`siblings.rows.note_order`), and that anything may have changed
(`note_everything`).
"""

from functools import cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store.engine import Row, Statement, Transaction
from trellis.store.lists.filters import match
from trellis.store.tables import node_changes, nodes

KEPT: Final = 20_000  # entries that `trim` leaves, for processes that have not read for a while
_MAX_APPLIED: Final = 2_000  # with more entries than this to compare, counting again is cheaper
_c, _j = nodes.c, node_changes.c


class JournalRange(NamedTuple):
    """The sequence numbers of the first and the last entry; both are 0 if there are no entries."""

    first: int
    last: int


_ENDS = (sa.select(sa.func.min(_j.seq)).scalar_subquery(), sa.select(sa.func.max(_j.seq)).scalar_subquery())
_BOUNDS: Final = Statement(sa.select(*_ENDS))
# In one round trip: every list that is brought up to date asks.
_BOUNDS_AND_ALL: Final = Statement(sa.select(*_ENDS, sa.exists().where(_j.seq > bindparam("since"), _j.change == "all")))


def find_range(tx: Transaction) -> JournalRange:
    """Return the first and the last sequence number in the journal."""
    ((first, last),) = tx.fetch(_BOUNDS)
    return JournalRange(first or 0, last or 0)


class Delta(NamedTuple):
    """How the matches of a query have changed up to entry `last`.

    `removed` are the changed rows that matched before, as they were then; `added` are those that match now. A row can be in both.
    The columns are id, name_key, created_at and updated_at.
    """

    last: int
    removed: list[Row]
    added: list[Row]


_SINCE = sa.and_(_j.kind == bindparam("kind"), _j.seq > bindparam("since"))


@cache
def _removed(names: tuple[str, ...]) -> Statement:
    first = sa.select(sa.func.min(_j.seq)).where(_SINCE).group_by(_j.id)  # how each node was before the first of its changes
    return Statement(
        sa.select(_j.id, _j.name_key, _j.created_at, _j.updated_at).where(
            _j.seq.in_(first), _j.name_key.is_not(None), match(names, node_changes)
        )
    )


@cache
def _added(names: tuple[str, ...]) -> Statement:
    changed = _c.id.in_(sa.select(_j.id).where(_SINCE))
    return Statement(
        sa.select(_c.id, _c.name_key, _c.created_at, _c.updated_at).where(changed, match(names, nodes, without_index=True))
    )


def _regrouped() -> Statement:
    """Find a move, which takes unchanged nodes along, or a delete whose parent is gone too, so that its place is unknown."""
    above = nodes.alias()
    moved = sa.exists().where(_c.kind == _j.kind, _c.id == _j.id, _c.parent_id.is_distinct_from(_j.parent_id))
    is_gone = ~sa.exists().where(_c.kind == _j.kind, _c.id == _j.id)
    parent_is_gone = ~sa.exists().where(above.c.kind == _j.kind, above.c.id == _j.parent_id)
    lost = sa.and_(_j.parent_id.is_not(None), is_gone, parent_is_gone)
    return Statement(sa.select(_j.seq).where(_SINCE, _j.name_key.is_not(None), sa.or_(moved, lost)).limit(1))


_REGROUPED: Final = _regrouped()
_INSIDE: Final = frozenset({"inside", "leads_inside"})


def find_delta(tx: Transaction, names: tuple[str, ...], params: dict[str, Any], since: int) -> Delta | None:
    """Compare the nodes that pass the filters `names` with those that did as of entry `since`.

    None if that is impossible: the journal does not reach back far enough, too much has changed, anything may have changed (see
    `note_everything`), a change of the tree cannot be followed (see `_regrouped`), or `since` is after this snapshot because
    another thread has read a newer one.
    """
    first, last, anything = tx.fetch(_BOUNDS_AND_ALL, since=since)[0]
    first, last = first or 0, last or 0
    if anything or not first - 1 <= since <= last or last - since > _MAX_APPLIED:
        return None
    if since == last:
        return Delta(last, [], [])
    if not _INSIDE.isdisjoint(names):
        if tx.fetch(_REGROUPED, kind=params["kind"], since=since):
            return None
        names = tuple("leads_inside" if name == "inside" else name for name in names)
    return Delta(last, tx.fetch(_removed(names), **params, since=since), tx.fetch(_added(names), **params, since=since))


_NOTE_ALL = Statement(sa.insert(node_changes).values(kind=sa.text("''"), id=sa.text("0"), change=sa.text("'all'")))


def note_everything(tx: Transaction) -> None:
    """Record that anything may have changed, after a repair of data whose changes have no entries."""
    tx.execute(_NOTE_ALL)


def trim(tx: Transaction, done: int, most: int = 5000) -> int:
    """Delete the oldest entries up to `done`, at most `most`, but none of the last KEPT; return the number deleted."""
    first, last = find_range(tx)
    bound = min(done, last - KEPT, first + most - 1)
    return tx.connection.execute(sa.delete(node_changes).where(_j.seq <= bound)).rowcount if bound >= first > 0 else 0
