"""Running calls inside a transaction: within what their actor may do, with digests in place of passwords, recording events."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial

from trellis.core.actor import Actor
from trellis.core.bounds import Use, judge_calls, judge_end, record_uses, refuse_not_granted
from trellis.core.catalogue import Catalogue
from trellis.core.events import Recorder
from trellis.core.fields import Input
from trellis.core.operation import Call, Context, Environment, OneByOne, Operation, Outcome, conclude, judge_role, renew_actor
from trellis.core.passwords import check_number, compare, find_digest, has_password, list_passwords
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store.engine import Store, Transaction


class Calls:
    """Runs calls, and the calls that they run in turn, in the transactions that the gate opens."""

    def __init__(self, store: Store, catalogue: Catalogue, environment: Environment, now: Callable[[], str]) -> None:
        self.store = store
        self.catalogue = catalogue
        self.environment = environment
        self.now = now

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
        elif not operation.access.is_open:
            for needed in operation.needed:
                if not actor.may(needed):
                    raise refuse_not_granted(actor, needed, can_be=needed in self.environment.grantable)
                if actor.bounds:
                    judge_end(actor, needed, self.now())
        return operation

    def count_read(self, operation: Operation, call: Call, counted: list[Use]) -> Call:
        """Count a read as a use of the grants that it needs, and return the renewed call. Raises Refused (GRANT_USED_UP)."""
        if not (grants := [name for name in operation.grants if call.actor.counts(name)]):
            return call

        def count(tx: Transaction) -> tuple[Call, list[Use]]:
            renewed = self.renew(call, tx, now := self.now())
            return renewed, record_uses(tx, renewed.actor, grants, now)

        call, uses = self.store.write(count, quiet=True).result()
        counted += uses
        return call

    def renew(self, call: Call, tx: Transaction, now: str) -> Call:
        """Return a call with the current rights of its actor, which may have changed while it waited. Raises Refused."""
        if (actor := renew_actor(tx, call, now, self.environment.permits)) is call.actor:
            return call
        self.authorise(call.operation, actor, call.target)
        return call._replace(actor=actor)

    def perform(self, operation: Operation, call: Call, given: Input, recorder: Recorder) -> Outcome:
        """Run an operation inside a write, within the bounds of its grant. Raises Refused, ProposalNeeded."""
        context = self.build_context(operation, call, given, recorder)
        more = operation.access.needs_with(given)
        for name in more:
            self.authorise(name, call.actor)
        if not call.actor.bounds:
            return operation.carry_out(context)
        uses: list[Use] = []
        if recorder.reads:
            self.count_read(operation, call, recorder.counted)
        else:
            approved = recorder.find_approval(operation)
            uses = judge_calls(recorder.tx, call.actor, (*operation.judged_by, *more), 1, recorder.now, approved=approved)
            recorder.counted += [] if operation.writes else uses
        outcome = operation.carry_out(context)
        conclude(recorder.tx, operation, call.actor, uses, (outcome,), more)
        return outcome

    def build_context(self, operation: Operation, call: Call, given: Input, recorder: Recorder) -> Context:
        run, run_many = partial(self._run_inner, recorder), partial(self._run_many_inner, recorder)
        run_apart = partial(self._run_apart, recorder)
        return Context(call, given, recorder.tx, recorder.now, self.environment, run, run_many, run_apart, operation.grants)

    def _run_inner(self, recorder: Recorder, call: Call, given: Input | None = None) -> Outcome:
        """Run a call as part of another one, and record its event. `given` is its input if that has been read before.

        Raises Refused, which refuses the outer call as a whole.
        """
        operation = self.authorise(call.operation, call.actor, call.target)
        if operation.fork is not None:
            name = operation.fork.find(recorder.tx, call.target or 0, call.actor, recorder.now)
            return self._run_inner(recorder, call._replace(operation=name))
        given = operation.form.read(call.raw) if given is None else given
        given = given if given.faults else self.put_digests(operation, call, given, recorder)
        recorder = recorder.build_trial(operation, call) if operation.is_plan else recorder
        with recorder.tx.trial() if operation.is_plan else nullcontext():
            outcome = self.perform(operation, call, given, recorder)
        event = recorder.record(operation, call, outcome) if operation.writes else None
        return outcome._replace(event=event, verb=outcome.verb or operation.verb)

    def _run_apart(self, outer: Recorder, call: Call, given: Input | None) -> Outcome:
        """Run a call that needs somebody's approval, to try it or once it is approved. Its events are those of a separate call."""
        recorder = Recorder(outer.tx, self.catalogue.find(call.operation), call, outer.now, apart=True)
        return self._run_inner(recorder, call, given)._replace(uses=tuple(recorder.counted))

    def _run_many_inner(self, recorder: Recorder, calls: Sequence[Call]) -> list[Outcome]:
        """Run calls of one operation together as part of another one, and record their events. Raises Refused, OneByOne."""
        operation = self.authorise(calls[0].operation, calls[0].actor, calls[0].target)
        if operation.together is None or any(call.operation != operation.name for call in calls):
            raise LookupError(f"{operation.name} is not run together with others")
        contexts: list[Context] = []
        for call in calls:
            given = operation.form.read(call.raw)
            given = given if given.faults else self.put_digests(operation, call, given, recorder)
            if operation.access.needs_with(given):
                raise OneByOne
            contexts.append(self.build_context(operation, call, given, recorder))
        if not calls[0].actor.bounds:
            outcomes = operation.together.run(contexts)
        else:
            approved = recorder.find_approval(operation)
            uses = judge_calls(recorder.tx, calls[0].actor, operation.judged_by, len(calls), recorder.now, approved=approved)
            outcomes = operation.together.run(contexts)
            conclude(recorder.tx, operation, calls[0].actor, uses, outcomes)
        seqs = recorder.record_many(operation, calls, outcomes)
        return [one._replace(event=seq) for one, seq in zip(outcomes, seqs, strict=True)]

    def judge(self, operation: Operation, call: Call, given: Input, recorder: Recorder) -> Mapping[str, str | None]:
        """Let the operation judge a call with passwords; return the digests to compare them with, by field. Raises Refused."""
        if not has_password(given.values):
            return {}
        kept = operation.preparation.judge(self.build_context(operation, call, given, recorder))
        return kept if recorder.compares else {}

    def put_digests(self, operation: Operation, call: Call, given: Input, recorder: Recorder) -> Input:
        """Return an input with digests in place of its passwords: digests computed before, or computed now."""
        digests: dict[str, str] = {}
        for name, pair in list_passwords(given.values, self.judge(operation, call, given, recorder)).items():
            recorder.check_password()
            known = {**call.digests, **recorder.digests}
            if (digest := find_digest(known, *pair)) is None:
                check_number(len(recorder.digests) + 1)
                digest = recorder.digests[pair] = compare(known, *pair)
            digests[name] = digest
        return Input({**given.values, **digests}) if digests else given
