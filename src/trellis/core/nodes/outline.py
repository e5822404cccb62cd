"""The operations that show a kind as a tree: all of it, or one level with child counts, ancestors, ids of children."""

from dataclasses import replace
from functools import partial
from typing import Any, Final

from trellis.core.fields import Field, Ids, Input, Integer, ListOf, NodeId, ParentId, invalid_id
from trellis.core.kind import NodeKind
from trellis.core.nodes.crud import build_operation, granted_with
from trellis.core.nodes.listing import build_query
from trellis.core.nodes.record import find_path_above, find_reachable, serialize_node, serialize_nodes
from trellis.core.nodes.tree import DEEPEST, list_line
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.paging import PAGING, refusing_large_pages, serialize_page
from trellis.core.verbs import LIST, Response, Verb
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import lists, nodes, siblings
from trellis.store.engine import Shown

_PARENT: Final = Field(
    "parentId", ParentId(filter=True), "The node whose children are listed. The default is `root`: the top level."
)
_IDS: Final = Field("ids", Ids(), "The nodes whose ancestors are listed.")
_MOST_IN_TREE: Final = 10_000
_ROOT: Final = Field("root", NodeId(), "The node whose descendants are returned.")
_SMALLER: Final = say("Send a smaller depth, or the id of a node further down as root.")
_DEPTH: Final = Field("depth", Integer(1, DEEPEST), "How many levels to return; 1 returns the children only.")
TREE: Final = Verb(name="tree", method="GET", tail="/tree", response=Response.ANSWER, answer="The tree.", read_at="tree/{resource}")
_EXAMPLE: Final = [{"id": 1, "name": "News", "children": [{"id": 2, "name": "Archive", "children": []}]}]


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return the operations that show an ordered kind as a tree or a list; all but the tree are for the panel and the terminal."""
    if not kind.ordered:
        return ()
    one, many = kind.singular, kind.title.lower()
    level = Operation(
        f"{kind.name}.level",
        f"List one level of the {many}",
        f"Returns one page of siblings by position. `children` lists each {one}'s number of children, in the same order.",
        partial(_level, kind),
        (*PAGING, _PARENT) if kind.tree else PAGING,
        kind=kind,
    )
    if not kind.tree:
        return (level,)
    ancestors = Operation(
        f"{kind.name}.ancestors",
        f"List the ancestors of some {many}",
        f"Returns, for each {one}, the nodes from the top level down to it; none for an id that does not exist.",
        partial(_ancestors, kind),
        (_IDS,),
        kind=kind,
    )
    children = Operation(
        f"{kind.name}.children",
        f"List the ids of a {one}'s children",
        f"Returns the ids of all children of a {one}, in order.",
        partial(_children, kind),
        has_target=True,
        kind=kind,
    )
    tree = build_operation(
        kind,
        TREE,
        f"Get the tree of {many}",
        f"Returns the {many} as a tree, siblings in their order: each record has its children in `children`. At most "
        f"{_MOST_IN_TREE:,} of them, with at most {nodes.MOST_BYTES >> 20} MiB of text, are returned at once; if there is more, "
        "send `depth` or another `root`.",
        _tree,
        (_ROOT, _DEPTH),
        ("TREE_TOO_LARGE",),
    )
    answers = (
        Field("root", NodeId(nullable=True), f"The {one} whose tree it is; null for all."),
        Field("total", Integer(), "How many nodes the tree has.", example=2),
        Field("children", ListOf(()), "The records at the top of the tree, each with its own `children`.", example=_EXAMPLE),
    )
    refusals = (("INVALID_ID", kind.missing_code(LIST)), *tree.refusals)
    tree = granted_with(kind, (LIST,), replace(tree, response_fields=answers, refusals=refusals, slow=True))
    return (level, ancestors, children, tree)


def _tree(kind: NodeKind, context: Context) -> Outcome:
    given, tx, reach = context.input, context.tx, context.find_reach(kind)
    root, above = given.get("root"), ""
    if root is not None:
        if (read := find_reachable(kind, context, root)) is None:
            raise invalid_id(kind.singular, root, kind.missing_code(LIST))
        above = f"{read.above}{read.node.name} > "
    tops = nodes.find_tops(tx, kind.name, reach.roots) if reach is not None and root is None else None
    try:
        found = nodes.find_tree(tx, kind.name, root, given.get("depth", DEEPEST + 1), nodes.Room(_MOST_IN_TREE), tops)
    except nodes.TooMuch as much:
        raise _refuse_size(kind, much) from None
    levels: dict[int | None, int] = {root: 0}
    paths: dict[int | None, str] = {root: above}
    children: dict[int | None, list[dict[str, Any]]] = {root: []}
    for top in [node for node in found if tops is not None and node.id in tops]:  # listed side by side, whatever is above
        levels[top.parent_id], children[top.parent_id] = 0, children[root]
        paths[top.parent_id] = find_path_above(tx, kind, top)
    for node in found:  # parents come before their children
        path = paths[node.parent_id]
        level = levels[node.id] = levels[node.parent_id] + 1
        if level > DEEPEST:
            raise Refused(
                "TREE_TOO_LARGE",
                say("The tree has more than {deepest_tree} levels. {smaller}", deepest_tree=DEEPEST, smaller=_SMALLER),
            )
        below: list[dict[str, Any]] = []
        paths[node.id], children[node.id] = f"{path}{node.name} > ", below
        record = serialize_node(kind, node, path, context.environment.community_url)
        children[node.parent_id].append(record | {"children": below})
    result = {"root": root, "total": len(found), "children": children[root]}
    return Outcome(result, shows=(Shown(kind.name, whole=True),))


def _refuse_size(kind: NodeKind, much: nodes.TooMuch) -> Refused:
    many = say(
        "The tree has more than {most_in_tree:,} {title}. {smaller}",
        most_in_tree=_MOST_IN_TREE,
        title=kind.plural,
        smaller=_SMALLER,
    )
    large = say(
        "The {title} of the tree have more than {mib} MiB of text. {smaller}", mib=much.mib, title=kind.plural, smaller=_SMALLER
    )
    return Refused("TREE_TOO_LARGE", many if much.mib is None else large)


def _level(kind: NodeKind, context: Context) -> Outcome:
    top = {"parentId": None} if kind.tree else {}
    query, page, per_page = build_query(kind, Input({**top, **context.input.values}))
    with refusing_large_pages():
        total, found = lists.read_page(context.tx, kind.name, replace(query, sort_by="position"))
    counts = siblings.count_children_by_parent(context.tx, kind.name, [node.id for node in found]) if kind.tree else {}
    results = serialize_nodes(kind, context, found)
    return Outcome(serialize_page(results, total, page, per_page) | {"children": [counts.get(node.id, 0) for node in found]})


def _ancestors(kind: NodeKind, context: Context) -> Outcome:
    ids = context.input.get("ids", ())
    line = nodes.find_ancestors(context.tx, kind.name, ids)
    places = siblings.find_places(context.tx, kind.name, [*line])
    parents = {node: parent for node, (parent, _) in line.items()}
    told = {node: {"id": node, "name": line[node][1], "parentId": parent, "position": at} for node, (parent, at) in places.items()}
    return Outcome({node: [told[one] for one in reversed(list_line(parents, node)) if one in told] for node in ids})


def _children(kind: NodeKind, context: Context) -> Outcome:
    return Outcome(siblings.find_children(context.tx, kind.name, context.call.target or 0))
