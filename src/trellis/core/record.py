"""A node as callers see it: its members in their order, with its address and its path."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from trellis.core.kind import NodeKind
from trellis.core.tree import path_of
from trellis.store import nodes
from trellis.store.engine import Transaction
from trellis.store.nodes import Node


def records(tx: Transaction, kind: NodeKind, found: Iterable[Node], community_url: str) -> list[dict[str, Any]]:
    """Write nodes as callers see them; their ancestors are read in one go."""
    found = list(found)
    line = nodes.lines(tx, kind.name, (n.parent_id for n in found if n.parent_id is not None)) if kind.tree else {}
    return [_record(kind, node, line, community_url) for node in found]


def record(tx: Transaction, kind: NodeKind, node: Node, community_url: str) -> dict[str, Any]:
    """Write one node as callers see it."""
    return records(tx, kind, (node,), community_url)[0]


def _record(kind: NodeKind, node: Node, line: dict[int, tuple[int | None, str]], community_url: str) -> dict[str, Any]:
    written: dict[str, Any] = {
        "id": node.id,
        "name": node.name,
        "url": f"{community_url}/{kind.name}/{node.id}-{slug(node.name)}/",
    }
    if kind.tree:
        written["parentId"] = node.parent_id
    if kind.ordered:
        written["position"] = node.position
    if kind.tree:
        above = "" if node.parent_id is None else path_of(node.parent_id, line) + " > "
        written["path"] = above + node.name
    for name in kind.readable:
        written[name] = node.fields.get(name)
    for derived in kind.derived:
        written[derived.name] = derived.compute(node.name, node.fields)
    if kind.options:
        written["permissions"] = {option: node.permissions.get(option, []) for option in kind.options}
    written["createdAt"] = node.created_at
    written["updatedAt"] = node.updated_at
    return written


@lru_cache(maxsize=4096)
def slug(name: str) -> str:
    """Write a name for an address: `Frühe Hilfe!` → `fruhe-hilfe`; letters outside ASCII without a base fall away."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80].rstrip("-") or "-"
