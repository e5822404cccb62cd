"""The refusals that an operation may answer with over HTTP, each as an example: for the OpenAPI document and the reference."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from trellis.core.operation import Access, Operation
from trellis.errors import Fault, Refused, refuse_faults
from trellis.refusals import REFUSALS, Refusal, Scope

_APPLIES: Final[Mapping[Scope, Callable[[Operation], bool]]] = {
    Scope.EVERY: lambda _: True,
    Scope.GRANTED: lambda operation: operation.access in {Access.GRANTED, Access.FORKED},
    Scope.WRITES: lambda operation: operation.writes,
    Scope.CONDITIONAL: lambda operation: operation.verb is not None and operation.verb.if_match,
    Scope.IDEMPOTENT: lambda operation: operation.verb is not None and operation.verb.idempotency_key,
    Scope.DECLARED: lambda _: False,
    Scope.NONE: lambda _: False,
}


def is_shared(refusal: Refusal) -> bool:
    """Say whether a refusal is the same for every operation that answers with it, down to the example."""
    return refusal.scope not in {Scope.GRANTED, Scope.DECLARED} and not refusal.at_fault


def refusals_of(operation: Operation) -> tuple[Refused, ...]:
    """Give every refusal that an operation may answer with over REST, by status and code, each as an example of itself."""
    codes = {message: refusal.code for message, refusal in REFUSALS.items() if _APPLIES[refusal.scope](operation)}
    codes |= {field.missing: "" for field in operation.takes if field.required}
    tried = _tried(operation)
    codes |= {message: fault.code for message, fault in tried.items()}
    codes |= dict(operation.refusals)
    found = [_example(REFUSALS[message], code, operation, tried.get(message)) for message, code in codes.items()]
    return tuple(sorted(found, key=lambda refused: (refused.status, refused.code)))


# Values of every JSON type, of which each field's type refuses some: it then says under which message it does.
_PROBES: Final[tuple[Any, ...]] = ("?", "", "\0", -2, 10**30, 0.5, True, None, [[]], {"?": 1})


def _tried(operation: Operation) -> dict[str, Fault]:
    """Find out by trial under which messages an operation refuses names and values; give the first fault of each."""
    found: dict[str, Fault] = {}
    misspelt = next((field.name for field in operation.takes if not field.read_only), "name") + "s"
    for name, value in ((misspelt, 1), *((field.name, probe) for probe in _PROBES for field in operation.takes)):
        for fault in operation.form.read({name: value}).faults:
            found.setdefault(fault.message, fault)
    return found


def _example(refusal: Refusal, code: str, operation: Operation, tried: Fault | None) -> Refused:
    if tried is not None:
        return refuse_faults((tried,))
    about = {"operation": operation.name, "singular": operation.singular}
    detail = refusal.example.format_map(about) or f"{refusal.title}."
    faults = (Fault(refusal.at_fault, refusal.message, detail, code),) if refusal.at_fault else ()
    facts = {member.name: member.example for member in refusal.members if member.example is not None}
    facts |= {name: value.format_map(about) for name, value in facts.items() if isinstance(value, str)}
    return Refused(refusal.message, detail, code, faults, facts)
