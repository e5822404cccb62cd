"""The tools: one for each operation that agents can be given, described once from the catalogue."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Final

from trellis.core.actor import Actor
from trellis.core.catalogue import Catalogue
from trellis.core.gate import Gate
from trellis.core.operation import Operation
from trellis.core.version import encode_json
from trellis.errors import Refused
from trellis.mcp.schemas import build_input_schema, build_output_schema

_MANY: Final = 5  # a tool that has so many arguments in common with another refers to it


class Tools:
    """The tools by name, in the order of the catalogue."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._catalogue = gate.catalogue

    def find(self, name: object) -> Operation | None:
        """Return the operation behind a tool; None if there is no such tool."""
        return self._operations.get(name) if isinstance(name, str) else None

    @cached_property
    def most_bytes(self) -> int:
        """The most bytes that the body of a call may have, whatever the tool."""
        return max(operation.most_bytes for operation in self._operations.values())

    def find_granted(self, actor: Actor) -> Iterator[str]:
        """Return the names of the tools that a key may call, and has a use for."""
        for name, operation in self._operations.items():
            with suppress(Refused):
                self._gate.authorise(name, actor)
                if self._is_of_use(operation, actor):
                    yield name

    def _is_of_use(self, operation: Operation, actor: Actor) -> bool:
        if operation.access.for_proposers:
            return actor.proposes
        return not operation.access.runs or any(actor.may(one) for one in self._inner[operation.name])

    def encode(self, actor: Actor) -> bytes:
        """Return the list of the tools that a key may call, as JSON."""
        return b"[" + b",".join([self._encoded[name] for name in self.find_granted(actor)]) + b"]"

    @cached_property
    def _operations(self) -> Mapping[str, Operation]:
        return {operation.name: operation for operation in self._catalogue.values() if operation.is_tool}

    @cached_property
    def _inner(self) -> Mapping[str, list[str]]:
        """The writes that each tool may run in turn, by the name of the tool."""
        writes = [operation.name for operation in self._catalogue.grantable if operation.writes]
        return {
            name: [one for pattern in operation.access.runs for one in writes if fnmatchcase(one, pattern)]
            for name, operation in self._operations.items()
        }

    @cached_property
    def _encoded(self) -> Mapping[str, bytes]:
        return {name: encode_json(describe_tool(one, self._catalogue)) for name, one in self._operations.items()}


def describe_tool(operation: Operation, catalogue: Catalogue) -> dict[str, Any]:
    """Return the description of a tool that agents get.

    A tool that needs the grants of other operations is listed only with these, and refers to one of them for most of its arguments.
    """
    known = [(name, [field for field in catalogue[name].takes if field in operation.takes]) for name in operation.access.needs]
    name, fields = max(known, key=lambda one: len(one[1]), default=("", []))
    refers = len(fields) >= _MANY
    tool: dict[str, Any] = {
        "name": operation.name,
        "description": (operation.brief or operation.summary) + (f". Also takes what {name} takes" if refers else ""),
        "inputSchema": build_input_schema(operation, fields if refers else ()),
    }
    if (output := build_output_schema(operation)) is not None:
        tool["outputSchema"] = output
    return tool | ({"annotations": hints} if (hints := _annotate(operation)) else {})


def _annotate(operation: Operation) -> dict[str, bool]:
    """Return the hints that differ from what the protocol assumes: that a tool writes, destroys, and is not idempotent."""
    verb = operation.verb
    if verb is None or not operation.writes:
        return {"readOnlyHint": True}
    hints = {} if verb.destructive else {"destructiveHint": False}
    return hints | ({"idempotentHint": True} if verb.idempotent else {})
