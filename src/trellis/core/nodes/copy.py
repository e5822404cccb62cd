"""The operation that copies a node, with or without its descendants."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from trellis.core.fields import Boolean, Field, Input
from trellis.core.kind import NodeKind
from trellis.core.nodes.crud import build_operation
from trellis.core.nodes.placement import describe_place, resolve_placement
from trellis.core.nodes.record import get_with_path, serialize_node
from trellis.core.nodes.references import resolve_references
from trellis.core.nodes.tree import DEEPEST
from trellis.core.operation import Context, Operation, Outcome, Progress
from trellis.core.verbs import Body, Verb
from trellis.core.version import check_precondition
from trellis.errors import raise_faults, refuse_fault
from trellis.sentences import say
from trellis.store import nodes
from trellis.store.counters import next_numbers
from trellis.store.nodes import Node

COPY: Final = Verb(
    name="copy",
    method="POST",
    tail="/{id}/copy",
    status=201,
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
    "Whether all nodes below it are copied too, in the same order.",
    default=False,
    write_only=True,
    example=True,
)


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return the copy operation of a kind that supports it."""
    if not kind.serves(COPY):
        return ()
    one = kind.singular
    doc = (
        f"Creates a new {one} with the fields and permissions of this one"
        + (", including its password. " if kind.secrets else ". ")
        + (f"The copy becomes the last {one} under the same parent unless another place is requested. " if kind.tree else "")
        + ("`withChildren` also copies all nodes below it. " if kind.tree else "")
        + "One event records everything that was created; undoing it deletes the copies."
    )
    refusals = (
        *("NO_TITLE",),
        *(("INVALID_PARENT",) if kind.tree else ()),
        *(("INVALID_POSITION",) if kind.ordered else ()),
    )
    operation = build_operation(kind, COPY, f"Copy a {one}", doc, _copy, _fields(kind), refusals)
    return (replace(operation, judges_input=True),)


def _fields(kind: NodeKind) -> tuple[Field, ...]:
    name = replace(
        kind.name_field,
        doc="The name of the copy. The default is the name of the original.",
        required=False,
        example=f"{kind.name_field.example} (copy)",
    )
    docs = {"parentId": f"The parent {kind.singular} of the copy; null for the top level. The default is the original's parent."}
    place = tuple(replace(field, doc=docs.get(field.name, field.doc), example=None) for field in kind.placement)
    return (name, *place, *((_WITH_CHILDREN,) if kind.tree else ()))


def _copy(kind: NodeKind, context: Context) -> Outcome:
    original, above = get_with_path(kind, context, COPY)
    url = context.environment.community_url
    check_precondition(context.call.expected, serialize_node(kind, original, above, url))
    given = resolve_references(kind, context, context.input)
    beside = {"parentId": original.parent_id} if kind.tree else {}
    reach = context.find_reach(kind)
    if reach is not None and "parentId" not in given and not reach.contains(context.tx, original.parent_id):
        told = say("The siblings of {id} are outside. {place}", id=original.id, place=describe_place(kind))
        raise reach.refuse(told)
    place = resolve_placement(kind, context, Input(beside | dict(given.values)), None)
    raise_faults((*given.faults, *place.faults))
    # List everything to be copied before the first insert, since the copy may be placed below the original.
    below = nodes.find_outline(context.tx, kind.name, original.id) if given.get(_WITH_CHILDREN.name) else []
    if below and nodes.reaches_down(
        context.tx, kind.name, original.id, DEEPEST - nodes.find_level(context.tx, kind.name, place.parent_id)
    ):
        detail = say("parentId: the copies would be on more than {deepest} levels. Choose a parent further up.", deepest=DEEPEST)
        raise refuse_fault("parentId", "INVALID_PARENT", detail)
    numbers = next_numbers(context.tx, kind.name, 1 + len(below))  # parents before their children, as they are listed
    renumbered = dict(zip((original.id, *(node for node, _, _ in below)), numbers, strict=True))
    made = _copy_of(original, numbers[0], place.parent_id, 0, context.at)
    made = nodes.insert(context.tx, kind.name, replace(made, name=given.get("name", original.name)), place.place)
    nodes.insert_descendants(context.tx, kind.name, _copies(kind, context, below, renumbered))
    after = serialize_node(kind, made, place.above, url)
    touched = tuple({"resource": kind.name, "id": number, "how": "made"} for number in numbers[1:])
    return Outcome(after, resource_id=made.id, after=after, touched=touched)


def _copies(
    kind: NodeKind, context: Context, below: Sequence[tuple[int, int, int]], renumbered: Mapping[int, int]
) -> Iterator[list[Node]]:
    """Yield the copies of the nodes below the original, batch by batch."""
    progress = Progress(context.call, len(below))
    for rows in nodes.split_into_batches(below, nodes.AT_ONCE):
        originals = nodes.find_by_ids(context.tx, kind.name, [node for node, _, _ in rows])
        yield [_copy_of(originals[node], renumbered[node], renumbered[parent], place, context.at) for node, parent, place in rows]
        progress.done(len(rows))


def _copy_of(original: Node, number: int, parent: int | None, place: int, now: str) -> Node:
    return replace(
        original, id=number, parent_id=parent, position=place, created_at=now, updated_at=now, external_id=None, managed_by=None
    )
