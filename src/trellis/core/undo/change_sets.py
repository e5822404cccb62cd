"""The operations that undo many events at once: those of a change set, and the latest of one key."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from trellis.core.events import find_undoing_events
from trellis.core.fields import Boolean, Field, Integer, ListOf, NodeId, Text, Timestamp, invalid_id, require
from trellis.core.operation import DRY_RUN, Access, Context, Operation, Outcome, Progress
from trellis.core.verbs import RESTORE
from trellis.errors import Refused
from trellis.refusals import with_codes
from trellis.store import events

_SHOWN: Final = 1000  # conflicts and events that a response lists; the counts are of all
_LIST: Final = "events.list"
_NO_CHANGE_SET: Final = "1T111/2"
_SKIP: Final = Field(
    "skipConflicts",
    Boolean(),
    "Whether to undo the rest if some events cannot be undone. Without it, one conflict is enough to change nothing.",
    default=False,
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
        Field("detail", Text(), "What stands in the way."),
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
            doc="Undoes all events of a change set, the newest first, in one transaction: the events of one batch, or those whose "
            "requests had the same `Change-Set`. What they created is deleted again. Events that have been undone already are "
            "left out. Needs the grant to restore for each resource of the change set, and `events.list` for one of another key. "
            "A dry run lists every conflict.",
            run=_restore_change_set,
            fields=(_SKIP,),
            writes=True,
            has_target=True,
            access=Access.INNER,
            verb=replace(RESTORE, if_match=False),  # a change set has no version
            path="/core/changesets",
            refusals=(("INVALID_ID", _NO_CHANGE_SET), *with_codes("RESTORE_CONFLICTS")),
            answers=(
                Field(
                    "undone", _UNDONE, "The events that were undone, the newest first; at most 1,000 are listed.", example=_EXAMPLE
                ),
                Field("undoneCount", Integer(), "How many events were undone.", example=1),
                Field(
                    "counts",
                    _COUNTS,
                    "How many events of each operation were undone, in the order of their names.",
                    example=[{"operation": "forums.delete", "count": 1}],
                ),
                Field("conflicts", _CONFLICTS, "The events that could not be undone; at most 1,000 are listed.", example=[]),
                Field("conflictCount", Integer(), "How many events could not be undone.", example=0),
            ),
            is_change_set=True,
        ),
        Operation(
            name="events.restore_of_key",
            summary="Undo what a key did",
            doc="Undoes all events of a key since a time, as `changesets.restore` does.",
            run=_restore_of_key,
            fields=(_SINCE, _SKIP),
            writes=True,
            has_target=True,
            is_change_set=True,
        ),
    )


def _restore_change_set(context: Context) -> Outcome:
    context.input.raise_faults()
    number = context.call.target or 0
    found = events.find_change_set(context.tx, number)
    actor = context.call.actor
    if found is None or not ((found.actor_type, found.actor_id) == (actor.type, actor.id or 0) or actor.may(_LIST)):
        raise invalid_id("change set", number, _NO_CHANGE_SET)  # whose it is, only those may know who may read all events
    return _undo(context, found.events)


def _restore_of_key(context: Context) -> Outcome:
    require((_SINCE,), context.input).raise_faults()
    found = events.find_of_key(context.tx, context.call.target or 0, context.input.get("since"))
    return _undo(context, found)


def _undo(context: Context, seqs: Sequence[int]) -> Outcome:
    """Undo events, which come the newest first."""
    dry = bool(context.input.get(DRY_RUN.name))
    progress = Progress(context.call, len(seqs))
    undone: list[dict[str, Any]] = []
    conflicts: list[dict[str, Any]] = []
    last = None
    kinds = {kind.name for kind in context.environment.kinds}
    already = find_undoing_events(context.tx, seqs)
    wanted, cancelled = set(seqs), set[int]()
    for seq in seqs:
        progress.done()
        if seq in already or seq in cancelled or (event := events.find(context.tx, seq)) is None:
            continue
        if event.undoes in wanted:  # both are among these events: together they have changed nothing
            cancelled.add(event.undoes)
            continue
        about = {"event": seq, "operation": event.operation}
        resource = event.resource if event.resource in kinds else "events"  # which refuses it, and says why
        call = context.call.build_inner(f"{resource}.{RESTORE.name}", {"deleteCreated": True}, seq)
        try:
            with context.tx.savepoint():
                last = context.run(call).event
        except Refused as refused:
            if refused.status == 403:
                raise
            conflicts.append(about | {"message": refused.message, "detail": refused.detail})
        else:
            undone.append(about | {"by": None if dry else last})
    if conflicts and not dry and not context.input.get(_SKIP.name):
        detail = (
            f"{len(conflicts)} of {len(seqs)} events cannot be undone, so nothing was changed. {conflicts[0]['detail']} "
            "Send skipConflicts to undo the others."
        )
        raise Refused("RESTORE_CONFLICTS", detail, facts={"conflicts": conflicts[:_SHOWN]})
    counts = Counter(one["operation"] for one in undone)
    result = {
        "undone": undone[:_SHOWN],
        "undoneCount": len(undone),
        "counts": [{"operation": name, "count": count} for name, count in sorted(counts.items())],
        "conflicts": conflicts[:_SHOWN],
        "conflictCount": len(conflicts),
    }
    return Outcome(result, plan=result | ({"dryRun": True} if dry else {}), happened=False, event=last)
