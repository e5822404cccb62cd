"""The gate: the one place where an operation is authorised, run, recorded and committed.

Every interface (REST, panel, command line) comes through here. The only exception is bookkeeping, which is written in batches
outside of requests: the last use of a key, the daily usage of keys, the request log, the search index, the purging of old requests,
idempotent responses, events, snapshots and changes, the progress of webhook delivery and its log of attempts, the uses of limited
grants, and the panel's sessions, sign-in attempts, alarms that were read, zones, themes and languages, and one-time links.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from trellis.core.actor import TERMINAL, Actor
from trellis.core.bounds import ProposalNeeded, Use, counting, take_off
from trellis.core.catalogue import Catalogue
from trellis.core.events import Recorder, refuse_overdue
from trellis.core.fields import Input, format_timestamp, shift_timestamp
from trellis.core.gate.ahead import digest_passwords, find_password_calls, read_ahead
from trellis.core.gate.calls import Calls
from trellis.core.idempotency import Created, WriteDone, find_kept, find_same, keep, refuse_running, replay
from trellis.core.operation import DRY_RUN, Call, Environment, Fate, Operation
from trellis.core.passwords import Lanes, chain, check_number, has_password
from trellis.core.verbs import Verb
from trellis.store.engine import Overdue, Rollback, Shown, Store, Transaction, refuse_full

log = logging.getLogger(__name__)

_LONG: Final = 2.0  # seconds that a write may keep others waiting before it is logged
_Clock = Callable[[], datetime]
_CREATE_PROPOSAL: Final = "proposals.create"
_RESPONSE_LIFETIME: Final = timedelta(hours=24)  # for an Idempotency-Key


class Result(NamedTuple):
    """The result of a call: `value` is the record, the page or the plan; `event` the number of the last recorded event.

    `verb` is the verb that was carried out; `shows` and `recount` come from the outcome. `counted`: reads were counted as uses.
    `uses`: what a read was counted as.
    """

    value: Any
    event: int | None = None
    dry: bool = False
    replayed: bool = False
    verb: Verb | None = None
    change_set: int | None = None
    shows: tuple[Shown, ...] | None = None
    recount: Callable[[], int] | None = None
    counted: bool = False
    uses: tuple[Use, ...] = ()


class Gate:
    """Runs operations. A write takes these steps, any of which may refuse it.

    1. `submit`, in the caller's thread: the actor must have been granted the operation, and its input is parsed. A second call with
       the same Idempotency-Key is refused while the first is under way.
    2. `_submit`, before the writer's turn, for what takes long and no other write has to wait for: the operation's `preparation`
       (see there), and the digests of all passwords that are known by then. This is done in the call's lane, by `ahead.py`, which
       reads in transactions of its own. Most writes need none of it.
    3. The store's writer opens the transaction in which all the rest happens. What the actor may do is looked up again, and an
       earlier response with the same Idempotency-Key is returned (`_write`, `_write_once`).
    4. `_run_write`: passwords that could not be digested ahead are now, uses of limited grants are counted, and the operation is
       carried out. What it runs in turn is authorised and recorded in the same transaction (`calls.py`). If the key may only
       propose this, a proposal is made instead. A dry run is rolled back.
    5. The event is recorded, then the response for the Idempotency-Key is kept.
    6. The writer commits, and the future completes. If nothing has changed, the transaction is rolled back.

    A read is authorised and parsed, counted if its grant is limited, and carried out in a transaction that only reads.
    """

    def __init__(self, store: Store, catalogue: Catalogue, environment: Environment, clock: _Clock | None = None) -> None:
        self.store = store
        self.catalogue = catalogue
        self.calls = Calls(store, catalogue, environment, self.now)
        self.lanes = Lanes(on_idle=store.close_reader)
        self._clock = clock
        self._second = (0, "")
        self._running: set[tuple[int, str]] = set()
        self._guard = threading.Lock()

    @property
    def environment(self) -> Environment:
        """What operations need to know about the service."""
        return self.calls.environment

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
        """Return the time that was this long ago."""
        return shift_timestamp(self.now(), -span)

    def authorise(self, name: str, actor: Actor, target: int | None = None) -> Operation:
        """Return the operation if the actor may run it, on the record with the id `target`. Raises Refused."""
        return self.calls.authorise(name, actor, target)

    def follow(self, call: Call) -> Call:
        """Return the call that a forking operation leads to; other calls are returned unchanged. Raises Refused."""
        fork = self.calls.authorise(call.operation, call.actor, call.target).fork
        if fork is None:
            return call
        with self.store.reading(snapshot=False) as tx:
            call = call._replace(operation=fork.find(tx, call.target or 0, call.actor, self.now()))
        self.calls.authorise(call.operation, call.actor, call.target)
        return call

    def run(self, call: Call) -> Result:
        """Run an operation and wait for it. Raises Refused, in which case nothing has changed."""
        operation = self.calls.authorise(call.operation, call.actor, call.target)
        if operation.fork is not None:
            return self.run(self.follow(call))
        if operation.writes:
            return self.submit(call).result()
        given = operation.form.read(call.raw)
        with counting(self.store, call.actor) if call.actor.bounds else nullcontext(list[Use]()) as counted:
            if call.actor.bounds and not call.again:
                call = self.calls.count_read(operation, call, counted)
            if not (operation.snapshot or call.actor.bounds):
                return self.store.read_single(lambda tx: self._read(operation, call, given, tx, counted))
            with self.store.reading() as tx:
                return self._read(operation, call, given, tx, counted)

    def _read(self, operation: Operation, call: Call, given: Input, tx: Transaction, counted: list[Use]) -> Result:
        recorder = Recorder(tx, operation, call, self.now())
        recorder.counted = counted
        outcome = operation.carry_out(self.calls.build_context(operation, call, given, recorder))
        if call.actor.bounds:  # within bounds, the response also depends on the nodes above
            outcome = outcome._replace(shows=None, recount=None)
        recount = outcome.recount and partial(self.store.read_single, outcome.recount)
        verb, uses = outcome.verb or operation.verb, tuple(counted)
        return Result(outcome.result, verb=verb, shows=outcome.shows, recount=recount, uses=uses)

    def take_back(self, actor: Actor, uses: tuple[Use, ...]) -> Future[None]:
        """Subtract the uses that a read was counted as, since its result is withheld from the caller."""
        return self.store.write(lambda tx: take_off(tx, actor, uses), quiet=True)

    def submit(self, call: Call) -> Future[Result]:
        """Pass a write to the writer. The future completes once the change is durable or refused."""
        operation = self.calls.authorise(call.operation, call.actor, call.target)
        if operation.fork is not None:
            return self.submit(self.follow(call))
        given = operation.form.read(call.raw)
        if call.token is None or call.actor.id is None or given.get(DRY_RUN.name):
            return self._submit(operation, call, given, lambda call, given, tx: self._write(operation, call, given, tx))
        claim = (call.actor.id, call.token)
        with self._guard:
            if claim in self._running:
                raise refuse_running()
            self._running.add(claim)
        try:
            future = self._submit(operation, call, given, partial(self._write_once, operation, claim=claim))
        except BaseException:
            self._running.discard(claim)
            raise
        future.add_done_callback(lambda _: self._running.discard(claim))
        return future

    def is_running(self, call: Call) -> bool:
        """Return whether a write with the call's token is under way in this process."""
        return (call.actor.id, call.token) in self._running

    def find_response(self, call: Call) -> Any:
        """Return the response to an earlier call with the same token and content; None if there is none, or it was a proposal."""
        with self.store.reading() as tx:
            return find_same(tx, call.actor.id or 0, call, self.ago(_RESPONSE_LIFETIME))

    def _submit(
        self, operation: Operation, call: Call, given: Input, write: Callable[[Call, Input, Transaction], Result]
    ) -> Future[Result]:
        """Pass a write to the writer once digests replace its passwords. The operation itself refuses input with faults."""
        if given.faults:
            return self.store.write(lambda tx: write(call, given, tx))
        if operation.preparation.read_ahead is not None:
            ahead = self.lanes.submit(call.lane, lambda: read_ahead(self.calls, operation, call, given), refuse_full)
            return chain(ahead, lambda prepared: self.store.write(lambda tx: write(prepared, given, tx)))
        inner = find_password_calls(self.calls, operation, call, given)
        if not (inner or has_password(given.values) or operation.preparation.load):
            return self.store.write(lambda tx: write(call, given, tx))
        check_number(len(inner))
        digested = self.lanes.submit(call.lane, lambda: digest_passwords(self.calls, operation, call, given, inner))
        return chain(digested, lambda prepared: self.store.write(lambda tx: write(*prepared, tx)))

    def _write(self, operation: Operation, call: Call, given: Input, tx: Transaction) -> Result:
        return _end(self._run_write(operation, self.calls.renew(call, tx, self.now()), given, tx)[0])

    def _run_write(self, operation: Operation, call: Call, given: Input, tx: Transaction) -> tuple[Result, Any]:
        """Run a write; return its result, and the part that may be stored, which never includes a secret that is shown once."""
        began = time.monotonic()
        limit = None if call.actor.type == TERMINAL.type else self.environment.job_timeout
        tried = bool(given.get(DRY_RUN.name))
        recorder = Recorder(tx, operation, call, self.now(), dry=tried)
        step = tx.trial if tried else tx.savepoint if call.actor.proposes else nullcontext
        try:
            # By the time it turns out to need approval, something may be written already.
            with step(), tx.ending_by(None if limit is None else began + limit):
                given = given if given.faults else self.calls.put_digests(operation, call, given, recorder)
                outcome = self.calls.perform(operation, call, given, recorder)
        except ProposalNeeded:
            return self._propose(call, given, tx)
        except Overdue:
            raise refuse_overdue(operation.name, limit) from None
        finally:
            if (held := time.monotonic() - began) > _LONG:
                told = operation.name, held, call.request_id or "-"
                log.warning("%s held the write lock for %.1f s (request %s).", *told, extra=call.log_fields)
        counted = [] if recorder.dry and not operation.results_in else recorder.counted
        if tried:
            for use in counted:  # the caller has seen what was read, though all else is rolled back
                use.count_again(tx, call.actor)
            return Result(outcome.tried, dry=True, counted=bool(counted)), outcome.tried
        if call.check_plan is not None:
            call.check_plan(outcome.tried)
        event, verb = recorder.record(operation, call, outcome), outcome.verb or operation.verb
        counts = bool(counted or outcome.uses)
        return Result(outcome.result, event, verb=verb, change_set=recorder.change_set, counted=counts), outcome.kept

    def _propose(self, call: Call, given: Input, tx: Transaction) -> tuple[Result, Any]:
        """Make a proposal of a call that its key may only propose, or that runs an operation that the key may only propose."""
        creation = self.catalogue.find(_CREATE_PROPOSAL)
        raw: dict[str, Any] = {"operation": call.operation, "input": call.raw, "ifMatch": call.expected}
        raw |= {} if call.target is None else {"target": call.target}
        raw |= {} if call.change_set is None else {"changeSet": call.change_set}
        about = call._replace(operation=creation.name, raw=raw, target=None, expected=(), change_set=None, proposed=given)
        return self._run_write(creation, about, creation.form.read(raw), tx)

    def _write_once(self, operation: Operation, call: Call, given: Input, tx: Transaction, claim: tuple[int, str]) -> Result:
        call = self.calls.renew(call, tx, self.now())
        kept = find_kept(tx, *claim, call.fingerprint, since=self.ago(_RESPONSE_LIFETIME))
        if kept is not None:
            find_fate = partial(self._find_fate, tx, call)
            value, verb = replay(kept, operation, call.fingerprint, self.catalogue, find_fate)
            return Result(value, kept.event, replayed=True, verb=verb, change_set=kept.change_set)
        result, storable = self._run_write(operation, call, given, tx)
        done = WriteDone(result.verb, result.event, result.change_set)
        return result if keep(tx, call, operation, done, storable, self.now(), self.catalogue) else _end(result)

    def _find_fate(self, tx: Transaction, call: Call, created: Created) -> Fate | None:
        """Return what has become of a record that an earlier call created; None if the caller may no longer create one."""
        operation, now = self.catalogue.find(created.operation), self.now()
        if not call.actor.may_at(operation.name, now):
            return None
        if operation.find_fate is None:
            return Fate(is_there=True)
        context = self.calls.build_context(operation, call, Input({}), Recorder(tx, operation, call, now))
        return operation.find_fate(context, created.id)


def _end(result: Result) -> Result:
    if result.event is None and not result.counted:  # nothing was changed, so the data version stays, whatever shares the commit
        raise Rollback(result._replace(change_set=None))
    return result
