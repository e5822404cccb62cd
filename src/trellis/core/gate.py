"""The gate: the one place where an operation is authorised, run, recorded and committed.

Every interface (REST, panel, command line) comes through here. The only exception is bookkeeping, which is written in batches
outside of requests: the last use of a key, the daily usage of keys, the request log, the search index, the purging of old requests,
idempotent responses, events, snapshots and changes, the progress of webhook delivery and its log of attempts, the uses of limited
grants, and the panel's sessions, sign-in attempts, alarms that were read, zones, themes and languages, and one-time links.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from trellis.core.actor import TERMINAL, Actor
from trellis.core.bounds import ProposalNeeded, Use, count_uses, counting, judge_calls, judge_end, refuse_not_granted
from trellis.core.catalogue import Catalogue
from trellis.core.events import Overdue, Recorder, refuse_overdue
from trellis.core.fields import Input, format_timestamp, shift_timestamp
from trellis.core.idempotency import Created, find_kept, find_same, keep, refuse_running, replay
from trellis.core.operation import DRY_RUN, Call, Context, Environment, Operation, Outcome, Trace, conclude, judge_role, renew_actor
from trellis.core.passwords import Lanes, Plain, chain, check_number, compare, find_digest, has_password, list_passwords
from trellis.core.verbs import Verb
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.engine import Rollback, Shown, Store, Transaction, refuse_full

log = logging.getLogger(__name__)

_LONG: Final = 2.0  # seconds that a write may keep others waiting before it is logged
_Clock = Callable[[], datetime]
_CREATE_PROPOSAL: Final = "proposals.create"
_RESPONSE_LIFETIME: Final = timedelta(hours=24)  # for an Idempotency-Key


class Result(NamedTuple):
    """The result of a call: `value` is the record, the page or the plan; `event` the number of the last recorded event.

    `verb` is the verb that was carried out; `shows` and `recount` come from the outcome. `counted`: reads were counted as uses.
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


class Gate:
    """Authorise → validate → digest passwords → transaction → run → event → commit."""

    def __init__(self, store: Store, catalogue: Catalogue, environment: Environment, clock: _Clock | None = None) -> None:
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
        """Return the time that was this long ago."""
        return shift_timestamp(self.now(), -span)

    def authorise(self, name: str, actor: Actor, target: int | None = None) -> Operation:
        """Return the operation if the actor may run it, on the record with the id `target`.

        Raises Refused (NO_PERMISSION, ROLE_NEEDED, GRANT_ENDED, NOT_FOR_AGENTS, UNKNOWN_OPERATION).
        """
        operation = self.catalogue.find(name)
        if actor.permit is not None:
            judge_role(operation, actor, actor.permit, target, self.environment.permits)
            return operation
        if actor.is_agent and operation.shows_secret:
            detail = say("The response to {name} contains a secret, which agents are not shown. Use the API.", name=name)
            raise Refused("NOT_FOR_AGENTS", detail)
        if operation.fork is not None:
            if not any(actor.may(name) for name in operation.fork.to):
                raise refuse_not_granted(actor, f"*.{operation.name.partition('.')[2]}", " or ".join(operation.fork.to))
        elif not operation.is_open:
            for needed in operation.needs or (name,):
                if not actor.may(needed):
                    raise refuse_not_granted(actor, needed)
                if actor.bounds:
                    judge_end(actor, needed, self.now())
        return operation

    def follow(self, call: Call) -> Call:
        """Return the call that a forking operation leads to; other calls are returned unchanged. Raises Refused."""
        fork = self.authorise(call.operation, call.actor, call.target).fork
        if fork is None:
            return call
        with self.store.reading(snapshot=False) as tx:
            call = call._replace(operation=fork.find(tx, call.target or 0, call.actor))
        self.authorise(call.operation, call.actor, call.target)
        return call

    def run(self, call: Call) -> Result:
        """Run an operation and wait for it. Raises Refused, in which case nothing has changed."""
        operation = self.authorise(call.operation, call.actor, call.target)
        if operation.fork is not None:
            return self.run(self.follow(call))
        if operation.writes:
            return self.submit(call).result()
        given = operation.form.read(call.raw)
        with counting(self.store, call.actor) if call.actor.bounds else nullcontext(list[Use]()) as counted:
            if call.actor.bounds and not call.again:
                call = self._count_read(operation, call, counted)
            if not (operation.snapshot or call.actor.bounds):
                return self.store.read_single(lambda tx: self._read(operation, call, given, tx, counted))
            with self.store.reading() as tx:
                return self._read(operation, call, given, tx, counted)

    def _count_read(self, operation: Operation, call: Call, counted: list[Use]) -> Call:
        """Count a read as a use of the grants that it needs, and return the renewed call. Raises Refused (GRANT_USED_UP)."""
        if not (grants := [name for name in operation.grants if call.actor.counts(name)]):
            return call

        def count(tx: Transaction) -> tuple[Call, list[Use]]:
            renewed = self._renew(call, tx, now := self.now())
            return renewed, count_uses(tx, renewed.actor, grants, now)

        call, uses = self.store.write(count, quiet=True).result()
        counted += uses
        return call

    def _renew(self, call: Call, tx: Transaction, now: str) -> Call:
        """Return a call with what its actor may do now that the turn of the call has come. Raises Refused."""
        if (actor := renew_actor(tx, call, now, self.environment.permits)) is call.actor:
            return call
        self.authorise(call.operation, actor, call.target)
        return call._replace(actor=actor)

    def _read(self, operation: Operation, call: Call, given: Input, tx: Transaction, counted: list[Use]) -> Result:
        now = self.now()
        recorder = Recorder(tx, operation, call, now)
        recorder.counted = counted
        outcome = operation.carry_out(self._build_context(operation, call, given, tx, now, recorder))
        if call.actor.bounds:  # within bounds, the response also depends on the nodes above
            outcome = outcome._replace(shows=None, recount=None)
        recount = outcome.recount and partial(self.store.read_single, outcome.recount)
        return Result(outcome.result, verb=outcome.verb or operation.verb, shows=outcome.shows, recount=recount)

    def _perform(self, operation: Operation, call: Call, given: Input, tx: Transaction, now: str, recorder: Recorder) -> Outcome:
        """Run an operation inside a write, within the bounds of its grant. Raises Refused, ProposalNeeded."""
        context = self._build_context(operation, call._replace(check_time=recorder.check_time), given, tx, now, recorder)
        if not call.actor.bounds:
            return operation.carry_out(context)
        uses: list[Use] = []
        if recorder.reads:
            self._count_read(operation, call, recorder.counted)
        else:
            uses = judge_calls(tx, call.actor, operation.judged_by, 1, now, approved=recorder.find_approval(operation))
            recorder.counted += [] if operation.writes else uses
        outcome = operation.carry_out(context)
        conclude(tx, operation, call.actor, uses, (outcome,))
        return outcome

    def _build_context(
        self, operation: Operation, call: Call, given: Input, tx: Transaction, now: str, recorder: Recorder
    ) -> Context:
        run, run_many = partial(self._run_within, tx, now, recorder), partial(self._run_many_within, tx, now, recorder)
        run_apart = partial(self._run_apart, tx, now, recorder.until)
        return Context(call, given, tx, now, self.environment, run, run_many, run_apart, operation.grants)

    def _run_within(self, tx: Transaction, now: str, recorder: Recorder, call: Call, given: Input | None = None) -> Outcome:
        """Run a call as part of another one, and record its event. `given` is its input if that has been read before.

        Raises Refused, which refuses the outer call as a whole.
        """
        recorder.check_time()
        operation = self.authorise(call.operation, call.actor, call.target)
        if operation.fork is not None:
            name = operation.fork.find(tx, call.target or 0, call.actor)
            return self._run_within(tx, now, recorder, call._replace(operation=name))
        given = operation.form.read(call.raw) if given is None else given
        given = given if given.faults else self._put_digests(tx, operation, call, given, recorder)
        recorder = recorder.build_trial(operation, call) if operation.is_plan else recorder
        with tx.trial() if operation.is_plan else nullcontext():
            outcome = self._perform(operation, call, given, tx, now, recorder)
        event = recorder.record(operation, call, outcome) if operation.writes else None
        return outcome._replace(event=event, verb=outcome.verb or operation.verb)

    def _run_apart(self, tx: Transaction, now: str, until: float | None, call: Call, given: Input | None) -> Outcome:
        """Run a call that needs somebody's approval, to try it or once it is approved. Its events are those of a separate call."""
        recorder = Recorder(tx, self.catalogue.find(call.operation), call, now, until, apart=True)
        return self._run_within(tx, now, recorder, call, given)._replace(uses=tuple(recorder.counted))

    def _run_many_within(self, tx: Transaction, now: str, recorder: Recorder, calls: Sequence[Call]) -> list[Outcome]:
        """Run calls of one operation together as part of another one, and record their events. Raises Refused."""
        recorder.check_time()
        operation = self.authorise(calls[0].operation, calls[0].actor, calls[0].target)
        if operation.run_many is None or any(call.operation != operation.name for call in calls):
            raise LookupError(f"{operation.name} is not run together with others")
        contexts: list[Context] = []
        for call in calls:
            given = operation.form.read(call.raw)
            given = given if given.faults else self._put_digests(tx, operation, call, given, recorder)
            contexts.append(self._build_context(operation, call, given, tx, now, recorder))
        if not calls[0].actor.bounds:
            outcomes = operation.run_many(contexts)
        else:
            approved = recorder.find_approval(operation)
            uses = judge_calls(tx, calls[0].actor, operation.judged_by, len(calls), now, approved=approved)
            outcomes = operation.run_many(contexts)
            conclude(tx, operation, calls[0].actor, uses, outcomes)
        seqs = recorder.record_many(operation, calls, outcomes)
        return [one._replace(event=seq) for one, seq in zip(outcomes, seqs, strict=True)]

    def submit(self, call: Call) -> Future[Result]:
        """Pass a write to the writer. The future completes once the change is durable or refused."""
        operation = self.authorise(call.operation, call.actor, call.target)
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
        if operation.read_ahead is not None and not given.faults:
            ahead = self.lanes.submit(call.lane, lambda: self._read_ahead(operation, call, given), refuse_full)
            return chain(ahead, lambda prepared: self.store.write(lambda tx: write(prepared, given, tx)))
        inner = [] if given.faults else [one for one in self._list_inner(operation, call, given) if self._takes_password(one)]
        if given.faults or not (inner or has_password(given.values)):
            return self.store.write(lambda tx: write(call, given, tx))
        check_number(len(inner))
        digested = self.lanes.submit(call.lane, lambda: self._digest(operation, call, given, inner))
        return chain(digested, lambda prepared: self.store.write(lambda tx: write(*prepared, tx)))

    def _read_ahead(self, operation: Operation, call: Call, given: Input) -> Call:
        """Read the input of the call that this call will run: a large document takes long, and other writes must not wait."""
        now = self.now()
        with self.store.reading() as tx:
            context = self._build_context(operation, call, given, tx, now, Recorder(tx, operation, call, now))
            named = None if operation.read_ahead is None else operation.read_ahead(context)
        return call if named is None else call._replace(proposed=self.catalogue.find(named[0]).form.read(named[1]))

    def _list_inner(self, operation: Operation, call: Call, given: Input) -> Iterator[Call]:
        """Yield the calls that a call will run, and the calls that those will run in turn, as far as they are known in advance."""
        for one in operation.calls(call, given):
            yield one
            with suppress(Refused):
                if (inner := self.authorise(one.operation, one.actor, one.target)).runs_others:
                    yield from self._list_inner(inner, one, inner.form.read(one.raw))

    def _takes_password(self, call: Call) -> bool:
        return call.operation in self.catalogue and not self.catalogue.find(call.operation).secrets.isdisjoint(call.raw)

    def _digest(self, operation: Operation, call: Call, given: Input, inner: list[Call]) -> tuple[Call, Input]:
        """Let the operation judge the call, then compute the digests of its passwords and of those in inner calls.

        They replace its passwords, except those to compare with a stored digest: it may change before `_put_digests` replaces them.
        """
        with self.store.reading() as tx:
            kept = self._judge(tx, operation, call, given)
            own = list_passwords(given.values, kept)
            wanted = [*own.values(), *(pair for one in inner for pair in self._find_inner_passwords(tx, one))]
        digests = {(plain, kept): plain.digest(kept) for plain, kept in dict.fromkeys(wanted)}
        return call._replace(digests=digests), Input({**given.values, **{n: digests[p] for n, p in own.items() if n not in kept}})

    def _judge(self, tx: Transaction, operation: Operation, call: Call, given: Input) -> Mapping[str, str | None]:
        """Let the operation judge a call with passwords; return the digests that are stored now, by field. Raises Refused."""
        if not has_password(given.values):
            return {}
        recorder = Recorder(tx, operation, call, now := self.now())
        return operation.judge(self._build_context(operation, call, given, tx, now, recorder))

    def _find_inner_passwords(self, tx: Transaction, call: Call) -> Iterable[tuple[Plain, str | None]]:
        """Return the passwords in an inner call, as far as the call is known yet; none if it will be refused."""
        with suppress(Refused):
            operation = self.authorise(call.operation, call.actor, call.target)
            given = operation.form.read(call.raw)
            is_new = operation.has_target and call.target is None  # a record that the outer call will create
            return list_passwords(given.values, {} if is_new else self._judge(tx, operation, call, given)).values()
        return ()

    def _put_digests(self, tx: Transaction, operation: Operation, call: Call, given: Input, recorder: Recorder) -> Input:
        """Return an input with digests in place of its passwords: digests computed before, or computed now."""
        digests: dict[str, str] = {}
        for name, pair in list_passwords(given.values, self._judge(tx, operation, call, given)).items():
            recorder.check_password()
            known = {**call.digests, **recorder.digests}
            if (digest := find_digest(known, *pair)) is None:
                check_number(len(recorder.digests) + 1)
                digest = recorder.digests[pair] = compare(known, *pair)
            digests[name] = digest
        return Input({**given.values, **digests}) if digests else given

    def _write(self, operation: Operation, call: Call, given: Input, tx: Transaction) -> Result:
        return _end(self._run_write(operation, self._renew(call, tx, self.now()), given, tx)[0])

    def _run_write(self, operation: Operation, call: Call, given: Input, tx: Transaction) -> tuple[Result, Any]:
        """Run a write; return its result, and the part that may be stored, which never includes a secret that is shown once."""
        now, began = self.now(), time.monotonic()
        limit = None if call.actor.type == TERMINAL.type else self.environment.job_timeout
        tried = bool(given.get(DRY_RUN.name))
        recorder = Recorder(tx, operation, call, now, None if limit is None else began + limit, dry=operation.is_plan or tried)
        step = tx.trial if tried else tx.savepoint if call.actor.proposes else nullcontext
        try:
            with step():  # by the time it turns out to need approval, something may be written already
                given = given if given.faults else self._put_digests(tx, operation, call, given, recorder)
                outcome = self._perform(operation, call, given, tx, now, recorder)
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
        call = self._renew(call, tx, self.now())
        kept = find_kept(tx, *claim, since=self.ago(_RESPONSE_LIFETIME))
        if kept is not None:
            trace = partial(self._trace, tx, call)
            value, verb = replay(kept, operation, call.fingerprint, self.catalogue, trace)
            return Result(value, replayed=True, verb=verb)
        result, storable = self._run_write(operation, call, given, tx)
        return result if keep(tx, call, operation, result.verb, storable, self.now(), self.catalogue) else _end(result)

    def _trace(self, tx: Transaction, call: Call, created: Created) -> Trace | None:
        """Return what has become of a record that an earlier call created; None if the caller may no longer create one."""
        operation, now = self.catalogue.find(created.operation), self.now()
        if not call.actor.may(operation.name):
            return None
        if operation.trace is None:
            return Trace(is_there=True)
        recorder = Recorder(tx, operation, call, now)
        return operation.trace(self._build_context(operation, call, Input({}), tx, now, recorder), created.id)


def _end(result: Result) -> Result:
    if result.event is None and not result.counted:  # nothing was changed, so the data version stays, whatever shares the commit
        raise Rollback(result._replace(change_set=None))
    return result
