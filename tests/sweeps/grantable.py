"""Each operation that a key can be granted, with the route by which it is reached, and a target for it."""

from dataclasses import replace
from itertools import count
from typing import Any, Final

from tests.fixture_types import Run
from trellis.core.catalogue import Catalogue
from trellis.core.operation import Operation
from trellis.core.verbs import RESTORE
from trellis.http.routes import Route, build_routes
from trellis.kinds import KINDS
from trellis.rest.docs.examples import given_of

_NUMBERS: Final = count(1)  # the same call is proposed once only


def grantable_routes(catalogue: Catalogue) -> list[Route]:
    """Return a route for every operation that can be granted; those to which one address forks have that one's."""
    found: list[Route] = []
    for route in build_routes(catalogue):
        names = route.operation.fork.to if route.operation.fork else (route.operation.name,)
        found += [replace(route, operation=catalogue[name]) for name in names]
    granted = {operation.name for operation in catalogue.grantable}
    return [route for route in found if route.operation.name in granted]


def create_target(catalogue: Catalogue, operation: Operation, run: Run, name: str = "Twin") -> int | None:
    """Make what an operation is about: a record, or, for one that undoes, the event that deleted one."""
    if not operation.has_target:
        return None
    create = f"{operation.resource}.create"
    given = {"name": name} if operation.kind else given_of(catalogue[create])
    if operation.resource == "proposals":  # which callers make by calling something else
        given = {"operation": f"{KINDS[1].name}.create", "input": {"name": f"{name} {next(_NUMBERS)}"}}
    made = int(run(create, **given)["id"])
    if operation.verb is not RESTORE:
        return made
    run(f"{operation.resource}.delete", made)
    return int(run("events.list", order="newest", limit=1)["results"][0]["seq"])


def given_to(operation: Operation, name: str) -> dict[str, Any]:
    """Return what is sent in the body of an operation: a name if it takes that of a node, and else what is in its example."""
    takes_name = operation.kind is not None and "name" in {field.name for field in operation.fields}
    return {"name": name} if takes_name else given_of(operation)


def needed_by(operation: Operation) -> dict[str, str]:
    """Return the parameters without which a read does not run, each with its example."""
    return {} if operation.writes else {field.name: str(field.example) for field in operation.fields if field.required}
