"""The operations that undo an event, and the check whether it can be undone."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from trellis.core import keys
from trellis.core.actor import Actor
from trellis.core.bounds import Reach, find_reach, is_own_only
from trellis.core.events import hide_outside, refuse_undone
from trellis.core.fields import Boolean, Field, Input, ParentId, invalid_id
from trellis.core.nodes import NodeKind
from trellis.core.operation import Access, Basis, Context, Fork, OneByOne, Operation, Outcome, Together, select_readable
from trellis.core.undo.response import ANSWERS
from trellis.core.undo.revert import revert
from trellis.core.undo.sorts import find_sort
from trellis.core.undo.undelete import restore_deleted
from trellis.core.undo.unmake import delete_made
from trellis.core.verbs import RESTORE, UPDATE
from trellis.errors import Refused
from trellis.refusals import with_codes
from trellis.sentences import advise, mark, say, say_many
from trellis.store import events, snapshots
from trellis.store.engine import Transaction
from trellis.store.events import Event
from trellis.store.snapshots import Snapshot

_NO_EVENT: Final = "1T106/5"
_MADE: Final = mark("Event {seq} created {singular} {resource_id}. To undo that, delete it.")
_MADE_AGAIN: Final = mark("Event {seq} restored {singular} {resource_id}. To undo that, delete it.")
_LIST: Final = "events.list"
_UNDOABLE: Final = (say("only changes of nodes"), say("only changes of nodes and keys"))  # by keys; by administrators

_TO: Final = Field(
    "parentId",
    ParentId(),
    "The new parent, for example if the old one is gone: a node's id, or null for the top level. This needs the grant "
    "to update, too, since it puts the node somewhere else.",
    also=("parent",),
)
_DELETE_CREATED: Final = Field(
    "deleteCreated",
    Boolean(),
    "Whether to delete what the event created or brought back. Without it, such an event cannot be undone.",
    default=False,
    write_only=True,
    brief="needed to undo a create",
)
_MESSAGES: Final = ("NOT_RESTORABLE", "CHANGED_SINCE", "NO_LONGER_KEPT", "PARENT_NEEDED", "EXTERNAL_ID_TAKEN")


def operation(kind: NodeKind) -> Operation:
    """Return the operation that undoes an event of a kind; its target is the event."""
    messages = (*_MESSAGES, *(("INVALID_PARENT",) if kind.tree else ()))
    return Operation(
        name=f"{kind.name}.{RESTORE.name}",
        summary=f"Undo a change to a {kind.singular}",
        doc=f"Undoes an event of a {kind.singular}: {_DOC}",
        run=partial(_restore, kind),
        together=Together(partial(_restore_many, kind)),
        fields=(_TO, _DELETE_CREATED) if kind.tree else (_DELETE_CREATED,),
        access=Access(Basis.GRANTED, needs_with=partial(_list_needed, f"{kind.name}.{UPDATE.name}"), is_about_events=True),
        verb=RESTORE,
        kind=kind,
        refusals=_with_codes(messages),
    )


def _list_needed(update: str, given: Input) -> tuple[str, ...]:
    """Return what an undo needs besides its own grant: to put a record under another parent is more than to put it back."""
    return (update,) if _TO.name in given else ()


def fork(kinds: Sequence[NodeKind]) -> Operation:
    """Return the operation at their common address, `POST /core/events/{id}/restore`. It forks to that of the event's kind."""
    to = tuple(f"{kind.name}.{RESTORE.name}" for kind in kinds)
    grants = ", ".join(f"`{name}`" for name in to)
    return Operation(
        name=f"events.{RESTORE.name}",
        summary="Undo an event",
        doc=f"Undoes an event: {_DOC}\n\nThe required grant depends on the resource of the event; it is one of {grants}. "
        f"A key without `{_LIST}` gets 404 for an event that it may not undo, as for one that does not exist.",
        run=_not_runnable,
        fields=(_TO, _DELETE_CREATED),
        access=Access(Basis.FORKED),
        verb=RESTORE,
        path="/core/events",
        refusals=_with_codes((*_MESSAGES, "INVALID_PARENT")),
        response_fields=ANSWERS,
        fork=Fork(to, partial(_resolve_fork, frozenset(to))),
    )


def _with_codes(messages: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return (("INVALID_ID", _NO_EVENT), *with_codes(*messages))


_DOC: Final = (
    "deleted records return with their ids, order, fields and permissions, next to their old neighbours; changes and moves are "
    "reverted; copies are deleted. The undo is refused if something would be lost: if the record has been changed again since, or "
    "if its old parent is gone and `parentId` was not sent. The response says what was restored and what could not be."
)


def _not_runnable(_: Context) -> Outcome:
    raise LookupError("a forking operation is never run itself")


# --- whether the event can be undone ------------------------------------------------------------------------------


def _resolve_fork(targets: frozenset[str], tx: Transaction, seq: int, actor: Actor, now: str) -> str:
    event = _check_known(tx, seq, events.find(tx, seq, with_touched=False), actor, now)
    target = f"{event.resource}.{RESTORE.name}"
    if target not in targets and not (target == keys.RESTORE and actor.may(target)):
        raise Refused(
            "NOT_RESTORABLE",
            say(
                "Event {seq} is {operation}, but {undoable} can be undone.",
                seq=seq,
                operation=event.operation,
                undoable=_UNDOABLE[actor.may(keys.RESTORE)],
            ),
        )
    return target


def _check_known(tx: Transaction, seq: int, event: Event | None, actor: Actor, now: str) -> Event:
    """Return an event that the actor may know of: any one if they may list all events, otherwise only those that they may undo.

    All other events get the same refusal, whether they are of something or somebody else, no longer kept, or never existed. Raises
    Refused (OUT_OF_BOUNDS) for an event of a record in reach that was outside before or after it.
    """
    restore, bounded, own_only = "", None, False
    if event is not None:
        restore = f"{event.resource}.{RESTORE.name}"
        bounded, own_only = find_reach(actor, restore, event.resource), is_own_only(actor, restore)
    if bounded is None and not own_only and may_list_all(actor, now):
        return _check_seen(tx, seq, event, actor)
    is_others = own_only and event is not None and not actor.is_named(event.actor)
    if event is None or is_others or not actor.may(restore) or not _is_in_reach(tx, event, bounded):
        detail = say(
            "There is no event {seq} that this key may undo. If the key is also granted {list}, and neither grant has bounds, the "
            "response says why.",
            seq=seq,
            list=_LIST,
        )
        raise Refused("INVALID_ID", detail, code=_NO_EVENT)
    if bounded is not None:
        _refuse_outside(tx, event, bounded)
    return event


def _refuse_outside(tx: Transaction, event: Event, reach: Reach) -> None:
    """Refuse an event before or after which its record was out of reach: undoing it would show the record as it was there."""
    (visible,) = hide_outside(tx, (replace(event, touched=()),), {event.resource: reach.roots})
    if (visible.before, visible.after) != (event.before, event.after):
        raise reach.refuse(say("Before or after this event, the record was outside."))


def may_list_all(actor: Actor, now: str) -> bool:
    """Return whether an actor may read all events."""
    return actor.may_at(_LIST, now) and find_reach(actor, _LIST, "") is None and not is_own_only(actor, _LIST)


def _is_in_reach(tx: Transaction, event: Event, reach: Reach | None) -> bool:
    """Return whether the record of an event is in reach of a grant now, or was when it was deleted."""
    if reach is None:
        return True
    return event.resource_id in events.find_inside_or_deleted(tx, reach.kind, reach.roots, (event.resource_id or 0,))


def get_event(tx: Transaction, seq: int, actor: Actor) -> Event:
    """Return an event. Refuses one that has been purged or never existed, and one that the actor's role may not see."""
    return _check_seen(tx, seq, events.find(tx, seq), actor)


def _check_seen(tx: Transaction, seq: int, event: Event | None, actor: Actor) -> Event:
    if event is not None and actor.sees(event.resource):
        return event
    if event is None and seq <= events.find_span(tx)[1]:
        raise Refused("NO_LONGER_KEPT", say("Event {seq} has been purged, so it cannot be undone.", seq=seq))
    raise invalid_id(say("event"), seq, _NO_EVENT)


def _restore(kind: NodeKind, context: Context) -> Outcome:
    seq = context.call.target or 0
    event = _check_known(context.tx, seq, events.find(context.tx, seq), context.call.actor, context.now)
    if event.resource != kind.name:
        raise Refused(
            "NOT_RESTORABLE",
            say(
                "Event {seq} is {operation}, but {name}.{restore_name} undoes only {title}.",
                seq=event.seq,
                operation=event.operation,
                name=kind.name,
                restore_name=RESTORE.name,
                title=kind.plural,
            ),
        )
    deletes = context.input.get(_DELETE_CREATED.name) and event.before is None and event.after is not None
    if deletes or event.operation in context.environment.undone_by_deleting:
        refuse_undone(context.tx, event.seq)
        return _hide_unreadable(kind, context, delete_made(kind, context, event))
    if event.before is None:
        text = _MADE if event.undoes is None else _MADE_AGAIN
        detail = say(text, seq=event.seq, singular=kind.singular, resource_id=event.resource_id)
        raise Refused("NOT_RESTORABLE", advise(detail, say("Or send deleteCreated (--delete-created).")))
    refuse_undone(context.tx, event.seq)
    then = _require_snapshots(context, event)
    if event.after is None:
        return _hide_unreadable(kind, context, restore_deleted(kind, context, event, then))
    return revert(kind, context, event, then)


def _hide_unreadable(kind: NodeKind, context: Context, outcome: Outcome) -> Outcome:
    """Leave the records of other kinds that the caller may not read out of what an undo says: those that name a group."""
    records = {name: outcome.result[name] for name in ("changed", "left")}
    shown = {name: {**one, "nodes": select_readable(context, one["nodes"], kind.name)} for name, one in records.items()}
    return outcome._replace(result=outcome.result | shown, plan=outcome.plan | shown)


def _restore_many(kind: NodeKind, contexts: Sequence[Context]) -> list[Outcome]:
    """Undo events of a kind, all of one sort, in this order. Raises OneByOne or Refused, before anything is written."""
    first = contexts[0]
    actor = first.call.actor
    undone = events.find_many(first.tx, [context.call.target or 0 for context in contexts])
    may_not = is_own_only(actor, f"{kind.name}.{RESTORE.name}") and not all(actor.is_named(event.actor) for event in undone)
    sort = find_sort(kind, undone[0]) if len(undone) == len(contexts) else None
    if sort is None or may_not or first.find_reach(kind) is not None or not actor.sees(kind.name):
        raise OneByOne
    return sort.undo(kind, contexts, undone)


def _require_snapshots(context: Context, event: Event) -> Snapshot:
    """Return the row of its record that an event saved. Refuses if any of the rows that the event saved has been purged."""
    if snapshots.count_by_event(context.tx, (event.seq,)).get(event.seq, 0) < 1 + len(event.touched):
        raise Refused(
            "NO_LONGER_KEPT",
            say_many(
                context.environment.keep_snapshots,
                "The data needed to undo event {seq} has been purged: changes can be undone for {count:,} day.",
                "The data needed to undo event {seq} has been purged: changes can be undone for {count:,} days.",
                seq=event.seq,
            ),
        )
    return snapshots.find_by_ids(context.tx, event.seq, event.resource, (event.resource_id or 0,))[0]
