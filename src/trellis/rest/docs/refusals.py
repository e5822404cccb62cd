"""The refusals that an operation can return over HTTP, with examples, for the OpenAPI document and the reference."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from trellis.core.operation import Basis, Operation
from trellis.errors import Fault, Refused, refuse_faults
from trellis.refusals import REFUSALS, Refusal, Scope

_APPLIES: Final[Mapping[Scope, Callable[[Operation], bool]]] = {
    Scope.EVERY: lambda _: True,
    Scope.GRANTED: lambda operation: bool(operation.grants) or operation.access.basis is Basis.INNER,
    Scope.WRITES: lambda operation: operation.writes,
    Scope.CONDITIONAL: lambda operation: operation.is_conditional,
    Scope.IDEMPOTENT: lambda operation: operation.verb is not None and operation.verb.idempotency_key,
    Scope.PROPOSABLE: lambda operation: operation.is_proposable,
    Scope.DECLARED: lambda _: False,
    Scope.NONE: lambda _: False,
}


def is_shared(refused: Refused) -> bool:
    """Return whether a refusal, including its example, is the same for every operation that can return it."""
    refusal = refused.refusal
    return refusal.scope not in {Scope.GRANTED, Scope.DECLARED} and not refusal.at_fault


@lru_cache(1_000)  # operations: the document and the reference ask for each several times
def refusals_of(operation: Operation) -> tuple[Refused, ...]:
    """Return every refusal that an operation can return over REST, with an example, sorted by status and code."""
    codes = {message: refusal.code for message, refusal in REFUSALS.items() if _APPLIES[refusal.scope](operation)}
    codes |= {field.missing: "" for field in operation.takes if field.required}
    tried = _find_faults(operation)
    codes |= {message: fault.code for message, fault in tried.items()}
    codes |= dict(operation.refusals)
    found = [_example(REFUSALS[message], code, operation, tried.get(message)) for message, code in codes.items()]
    return tuple(sorted(found, key=lambda refused: (refused.status, refused.code)))


# Values of every JSON type. Each field's type refuses some of them, which shows the message that it uses.
_PROBES: Final[tuple[Any, ...]] = ("?", "", "\0", -2, 10**30, 0.5, True, None, [[]], {"?": 1})


def _find_faults(operation: Operation) -> dict[str, Fault]:
    """Find by trial the messages with which an operation refuses names and values; return the first fault for each."""
    found: dict[str, Fault] = {}
    misspelt = next((field.name for field in operation.takes if not field.read_only), "name") + "s"
    for name, value in ((misspelt, 1), *((field.name, probe) for probe in _PROBES for field in operation.takes)):
        for fault in operation.form.read({name: value}).faults:
            found.setdefault(fault.message, fault)
    return found


def _example(refusal: Refusal, code: str, operation: Operation, tried: Fault | None) -> Refused:
    if tried is not None:
        return refuse_faults(tried)
    about = {"operation": operation.name, "singular": operation.singular}
    detail = refusal.example.format_map(about) or f"{refusal.title}."
    faults = (Fault(refusal.at_fault, refusal.message, detail, code),) if refusal.at_fault else ()
    facts = {member.name: member.example for member in refusal.members if member.example is not None}
    facts |= {name: value.format_map(about) for name, value in facts.items() if isinstance(value, str)}
    return Refused(refusal.message, detail, code, faults, facts)
