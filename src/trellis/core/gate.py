"""The gate: the one place where an operation is authorised, run, recorded and committed.

Every interface (REST, panel, command line) comes through here. Exceptions are bookkeeping, which is written in batches
outside of requests: the last use of a key, the daily usage of keys, the request log, the search index, the purging of old requests,
idempotent responses, events, snapshots and changes, the progress of webhook delivery and its log of attempts, and the panel's
sessions, sign-in attempts and one-time links.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from trellis.core.actor import TERMINAL, Actor
from trellis.core.catalogue import Catalogue
from trellis.core.events import build_event
from trellis.core.fields import Input, format_timestamp, isolate
from trellis.core.operation import DRY_RUN, Call, Context, Environment, Operation, Outcome
from trellis.core.passwords import Lanes, Plain, chain
from trellis.core.verbs import Verb
from trellis.errors import Refused
from trellis.store import events, idempotency
from trellis.store.engine import Rollback, Store, Transaction

log = logging.getLogger(__name__)

_LONG: Final = 2.0  # seconds for which a write may keep others waiting before the log says so
_MOST_PASSWORDS: Final = 20  # that one call may set by the calls that it runs
_RESPONSE_LIFETIME: Final = timedelta(hours=24)  # for an Idempotency-Key


class Result(NamedTuple):
    """The result of a call: `value` is the record, the page or the plan; `event` the number of the last recorded event.

    `verb` is the verb that was carried out.
    """

    value: Any
    event: int | None = None
    dry: bool = False
    replayed: bool = False
    verb: Verb | None = None
    change_set: int | None = None


class _Overdue(Exception):
    """Raised where a call that runs others has taken too long. Not a refusal of the other: it must not pass for one."""


class Recorder:
    """Records the events of one call and of those that it runs. `change_set` is the change set that they belong to, if any.

    `until` is when the call must have ended, by the monotonic clock; None for one that may take as long as it likes.
    """

    def __init__(self, tx: Transaction, operation: Operation, call: Call, now: str, until: float | None = None) -> None:
        self.change_set: int | None = None
        self.until = until
        self._tx = tx
        self._operation = operation.name
        self._belong_together = operation.is_change_set or call.change_set is not None
        self._call = call
        self._now = now

    def check_time(self) -> None:
        """Raise _Overdue if the call should have ended by now."""
        if self.until is not None and time.monotonic() > self.until:
            raise _Overdue

    def record(self, operation: Operation, call: Call, outcome: Outcome) -> int | None:
        """Record what happened. If other operations did it, they have recorded it: then return the last of their events."""
        if outcome.event is not None or not outcome.happened:
            return outcome.event
        at = self._open(call)
        return events.append(self._tx, build_event(operation, call, outcome, at, self.change_set))

    def record_many(self, operation: Operation, calls: Sequence[Call], outcomes: Sequence[Outcome]) -> range:
        """Record what happened in several calls of one operation, all of which have changed something."""
        at = self._open(calls[0])
        happened = zip(calls, outcomes, strict=True)
        return events.append_many(self._tx, [build_event(operation, call, one, at, self.change_set) for call, one in happened])

    def _open(self, call: Call) -> str:
        """Open the change set if there is to be one; return the time of the event that will be appended."""
        at = max(self._now, events.find_newest_timestamp(self._tx))
        if self._belong_together and self.change_set is None:
            actor = {"type": call.actor.type, "id": call.actor.id}
            self.change_set = events.open_change_set(self._tx, actor, self._call.change_set, at, self._operation)
        return at


class Gate:
    """Authorise → validate → digest passwords → transaction → run → event → commit."""

    def __init__(
        self, store: Store, catalogue: Catalogue, environment: Environment, clock: Callable[[], datetime] | None = None
    ) -> None:
        self.store = store
        self.catalogue = catalogue
        self.environment = environment
        self.lanes = Lanes(on_idle=store.close_reader)
        self._clock = clock
        self._second = (0, "")
        self._running: set[tuple[int, str]] = set()
        self._guard = threading.Lock()

    def now(self) -> str:
        """Return the time by the gate's clock."""
        if self._clock is not None:
            return format_timestamp(self._clock())
        at = time.time()
        second, text = self._second
        if second != int(at):
            second = int(at)
            text = format_timestamp(datetime.fromtimestamp(second, UTC))[:20]
            self._second = (second, text)
        return f"{text}{int((at - second) * 1000):03d}Z"

    def ago(self, span: timedelta) -> str:
        """Return the time this long ago."""
        return format_timestamp(datetime.fromisoformat(self.now()) - span)

    def authorise(self, name: str, actor: Actor) -> Operation:
        """Return the operation if the actor may run it. Raises Refused (NO_PERMISSION, UNKNOWN_OPERATION)."""
        operation = self.catalogue.find(name)
        if operation.fork is not None:
            if not any(actor.may(way) for way in operation.fork.to):
                raise _refuse_not_granted(actor, f"*.{operation.name.partition('.')[2]}", " or ".join(operation.fork.to))
        elif not operation.is_open:
            for needed in operation.needs or (name,):
                if not actor.may(needed):
                    raise _refuse_not_granted(actor, needed)
        return operation

    def follow(self, call: Call) -> Call:
        """Return the call that a forking operation leads to; other calls are returned unchanged. Raises Refused."""
        fork = self.authorise(call.operation, call.actor).fork
        if fork is None:
            return call
        with self.store.reading(snapshot=False) as tx:
            call = call._replace(operation=fork.find(tx, call.target or 0, call.actor))
        self.authorise(call.operation, call.actor)
        return call

    def run(self, call: Call) -> Result:
        """Run an operation and wait for it. Raises Refused, in which case nothing has changed."""
        operation = self.authorise(call.operation, call.actor)
        if operation.fork is not None:
            return self.run(self.follow(call))
        if operation.writes:
            return self.submit(call).result()
        given = operation.form.read(call.raw)
        if not operation.snapshot:
            return self.store.read_single(lambda tx: self._read(operation, call, given, tx))
        with self.store.reading() as tx:
            return self._read(operation, call, given, tx)

    def _read(self, operation: Operation, call: Call, given: Input, tx: Transaction) -> Result:
        now = self.now()
        outcome = self._perform(operation, call, given, tx, now, Recorder(tx, operation, call, now))
        return Result(outcome.result, verb=outcome.verb or operation.verb)

    def _perform(self, operation: Operation, call: Call, given: Input, tx: Transaction, now: str, recorder: Recorder) -> Outcome:
        return operation.run(self._build_context(call, given, tx, now, recorder))

    def _build_context(self, call: Call, given: Input, tx: Transaction, now: str, recorder: Recorder) -> Context:
        run, run_many = partial(self._run_within, tx, now, recorder), partial(self._run_many_within, tx, now, recorder)
        return Context(call, given, tx, now, self.environment, run, run_many)

    def _run_within(self, tx: Transaction, now: str, recorder: Recorder, call: Call) -> Outcome:
        """Run a call as part of another one, and record its event. Raises Refused, which refuses the whole."""
        recorder.check_time()
        operation = self.authorise(call.operation, call.actor)
        if operation.fork is not None:
            return self._run_within(
                tx, now, recorder, call._replace(operation=operation.fork.find(tx, call.target or 0, call.actor))
            )
        given = operation.form.read(call.raw)
        given = given if given.faults else self._put_digests(tx, operation, call, given)
        outcome = self._perform(operation, call, given, tx, now, recorder)
        event = recorder.record(operation, call, outcome) if operation.writes else None
        return outcome._replace(event=event, verb=outcome.verb or operation.verb)

    def _run_many_within(self, tx: Transaction, now: str, recorder: Recorder, calls: Sequence[Call]) -> list[Outcome]:
        """Run calls of one operation together as part of another one, and record their events. Raises Refused."""
        recorder.check_time()
        operation = self.authorise(calls[0].operation, calls[0].actor)
        if operation.run_many is None or any(call.operation != operation.name for call in calls):
            raise LookupError(f"{operation.name} is not run together with others")
        contexts: list[Context] = []
        for call in calls:
            given = operation.form.read(call.raw)
            given = given if given.faults else self._put_digests(tx, operation, call, given)
            contexts.append(self._build_context(call, given, tx, now, recorder))
        outcomes = operation.run_many(contexts)
        seqs = recorder.record_many(operation, calls, outcomes)
        return [one._replace(event=seq) for one, seq in zip(outcomes, seqs, strict=True)]

    def submit(self, call: Call) -> Future[Result]:
        """Pass a write to the writer. The future completes once the change is durable or refused."""
        operation = self.authorise(call.operation, call.actor)
        if operation.fork is not None:
            return self.submit(self.follow(call))
        given = operation.form.read(call.raw)
        if call.token is None or call.actor.id is None or given.get(DRY_RUN.name):
            return self._submit(operation, call, given, lambda call, given, tx: self._write(operation, call, given, tx))
        claim = (call.actor.id, call.token)
        with self._guard:
            if claim in self._running:
                raise Refused(
                    "IDEMPOTENCY_KEY_IN_USE",
                    "A request with this Idempotency-Key is still running. Wait for its response, then send this one again.",
                )
            self._running.add(claim)
        try:
            future = self._submit(
                operation, call, given, lambda call, given, tx: self._write_once(operation, call, given, tx, claim)
            )
        except BaseException:
            self._running.discard(claim)
            raise
        future.add_done_callback(lambda _: self._running.discard(claim))
        return future

    def _submit(
        self, operation: Operation, call: Call, given: Input, write: Callable[[Call, Input, Transaction], Result]
    ) -> Future[Result]:
        """Pass a write to the writer, once the passwords in it have become digests. Faults are refused by the operation."""
        inner = [] if given.faults else [one for one in operation.calls(call, given) if self._takes_password(one)]
        if given.faults or not (inner or _has_password(given)):
            return self.store.write(lambda tx: write(call, given, tx))
        if len(inner) > _MOST_PASSWORDS:
            raise Refused(
                "SETS_TOO_MANY_PASSWORDS",
                f"This sets {len(inner):,} passwords, and one request may set at most {_MOST_PASSWORDS}. Nothing was done. "
                "Set fewer of them at once.",
            )
        digested = self.lanes.submit(call.lane, lambda: self._digest(operation, call, given, inner))
        return chain(digested, lambda prepared: self.store.write(lambda tx: write(*prepared, tx)))

    def _takes_password(self, call: Call) -> bool:
        return call.operation in self.catalogue and not self.catalogue.find(call.operation).secrets.isdisjoint(call.raw)

    def _digest(self, operation: Operation, call: Call, given: Input, inner: list[Call]) -> tuple[Call, Input]:
        """Let the operation judge the call, then put digests in place of the passwords in it, and make those of inner calls."""
        with self.store.reading() as tx:
            own = self._find_passwords(tx, operation, call, given)
            wanted = [*own.values(), *(pair for one in inner for pair in self._find_inner_passwords(tx, one))]
        digests: dict[tuple[Plain, str | None], str] = {}
        for plain, kept in wanted:
            if (plain, kept) not in digests:
                digests[plain, kept] = plain.digest(kept)
        return call._replace(digests=digests), Input({**given.values, **{name: digests[pair] for name, pair in own.items()}})

    def _find_passwords(
        self, tx: Transaction, operation: Operation, call: Call, given: Input
    ) -> dict[str, tuple[Plain, str | None]]:
        """Return the passwords in a call by field, each with the digest that is stored so far. Raises Refused."""
        if not _has_password(given):
            return {}
        now = self.now()
        kept = operation.judge(self._build_context(call, given, tx, now, Recorder(tx, operation, call, now)))
        return {name: (value, kept.get(name)) for name, value in given.values.items() if isinstance(value, Plain)}

    def _find_inner_passwords(self, tx: Transaction, call: Call) -> Iterable[tuple[Plain, str | None]]:
        """Return the passwords in a call that another one will run, as far as it is known yet; none if it will be refused."""
        with suppress(Refused):
            operation = self.authorise(call.operation, call.actor)
            given = operation.form.read(call.raw)
            if operation.has_target and call.target is None:  # a record that the whole will create
                return [(value, None) for value in given.values.values() if isinstance(value, Plain)]
            return self._find_passwords(tx, operation, call, given).values()
        return ()

    def _put_digests(self, tx: Transaction, operation: Operation, call: Call, given: Input) -> Input:
        """Put the digests that were made before in place of the passwords in an inner call."""
        known = call.digests
        found = self._find_passwords(tx, operation, call, given).items()
        digests = {name: known.get(pair) or known.get((pair[0], None)) or pair[0].digest(pair[1]) for name, pair in found}
        return Input({**given.values, **digests}) if digests else given

    def _write(self, operation: Operation, call: Call, given: Input, tx: Transaction) -> Result:
        result, _ = self._run_write(operation, call, given, tx)
        if result.event is None:  # nothing was changed: the data version is to stay, whatever shares the commit
            raise Rollback(result._replace(change_set=None))
        return result

    def _run_write(self, operation: Operation, call: Call, given: Input, tx: Transaction) -> tuple[Result, Any]:
        """Run a write; return its result, and what may be stored of it, which never includes a secret that is shown once."""
        now, began = self.now(), time.monotonic()
        limit = None if call.actor.type == TERMINAL.type else self.environment.job_timeout
        recorder = Recorder(tx, operation, call, now, None if limit is None else began + limit)
        try:
            outcome = self._perform(operation, call, given, tx, now, recorder)
        except _Overdue:
            detail = f"{operation.name} had not ended after {limit} seconds, in which all other writes waited. Send it in parts."
            raise Refused("TOO_LONG", f"Nothing was done: {detail}") from None
        finally:
            if (held := time.monotonic() - began) > _LONG:
                log.warning("%s held the write lock for %.1f s (request %s).", operation.name, held, call.request_id or "-")
        kept = outcome.result if outcome.plan is None else outcome.plan
        if given.get(DRY_RUN.name):
            raise Rollback(Result(kept, dry=True))
        event = recorder.record(operation, call, outcome)
        return Result(outcome.result, event, verb=outcome.verb or operation.verb, change_set=recorder.change_set), kept

    def _write_once(self, operation: Operation, call: Call, given: Input, tx: Transaction, claim: tuple[int, str]) -> Result:
        key, token = claim
        kept = idempotency.find_response(tx, key, token)
        if kept is not None and kept[2] >= self.ago(_RESPONSE_LIFETIME):
            if kept[0] != call.fingerprint:
                raise Refused(
                    "IDEMPOTENCY_KEY_REUSED",
                    "This Idempotency-Key was sent with a different request within the last 24 hours. Use a new one.",
                )
            return Result(kept[1], replayed=True, verb=operation.verb)
        result, storable = self._run_write(operation, call, given, tx)
        idempotency.save_response(tx, key, token, call.fingerprint, storable, self.now())
        return result


def _has_password(given: Input) -> bool:
    return any(isinstance(value, Plain) for value in given.values.values())


def _refuse_not_granted(actor: Actor, missing: str, named: str = "") -> Refused:
    named = named or missing
    typed = f"'{missing}'" if "*" in missing else missing
    return Refused(
        "NO_PERMISSION",
        f"The key '{isolate(actor.name)}' has not been granted {named}. "
        f"An administrator can tick {named} on the key's page, or run: trellis keys grant {actor.id} {typed}",
        facts={"missingOperation": missing},
    )
