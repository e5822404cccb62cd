"""The operations that undo many events at once: those of a change set, or those of a key since a time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from trellis.core.events import may_be_purged
from trellis.core.fields import Boolean, Field, Integer, ListOf, NodeId, Text, Timestamp, invalid_id
from trellis.core.operation import Access, Basis, Context, Operation, Outcome, targeted_write
from trellis.core.undo.many import MOST, MOST_SINGLY, undo_events
from trellis.core.undo.restore import may_list_all
from trellis.core.verbs import RESTORE
from trellis.refusals import with_codes
from trellis.sentences import say
from trellis.store import events

_NO_CHANGE_SET: Final = "1T111/2"
_SKIP: Final = Field(
    "skipConflicts",
    Boolean(),
    "Whether to undo the rest if some events cannot be undone. Without it, nothing is undone if there is a conflict.",
    default=False,
    write_only=True,
    brief="undo the rest",
)
_AFTER: Final = Field(
    "after",
    Integer(0, 2**53),
    "Only events after this one. Use it to undo a large change set in parts: the newest events first, then the rest.",
    write_only=True,
)
_SINCE: Final = Field("since", Timestamp(), "Only events at or after this time.", required=True)
_UNDONE: Final = ListOf(
    (
        Field("event", NodeId(), "The event that was undone."),
        Field("operation", Text(), "Its operation."),
        Field("by", NodeId(nullable=True), "The event that undid it; null in a dry run."),
    )
)
_CONFLICTS: Final = ListOf(
    (
        Field("event", NodeId(), "The event that cannot be undone."),
        Field("operation", Text(), "Its operation."),
        Field("message", Text(), "The name of the refusal, such as CHANGED_SINCE."),
        Field("detail", Text(), "Why the event cannot be undone."),
    )
)
_COUNTS: Final = ListOf(
    (
        Field("operation", Text(), "The operation of the events."),
        Field("count", Integer(), "How many of its events were undone."),
    )
)
_EXAMPLE: Final = [{"event": 12, "operation": "forums.delete", "by": 13}]


def operations() -> tuple[Operation, ...]:
    """Return the operations."""
    return (
        Operation(
            name="changesets.restore",
            summary="Undo a change set",
            brief="Undo a batch, or all events of a Change-Set",
            doc="Undoes all events of a change set, newest first, in one transaction: the events of one batch, or those whose "
            "requests had the same `Change-Set`. What they created is deleted again. Events that have already been undone are left "
            "out. Needs the grant to restore for each resource of the change set, and `events.list` for a change set of another "
            f"key. A dry run lists every conflict. At most {MOST:,} events are undone at once, including at most {MOST_SINGLY:,} "
            "that are anything other than the creation of a record that has not changed since.",
            run=_restore_change_set,
            fields=(_AFTER, _SKIP),
            access=Access(Basis.INNER, runs=(f"*.{RESTORE.name}",)),
            verb=replace(RESTORE, if_match=False),  # a change set has no version
            path="/core/changesets",
            refusals=(("INVALID_ID", _NO_CHANGE_SET), *with_codes("RESTORE_CONFLICTS", "CHANGE_SET_TOO_LARGE")),
            response_fields=(
                Field("undone", _UNDONE, "The events that were undone, newest first; at most 1,000 are listed.", example=_EXAMPLE),
                Field("undoneCount", Integer(), "How many events were undone.", example=1),
                Field(
                    "counts",
                    _COUNTS,
                    "How many events of each operation were undone, in the order of their names.",
                    example=[{"operation": "forums.delete", "count": 1}],
                ),
                Field("conflicts", _CONFLICTS, "The events that could not be undone; at most 1,000 are listed.", example=[]),
                Field("conflictCount", Integer(), "How many events could not be undone.", example=0),
                Field(
                    "purgedCount",
                    Integer(nullable=True),
                    "How many more events the change set had that are no longer kept, and so could not be undone either.",
                    example=0,
                ),
            ),
            is_change_set=True,
        ),
        targeted_write(
            name="events.restore_of_key",
            summary="Undo what a key did",
            doc="Undoes all events of a key since a time, as `changesets.restore` does.",
            run=_restore_of_key,
            fields=(_SINCE, _AFTER, _SKIP),
            is_change_set=True,
        ),
    )


def _restore_change_set(context: Context) -> Outcome:
    number = context.call.target or 0
    found = events.find_change_set(context.tx, number)
    actor = context.call.actor
    if found is None or not ((found.actor_type, found.actor_id) == (actor.type, actor.id or 0) or may_list_all(actor, context.now)):
        raise invalid_id(say("change set"), number, _NO_CHANGE_SET)  # only callers who may read all events may know whose it is
    return _undo(context, {"change_set": number}, found.purged)


def _restore_of_key(context: Context) -> Outcome:
    since = context.input.get("since")
    filters = {"actor_type": "key", "actor_id": context.call.target or 0}
    purged = None if may_be_purged(context, since) else 0
    return _undo(context, filters, purged, events.find_newest_before(context.tx, since))


def _undo(context: Context, filters: Mapping[str, Any], purged: int | None, last: int = 0) -> Outcome:
    """Undo events after `last`, and after the event sent as `after`. Purged events are older than all that are kept."""
    after = context.input.get(_AFTER.name) or 0
    if after and after >= events.find_span(context.tx)[0] - 1:
        purged = 0
    return undo_events(context, filters, after=max(after, last), purged=purged)
