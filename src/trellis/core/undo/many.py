"""Undoes many events in one transaction, newest first: adjacent events of one sort together, all others one by one."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from trellis.core.events import find_undoing_events
from trellis.core.kind import NodeKind
from trellis.core.operation import DRY_RUN, Context, Outcome, Progress, run_together
from trellis.core.undo.sorts import Sort, find_sort
from trellis.core.verbs import RESTORE
from trellis.errors import Refused
from trellis.sentences import advise, join, say, say_many
from trellis.store import events, nodes
from trellis.store.events import Event

# All other writes wait while events are undone, and must not wait for more than a few seconds.
MOST: Final = 10_000
MOST_SINGLY: Final = 1_000  # events that are not creations of unchanged records: as many as a batch has at most
_PAGE: Final = 2000  # events that are looked for at a time
SHOWN: Final = 1000  # conflicts and events that a response lists; the counts include all
_RAW: Final = {"deleteCreated": True}
_REACH: Final = "under"  # a member of refusals to reach further than a grant allows
# Members that change with other records, or with time.
_PASSING: Final = frozenset({"updatedAt", "position", "path", "url", "lastUsedAt", "state", "oldSecretUntil"})


def undo_events(context: Context, filters: Mapping[str, Any], *, after: int, purged: int | None) -> Outcome:
    """Undo the events after a sequence number that pass filters of `events.select_page`, the newest first.

    `purged` is how many more were purged; None if that is not known, but some may have been.

    Raises Refused (CHANGE_SET_TOO_LARGE, RESTORE_CONFLICTS), in which case nothing has changed.
    """
    dry, skip = (bool(context.input.get(name)) for name in (DRY_RUN.name, "skipConflicts"))
    undoing = _Undoing(context, filters, after)
    undoing.undo()
    undone, conflicts, hidden = undoing.undone, undoing.conflicts, undoing.hidden
    if (conflicts or hidden or purged != 0) and not dry and not skip:
        raise _refuse(conflicts, hidden, len(undoing.seqs), purged)
    counts = Counter(event.operation for event, _ in undone)
    shown = [{"event": event.seq, "operation": event.operation, "by": None if dry else by} for event, by in undone[:SHOWN]]
    result = {
        "undone": shown,
        "undoneCount": len(undone),
        "counts": [{"operation": name, "count": count} for name, count in sorted(counts.items())],
        "conflicts": conflicts[:SHOWN],
        "conflictCount": len(conflicts) + hidden,
        "purgedCount": purged,
    }
    last = next((by for _, by in reversed(undone) if by is not None), None)  # None for events of which nothing was left
    return Outcome(result, plan=result | {"dryRun": True}, happened=False, event=last)


def _refuse(conflicts: Sequence[dict[str, Any]], hidden: int, count: int, purged: int | None) -> Refused:
    why = conflicts[0]["detail"] if conflicts else say("They are about records that your role cannot see.")
    parts = []
    if number := len(conflicts) + hidden:
        parts += [
            say_many(
                count,
                "{number:,} of {count:,} event cannot be undone.",
                "{number:,} of {count:,} events cannot be undone.",
                number=number,
            ),
            why,
        ]
    if purged is None:
        parts.append(say("Older events have been purged, and some of them may be among those to undo."))
    elif purged:
        parts.append(
            say_many(
                purged,
                "{count:,} event has been purged and cannot be undone.",
                "{count:,} events have been purged and cannot be undone.",
            )
        )
    problem = join([*parts, say("Nothing was changed.")])
    detail = advise(problem, say("Send skipConflicts (--skip-conflicts) to undo the others."))
    return Refused("RESTORE_CONFLICTS", detail, facts={"conflicts": list(conflicts[:SHOWN]), "purgedCount": purged})


class _Undoing:
    """Undoes events, the newest first: `seqs` are their numbers.

    `undone` are the undone events, each with the event that undid it; `conflicts` lists the others.
    `hidden` counts the conflicts of events that the caller's role cannot see, which are not listed.
    """

    def __init__(self, context: Context, filters: Mapping[str, Any], after: int) -> None:
        self._context = context
        self._already: dict[int, int] = {}  # events that are undone already, each with the event that undid it
        self.seqs = self._find_seqs(filters, after)
        self._wanted = set(self.seqs)
        self._settled: set[int] = set()  # events of which another wanted event has left nothing to undo
        self._again: set[int] = set()  # events to undo once more, since their undo was undone here
        self._kinds = context.environment.kinds_by_name
        self._progress = Progress(context.call, len(self.seqs))
        self._others = 0
        self.undone: list[tuple[Event, int | None]] = []
        self.conflicts: list[dict[str, Any]] = []
        self.hidden = 0

    def _find_seqs(self, filters: Mapping[str, Any], after: int) -> list[int]:
        """Find the events, the newest first. Raises Refused as soon as there are too many that are not undone yet."""
        seqs: list[int] = []
        left: list[int] = []
        before = None
        while found := events.find_newest_numbers(self._context.tx, filters, _PAGE, after=after, before=before):
            self._already |= find_undoing_events(self._context.tx, found)
            left += (seq for seq in found if seq not in self._already)
            if len(left) > MOST:
                problem = say(
                    "There are more than {most:,} events to undo, which is the most that can be undone at once. "
                    "Nothing was changed.",
                    most=MOST,
                )
                raise _refuse_size(problem, left[MOST])
            seqs += found
            before = found[-1]
        return seqs

    def undo(self) -> None:
        """Undo the events. Raises Refused if there are too many."""
        wanted = [seq for seq in self.seqs if self._already.get(seq, seq) in self._wanted]
        for found in self._read(wanted):
            for (kind, sort), run in groupby(self._choose(found), self._find_sort):
                if kind is None or sort is None:
                    self._undo_singly(run)
                else:
                    self._undo_together(kind, sort, list(run))

    def _read(self, seqs: Sequence[int]) -> Iterator[list[Event]]:
        """Read events, as many at a time as are undone together, or fewer if they have very long texts."""
        found: list[Event] = []
        size = 0
        for batch in nodes.split_into_batches(seqs, nodes.AT_ONCE):
            for event in events.find_many(self._context.tx, batch):
                found.append(event)
                size += events.weigh_event(event)
            if size > events.MOST_BYTES or len(found) >= nodes.BATCH:
                yield found
                found, size = [], 0
        if found:
            yield found

    def _choose(self, found: Iterable[Event]) -> Iterable[Event]:
        """Leave out events that are undone already, and pairs of an event and its undo that together have changed nothing."""
        for event in found:
            if event.seq in self._already and event.seq not in self._again:
                continue
            if event.undoes in self._wanted and self._is_settled(event):
                self._settled.add(event.undoes or 0)
                continue
            yield event

    def _is_settled(self, undo: Event) -> bool:
        """Return whether everything is as it was before the event that `undo` undid, thanks to `undo` itself or a later undo."""
        undone = events.find(self._context.tx, undo.undoes or 0)
        if undone is None or _has_brought_all_back(undone, undo):
            return True
        while undone is not None and undone.seq not in self._settled:
            undone = events.find(self._context.tx, undone.undoes) if undone.undoes in self._wanted else None
        return undone is not None

    def _find_sort(self, event: Event) -> tuple[NodeKind | None, Sort | None]:
        kind = self._kinds.get(event.resource)
        sort = find_sort(kind, event) if kind is not None and event.undoes not in self._wanted else None
        return (None, None) if sort is None else (kind, sort)

    def _undo_together(self, kind: NodeKind, sort: Sort, found: Sequence[Event]) -> None:
        ready = sort.find_ready(self._context.tx, kind, found)
        name = f"{kind.name}.{RESTORE.name}"
        for together, part in groupby(found, lambda event: event.seq in ready):
            for those in _split(part, sort.at_once):
                is_few = len(those) > 1 or _count_records(those[0]) <= sort.at_once
                is_light = is_few and (sort.is_cheap or sum(map(events.weigh_event, those)) <= events.MOST_BYTES)
                calls = [self._context.call.build_inner(name, _RAW, event.seq) for event in those if together and is_light]
                outcomes = run_together(self._context, calls)
                if outcomes is None:
                    self._undo_singly(those)
                    continue
                if not sort.is_cheap:
                    self._count_others(those)
                self.undone += ((_lighten(event), outcome.event) for event, outcome in zip(those, outcomes, strict=True))
                self._progress.done(len(those))

    def _count_others(self, those: Sequence[Event]) -> None:
        """Count events that are not creations of unchanged records. Raises Refused if there are too many."""
        self._others += len(those)
        if self._others > MOST_SINGLY:
            problem = say(
                "At most {most:,} events, not counting creations of records that are unchanged, can be undone at once. "
                "Nothing was changed.",
                most=MOST_SINGLY,
            )
            raise _refuse_size(problem, those[MOST_SINGLY - self._others].seq)

    def _undo_singly(self, found: Iterable[Event]) -> None:
        for event in found:
            self._count_others((event,))
            self._undo_one(event)
            self._progress.done()

    def _undo_one(self, event: Event) -> None:
        is_node = event.resource in self._kinds
        resource = event.resource if is_node else "events"  # events.restore runs another one, or says why not
        call = self._context.call.build_inner(f"{resource}.{RESTORE.name}", _RAW if is_node else {}, event.seq)
        try:
            with self._context.tx.savepoint():
                by = self._context.run(call).event
        except Refused as refused:
            if refused.status == 403 and _REACH not in refused.facts:  # the caller may undo nothing of this resource
                raise
            if not self._context.call.actor.sees(event.resource):
                self.hidden += 1
                return
            about = {"event": event.seq, "operation": event.operation}
            self.conflicts.append(about | {"message": refused.message, "detail": refused.detail})
        else:
            self.undone.append((_lighten(event), by))
            if by is not None and event.undoes is not None:
                self._again.add(event.undoes)


def _split(found: Iterable[Event], most: int) -> Iterator[list[Event]]:
    """Split events into parts of at most `most` records each; an event with more records is a part of its own."""
    part: list[Event] = []
    size = 0
    for event in found:
        size += _count_records(event)
        if part and size > most:
            yield part
            part, size = [], _count_records(event)
        part.append(event)
    if part:
        yield part


def _count_records(event: Event) -> int:
    return 1 + len(event.touched)


def _lighten(event: Event) -> Event:
    """Return an event without its large members, which the response does not need."""
    return replace(event, before=None, after=None, touched=())


def _has_brought_all_back(event: Event, undo: Event) -> bool:
    """Return whether an undo has restored the records of an event to what they were before it, as far as the two events show.

    An undo may restore a record elsewhere, without a group that is gone, or without children that had been moved on.
    """
    touched = [{(one["resource"], one["id"]) for one in each.touched} for each in (event, undo)]
    if touched[0] != touched[1] or (event.before is None) != (undo.after is None):
        return False
    then, now = event.before or {}, undo.after or {}
    return all(now.get(name, value) == value for name, value in then.items() if name not in _PASSING)


def _refuse_size(problem: str, after: int) -> Refused:
    advice = say("Send after={after} to undo the newest of them, and then the rest.", after=after)
    return Refused("CHANGE_SET_TOO_LARGE", advise(problem, advice), facts={"after": after})
