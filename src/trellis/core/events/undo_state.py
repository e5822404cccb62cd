"""Whether events can be undone, for administrators who read the event log."""

from collections.abc import Collection, Sequence
from typing import Any

from trellis.core.events.event import serialize_event
from trellis.core.operation import Context
from trellis.store import events, snapshots
from trellis.store.engine import Transaction
from trellis.store.events import Event


def serialize_with_undo(context: Context, found: Sequence[Event]) -> list[dict[str, Any]]:
    """Serialize events with a member `undo`: None if undo does not apply to them, otherwise `kept`, `undoneBy` and `open`.

    `kept` says whether everything that undo needs is still in the database, `open` whether there is anything left to undo.
    """
    kinds = {kind.name for kind in context.environment.kinds}
    by_deleting = context.environment.undone_by_deleting
    rows = {
        event.seq: 1 + len(event.touched) if event.before else 0  # to delete what was made takes no rows
        for event in found
        if event.resource in kinds and (event.before or event.operation in by_deleting)
    }
    undone_by, counts = find_undoing_events(context.tx, rows), snapshots.count_by_event(context.tx, rows)
    states: dict[int, dict[str, Any]] = {}
    for seq, count in rows.items():
        kept = counts.get(seq, 0) >= count
        states[seq] = {"kept": kept, "undoneBy": undone_by.get(seq), "open": kept and seq not in undone_by}
    return [serialize_event(event) | {"undo": states.get(event.seq)} for event in found]


def find_undoing_events(tx: Transaction, seqs: Collection[int]) -> dict[int, int]:
    """Give, for each of some events that are undone, the event that did it. One whose undoing was undone stands again."""
    lines: list[dict[int, int]] = []
    while last := events.find_undoing(tx, seqs):
        lines.append(last)
        seqs = last.values()
    found: dict[int, int] = {}
    for last in reversed(lines):
        found = {seq: by for seq, by in last.items() if by not in found}
    return found
