"""Events about nodes that are inside a part of the community, or were inside when they were deleted."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final

import sqlalchemy as sa
from sqlalchemy import bindparam

from trellis.store import nodes
from trellis.store.column_types import NUMBER
from trellis.store.engine import ListedId, Transaction
from trellis.store.tables import events, snapshots

_MAX_LISTED: Final = 50_000  # ids inside that events are compared with; if there are more, many events match: each is checked
# Checked on the way up from the node. The parent of a deleted node is the one that it had when it was last deleted, as long as its
# row in `snapshots` is kept.
_LEADS_INSIDE = """
    EXISTS (
        WITH RECURSIVE up (kind, id) AS (
            SELECT {kind}, {id}
            UNION
            SELECT up.kind, CASE WHEN node.id IS NOT NULL THEN node.parent_id ELSE (
                SELECT gone.parent_id FROM snapshots AS gone
                WHERE gone.kind = up.kind AND gone.id = up.id AND gone.change = 'deleted' ORDER BY gone.seq DESC LIMIT 1
            ) END
            FROM up LEFT JOIN nodes AS node ON node.kind = up.kind AND node.id = up.id
            WHERE up.id IS NOT NULL
        )
        SELECT 1 FROM up WHERE up.id IN {roots}
    )"""
# Not `NOT EXISTS`, for which PostgreSQL would read all nodes of the kind.
_IS_GONE = "(SELECT nodes.id FROM nodes WHERE nodes.kind = events.resource AND nodes.id = events.resource_id) IS NULL"


def _leads_inside(kind: str, node: str, name: str, roots: Iterable[int]) -> sa.ColumnElement[bool]:
    """Build the condition for the node that two columns identify; the roots become the parameter `name`."""
    sql = _LEADS_INSIDE.replace("{kind}", kind).replace("{id}", node).replace("{roots}", f":{name}")
    return sa.text(sql).bindparams(bindparam(name, list(roots), type_=NUMBER, expanding=True))  # type: ignore[return-value]  # a text is a condition too


def is_about_inside(tx: Transaction, parts: Mapping[str, Iterable[int]]) -> sa.ColumnElement[bool]:
    """Build the condition that an event is about a node that is inside `parts` (roots by resource), or was when it was deleted."""
    from trellis.store.lists import find_ids_inside  # noqa: PLC0415  # start-up time: few commands read the feed of a key with bounds

    conditions: list[sa.ColumnElement[bool]] = []
    for number, (resource, roots) in enumerate(sorted(parts.items())):
        n, tops = f"part_{number}_", nodes.find_existing(tx, resource, roots)
        leads_inside = _leads_inside("events.resource", "events.resource_id", f"{n}roots", tops)
        ids = find_ids_inside(tx, resource, tops)
        if len(ids) <= _MAX_LISTED:
            listed = ListedId(events.c.resource_id, f"{n}ids", tx.id_list(ids.tolist()))
            leads_inside = sa.or_(listed, sa.and_(sa.text(_IS_GONE), leads_inside))
        conditions.append(sa.and_(events.c.resource == resource, leads_inside))
    return sa.or_(sa.false(), *conditions)


def find_inside_or_deleted(tx: Transaction, resource: str, roots: Collection[int], ids: Collection[int]) -> set[int]:
    """Return those of some nodes that are inside the roots, or were when they were deleted."""
    gone = set(ids) - nodes.find_existing(tx, resource, ids)
    found = nodes.find_inside(tx, resource, roots, set(ids) - gone)
    if gone:
        leads_inside = _leads_inside("snapshots.kind", "snapshots.id", "roots", nodes.find_existing(tx, resource, roots))
        listed = ListedId(snapshots.c.id, "gone", tx.id_list(sorted(gone)))
        was_deleted = sa.and_(snapshots.c.kind == resource, snapshots.c.change == "deleted", listed)
        found.update(tx.connection.execute(sa.select(snapshots.c.id).where(was_deleted, leads_inside)).scalars())
    return found
