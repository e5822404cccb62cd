"""When nodes came into a part of the community, by a move of their own or of a node above them."""

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from trellis.store.engine import IdIn, Transaction
from trellis.store.nodes import split_into_batches
from trellis.store.tables import nodes, snapshots

NEVER: Final = 2**62  # more than any event's number: a node of which it is not known that it was ever inside
_MOST: Final = 5_000  # nodes that are looked at; of more it is not known
# The parents that nodes had before events, each with the last of these; and those that they have.
_SAVED: Final = (
    sa.select(snapshots.c.id, snapshots.c.parent_id, sa.func.max(snapshots.c.seq))
    .where(IdIn(snapshots.c.id, "ids"))
    .group_by(snapshots.c.id, snapshots.c.parent_id)
)
_PRESENT: Final = sa.select(nodes.c.id, nodes.c.parent_id).where(IdIn(nodes.c.id, "ids"))

_Parents = dict[int | None, int]  # each parent that a node has or had, and the event that last took it away; NEVER if none did


def find_arrivals(tx: Transaction, resource: str, roots: Collection[int], ids: Collection[int]) -> dict[int, int]:
    """Return, for each of some nodes, the event before which it was last outside of the roots: 0 if it has always been inside.

    This is derived from the rows that events have saved, as long as these are kept.
    """
    tops = frozenset(roots)
    line = _find_line(tx, resource, tops, ids)
    arrivals: dict[int | None, int] = {None: NEVER} | dict.fromkeys(ids, NEVER) | dict.fromkeys(tops, 0)
    if len(line) <= _MOST:
        arrivals |= dict.fromkeys(line, 0)
        changed = True
        while changed:  # of nodes that have been below one another by turns, each tells something of the others
            changed = False
            for node, parents in reversed(line.items()):  # from above
                since = max((min(until, arrivals[parent]) for parent, until in parents.items()), default=NEVER)
                if since > arrivals[node]:
                    arrivals[node], changed = since, True
    return {node: arrivals[node] for node in ids}


def _find_line(tx: Transaction, resource: str, tops: frozenset[int], ids: Collection[int]) -> dict[int, _Parents]:
    """Find all present and former parents of nodes, and their parents in turn, up to the top level."""
    line: dict[int, _Parents] = {}
    waiting = set(ids) - tops
    while waiting and len(line) <= _MOST:
        line |= {node: {} for node in sorted(waiting)}
        for batch in split_into_batches(sorted(waiting)):
            of = {"ids": tx.id_list(batch)}
            for node, parent, until in tx.connection.execute(_SAVED.where(snapshots.c.kind == resource), of):
                line[node][parent] = until
            for node, parent in tx.connection.execute(_PRESENT.where(nodes.c.kind == resource), of):
                line[node][parent] = NEVER
        found = {parent for node in waiting for parent in line[node] if parent is not None}
        waiting = found - tops - line.keys()
    return line
