"""The operations by which the panel shows a kind as a tree: a level with the numbers of children, ancestors, children's ids."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from trellis.core.fields import Field, Ids, ParentId
from trellis.core.kind import NodeKind
from trellis.core.nodes.listing import build_query
from trellis.core.nodes.record import serialize_nodes
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.paging import PAGING, serialize_page
from trellis.store import lists, nodes, siblings
from trellis.store.nodes import Node

_PARENT: Final = Field("parentId", ParentId(filter=True), "The node whose children are listed; `root` is the top level.")
_IDS: Final = Field("ids", Ids(), "The nodes whose ancestors are wanted.")
_DEEPEST: Final = 1000  # a chain of ancestors that is longer is cut off


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return the operations that show an ordered kind as a tree or a list. All are for the panel and the terminal."""
    if not kind.ordered:
        return ()
    one, many = kind.singular, kind.title.lower()
    level = Operation(
        f"{kind.name}.level",
        f"List one level of the {many}",
        f"One page of siblings by their positions. `children` holds the number of children of each {one}, in the same order.",
        partial(_level, kind),
        (*PAGING, _PARENT) if kind.tree else PAGING,
        kind=kind,
    )
    if not kind.tree:
        return (level,)
    ancestors = Operation(
        f"{kind.name}.ancestors",
        f"List the ancestors of some {many}",
        f"The nodes from the top level down to each {one}, which is the last of them; none for an id that there is not.",
        partial(_ancestors, kind),
        (_IDS,),
        kind=kind,
    )
    children = Operation(
        f"{kind.name}.children",
        f"List the ids of a {one}'s children",
        f"The ids of all children of a {one}, in their order.",
        partial(_children, kind),
        has_target=True,
        kind=kind,
    )
    return (level, ancestors, children)


def _level(kind: NodeKind, context: Context) -> Outcome:
    context.input.demand()
    query, page, per_page = build_query(kind, context.input)
    total, found = lists.read_page(context.tx, kind.name, replace(query, sort_by="position"))
    counts = siblings.count_children_by_parent(context.tx, kind.name, [node.id for node in found]) if kind.tree else {}
    results = serialize_nodes(context.tx, kind, found, context.environment.community_url)
    return Outcome(serialize_page(results, total, page, per_page) | {"children": [counts.get(node.id, 0) for node in found]})


def _ancestors(kind: NodeKind, context: Context) -> Outcome:
    context.input.demand()
    known: dict[int, Node | None] = {}

    def find(node: int) -> Node | None:
        if node not in known:
            known[node] = nodes.find(context.tx, kind.name, node)
        return known[node]

    def path_to(node: int) -> list[Mapping[str, Any]]:
        path: list[Mapping[str, Any]] = []
        at: int | None = node
        while at is not None and len(path) < _DEEPEST and (found := find(at)) is not None:
            path.append({"id": found.id, "parentId": found.parent_id, "position": found.position})
            at = found.parent_id
        return path[::-1]

    return Outcome({node: path_to(node) for node in context.input.get("ids", ())})


def _children(kind: NodeKind, context: Context) -> Outcome:
    context.input.demand()
    return Outcome(siblings.find_children(context.tx, kind.name, context.call.target or 0))
