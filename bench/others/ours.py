"""Trellis as a contestant: `trellis serve` over its own database, with every setting at its default."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import trellis
from bench.others.cases import FORUMS, OURS, PAGE, Kind, Request, Service
from bench.over_http import asked, fill_with_key
from bench.process import Server

_PATH: Final = "/api/forums/forums"
_REQUESTS: Final[dict[Kind, Request]] = {
    "read": Request("GET", f"{_PATH}/{{id}}"),
    "list": Request("GET", f"{_PATH}?perPage={PAGE}"),
    "create": Request(
        "POST", _PATH, '{"name": "Made by the bench {n}", "parentId": {id}, "description": "<p>One of many.</p>"}', 201
    ),
    "update": Request("POST", f"{_PATH}/{{id}}", '{"description": "<p>Changed by the bench, {n}.</p>"}'),
}


@contextmanager
def service(folder: Path, core: int) -> Iterator[Service]:
    """Make the database, and run trellis over it."""
    address = f"sqlite:///{folder}/trellis.db"
    grants = ["forums.list", "forums.get", "forums.create", "forums.update"]
    key = fill_with_key(address, FORUMS, lambda _done: None, grants=grants)
    with Server(["-m", "trellis", "serve", "--port", "0"], folder, {"TRELLIS_DATABASE_URL": address}, core) as server:

        def total() -> int:
            return asked(server.address, f"{_PATH}?perPage=1", key, {}).total

        yield Service(OURS, trellis.__version__, server, key, _REQUESTS, _records, total)


def _records(body: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body.get("results", [body])
    return found
