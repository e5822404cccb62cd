"""Events of what is inside of a part of the nodes, and of what was inside when it was deleted."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import nodes
from trellis.store.column_types import NUMBER, PLAIN
from trellis.store.engine import ListedId, Transaction
from trellis.store.lists import find_ids_inside
from trellis.store.tables import events, snapshots

_MAX_LISTED: Final = 50_000  # ids of what is inside that are compared; with more, many events match: each is judged by itself
# Judged on the way up. The place of a deleted node is where it was when it was deleted last. Rows of `snapshots` say so for as long
# as they are kept.
_LEADS_INSIDE = """
    EXISTS (
        WITH RECURSIVE up (id) AS (
            SELECT {column}
            UNION
            SELECT CASE WHEN node.id IS NOT NULL THEN node.parent_id ELSE (
                SELECT gone.parent_id FROM snapshots AS gone
                WHERE gone.kind = :{n}kind AND gone.id = up.id AND gone.change = 'deleted' ORDER BY gone.seq DESC LIMIT 1
            ) END
            FROM up LEFT JOIN nodes AS node ON node.kind = :{n}kind AND node.id = up.id
            WHERE up.id IS NOT NULL
        )
        SELECT 1 FROM up WHERE up.id IN :{n}roots
    )"""
# Not `NOT EXISTS`, for which PostgreSQL would read all of the kind.
_IS_GONE = "(SELECT nodes.id FROM nodes WHERE nodes.kind = :{n}kind AND nodes.id = {column}) IS NULL"


def _build(text: str, column: str, n: str, resource: str, roots: Iterable[int] | None = None) -> sa.ColumnElement[bool]:
    sql = text.replace("{column}", column).replace("{n}", n)
    given: list[sa.BindParameter[Any]] = [bindparam(f"{n}kind", resource, type_=PLAIN)]
    if roots is not None:
        given.append(bindparam(f"{n}roots", list(roots), type_=NUMBER, expanding=True))
    return sa.text(sql).bindparams(*given)  # type: ignore[return-value]  # a text is a condition too


def is_about_inside(tx: Transaction, within: Mapping[str, Iterable[int]]) -> sa.ColumnElement[bool]:
    """Build the condition that an event is about something inside of `within`: roots by resource."""
    conditions: list[sa.ColumnElement[bool]] = []
    for number, (resource, roots) in enumerate(sorted(within.items())):
        n, tops = f"part_{number}_", nodes.find_existing(tx, resource, roots)
        leads_inside = _build(_LEADS_INSIDE, "events.resource_id", n, resource, tops)
        ids = find_ids_inside(tx, resource, tops)
        if len(ids) <= _MAX_LISTED:
            is_gone = _build(_IS_GONE, "events.resource_id", n, resource)
            listed = ListedId(events.c.resource_id, f"{n}ids", tx.id_list(ids.tolist()))
            leads_inside = sa.or_(listed, sa.and_(is_gone, leads_inside))
        conditions.append(sa.and_(events.c.resource == resource, leads_inside))
    return sa.or_(sa.false(), *conditions)


def find_inside_or_deleted(tx: Transaction, resource: str, roots: Collection[int], ids: Collection[int]) -> set[int]:
    """Return those of some nodes that are inside of the roots, or were when they were deleted."""
    gone = set(ids) - nodes.find_existing(tx, resource, ids)
    found = nodes.find_inside(tx, resource, roots, set(ids) - gone)
    if gone:
        leads_inside = _build(_LEADS_INSIDE, "snapshots.id", "", resource, nodes.find_existing(tx, resource, roots))
        was_deleted = sa.and_(snapshots.c.kind == resource, snapshots.c.change == "deleted", snapshots.c.id.in_(sorted(gone)))
        found.update(tx.connection.execute(sa.select(snapshots.c.id).where(was_deleted, leads_inside)).scalars())
    return found
