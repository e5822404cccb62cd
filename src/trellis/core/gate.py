"""The gate: the one place where an operation is authorised, run, recorded and committed.

Every interface (REST, panel, command line) comes through here. Exceptions are bookkeeping, which is written in batches
outside of requests: the last use of a key, what keys use by day, the request log, the index for searching in names, the purging of
old requests, idempotent responses, events, snapshots and changes, the progress of webhook delivery and its log of attempts, and the
panel's sessions, sign-in attempts and one-time links.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from trellis.core.actor import Actor
from trellis.core.catalogue import Catalogue
from trellis.core.events import build_event
from trellis.core.fields import Input, format_timestamp
from trellis.core.operation import DRY_RUN, Access, Call, Context, Environment, Operation, Outcome
from trellis.errors import Refused
from trellis.store import events, idempotency
from trellis.store.engine import Rollback, Store, Transaction

_RESPONSE_LIFETIME: Final = timedelta(hours=24)  # for an Idempotency-Key


class Result(NamedTuple):
    """The result of a call: `value` is the record, the page or the plan; `event` the number of the recorded event."""

    value: Any
    event: int | None = None
    dry: bool = False
    replayed: bool = False


class Gate:
    """Authorise → validate → transaction → run → event → commit."""

    def __init__(
        self, store: Store, catalogue: Catalogue, environment: Environment, clock: Callable[[], datetime] | None = None
    ) -> None:
        self.store = store
        self.catalogue = catalogue
        self.environment = environment
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
        """Return the time that lies this far back."""
        return format_timestamp(datetime.fromisoformat(self.now()) - span)

    def authorise(self, name: str, actor: Actor) -> Operation:
        """Return the operation if the actor may run it. Raises Refused (NO_PERMISSION, UNKNOWN_OPERATION)."""
        operation = self.catalogue.find(name)
        if operation.fork is not None:
            if not any(actor.may(way) for way in operation.fork.to):
                raise _refuse_not_granted(actor, f"*.{operation.name.partition('.')[2]}", " or ".join(operation.fork.to))
        elif operation.access is not Access.ANY_KEY and not actor.may(name):
            raise _refuse_not_granted(actor, operation.name)
        return operation

    def follow(self, call: Call) -> Call:
        """Return the call that one comes to, where its operation is only an address that forks. Raises Refused."""
        fork = self.authorise(call.operation, call.actor).fork
        if fork is None:
            return call
        with self.store.reading(snapshot=False) as tx:
            call = call._replace(operation=fork.find(tx, call.target or 0))
        self.authorise(call.operation, call.actor)
        return call

    def run(self, call: Call) -> Result:
        """Run an operation and wait for it. Raises Refused, and then nothing was changed."""
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
        return Result(operation.run(Context(call, given, tx, self.now(), self.environment)).result)

    def submit(self, call: Call) -> Future[Result]:
        """Hand a writing operation to the writer. The future is done once the change is durable, or refused."""
        operation = self.authorise(call.operation, call.actor)
        if operation.fork is not None:
            return self.submit(self.follow(call))
        given = operation.form.read(call.raw)
        dry = bool(given.get(DRY_RUN.name))
        if call.token is None or call.actor.id is None or dry:
            return self.store.write(lambda tx: self._write(operation, call, given, tx))
        claim = (call.actor.id, call.token)
        with self._guard:
            if claim in self._running:
                raise Refused(
                    "IDEMPOTENCY_KEY_IN_USE",
                    "A request with this Idempotency-Key is still running. Wait for its answer, then send this one again.",
                )
            self._running.add(claim)
        future = self.store.write(lambda tx: self._write_once(operation, call, given, tx, claim))
        future.add_done_callback(lambda _: self._running.discard(claim))
        return future

    def _write(self, operation: Operation, call: Call, given: Input, tx: Transaction) -> Result:
        return self._run_write(operation, call, given, tx)[0]

    def _run_write(self, operation: Operation, call: Call, given: Input, tx: Transaction) -> tuple[Result, Any]:
        """Run a write; return its result, and what may be stored of it, which never includes a secret that is shown once."""
        now = self.now()
        outcome = operation.run(Context(call, given, tx, now, self.environment))
        kept = outcome.result if outcome.plan is None else outcome.plan
        if given.get(DRY_RUN.name):
            raise Rollback(Result(kept, dry=True))
        return Result(outcome.result, event=self._record(operation, call, outcome, tx, now)), kept

    def _record(self, operation: Operation, call: Call, outcome: Outcome, tx: Transaction, now: str) -> int | None:
        return events.append(tx, build_event(operation, call, outcome, now)) if outcome.happened else None

    def _write_once(self, operation: Operation, call: Call, given: Input, tx: Transaction, claim: tuple[int, str]) -> Result:
        key, token = claim
        kept = idempotency.find_response(tx, key, token)
        if kept is not None and kept[2] >= self.ago(_RESPONSE_LIFETIME):
            if kept[0] != call.fingerprint:
                raise Refused(
                    "IDEMPOTENCY_KEY_REUSED",
                    "This Idempotency-Key came with another request within the last 24 hours. Use a new key for a new request.",
                )
            return Result(kept[1], replayed=True)
        result, storable = self._run_write(operation, call, given, tx)
        idempotency.save_response(tx, key, token, call.fingerprint, storable, self.now())
        return result


def _refuse_not_granted(actor: Actor, missing: str, named: str = "") -> Refused:
    named = named or missing
    typed = f"'{missing}'" if "*" in missing else missing
    return Refused(
        "NO_PERMISSION",
        f"The key '{actor.name}' has not been granted {named}. "
        f"An administrator can tick {named} on the key's page, or run: trellis keys grant {actor.id} {typed}",
        facts={"missingOperation": missing},
    )
