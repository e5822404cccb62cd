"""The operation that deletes a node: alone, with everything below it, or with its children moved elsewhere."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from trellis.core.fields import ChildrenFate, Field
from trellis.core.kind import NodeKind
from trellis.core.nodes.record import serialize_node
from trellis.core.nodes.target import get_with_path
from trellis.core.operation import Context, Outcome, Progress
from trellis.core.verbs import DELETE
from trellis.core.version import check_precondition
from trellis.errors import Fault, Refused, refuse_faults
from trellis.store import nodes, siblings, snapshots
from trellis.store.nodes import Node

_SHOWN: Final = 1000  # ids that a plan lists; the counts are of all

_FATE: Final = Field(
    "deleteChildrenOrMove",
    ChildrenFate(),
    "What happens to its children: -1 deletes everything below it, an id moves the children behind those of that one.",
    write_only=True,
    example=-1,
)
_NO_FATE: Final = replace(_FATE, doc="Taken as for trees; means nothing here, since there are no children.", example=None)


def delete_fields(kind: NodeKind) -> tuple[Field, ...]:
    """Give what the delete of a kind takes."""
    return (_FATE if kind.tree else _NO_FATE,)


def delete_doc(kind: NodeKind) -> str:
    """Describe the delete of a kind."""
    doc = f"Deletes a {kind.singular}. Its id is never used again."
    if kind.tree:
        doc += (
            " If it has children, `deleteChildrenOrMove` says what becomes of them; without it the answer is 409 with their number."
        )
    if kind.is_group:
        doc += " Its id is taken out of every node's permissions. The built-in ones cannot be deleted."
    return doc


def delete_refusals(kind: NodeKind) -> tuple[str, ...]:
    """Name the refusals that only the delete of a kind has."""
    return (("CANNOT_DELETE",) if kind.built_in else ()) + (("INVALID_TARGET", "HAS_CHILDREN") if kind.tree else ())


def delete_node(kind: NodeKind, context: Context) -> Outcome:
    """Delete a node, and keep what it takes to undo that."""
    node, above = get_with_path(kind, context, DELETE)
    before = serialize_node(kind, node, above, context.environment.community_url)
    check_precondition(context.call.expected, before)
    context.input.demand()
    if node.id in kind.built_in:
        raise Refused("CANNOT_DELETE", f"{node.name} is built in and cannot be deleted. Other {kind.title.lower()} can.")
    fate = context.input.get(_FATE.name) if kind.tree else None
    below = nodes.find_descendants(context.tx, kind.name, node.id) if kind.tree else []
    direct = siblings.find_children(context.tx, kind.name, node.id) if below else []
    if below and fate is None:
        raise _has_children(kind, node, len(direct), len(below))
    target = None if fate in {None, -1} else _target(kind, context, node, fate, below)
    gone, moved = ([], direct) if target is not None else (below, [])
    _keep(kind, context, node)
    if target is not None and direct:
        snapshots.save_moved_children(context.tx, kind.name, node.id, target.id)
        siblings.move_children(context.tx, kind.name, node.id, target.id, context.now)
    _delete(kind, context, node, gone)
    scrubbed = _scrub(context, node.id) if kind.is_group else []
    touched = _touched(kind, gone, "deleted") + _touched(kind, moved, "moved")
    return Outcome(
        None,
        resource_id=node.id,
        before=before,
        touched=(*touched, *({"resource": name, "id": i, "how": "changed"} for name, i in scrubbed)),
        plan={
            "dryRun": True,
            "deleted": {"count": 1 + len(gone), "ids": [node.id, *gone][:_SHOWN]},
            "moved": {"count": len(moved), "ids": moved[:_SHOWN], "to": target.id if target is not None else None},
            "changed": {"count": len(scrubbed), "nodes": [{"resource": name, "id": i} for name, i in scrubbed[:_SHOWN]]},
        },
    )


def delete_rows(kind: NodeKind, context: Context, node: Node, below: Sequence[int]) -> None:
    """Delete a node with all those below it, and keep what it takes to undo that."""
    _keep(kind, context, node)
    _delete(kind, context, node, below)


def _keep(kind: NodeKind, context: Context, node: Node) -> None:
    snapshots.save(context.tx, kind.name, node, "deleted", snapshots.find_neighbours(context.tx, kind.name, node))


def _delete(kind: NodeKind, context: Context, node: Node, below: Sequence[int]) -> None:
    """Delete a node with those below it, and keep their rows; tell how many are gone."""
    progress = Progress(context.call, 1 + len(below))

    def going(ids: Sequence[int]) -> None:
        if others := [i for i in ids if i != node.id]:  # which is kept already, with its neighbours
            snapshots.save_deleted(context.tx, kind.name, others)
        if below:  # one row alone is no news, and of a group the permissions are counted
            progress.done(len(ids))

    nodes.delete_subtree(context.tx, kind.name, node, below, going)


def _touched(kind: NodeKind, ids: list[int], how: str) -> list[dict[str, Any]]:
    return [{"resource": kind.name, "id": i, "how": how} for i in ids]


def _has_children(kind: NodeKind, node: Node, direct: int, below: int) -> Refused:
    all_below = f", {below} below it in all" if below != direct else ""
    return Refused(
        "HAS_CHILDREN",
        f"'{node.name}' has {direct} {'child' if direct == 1 else 'children'}{all_below}. "
        f"Send deleteChildrenOrMove=-1 to delete them too, or deleteChildrenOrMove=ID to move them under another {kind.singular}.",
        facts={
            "children": direct,
            "descendants": below,
            "options": {"delete": -1, "move": f"the id of another {kind.singular}"},
        },
    )


def _target(kind: NodeKind, context: Context, node: Node, fate: int, below: list[int]) -> Node:
    target = nodes.find(context.tx, kind.name, fate)
    if target is None:
        problem = f"there is no {kind.singular} {fate}"
    elif target.id == node.id:
        problem = "that is the one being deleted"
    elif target.id in below:
        problem = f"{kind.singular} {fate} is below the one being deleted"
    elif kind.leaf_only(target.fields):
        problem = f"{kind.singular} {fate} is a redirect and has no children"
    else:
        return target
    fault = Fault(
        _FATE.name,
        "INVALID_TARGET",
        f"The children cannot move to {fate}: {problem}. Give another id, or -1 to delete them.",
    )
    raise refuse_faults((fault,))


def _scrub(context: Context, group: int) -> list[tuple[str, int]]:
    """Take a group out of every node's permissions and group fields; give the nodes that named it."""
    kinds = {kind.name: kind for kind in context.environment.kinds}
    scrubbed: list[tuple[str, int]] = []
    mentioning = nodes.find_mentioning_group(context.tx, group)
    progress = Progress(context.call, len(mentioning))
    for name, node in mentioning:
        progress.done()
        own = {f.name for f in kinds[name].group_fields} if name in kinds else set()
        permissions = {option: without_group(who, group) for option, who in node.permissions.items()}
        fields = {f: without_group(value, group) if f in own else value for f, value in node.fields.items()}
        if permissions != node.permissions or fields != node.fields:
            snapshots.save(context.tx, name, node, "changed")
            nodes.update(context.tx, name, replace(node, permissions=permissions, fields=fields, updated_at=context.now))
            scrubbed.append((name, node.id))
    return scrubbed


def without_group(who: Any, group: int) -> Any:
    """Take a group out of a permission."""
    return [one for one in who if one != group] if isinstance(who, list) else who
