"""The operations that a document needs, run one by one or together, and noted with what they change."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from trellis.core.operation import Call, Context, Outcome, run_together
from trellis.core.structure.changes import Change, Subject, describe_change, find_drifts
from trellis.core.structure.entries import Place
from trellis.core.verbs import UPDATE, Verb
from trellis.errors import Refused
from trellis.store import events, nodes, signing

_NOT_GRANTED: Final = frozenset((403, 429))  # statuses of refusals that no change of the document helps against

Request = tuple[str, int | None, Mapping[str, Any]]  # the name of an operation, its target, and what it was given


class Step(NamedTuple):
    """What an operation is about, what it is given, and its target if it has one."""

    about: Subject
    raw: Mapping[str, Any]
    target: int | None


class Steps:
    """What one run of a document does, as parts of a call; what is refused is added to the faults.

    `changes` is what has been done, `revision` the newest event before that, `last` the newest one by now, and `needed` the names
    of the operations. `requests` are those that have changed something, with what they were given, and for passwords a digest that
    only this service can make: nobody who sees the name of a plan can try passwords on it.
    """

    def __init__(self, context: Context, call: Call, faults: list[tuple[Place, str]]) -> None:
        self.changes: list[Change] = []
        self.needed: set[str] = set()
        self.requests: list[Request] = []
        self.revision = events.find_newest_number(context.tx)
        self.last: int | None = None
        self.call = call
        self._context = context
        self._faults = faults
        self._waiting: dict[int, Step] = {}  # updates of one kind, by node
        self._key = signing.find_key(context.tx, signing.PLANS)

    def update(self, about: Subject, raw: Mapping[str, Any], target: int) -> None:
        """Change a node, with the updates right before and after it: it waits for them, at most until the next step of others."""
        waiting = self._waiting
        is_other = any(step.about.kind is not about.kind for step in waiting.values())
        if is_other or target in waiting or len(waiting) == nodes.AT_ONCE:
            self.finish_updates()
        waiting[target] = Step(about, raw, target)

    def finish_updates(self) -> None:
        """Do the updates that wait."""
        steps = [*self._waiting.values()]
        self._waiting.clear()
        if len(steps) < 2 or self._run_together(steps, UPDATE) is None:
            for step in steps:
                self._run(step, UPDATE)

    def run(self, step: Step, verb: Verb) -> Outcome | None:
        """Run one operation; None if it was refused."""
        self.finish_updates()
        return self._run(step, verb)

    def run_together(self, steps: Sequence[Step], verb: Verb) -> list[Outcome] | None:
        """Run an operation for several nodes of a kind; None if one was refused, in which case nothing was done."""
        self.finish_updates()
        return self._run_together(steps, verb)

    def note(self, change: Change, request: Request, event: int) -> None:
        """Note what has been done."""
        self.changes.append(change)
        self.requests.append(request)
        self.last = event

    def _run(self, step: Step, verb: Verb) -> Outcome | None:
        about, call = step.about, self._build_call(step, verb)
        self.needed.add(call.operation)
        drifts = self._find_drifts([step])
        try:
            outcome = self._context.run(call)
        except Refused as refused:
            if refused.status in _NOT_GRANTED:
                raise
            places = about.entry.places if about.entry is not None else {}
            found = [(places.get(fault.field.partition(".")[0], about.place), fault.detail) for fault in refused.faults]
            self._faults += found or [(about.place, refused.detail)]
            return None
        self._note_outcome(about, call, outcome, drifts)
        return outcome

    def _run_together(self, steps: Sequence[Step], verb: Verb) -> list[Outcome] | None:
        calls = [self._build_call(step, verb) for step in steps]
        drifts = self._find_drifts(steps)
        outcomes = run_together(self._context, calls, _NOT_GRANTED)
        for step, call, outcome in zip(steps, calls, outcomes or (), strict=outcomes is not None):
            self.needed.add(call.operation)
            self._note_outcome(step.about, call, outcome, drifts)
        return outcomes

    def _find_drifts(self, steps: Sequence[Step]) -> dict[int, dict[str, Any]]:
        return find_drifts(self._context, [(step.about, step.target) for step in steps], self.call.managed_by, self.revision)

    def _build_call(self, step: Step, verb: Verb) -> Call:
        """Return a call. What the document does not have is not managed by it, even if it has to make room."""
        call = self.call.build_inner(step.about.kind.operation(verb.name), step.raw, step.target)
        return call if step.about.entry is not None else call._replace(managed_by=None)

    def _note_outcome(self, about: Subject, call: Call, outcome: Outcome, drifts: Mapping[int, dict[str, Any]]) -> None:
        if outcome.event is None:
            return
        secrets = {f.name for f in about.kind.secrets}
        given = {n: self._sign(value) if n in secrets else value for n, value in call.raw.items()}
        change = describe_change(about, outcome, self.call.managed_by, drifts.get(call.target or 0))
        self.note(change, (call.operation, call.target, given), outcome.event)

    def _sign(self, password: Any) -> str | None:
        if not password:  # it is taken away
            return None
        return hmac.digest(self._key, str(password).encode("utf-8", "surrogatepass"), hashlib.sha256).hex()
