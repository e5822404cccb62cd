"""The commands that list the endpoints of the API, and print the OpenAPI document."""

from typing import Any

from trellis.cli.terminal import Json, show_json, show_table
from trellis.compose import catalogue_of
from trellis.core.operation import Operation
from trellis.http.routes import build_routes
from trellis.kinds import KINDS
from trellis.rest.docs import document
from trellis.settings import Settings


def routes(json: Json = False) -> None:
    """List all operations: those that the API serves with method and path, then those that only the panel and the terminal have."""
    Settings.load()
    catalogue = catalogue_of(KINDS)
    served = [
        _row(route.operation) | {"method": route.method, "path": route.path, "also": list(route.also)}
        for route in build_routes(catalogue)
    ]
    names = {row["operation"] for row in served}
    found = served + [_row(operation) for name, operation in catalogue.items() if name not in names]
    if json:
        show_json(found)
    else:
        columns = ("Operation", "Method", "Path", "Access")
        show_table(
            columns,
            ((row["operation"], row["method"], ", ".join((row["path"] or "–", *row["also"])), row["access"]) for row in found),
        )


def _row(operation: Operation) -> dict[str, Any]:
    return {
        "operation": operation.name,
        "method": None,
        "path": None,
        "also": [],
        "access": operation.access.basis.value,
        "summary": operation.summary,
    }


def openapi() -> None:
    """Print the OpenAPI document of the REST API as JSON. TRELLIS_PUBLIC_URL sets the URL of the service in it."""
    base_url = Settings.load().public_url
    catalogue = catalogue_of(KINDS)
    show_json(document(catalogue) if base_url is None else document(catalogue, base_url))
