"""Whether events can be undone, for administrators who read the event log."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

from trellis.core.events.event import show_event
from trellis.core.fields import shift_timestamp
from trellis.core.operation import Context
from trellis.core.verbs import RESTORE
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import events, snapshots
from trellis.store.engine import Transaction
from trellis.store.events import Event


def serialize_with_undo(context: Context, found: Sequence[Event]) -> list[dict[str, Any]]:
    """Serialise events with a member `undo`: None if undo does not apply to them, otherwise `kept`, `undoneBy` and `open`.

    `kept` is true if everything that undo needs is still in the database, and `open` if there is anything left that the caller may
    undo. For an event that created a record, `undo` is None until the event has been undone, with others of its change set.
    """
    kinds = context.environment.kinds_by_name
    by_deleting = context.environment.undone_by_deleting
    rows = {
        event.seq: 1 + len(event.touched) if event.before else 0  # deleting what was created needs no saved rows
        for event in found
        if event.resource in kinds and (event.before or event.operation in by_deleting)
    }
    whole = {
        event.seq: not is_past_undo(context, event.at)
        for event in found
        if event.operation in context.environment.undone_from_event and event.before and event.after
    }
    made = [event.seq for event in found if event.resource in kinds and event.seq not in rows]
    undone_by, counts = find_undoing_events(context.tx, [*rows, *whole, *made]), snapshots.count_by_event(context.tx, rows)
    states: dict[int, dict[str, Any]] = {
        seq: {"kept": True, "undoneBy": undone_by[seq], "open": False} for seq in made if seq in undone_by
    }
    for seq, kept in ({seq: counts.get(seq, 0) >= count for seq, count in rows.items()} | whole).items():
        states[seq] = {"kept": kept, "undoneBy": undone_by.get(seq), "open": kept and seq not in undone_by}
    for event in found:
        if event.seq in states and not context.call.actor.may(f"{event.resource}.{RESTORE.name}"):
            states[event.seq]["open"] = False
    return [show_event(event, context.call.actor) | {"undo": states.get(event.seq)} for event in found]


def is_past_undo(context: Context, at: str) -> bool:
    """Return whether what happened at a time is too long ago to be undone: what undo needs may have been purged."""
    return at < shift_timestamp(context.now, -timedelta(days=context.environment.keep_snapshots))


def refuse_undone(tx: Transaction, seq: int) -> None:
    """Refuse to undo an event that has already been undone. Raises Refused (NOT_RESTORABLE)."""
    if (by := find_undoing_events(tx, (seq,)).get(seq)) is not None:
        raise Refused(
            "NOT_RESTORABLE", say("Event {seq} has already been undone, by event {by}.", seq=seq, by=by), facts={"undoneBy": by}
        )


def find_undoing_events(tx: Transaction, seqs: Collection[int]) -> dict[int, int]:
    """Map each of these events that has been undone to the event that undid it. An undo that was itself undone does not count."""
    last = events.find_undoing(tx, seqs)
    found: dict[int, int] = {}
    for seq in sorted(last, reverse=True):  # an undo comes after what it undid
        if last[seq] not in found:
            found[seq] = last[seq]
    return {seq: found[seq] for seq in seqs if seq in found}
