"""Which requests cause which events: a request to one operation may record events of others, which it needs or runs."""

from collections.abc import Iterable
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import Final

from trellis.core.operation import Operation

LONGEST_DELAY: Final = timedelta(minutes=1)  # between the arrival of a request and its execution
_PROPOSED: Final = "proposals.create"


def list_caused(operation: Operation, operations: Iterable[Operation]) -> list[str]:
    """Return the names of the operations whose events a request to one operation may record."""
    return [one.name for one in operations if _may_cause(operation, one.name)]


def list_causes(name: str, operations: Iterable[Operation]) -> list[str]:
    """Return the names of the operations to which a request may record an event of the operation with a name."""
    return [one.name for one in operations if _may_cause(one, name)]


def _may_cause(operation: Operation, name: str) -> bool:
    if not operation.writes:
        return False
    if name in (operation.name, *operation.access.needs):
        return True
    is_run = any(fnmatchcase(name, pattern) for pattern in operation.access.runs + operation.access.uses)
    return is_run or (name == _PROPOSED and operation.is_proposable)
