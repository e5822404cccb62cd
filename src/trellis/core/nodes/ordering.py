"""The operation that puts the children of a node in a new order."""

from dataclasses import replace
from typing import Final

from trellis.core.fields import Field, Integer, OrderedIds, require
from trellis.core.kind import NodeKind
from trellis.core.nodes.crud import build_operation, granted_with
from trellis.core.nodes.references import resolve_references
from trellis.core.operation import Context, Operation, Outcome, Progress, run_together
from trellis.core.verbs import UPDATE, Body, Response, Verb
from trellis.errors import refuse_fault
from trellis.sentences import say
from trellis.store import nodes, siblings

_MOST: Final = 1000
ORDER: Final = Verb(
    name="order",
    method="POST",
    tail="/order",
    body=Body.NEW,
    response=Response.ANSWER,
    answer="How many nodes have moved.",
    destructive=True,
)
_DOC: Final = "The ids of siblings in their new order: all, or the first ones."
_IDS: Final = Field(
    "ids", OrderedIds(_MOST), _DOC, required=True, example=[1], brief="siblings in their new order, all or those to come first"
)
_MOVED: Final = Field("moved", Integer(), "How many nodes have moved; an event is recorded for each.", example=0)


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return the operation that orders siblings, for an ordered kind."""
    if not kind.ordered:
        return ()
    many = kind.title.lower()
    fields = (
        *(replace(field, doc=_DOCS[field.name]) for field in kind.placement if field.name in _DOCS),
        _IDS,
    )
    doc = f"Moves {many} with the same parent so that they come first, in this order; the others follow in their present order."
    operation = build_operation(kind, ORDER, f"Reorder {many}", doc, _order, fields, ("INVALID_POSITION", "INVALID_PARENT"))
    return (granted_with(kind, (UPDATE,), replace(operation, judges_input=True, response_fields=(_MOVED,), is_change_set=True)),)


_DOCS: Final = {
    "parentId": "Their parent; null for the top level.",
    "parentExternalId": "The external id of their parent, instead of `parentId`.",
}


def _order(kind: NodeKind, context: Context) -> Outcome:
    given = resolve_references(kind, context, require((_IDS,), context.input))
    given.raise_faults()
    parent, ids = given.get("parentId"), given.get("ids", ())
    reach = context.find_reach(kind)
    if reach is not None and parent is None:
        raise reach.refuse(say("The top level is outside."))
    places = siblings.find_places(context.tx, kind.name, ids) if context.reaches(kind, parent) else {}
    if (missing := next((node for node in ids if places.get(node, (0, 0))[0] != parent), None)) is not None:
        where = say("at the top level") if parent is None else say("under {parent}", parent=parent)
        detail = say(
            "ids: there is no {singular} {node} {where}. Send the ids of siblings.",
            singular=kind.singular,
            node=missing,
            where=where,
        )
        raise refuse_fault("ids", "INVALID_POSITION", detail)
    before = siblings.positions_on_leaving(places[node][1] for node in ids)  # for each, how many now before it belong behind it
    moved = {node: wanted for wanted, (node, others) in enumerate(zip(ids, before, strict=True)) if others}
    progress = Progress(context.call, len(moved))
    last = None
    for batch in nodes.split_into_batches([*moved], nodes.AT_ONCE):
        calls = [context.call.build_inner(kind.operation(UPDATE.name), {"position": moved[node]}, node) for node in batch]
        last = (run_together(context, calls) or [context.run(call) for call in calls])[-1].event
        progress.done(len(batch))
    result = {"moved": len(moved)}
    touched = tuple({"resource": kind.name, "id": node, "how": "moved"} for node in moved)
    return Outcome(result, touched=touched, plan=result | {"dryRun": True}, happened=False, event=last)
