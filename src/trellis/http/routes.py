"""Where operations are served over HTTP: verb → method, path and status. REST answers there, and the panel tells of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from trellis.core.catalogue import Catalogue
from trellis.core.operation import Operation


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a verb is spelt in HTTP: method, whether an id stands behind the path, status of success, and what follows the id."""

    method: str
    with_id: bool
    status: int
    tail: str = ""


VERBS: Final[Mapping[str, Spelling]] = {
    "look": Spelling("GET", with_id=False, status=200),
    "feed": Spelling("GET", with_id=False, status=200),
    "list": Spelling("GET", with_id=False, status=200),
    "get": Spelling("GET", with_id=True, status=200),
    "create": Spelling("POST", with_id=False, status=201),
    "update": Spelling("POST", with_id=True, status=200),
    "delete": Spelling("DELETE", with_id=True, status=200),
    "restore": Spelling("POST", with_id=True, status=200, tail="/restore"),
}


@dataclass(frozen=True, slots=True)
class Route:
    """Where an operation is served: method and path, `{id}` standing for the id; `also` are other paths to the same."""

    operation: Operation
    method: str
    path: str
    also: tuple[str, ...]
    status: int


def build_routes(catalogue: Catalogue) -> list[Route]:
    """Give the route of every operation that REST serves, in the order of the catalogue."""
    found: list[Route] = []
    for operation in catalogue.values():
        if operation.path is not None and operation.verb is not None:
            spelling = VERBS[operation.verb]
            tail = "/{id}" + spelling.tail if spelling.with_id else ""
            also = tuple(path + tail for path in operation.also)
            found.append(Route(operation, spelling.method, operation.path + tail, also, spelling.status))
    return found
