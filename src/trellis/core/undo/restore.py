"""Undo: the operations that take back an event, and the judgement whether it can be taken back."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from trellis.core.events import find_undoing_events
from trellis.core.fields import Field, Ids, Integer, ListOf, NodeId, Nullable, ObjectOf, ParentId, Record, Text, invalid_id
from trellis.core.nodes import NodeKind
from trellis.core.operation import Access, Context, Fork, Operation, Outcome
from trellis.core.undo.revert import revert
from trellis.core.undo.undelete import restore_deleted
from trellis.core.undo.unmake import delete_made
from trellis.core.verbs import RESTORE
from trellis.errors import Refused
from trellis.refusals import with_codes
from trellis.store import events, snapshots
from trellis.store.engine import Transaction
from trellis.store.events import Event
from trellis.store.snapshots import Snapshot

_NO_EVENT: Final = "1T106/5"

_TO: Final = Field(
    "parentId",
    ParentId(),
    "Where it goes if its old parent cannot take it back, or instead of there: a node's id, or null for the top level.",
    also=("parent",),
)
_MESSAGES: Final = ("NOT_RESTORABLE", "CHANGED_SINCE", "NO_LONGER_KEPT", "PARENT_NEEDED")


def operation(kind: NodeKind) -> Operation:
    """Return the operation that takes back an event of a kind: its target is the event."""
    messages = (*_MESSAGES, *(("INVALID_PARENT",) if kind.tree else ()))
    return Operation(
        name=f"{kind.name}.{RESTORE.name}",
        summary=f"Undo a change of {kind.title.lower()}",
        doc=f"Takes back an event of a {kind.singular}: {_DOC}",
        run=partial(_restore, kind),
        fields=(_TO,) if kind.tree else (),
        writes=True,
        has_target=True,
        access=Access.GRANTED,
        verb=RESTORE,
        kind=kind,
        refusals=_coded(messages),
    )


def fork(kinds: Sequence[NodeKind]) -> Operation:
    """Return the one address of them all, `POST /core/events/{id}/restore`: the event says which operation it leads to."""
    to = tuple(f"{kind.name}.{RESTORE.name}" for kind in kinds)
    grants = ", ".join(f"`{name}`" for name in to)
    return Operation(
        name=f"events.{RESTORE.name}",
        summary="Undo an event",
        doc=f"Takes back an event: {_DOC}\n\nThe grant that it needs is that of what the event is about, one of {grants}.",
        run=_not_runnable,
        fields=(_TO,),
        writes=True,
        has_target=True,
        access=Access.FORKED,
        verb=RESTORE,
        path="/core/events",
        refusals=_coded((*_MESSAGES, "INVALID_PARENT")),
        answers=_ANSWERS,
        fork=Fork(to, partial(_way, frozenset(to))),
    )


def _coded(messages: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return (("INVALID_ID", _NO_EVENT), *with_codes(*messages))


_DOC: Final = (
    "what was deleted comes back with its ids, order, fields and permissions, at the side of its old neighbours; what was "
    "changed or moved becomes as it was; what a copy made is deleted again. Refused where something would be lost: the record "
    "was changed again since, or its old parent is gone and `parentId` names no other. The answer tells what came back, and "
    "what could not."
)


def _not_runnable(_: Context) -> Outcome:
    raise LookupError("an operation that forks is never run itself")


# --- judging the event --------------------------------------------------------------------------------------------


def _way(ways: frozenset[str], tx: Transaction, seq: int) -> str:
    event = get_event(tx, seq)
    way = f"{event.resource}.{RESTORE.name}"
    if way not in ways:
        raise Refused("NOT_RESTORABLE", f"Event {seq} is {event.operation}, and only changes of nodes can be undone.")
    return way


def get_event(tx: Transaction, seq: int) -> Event:
    """Read an event. Refuses one that is no longer kept, or that never was."""
    event = events.find(tx, seq)
    if event is not None:
        return event
    if seq <= events.find_bounds(tx)[1]:
        raise Refused("NO_LONGER_KEPT", f"Event {seq} is no longer kept, so it cannot be undone.")
    raise invalid_id("event", seq, _NO_EVENT)


def _restore(kind: NodeKind, context: Context) -> Outcome:
    context.input.demand()
    event = get_event(context.tx, context.call.target or 0)
    if event.resource != kind.name:
        raise Refused(
            "NOT_RESTORABLE", f"Event {event.seq} is {event.operation}; {kind.name}.{RESTORE.name} undoes {kind.title.lower()}."
        )
    if event.operation in context.environment.undone_by_deleting:
        _not_undone_yet(context, event)
        return delete_made(kind, context, event)
    if event.before is None:
        how = "made" if event.undoes is None else "brought back"
        detail = f"Event {event.seq} {how} the {kind.singular} {event.resource_id}. To undo that, delete it."
        raise Refused("NOT_RESTORABLE", detail)
    _not_undone_yet(context, event)
    kept = _whole(context, event)
    if event.after is None:
        return restore_deleted(kind, context, event, kept)
    return revert(kind, context, event, kept[0])


def _not_undone_yet(context: Context, event: Event) -> None:
    if (by := find_undoing_events(context.tx, (event.seq,)).get(event.seq)) is not None:
        raise Refused("NOT_RESTORABLE", f"Event {event.seq} was undone already, by event {by}.", facts={"undoneBy": by})


def _whole(context: Context, event: Event) -> list[Snapshot]:
    """Read what an event found, but not what it deleted below its record; refuse if some of it is purged."""
    if snapshots.count_by_event(context.tx, (event.seq,)).get(event.seq, 0) < 1 + len(event.touched):
        raise Refused(
            "NO_LONGER_KEPT",
            f"What there was before event {event.seq} is no longer kept: "
            f"changes can be undone for {context.environment.keep_snapshots} days.",
        )
    return snapshots.find_without_descendants(context.tx, event.seq, event.resource_id or 0)


# --- what it answers ----------------------------------------------------------------------------------------------

_NODES: Final = ListOf((Field("resource", Text(), "The resource."), Field("id", NodeId(), "The record's id.")))
_LEFT: Final = ListOf(
    (
        Field("resource", Text(), "The resource."),
        Field("id", NodeId(), "The record's id."),
        Field("why", Text(), "Why it stays as it is."),
    )
)


def _counted(type_: Any, name: str) -> ObjectOf:
    return ObjectOf((Field("count", Integer(), "How many."), Field(name, type_, "Which; at most 1,000 are listed.")))


_NONE: Final[dict[str, Any]] = {"count": 0, "ids": []}
_ANSWERS: Final = (
    Field("event", NodeId(), "The event that was taken back.", example=12),
    Field("operation", Text(), "Its operation.", example="forums.delete"),
    Field(
        "record",
        Nullable(Record()),
        "The record as it is now; null if it is gone again.",
        example={"id": 7, "name": "Garden diaries"},
    ),
    Field("restored", _counted(Ids(), "ids"), "What came back, the record first.", example={"count": 1, "ids": [7]}),
    Field("deleted", _counted(Ids(), "ids"), "What the event had made and is gone again, the record first.", example=_NONE),
    Field("moved", _counted(Ids(), "ids"), "The children that its delete had moved and that came back under it.", example=_NONE),
    Field(
        "changed",
        _counted(_NODES, "nodes"),
        "The records in whose permissions a group that came back stands again.",
        example={"count": 0, "nodes": []},
    ),
    Field("left", _counted(_LEFT, "nodes"), "What stays as it is, and why.", example={"count": 0, "nodes": []}),
    Field("lostGroups", Ids(), "Groups that are gone, and so fell out of the permissions of what came back.", example=[]),
)
