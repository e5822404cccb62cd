"""Removes groups from the permissions of nodes and from the fields that name groups."""

from collections.abc import Callable, Container
from dataclasses import replace
from typing import Any

from trellis.core.kind import NodeKind
from trellis.core.operation import Context, Progress
from trellis.store import nodes, snapshots
from trellis.store.nodes import Node


def remove_group(context: Context, group: int) -> list[tuple[str, int]]:
    """Remove a group from every node's permissions and group fields; return the nodes that named it."""
    kinds = context.environment.kinds_by_name
    keys = nodes.list_mentioning_group(context.tx, group)
    progress = Progress(context.call, len(keys))
    found: list[tuple[str, int]] = []
    for name, node in nodes.walk(context.tx, keys):
        progress.done()
        without, removed = drop_groups(kinds.get(name), node, {group}.__contains__)
        if removed:
            snapshots.save(context.tx, name, node, "changed")
            nodes.update(context.tx, name, replace(without, updated_at=context.at))
            found.append((name, node.id))
    return found


def find_naming(context: Context, group: int) -> set[tuple[str, int]]:
    """Find the nodes of all kinds that name a group: (kind, id)."""
    kinds = context.environment.kinds_by_name
    found = nodes.walk(context.tx, nodes.list_mentioning_group(context.tx, group))
    return {(name, node.id) for name, node in found if drop_groups(kinds.get(name), node, {group}.__contains__)[1]}


def drop_groups(kind: NodeKind | None, node: Node, is_gone: Callable[[int], bool]) -> tuple[Node, set[int]]:
    """Remove the groups that are gone from a node's permissions and group fields; return the node and the ids of these groups.

    A node of an unknown kind (None) has no group fields.
    """
    own = {field.name for field in kind.group_fields} if kind is not None else set()
    lists = [*node.permissions.values(), *(node.fields.get(name) for name in own)]
    gone = {group for who in lists if isinstance(who, list) for group in who if is_gone(group)}
    if not gone:
        return node, gone
    permissions = {option: without_groups(who, gone) for option, who in node.permissions.items()}
    fields = {name: without_groups(value, gone) if name in own else value for name, value in node.fields.items()}
    return replace(node, permissions=permissions, fields=fields), gone


def without_groups(who: Any, gone: Container[int]) -> Any:
    """Remove groups from a permission."""
    return [one for one in who if one not in gone] if isinstance(who, list) else who
