"""The placement of a node: validating what a request asks for, and carrying it out."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from trellis.core.bounds import Reach
from trellis.core.fields import Input
from trellis.core.kind import NodeKind, Values
from trellis.core.nodes import tree
from trellis.core.nodes.record import find_reachable
from trellis.core.operation import Context
from trellis.errors import Fault
from trellis.sentences import advise, mark, say
from trellis.store import nodes, siblings
from trellis.store.engine import Transaction
from trellis.store.nodes import Located, Node

PLACES: Final = ("position", "before", "after")


@dataclass(frozen=True, slots=True)
class Placement:
    """A validated placement: the parent (None is the top level), the place among its children, and any faults.

    `stays` means that the node keeps its place. `place` is None for the last place. `above` is the path of names down to a new
    parent, with ' > ' after each.
    """

    parent_id: int | None
    parent: Node | None = None
    place: int | None = None
    stays: bool = False
    faults: tuple[Fault, ...] = ()
    above: str = ""


class Unfit(Enum):
    """Why a node cannot be the parent of another one."""

    MISSING = auto()
    LEAF_ONLY = auto()
    ITSELF = auto()
    BELOW = auto()
    TOO_DEEP = auto()


_UNFIT: Final = {
    Unfit.MISSING: mark("parentId: there is no {singular} {id}; it may have been deleted."),
    Unfit.LEAF_ONLY: mark("parentId: {singular} {id} is {leaf}, and {leaves} cannot have children."),
    Unfit.ITSELF: mark("parentId: a {singular} cannot be moved under itself."),
    Unfit.BELOW: mark("parentId: a {singular} cannot be moved under {id}, which is below it."),
    Unfit.TOO_DEEP: mark(
        "parentId: under {singular} {id} there would be more than {deepest} levels. Choose a parent further up.",
    ),
}


def resolve_placement(kind: NodeKind, context: Context, given: Input, node: Node | None) -> Placement:
    """Validate the placement of a new node (`node` is None) or of an existing one. Raises Refused (OUT_OF_BOUNDS)."""
    tx, reach = context.tx, context.find_reach(kind)
    old_parent = node.parent_id if node is not None else None
    parent_id = given.get("parentId", old_parent)
    wishes = [name for name in PLACES if name in given]
    if node is not None and parent_id == old_parent and (not wishes or (reach is not None and _is_at(node, given, wishes))):
        return Placement(parent_id, stays=True)
    if reach is not None:
        _check_reach(tx, kind, reach, parent_id, node)
    faults: list[Fault] = []
    if len(wishes) > 1:
        detail = say("Send at most one of position, before and after, not {wishes}.", wishes=" and ".join(wishes))
        faults.extend(Fault(name, "INVALID_POSITION", detail) for name in wishes)
    parent, above = None, ""
    if parent_id is not None and parent_id != old_parent:
        found = find_parent(kind, context, parent_id, node)
        if isinstance(found, Unfit):
            words = {"leaf": kind.leaf.one, "leaves": kind.leaf.several}
            detail = say(_UNFIT[found], singular=kind.singular, id=parent_id, deepest=tree.DEEPEST, **words)
            if found is Unfit.MISSING:
                advice = say("Send the id of a {singular}, or null for the top level.", singular=kind.singular)
                detail = advise(detail, advice)
            return Placement(parent_id, faults=(Fault("parentId", "INVALID_PARENT", detail), *faults))
        parent, above = found.node, f"{found.above}{found.node.name} > "
    if faults:
        return Placement(parent_id, parent, faults=tuple(faults))
    place, faults = find_place(
        kind, given, node, parent_id, lambda sibling: siblings.find_position(tx, kind.name, parent_id, sibling)
    )
    return Placement(parent_id, parent, place, faults=tuple(faults), above=above)


def describe_place(kind: NodeKind) -> str:
    """Return a sentence that says where a caller whose grant is limited to some nodes of a kind may put a node."""
    if kind.tree:
        return say("Send the parentId of a node there.")
    return say("A new {singular} would be none of these.", singular=kind.singular)


def _is_at(node: Node, given: Input, wishes: list[str]) -> bool:
    return wishes == ["position"] and given.get("position") == node.position


def _check_reach(tx: Transaction, kind: NodeKind, reach: Reach, parent_id: int | None, node: Node | None) -> None:
    """Refuse a place that is always out of reach. A parent that is out of reach is refused elsewhere, as if it did not exist."""
    if node is None and parent_id is None:
        raise reach.refuse(describe_place(kind))
    if node is not None and not reach.contains(tx, node.parent_id):
        raise reach.refuse(say("{id} itself cannot be moved: its siblings are outside.", id=node.id))
    if parent_id is None:
        raise reach.refuse(say("The top level is outside."))


def find_parent(kind: NodeKind, context: Context, number: int, node: Node | None, *, of_children: bool = False) -> Located | Unfit:
    """Return the node that is to be the parent of a node (None for a new one), or of its children, or why it cannot be."""
    found = find_reachable(kind, context, number)
    if found is None:
        return Unfit.MISSING
    if kind.leaf_only(found.node.fields):
        return Unfit.LEAF_ONLY
    if node is not None and number == node.id:
        return Unfit.ITSELF
    if node is not None and node.id in found.line:
        return Unfit.BELOW
    is_too_deep = _go_too_deep(context.tx, kind, node, len(found.line) + 1, of_children=of_children)
    return Unfit.TOO_DEEP if is_too_deep else found


def _go_too_deep(tx: Transaction, kind: NodeKind, node: Node | None, level: int, *, of_children: bool) -> bool:
    """Return whether a node (None for a new one), or its children, would make a tree too deep under a node on this level.

    Nodes that would be no deeper than they are now are not too deep: trees from before the limit can be corrected step by step.
    """
    if node is None:
        return level >= tree.DEEPEST
    parent, most = (node.id, tree.DEEPEST + 1) if of_children else (node.parent_id, tree.DEEPEST)
    return level > nodes.find_level(tx, kind.name, parent) and nodes.reaches_down(tx, kind.name, node.id, most - level)


def count_children_in_the_way(tx: Transaction, kind: NodeKind, node: Node, fields: Values) -> int:
    """Return how many children a node has that must be gone before it can have these fields; 0 if it can have them now."""
    if not kind.leaf_only(fields) or kind.leaf_only(node.fields):
        return 0
    return siblings.count_children(tx, kind.name, node.id)


def find_place(
    kind: NodeKind, given: Input, node: Node | None, parent_id: int | None, find_position: Callable[[int], int | None]
) -> tuple[int | None, list[Fault]]:
    """Return the place that a request names under a parent (None for the last one), and the faults of the request.

    `find_position` returns the position of a child of the parent; None for a node that is not one.
    """
    wish = next((name for name in PLACES if name in given), None)
    if wish is None:
        return None, []
    if wish == "position":
        return given.get("position"), []
    sibling = given.get(wish)
    at = find_position(sibling)
    if at is None or (node is not None and sibling == node.id):
        where = say("at the top level") if parent_id is None else say("under {parent_id}", parent_id=parent_id)
        detail = advise(
            say(
                "{wish}: there is no other {singular} {sibling} {where}.",
                wish=wish,
                singular=kind.singular,
                sibling=sibling,
                where=where,
            ),
            say("Send the id of a node that is there."),
        )
        return None, [Fault(wish, "INVALID_POSITION", detail)]
    own = node.position if node is not None and node.parent_id == parent_id else None
    return tree.position_beside(at, own, behind=wish == "after"), []


def apply_placement(tx: Transaction, kind: NodeKind, node: Node, placement: Placement) -> Node:
    """Move a node to its place, shifting its new and its old siblings."""
    if placement.stays:
        return node
    parent = placement.parent_id
    if node.parent_id == parent:
        place = siblings.reorder(tx, kind.name, parent, node.id, node.position, placement.place)
    else:
        place = siblings.move(tx, kind.name, node.id, node.parent_id, parent, placement.place)
    return replace(node, parent_id=parent, position=place)
