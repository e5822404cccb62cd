"""Serialises nodes as callers see them, with their addresses and paths, and finds the node that a call is about."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from trellis.core.fields import invalid_id
from trellis.core.kind import NodeKind
from trellis.core.nodes.tree import format_path
from trellis.core.operation import Context, Fate
from trellis.core.verbs import Verb
from trellis.store import events, nodes, snapshots
from trellis.store.engine import Shown, Transaction
from trellis.store.nodes import Located, Node

_RUNS = re.compile(r"[^a-z0-9]+")


def serialize_nodes(kind: NodeKind, context: Context, found: Sequence[Node]) -> list[dict[str, Any]]:
    """Serialise nodes as callers see them; their ancestors are read in one query."""
    return serialize_page_of_nodes(kind, context, found)[0]


def serialize_page_of_nodes(kind: NodeKind, context: Context, found: Sequence[Node]) -> tuple[list[dict[str, Any]], Shown]:
    """Serialise nodes as callers see them; return the records and what they show: the nodes, their ancestors and their places."""
    parents = {n.parent_id for n in found if n.parent_id is not None}
    line = nodes.find_ancestors(context.tx, kind.name, parents) if parents else {}
    above = {parent: format_path(parent, line) + " > " for parent in parents}
    orders = {n.parent_id or 0 for n in found} if kind.ordered else ()
    url = context.environment.community_url
    return (
        [serialize_node(kind, node, "" if node.parent_id is None else above[node.parent_id], url) for node in found],
        Shown(kind.name, tuple(n.id for n in found), tuple(line), tuple(orders)),
    )


def find_path_above(tx: Transaction, kind: NodeKind, node: Node) -> str:
    """Return the names of the ancestors of a node with ' > ' behind each; "" at the top level."""
    if node.parent_id is None:
        return ""
    return format_path(node.parent_id, nodes.find_ancestors(tx, kind.name, (node.parent_id,))) + " > "


def serialize_node(kind: NodeKind, node: Node, above: str, community_url: str) -> dict[str, Any]:
    """Serialise one node as callers see it; `above` is the path of its parent with ' > ' after it, or ""."""
    name, fields, permissions, words = node.name, node.fields, node.permissions, slug(node.name)
    record = kind.blank.copy()
    record.update(fields)  # copying and filling in is twice as fast as building
    for secret in kind.secrets:
        record.pop(secret.name, None)
    if len(record) > len(kind.blank):  # fields that the kind no longer has
        for more in fields.keys() & (record.keys() - kind.blank.keys()):
            del record[more]
    record["id"] = node.id
    record["name"] = name
    record["url"] = f"{community_url}/{kind.name}/{node.id}-{words}/" if words else f"{community_url}/{kind.name}/{node.id}/"
    record["externalId"] = node.external_id
    record["managedBy"] = node.managed_by
    if kind.tree:
        record["parentId"] = node.parent_id
        record["path"] = above + name
    if kind.ordered:
        record["position"] = node.position
    for derived in kind.derived:
        record[derived.name] = derived.compute(name, fields)
    if kind.options:  # SQLite returns them in the order in which they were written, PostgreSQL does not
        in_order = tuple(permissions) == kind.option_names
        record["permissions"] = permissions if in_order else {option: permissions.get(option, []) for option in kind.options}
    record["createdAt"] = node.created_at
    record["updatedAt"] = node.updated_at
    return record


def shown_by(kind: NodeKind, found: Located) -> Shown:
    """Return what the record of one node shows: its row, the names above it, and its place among its siblings."""
    orders = (found.node.parent_id or 0,) if kind.ordered else ()
    return Shown(kind.name, (found.node.id,), found.line, orders)


@lru_cache(maxsize=4096)
def slug(name: str) -> str:
    """Return the slug of a name: `Frühe Hilfe!` → `fruhe-hilfe`; "" if no letter has an ASCII base."""
    plain = name if name.isascii() else unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return _RUNS.sub("-", plain.lower()).strip("-")[:80].rstrip("-")


# --- the node that a call is about --------------------------------------------------------------------------------


def get_with_path(kind: NodeKind, context: Context, verb: Verb) -> tuple[Node, str]:
    """Return the node that a call is about, and the path above it; refuse an id that does not exist or is out of reach."""
    node, above, _ = locate(kind, context, verb)
    return node, above


def locate(kind: NodeKind, context: Context, verb: Verb) -> Located:
    """Return the node that a call is about, with its path and ancestors; refuse an id that does not exist or is out of reach."""
    target = context.call.target or 0
    if (read := find_reachable(kind, context, target)) is None:
        raise invalid_id(kind.singular, target, kind.missing_code(verb))
    return read


def find_reachable(kind: NodeKind, context: Context, node: int | str) -> Located | None:
    """Return a node, by its id or its external id, with its path and ancestors; None if it does not exist or is out of reach."""
    read = nodes.find_with_path(context.tx, kind.name, node)
    return read if read is not None and context.reaches(kind, read.node.id) else None


def find_fate(kind: NodeKind, context: Context, number: int) -> Fate:
    """Return what has become of a node, as far as the call may know: a node that is out of its reach does not exist for it."""
    tx, reach = context.tx, context.find_reach(kind)
    if number in (nodes.find_existing(tx, kind.name, (number,)) if reach is None else reach.find_inside(tx, (number,))):
        return Fate(is_there=True)
    last = snapshots.find_latest(tx, kind.name, number)
    if last is None or last.change != "deleted":
        return Fate(is_there=False)
    is_known = reach is None or number in events.find_inside_or_deleted(tx, kind.name, reach.roots, (number,))
    return Fate(is_there=False, deleted_by=last.seq if is_known else None)


def serialize_target(kind: NodeKind, context: Context, node: Node) -> dict[str, Any]:
    """Serialise a node as callers see it."""
    return serialize_nodes(kind, context, (node,))[0]
