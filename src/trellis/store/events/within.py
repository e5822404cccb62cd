"""Events of what is inside of a part of the nodes, and of what was inside when it was deleted."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import nodes
from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.engine import Transaction
from trellis.store.tables import events

# The place of a deleted node is where it was when it was deleted last. Rows of `snapshots` say so for as long as they are kept.
_GONE = """
    gone (id, parent_id) AS (
        SELECT id, parent_id FROM snapshots AS one
        WHERE kind = :{n}kind AND change = 'deleted'
            AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.kind = one.kind AND nodes.id = one.id)
            AND NOT EXISTS (
                SELECT 1 FROM snapshots AS later
                WHERE later.kind = one.kind AND later.id = one.id AND later.change = 'deleted' AND later.seq > one.seq
            )
    )"""
_ROOTS = "SELECT id FROM nodes WHERE kind = :{n}kind AND id IN :{n}roots"
_BELOW = {
    True: "SELECT nodes.id FROM nodes JOIN inside ON nodes.parent_id = inside.id WHERE nodes.kind = :{n}kind "
    "UNION SELECT gone.id FROM gone JOIN inside ON gone.parent_id = inside.id",
    False: "SELECT below.id FROM inside JOIN ("
    "SELECT id, parent_id FROM nodes WHERE kind = :{n}kind UNION ALL SELECT id, parent_id FROM gone"
    ") AS below ON below.parent_id = inside.id",
}
_INSIDE = {
    sqlite: f"WITH RECURSIVE {_GONE}, inside (id) AS ({_ROOTS} UNION {below}) SELECT id FROM inside"  # noqa: S608  # our own text
    for sqlite, below in _BELOW.items()
}


def _select_inside(tx: Transaction, resource: str, roots: Iterable[int], n: str) -> sa.Select[Any]:
    text = _INSIDE[tx.sqlite].replace("{n}", n)
    given = bindparam(f"{n}kind", resource, type_=PLAIN), bindparam(f"{n}roots", list(roots), type_=NUMBER, expanding=True)
    found = sa.text(text).bindparams(*given).columns(sa.column("id", NUMBER)).subquery(f"{n}inside")
    return sa.select(found.c.id)


def is_about_inside(tx: Transaction, within: Mapping[str, Iterable[int]]) -> sa.ColumnElement[bool]:
    """Build the condition that an event is about something inside of `within`: roots by resource."""
    conditions: list[sa.ColumnElement[bool]] = []
    for number, (resource, roots) in enumerate(sorted(within.items())):
        inside = _select_inside(tx, resource, roots, f"part_{number}_")
        conditions.append(sa.and_(events.c.resource == resource, events.c.resource_id.in_(inside)))
    return sa.or_(sa.false(), *conditions)


def find_inside_or_deleted(tx: Transaction, resource: str, roots: Collection[int], ids: Collection[int]) -> set[int]:
    """Return those of some nodes that are inside of the roots, or were when they were deleted."""
    gone = set(ids) - nodes.find_existing(tx, resource, ids)
    found = nodes.find_inside(tx, resource, roots, set(ids) - gone)
    if gone:
        inside = _select_inside(tx, resource, roots, "")
        rows = tx.connection.execute(inside.where(inside.selected_columns[0].in_(sorted(gone))))
        found.update(row[0] for row in rows)
    return found
