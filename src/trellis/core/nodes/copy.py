"""The operation that copies a node, alone or with everything below it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from trellis.core.fields import Boolean, Field, Input
from trellis.core.kind import NodeKind
from trellis.core.nodes.crud import build_operation
from trellis.core.nodes.placement import resolve_placement
from trellis.core.nodes.record import serialize_node
from trellis.core.nodes.target import get_with_path
from trellis.core.operation import Context, Operation, Outcome, Progress
from trellis.core.verbs import Body, Verb
from trellis.core.version import check_precondition
from trellis.errors import refuse_faults
from trellis.store import nodes
from trellis.store.counters import next_numbers
from trellis.store.nodes import Node

COPY: Final = Verb(
    name="copy",
    method="POST",
    tail="/{id}/copy",
    status=201,
    writes=True,
    body=Body.OPTIONS,
    answer="The copy.",
    creates=True,
    if_match=True,
    idempotency_key=True,
    undone_by_deleting=True,
    idempotent=False,
    code="9",
    column="Copy",
    button="Copy",
)
_WITH_CHILDREN: Final = Field(
    "withChildren",
    Boolean(),
    "Whether everything below it is copied too, in the same order.",
    default=False,
    write_only=True,
    example=True,
)


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Give the operation that copies, for a kind that serves it."""
    if not kind.serves(COPY):
        return ()
    one = kind.singular
    doc = (
        f"Makes a new {one} with the fields and the permissions of this one, "
        + ("its password included, " if kind.secrets else "")
        + (f"under the same parent and behind its last {one} unless a place is given. " if kind.tree else "")
        + ("`withChildren` copies everything below it too. " if kind.tree else "")
        + "One event tells everything that was made; to undo it deletes all of that again."
    )
    refusals = (
        *("NO_TITLE",),
        *(("INVALID_PARENT",) if kind.tree else ()),
        *(("INVALID_POSITION",) if kind.ordered else ()),
    )
    return (build_operation(kind, COPY, f"Copy a {one}", doc, _copy, _fields(kind), refusals),)


def _fields(kind: NodeKind) -> tuple[Field, ...]:
    name = replace(
        kind.name_field,
        doc="What the copy is called; without it, what the original is called.",
        required=False,
        example=f"{kind.name_field.example} (copy)",
    )
    docs = {
        "parentId": f"The {kind.singular} that the copy stands under; null for the top level. Without it, the original's parent."
    }
    place = tuple(replace(field, doc=docs.get(field.name, field.doc), example=None) for field in kind.placement)
    return (name, *place, *((_WITH_CHILDREN,) if kind.tree else ()))


def _copy(kind: NodeKind, context: Context) -> Outcome:
    original, above = get_with_path(kind, context, COPY)
    url = context.environment.community_url
    check_precondition(context.call.expected, serialize_node(kind, original, above, url))
    given = context.input
    beside = {"parentId": original.parent_id} if kind.tree else {}
    place = resolve_placement(context.tx, kind, Input(beside | dict(given.values)), None)
    if faults := (*given.faults, *place.faults):
        raise refuse_faults(faults)
    # All that is to be copied is listed before anything is made, since the copy may be put below the original.
    below = nodes.find_outline(context.tx, kind.name, original.id) if given.get(_WITH_CHILDREN.name) else []
    numbers = next_numbers(context.tx, kind.name, 1 + len(below))  # parents before their children, as they are listed
    renumbered = dict(zip((original.id, *(node for node, _, _ in below)), numbers, strict=True))
    made = _renewed(original, numbers[0], place.parent_id, 0, context.now)
    made = nodes.insert(context.tx, kind.name, replace(made, name=given.get("name", original.name)), place.place)
    nodes.insert_descendants(context.tx, kind.name, _copies(kind, context, below, renumbered))
    after = serialize_node(kind, made, place.above, url)
    touched = tuple({"resource": kind.name, "id": number, "how": "made"} for number in numbers[1:])
    return Outcome(after, resource_id=made.id, after=after, touched=touched)


def _copies(
    kind: NodeKind, context: Context, below: Sequence[tuple[int, int, int]], renumbered: Mapping[int, int]
) -> Iterator[list[Node]]:
    """Give the copies of the nodes below the original, slice by slice."""
    progress = Progress(context.call, len(below))
    for rows in nodes.split_into_batches(below):
        originals = nodes.find_by_ids(context.tx, kind.name, [node for node, _, _ in rows])
        yield [_renewed(originals[node], renumbered[node], renumbered[parent], place, context.now) for node, parent, place in rows]
        progress.done(len(rows))


def _renewed(original: Node, number: int, parent: int | None, place: int, now: str) -> Node:
    return replace(original, id=number, parent_id=parent, position=place, created_at=now, updated_at=now)
