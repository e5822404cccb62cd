"""Prepares a write before its turn with the writer comes, so that other writes do not wait for the preparation."""

from collections.abc import Iterable, Iterator
from contextlib import suppress

from trellis.core.events import Recorder
from trellis.core.fields import Input
from trellis.core.gate.calls import Calls
from trellis.core.operation import DRY_RUN, Call, Operation
from trellis.core.passwords import Plain, list_passwords
from trellis.errors import Refused


def read_ahead(calls: Calls, operation: Operation, call: Call, given: Input) -> Call:
    """Read the input of the call that this call will run: a large document takes long, and other writes must not wait."""
    with calls.store.reading() as tx:
        context = calls.build_context(operation, call, given, Recorder(tx, operation, call, calls.now()))
        named = None if operation.preparation.read_ahead is None else operation.preparation.read_ahead(context)
    return call if named is None else call._replace(proposed=calls.catalogue.find(named[0]).form.read(named[1]))


def find_password_calls(calls: Calls, operation: Operation, call: Call, given: Input) -> list[Call]:
    """Return the calls that take passwords, among those that a call will run and those that they will run in turn."""
    known, inner = calls.catalogue, _list_inner(calls, operation, call, given)
    return [one for one in inner if one.operation in known and not known.find(one.operation).secrets.isdisjoint(one.raw)]


def _list_inner(calls: Calls, operation: Operation, call: Call, given: Input) -> Iterator[Call]:
    """Yield the calls that a call will run, and the calls that those will run in turn, as far as they are known in advance."""
    for one in operation.preparation.calls(call, given):
        yield one
        with suppress(Refused):
            if (inner := calls.authorise(one.operation, one.actor, one.target)).runs_others:
                yield from _list_inner(calls, inner, one, inner.form.read(one.raw))


def digest_passwords(calls: Calls, operation: Operation, call: Call, given: Input, inner: list[Call]) -> tuple[Call, Input]:
    """Let the operation prepare and judge the call, then compute the digests of its passwords and of those in inner calls.

    They replace its passwords, except those to compare with a stored digest: it may change before `put_digests` replaces them.
    """
    if operation.preparation.load is not None:
        operation.preparation.load()
    with calls.store.reading() as tx:
        recorder = Recorder(tx, operation, call, calls.now(), dry=bool(given.get(DRY_RUN.name)))
        kept = calls.judge(operation, call, given, recorder)
        own = list_passwords(given.values, kept)
        wanted = [*own.values(), *(pair for one in inner for pair in _find_inner_passwords(calls, one, recorder))]
    digests = {(plain, kept): plain.digest(kept) for plain, kept in dict.fromkeys(wanted)}
    return call._replace(digests=digests), Input({**given.values, **{n: digests[p] for n, p in own.items() if n not in kept}})


def _find_inner_passwords(calls: Calls, call: Call, recorder: Recorder) -> Iterable[tuple[Plain, str | None]]:
    """Return the passwords in an inner call, as far as it is known in advance; none if the call will be refused."""
    with suppress(Refused):
        operation = calls.authorise(call.operation, call.actor, call.target)
        given = operation.form.read(call.raw)
        is_new = operation.has_target and call.target is None  # a record that the outer call will create
        return list_passwords(given.values, {} if is_new else calls.judge(operation, call, given, recorder)).values()
    return ()
