"""The operation that deletes a node, and deletes or moves its children."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from trellis.core.fields import ChildrenFate, Field, invalid_id, isolate
from trellis.core.kind import NodeKind
from trellis.core.nodes.groups import remove_group
from trellis.core.nodes.placement import Unfit, find_parent
from trellis.core.nodes.record import get_with_path, serialize_node, serialize_nodes
from trellis.core.nodes.tree import DEEPEST
from trellis.core.operation import Context, OneByOne, Outcome, Progress, check_weight, select_readable
from trellis.core.verbs import DELETE
from trellis.core.version import check_precondition
from trellis.errors import Refused, refuse_fault
from trellis.sentences import advise, mark, say, say_many
from trellis.store import nodes, siblings, snapshots
from trellis.store.nodes import Node

_SHOWN: Final = 1000  # the most ids that a plan lists; the counts include all

_FATE: Final = Field(
    "deleteChildrenOrMove",
    ChildrenFate(),
    "What happens to the children: -1 deletes all nodes below it; an id moves the children to the end of that node's children.",
    write_only=True,
    example=-1,
    brief="-1 deletes them; an id moves them there",
)
_NO_FATE: Final = replace(
    _FATE,
    type=ChildrenFate(ignored=True),
    doc="Accepted as for trees but ignored, since there are no children.",
    example=None,
    for_agents=False,
)


def delete_fields(kind: NodeKind) -> tuple[Field, ...]:
    """Return the fields of a kind's delete operation."""
    return (_FATE if kind.tree else _NO_FATE,)


def delete_doc(kind: NodeKind) -> str:
    """Describe a kind's delete operation."""
    doc = f"Deletes a {kind.singular}. Its id is never reused."
    if kind.tree:
        doc += " If it has children, `deleteChildrenOrMove` says what happens to them; without it, the request is refused with 409."
    if kind.is_group:
        doc += f" Its id is removed from every node's permissions. Built-in {kind.title.lower()} cannot be deleted."
    return doc


def delete_refusals(kind: NodeKind) -> tuple[str, ...]:
    """Name the refusals that only a kind's delete operation has."""
    return (("CANNOT_DELETE",) if kind.built_in else ()) + (("INVALID_TARGET", "HAS_CHILDREN") if kind.tree else ())


def delete_node(kind: NodeKind, context: Context) -> Outcome:
    """Delete a node, and save what undo needs."""
    node, above = get_with_path(kind, context, DELETE)
    before = serialize_node(kind, node, above, context.environment.community_url)
    check_precondition(context.call.expected, before)
    context.input.raise_faults()
    if node.id in kind.built_in:
        raise Refused(
            "CANNOT_DELETE",
            say(
                "{name} is built in and cannot be deleted. Other {title} can be.",
                name=isolate(node.name),
                title=kind.plural,
            ),
        )
    fate = context.input.get(_FATE.name) if kind.tree else None
    below = nodes.find_descendants(context.tx, kind.name, node.id) if kind.tree else []
    direct = siblings.find_children(context.tx, kind.name, node.id) if below and fate != -1 else []
    if below and fate is None:
        raise _has_children(kind, node, len(direct), len(below))
    target = None if fate in {None, -1} else _find_target(kind, context, node, fate)
    gone, moved = ([], direct) if target is not None else (below, [])
    _save_for_undo(kind, context, node)
    if target is not None and direct:
        snapshots.save_moved_children(context.tx, kind.name, node.id, target.id)
        siblings.move_many(context.tx, kind.name, direct, node.id, target.id, context.at)
    _delete(kind, context, node, gone)
    scrubbed = remove_group(context, node.id) if kind.is_group else []
    touched = _touched_records(kind, gone, "deleted") + _touched_records(kind, moved, "moved")
    return Outcome(
        None,
        resource_id=node.id,
        before=before,
        touched=(*touched, *({"resource": name, "id": i, "how": "changed"} for name, i in scrubbed)),
        plan=_describe_plan([node.id, *gone], moved, target) | {"changed": _describe_changed(context, scrubbed)},
    )


def moves_none(given: Mapping[str, Any]) -> bool:
    """Return whether a call with these values moves no children, so that it can be run with others if its node has none."""
    return given.keys() <= {_FATE.name} and given.get(_FATE.name, -1) == -1


def delete_leaves(kind: NodeKind, contexts: Sequence[Context]) -> list[Outcome]:
    """Delete nodes that have nothing below them, in this order. Raises OneByOne or Refused, before anything is written.

    Not for groups, which permissions may name, nor for built-in nodes.
    """
    context = contexts[0]
    if any(one.call.expected or not moves_none(one.input.values) for one in contexts):
        raise OneByOne
    ids = [one.call.target or 0 for one in contexts]
    found: dict[int, Node] = {}
    reach = context.find_reach(kind)
    for batch in nodes.split_into_batches(ids):
        inside = batch if reach is None else sorted(reach.find_inside(context.tx, batch))
        found |= nodes.find_by_ids(context.tx, kind.name, inside)
        if siblings.count_children_by_parent(context.tx, kind.name, inside):
            raise OneByOne
    for one in contexts:
        one.input.raise_faults()
        if one.call.target not in found:
            raise invalid_id(kind.singular, one.call.target, kind.missing_code(DELETE))
    if len(ids) > 1:
        check_weight(found.values())
    records = delete_leaf_rows(kind, context, [found[i] for i in ids])
    return [
        Outcome(None, resource_id=record["id"], before=record, plan=_describe_plan([record["id"]], [], None)) for record in records
    ]


def delete_leaf_rows(kind: NodeKind, context: Context, leaves: Sequence[Node]) -> list[dict[str, Any]]:
    """Delete nodes in this order, and save what undo needs; return the record of each as it was just before.

    A node may have children only if all of them come before it in the list.
    """
    records = serialize_nodes(kind, context, leaves)
    gone = snapshots.delete_leaves(context.tx, kind.name, leaves)
    places = [{"position": node.position} if kind.ordered else {} for node in gone]
    return [record | place for record, place in zip(records, places, strict=True)]


def _describe_changed(context: Context, scrubbed: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Describe the records that named a group, which are of other kinds: those that the caller may not read are only counted."""
    named = ({"resource": name, "id": i} for name, i in scrubbed[:_SHOWN])
    return {"count": len(scrubbed), "nodes": select_readable(context, named)}


def _describe_plan(gone: Sequence[int], moved: Sequence[int], target: Node | None) -> dict[str, Any]:
    return {
        "dryRun": True,
        "deleted": {"count": len(gone), "ids": list(gone[:_SHOWN])},
        "moved": {"count": len(moved), "ids": list(moved[:_SHOWN]), "to": target.id if target is not None else None},
        "changed": {"count": 0, "nodes": []},
    }


def delete_rows(kind: NodeKind, context: Context, node: Node, below: Sequence[int]) -> None:
    """Delete a node and all its descendants, and save what undo needs."""
    _save_for_undo(kind, context, node)
    _delete(kind, context, node, below)


def _save_for_undo(kind: NodeKind, context: Context, node: Node) -> None:
    snapshots.save(context.tx, kind.name, node, "deleted", snapshots.find_neighbours(context.tx, kind.name, node))


def _delete(kind: NodeKind, context: Context, node: Node, below: Sequence[int]) -> None:
    """Delete a node, whose row is already saved, and its descendants, whose rows are saved here."""
    progress = Progress(context.call, 1 + len(below))

    def going(ids: Sequence[int]) -> None:
        if others := [i for i in ids if i != node.id]:  # the node itself is already saved, with its neighbours
            snapshots.save_deleted(context.tx, kind.name, others)
        if below:  # a single row needs no progress report, and for a group the permissions are counted
            progress.done(len(ids))

    nodes.delete_subtree(context.tx, kind.name, node, below, going)


def _touched_records(kind: NodeKind, ids: list[int], how: str) -> list[dict[str, Any]]:
    return [{"resource": kind.name, "id": i, "how": how} for i in ids]


def _has_children(kind: NodeKind, node: Node, direct: int, below: int) -> Refused:
    all_below = say(" ({below:,} descendants in all)", below=below) if below != direct else ""
    return Refused(
        "HAS_CHILDREN",
        say_many(
            direct,
            "'{name}' has {count} child{all_below}. Send deleteChildrenOrMove=-1 to delete them too, or "
            "deleteChildrenOrMove=ID to move them under another {singular}.",
            "'{name}' has {count:,} children{all_below}. Send deleteChildrenOrMove=-1 to delete them too, or "
            "deleteChildrenOrMove=ID to move them under another {singular}.",
            name=isolate(node.name),
            all_below=all_below,
            singular=kind.singular,
        ),
        facts={
            "children": direct,
            "descendants": below,
            "options": {"delete": -1, "move": f"the id of another {kind.singular}"},
        },
    )


_UNFIT: Final = {
    Unfit.MISSING: mark("there is no {singular} {fate}"),
    Unfit.LEAF_ONLY: mark("{singular} {fate} is {leaf} and cannot have children"),
    Unfit.ITSELF: mark("it is the one being deleted"),
    Unfit.BELOW: mark("{singular} {fate} is below the one being deleted"),
    Unfit.TOO_DEEP: mark("there would be more than {deepest} levels"),
}


def _find_target(kind: NodeKind, context: Context, node: Node, fate: int) -> Node:
    found = find_parent(kind, context, fate, node, of_children=True)
    if not isinstance(found, Unfit):
        return found.node
    problem = say(_UNFIT[found], singular=kind.singular, fate=fate, leaf=kind.leaf.one, deepest=DEEPEST)
    raise refuse_fault(
        _FATE.name,
        "INVALID_TARGET",
        advise(
            say("The children cannot be moved to {fate}: {problem}.", fate=fate, problem=problem),
            say("Send another id, or -1 to delete them."),
        ),
    )
