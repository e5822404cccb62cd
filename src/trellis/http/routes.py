"""The routes of operations over HTTP: method, path and status. REST serves them, and the panel shows them."""

from dataclasses import dataclass
from typing import Final

from trellis.core.catalogue import Catalogue
from trellis.core.operation import Operation
from trellis.core.verbs import Verb

REFERENCE: Final = "/api/docs"


@dataclass(frozen=True, slots=True)
class Route:
    """Where an operation is served: method and path, with `{id}` for the id; `also` are aliases of the path."""

    operation: Operation
    verb: Verb
    path: str
    also: tuple[str, ...]

    @property
    def method(self) -> str:
        """The HTTP method."""
        return self.verb.method

    @property
    def status(self) -> int:
        """The status of success."""
        return self.verb.status


def build_routes(catalogue: Catalogue) -> list[Route]:
    """Return the route of every operation that REST serves, in the order of the catalogue."""
    return [
        Route(operation, verb, operation.path + verb.tail, tuple(path + verb.tail for path in operation.also))
        for operation in catalogue.values()
        if operation.path is not None and (verb := operation.verb) is not None
    ]


def find_in_reference(operation: Operation) -> str:
    """Return the address of an operation in the reference, which has a page for each resource with a section for each operation."""
    return f"{REFERENCE}/{operation.resource}#{operation.name}"
