"""The gate of a service with traces, which also records spans of its work.

Each call has a span. Below it are a span for waiting for the writer, one for each transaction and one for its commit. There are no
spans for single statements: a write may have thousands, and a read takes less time than its span would.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from trellis.core.bounds import Use
from trellis.core.fields import Input
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call, Operation
from trellis.errors import Refused
from trellis.store.engine import Transaction
from trellis.traces import Traces

_GATE: Final = "gate"
_ENGINE: Final = "db.system.name"


class TracedGate(Gate):
    """A gate whose environment has traces. The `traceparent` of a call names the parent of its span."""

    @property
    def _traces(self) -> Traces:
        traces = self.environment.traces
        if traces is None:
            raise RuntimeError("this gate needs traces")
        return traces

    def run(self, call: Call) -> Result:
        """Run an operation and wait for its result, inside a span. Raises Refused, in which case nothing has changed."""
        operation = self.catalogue.find(call.operation)
        if operation.writes or operation.fork is not None:  # `submit` records the span
            return super().run(call)
        span = self._traces.begin(_GATE, call.traceparent, {"trellis.operation": call.operation})
        error: str | None = None
        try:
            return super().run(call._replace(traceparent=span.traceparent))
        except BaseException as raised:
            error = _name(raised)
            raise
        finally:
            span.end(error)

    def submit(self, call: Call) -> Future[Result]:
        """Pass a write to the writer, inside a span. The future completes once the change is durable or refused."""
        if self.catalogue.find(call.operation).fork is not None:
            return super().submit(call)
        span = self._traces.begin(_GATE, call.traceparent, {"trellis.operation": call.operation})
        try:
            future = super().submit(call._replace(traceparent=span.traceparent))
        except BaseException as raised:
            span.end(_name(raised))
            raise
        future.add_done_callback(lambda done: span.end(_find_error(done)))
        return future

    def _submit(
        self, operation: Operation, call: Call, given: Input, write: Callable[[Call, Input, Transaction], Result]
    ) -> Future[Result]:
        traces, parent, engine = self._traces, call.traceparent, self.store.engine.dialect.name
        handed, ended = time.time_ns(), 0

        def write_traced(call: Call, given: Input, tx: Transaction) -> Result:
            nonlocal ended
            began = time.time_ns()
            traces.record("writer wait", parent, handed, began)
            try:
                result = write(call, given, tx)
                ended = time.time_ns()
                return result
            finally:
                traces.record("transaction", parent, began, time.time_ns(), {_ENGINE: engine, "trellis.operation": operation.name})

        def record_commit(future: Future[Result]) -> None:
            if ended and not future.cancelled() and future.exception() is None:
                traces.record("commit", parent, ended, time.time_ns(), {_ENGINE: engine})

        future = super()._submit(operation, call, given, write_traced)
        future.add_done_callback(record_commit)
        return future

    def _read(self, operation: Operation, call: Call, given: Input, tx: Transaction, counted: list[Use]) -> Result:
        began = time.time_ns()
        try:
            return super()._read(operation, call, given, tx, counted)
        finally:
            facts = {_ENGINE: self.store.engine.dialect.name, "trellis.operation": operation.name}
            self._traces.record("transaction", call.traceparent, began, time.time_ns(), facts)


def _find_error(future: Future[Result]) -> str | None:
    if future.cancelled():
        return "withdrawn"
    return None if (error := future.exception()) is None else _name(error)


def _name(error: BaseException) -> str:
    """Return the name of an error for a span: the message of a refusal, or the class. The text could contain secrets."""
    return error.message if isinstance(error, Refused) else type(error).__name__
