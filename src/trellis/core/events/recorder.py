"""Recording the events of a call, and of the calls that it runs."""

from collections.abc import Sequence

from trellis.core.actor import TERMINAL
from trellis.core.bounds import Use
from trellis.core.events.event import build_event
from trellis.core.operation import Call, Operation, Outcome
from trellis.core.passwords import Plain, refuse_proposed
from trellis.errors import Refused
from trellis.sentences import say_many
from trellis.store import alarms, events
from trellis.store.alarms import Alarm
from trellis.store.engine import Transaction


class TookTooLong(Refused):
    """The call has not ended in the time that it may keep other writes waiting."""


def refuse_overdue(operation: str, limit: float | None) -> TookTooLong:
    """Return the refusal of a call that was ended because it took longer than a number of seconds."""
    return TookTooLong(
        "TOO_LONG",
        say_many(
            int(limit or 0),
            "Nothing was done: {name} had not finished after {count} second, while all other writes waited. Send it in parts.",
            "Nothing was done: {name} had not finished after {count} seconds, while all other writes waited. Send it in parts.",
            name=operation,
        ),
    )


class Recorder:
    """Records the events of one call and of the calls that it runs, which all share it, and with it the transaction and its time.

    `change_set` is the change set that the events belong to, if any.

    `dry`: everything will be rolled back; `reads`: nothing can be written. `apart`: the call needs somebody's approval, and either
    is tried for it or has it. `compares`: a password that is sent again changes nothing. Otherwise any password does, so that
    nobody can guess passwords by trying which one does not: the caller sees what was done although it is rolled back, or may be.
    Whoever has the terminal has the database.
    """

    def __init__(
        self,
        tx: Transaction,
        operation: Operation,
        call: Call,
        now: str,
        *,
        dry: bool = False,
        apart: bool = False,
    ) -> None:
        self.tx = tx
        self.now = now
        self.change_set: int | None = None
        self.dry = dry or operation.is_plan
        self.apart = apart
        self.reads = not operation.writes
        self.compares = call.actor.type == TERMINAL.type or not (self.dry or operation.results_in)
        self.counted: list[Use] = []  # uses of grants by reads
        self.digests: dict[tuple[Plain, str | None], str] = {}  # digests of passwords, computed while other writes wait
        self._operation = operation.name
        self._belong_together = operation.is_change_set or call.change_set is not None
        self._call = call

    def build_trial(self, operation: Operation, call: Call) -> "Recorder":
        """Return a recorder for an operation that is run as part of the call and will be rolled back."""
        trial = Recorder(self.tx, operation, call, self.now, dry=True)
        trial.digests, trial.apart = self.digests, self.apart
        return trial

    def find_approval(self, operation: Operation) -> bool | None:
        """Return whether a call has an approval, or is tried for one; None if nothing that it changes is kept."""
        return self.apart if operation.writes and not self.dry else None

    def check_password(self) -> None:
        """Refuse a password in a call that needs somebody's approval. Raises Refused (PASSWORD_IN_PROPOSAL)."""
        if self.apart:
            raise refuse_proposed()

    def record(self, operation: Operation, call: Call, outcome: Outcome) -> int | None:
        """Record what a call did; return its event. A call that ran other operations has none: return the last event of those."""
        if outcome.event is not None or not outcome.happened:
            return outcome.event
        at = self._open(call)
        event = build_event(operation, call, outcome, at, self.change_set)
        seq = events.append(self.tx, event)
        if operation.find_alarm is not None and (alarm := operation.find_alarm(event)) is not None:
            alarms.insert(self.tx, Alarm(seq, alarm.name, event.resource, event.resource_id, at, alarm.own))
        return seq

    def record_many(self, operation: Operation, calls: Sequence[Call], outcomes: Sequence[Outcome]) -> list[int | None]:
        """Record what several calls of one operation did; return the event of each, None for a call that changed nothing."""
        happened = [(call, one) for call, one in zip(calls, outcomes, strict=True) if one.happened]
        if not happened:
            return [None] * len(calls)
        at = self._open(calls[0])
        appended = [build_event(operation, call, one, at, self.change_set) for call, one in happened]
        seqs = iter(events.append_many(self.tx, appended))
        return [next(seqs) if one.happened else None for one in outcomes]

    def _open(self, call: Call) -> str:
        """Open the change set if there is to be one; return the time of the event that will be appended."""
        at = max(self.now, events.find_newest_timestamp(self.tx))
        if self._belong_together and self.change_set is None:
            actor = {"type": call.actor.type, "id": call.actor.id}
            self.change_set = events.open_change_set(self.tx, actor, self._call.change_set, at, self._operation)
        return at
