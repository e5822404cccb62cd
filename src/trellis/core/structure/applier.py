"""Runs the operations that a document needs, one by one or together, and records what they change."""

import hashlib
import hmac
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final

from trellis.core.operation import Call, Context, Outcome, run_together
from trellis.core.structure.changes import Change, NodeCall, describe_change, find_drifts
from trellis.core.structure.document import refuse_document
from trellis.core.structure.entries import Entry, LocatedFault, Location, Section, locate_faults
from trellis.core.verbs import UPDATE, Verb
from trellis.errors import Refused
from trellis.store import events, nodes, signing

_FORBIDDEN: Final = frozenset((403,))
_NOT_GRANTED: Final = _FORBIDDEN | {429}  # statuses of refusals that no change of the document can avoid

_NAMING: Final = frozenset(("parentId", "after"))  # members of an input that name a node

Request = tuple[str, int | str | None, Mapping[str, Any]]  # the name of an operation, its target and its input


class Applier:
    """Runs the operations of one document as parts of a call, and collects what they have changed, and what was refused.

    `changes` lists what has been done, `revision` is the newest event before that, `last` the newest event so far, and `needed` are
    the names of the operations. `requests` are the operations that have changed something, with their input; the id of a new node
    is replaced by its external id, since other nodes that are created after a plan take the ids that its nodes would have had.
    `passwords` are those of the document, whether they change anything or not, since a plan does not tell everybody that: as
    digests that only this service can compute, so that nobody who sees the id of a plan can use it to guess passwords.
    """

    def __init__(self, context: Context, call: Call) -> None:
        self.changes: list[Change] = []
        self.needed: set[str] = set()
        self.requests: list[Request] = []
        self.passwords: dict[tuple[str, str | None, str], str | None] = {}  # by kind, external id and field
        self.revision = events.find_newest_number(context.tx)
        self.last: int | None = None
        self.call = call
        self._context = context
        self._faults: list[LocatedFault] = []
        self._created: dict[tuple[str, Any], str | None] = {}  # (kind, id) of a node → its external id
        self._waiting: dict[int | None, NodeCall] = {}  # updates of nodes of one kind, by node id
        self._key = signing.find_key(context.tx, signing.PLANS)

    def update(self, node_call: NodeCall) -> None:
        """Queue an update of a node, to be run together with those before and after it; any other call runs the queue first."""
        waiting = self._waiting
        is_other = any(one.kind is not node_call.kind for one in waiting.values())
        if is_other or node_call.target in waiting or len(waiting) == nodes.AT_ONCE:
            self.finish_updates()
        waiting[node_call.target] = node_call

    def finish_updates(self) -> None:
        """Run the queued updates."""
        node_calls = [*self._waiting.values()]
        self._waiting.clear()
        # Updates that change nothing are no uses of a grant, so that there may be enough uses for them one by one.
        if len(node_calls) < 2 or self._run_together(node_calls, UPDATE, _FORBIDDEN) is None:
            for node_call in node_calls:
                self._run(node_call, UPDATE)

    def run(self, node_call: NodeCall, verb: Verb) -> Outcome | None:
        """Run one operation; return None if it was refused."""
        self.finish_updates()
        return self._run(node_call, verb)

    def run_together(self, node_calls: Sequence[NodeCall], verb: Verb) -> list[Outcome] | None:
        """Run an operation for several nodes of a kind; return None, with nothing done, if it must be run for one at a time."""
        self.finish_updates()
        return self._run_together(node_calls, verb)

    def note(self, change: Change, request: Request | None, event: int) -> None:
        """Record a change, the request that made it unless that consisted of passwords, and its event."""
        self.changes.append(change)
        self.requests += [] if request is None else [request]
        self.last = event

    def sort_changes(self, rank: Callable[[Change], int], first: int = 0) -> None:
        """Put the changes from number `first` on into the order of their ranks."""
        self.changes[first:] = sorted(self.changes[first:], key=rank)

    def add_fault(self, location: Location, detail: str) -> None:
        """Collect a fault that the run itself has found."""
        self._faults.append((location, detail))

    def add_refusal(self, refused: Refused, part: Entry | Section) -> None:
        """Collect the faults for which an operation was refused."""
        self._faults += locate_faults(refused, part)

    def sign(self, data: bytes) -> str:
        """Return a digest that only this database, or a copy of it, yields."""
        return hmac.digest(self._key, data, hashlib.sha256).hex()

    def raise_faults(self) -> None:
        """Refuse the document if there are faults. Raises Refused."""
        if self._faults:
            raise refuse_document(self._faults)

    def _run(self, node_call: NodeCall, verb: Verb) -> Outcome | None:
        call = self._build_call(node_call, verb)
        self.needed.add(call.operation)
        drifts = find_drifts(self._context, [node_call], self.call.managed_by, self.revision)
        try:
            outcome = self._context.run(call)
        except Refused as refused:
            if refused.status in _NOT_GRANTED:
                raise
            self.add_refusal(refused, node_call.entry or node_call.section)
            return None
        self._note_outcome(node_call, call, outcome, drifts)
        return outcome

    def _run_together(
        self, node_calls: Sequence[NodeCall], verb: Verb, final: Container[int] = _NOT_GRANTED
    ) -> list[Outcome] | None:
        calls = [self._build_call(node_call, verb) for node_call in node_calls]
        drifts = find_drifts(self._context, node_calls, self.call.managed_by, self.revision)
        outcomes = run_together(self._context, calls, final)
        for node_call, call, outcome in zip(node_calls, calls, outcomes or (), strict=outcomes is not None):
            self.needed.add(call.operation)
            self._note_outcome(node_call, call, outcome, drifts)
        return outcomes

    def _build_call(self, node_call: NodeCall, verb: Verb) -> Call:
        """Return a call. A node that the document does not contain does not become managed by it, even if it has to make room."""
        for name in (secret.name for secret in node_call.kind.secrets if secret.name in node_call.raw):
            external_id = node_call.entry.external_id if node_call.entry is not None else None
            self.passwords[node_call.kind.name, external_id, name] = self._sign(node_call.raw[name])
        call = self.call.build_inner(node_call.kind.operation(verb.name), node_call.raw, node_call.target)
        return call if node_call.entry is not None else call._replace(managed_by=None)

    def _note_outcome(self, node_call: NodeCall, call: Call, outcome: Outcome, drifts: Mapping[int, dict[str, Any]]) -> None:
        if outcome.event is None:
            return
        secrets = {f.name for f in node_call.kind.secrets}
        kind = node_call.kind.name
        given = {name: value for name, value in call.raw.items() if name not in secrets}
        given |= {n: self._created.get((kind, given[n]), given[n]) for n in _NAMING & given.keys()}
        change = describe_change(node_call, outcome, self.call.managed_by, drifts.get(call.target or 0))
        target = self._created.get((kind, call.target), call.target)
        is_of_passwords = bool(outcome.changed) and secrets.issuperset(outcome.changed)
        self.note(change, None if is_of_passwords else (call.operation, target, given), outcome.event)
        if outcome.before is None:
            self._created[kind, change.id] = change.external_id

    def _sign(self, password: Any) -> str | None:
        if not password:  # the password is removed
            return None
        return self.sign(str(password).encode("utf-8", "surrogatepass"))
