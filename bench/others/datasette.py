"""Datasette as a contestant: `datasette serve` over one table, with a signed token whose rights it checks for each request."""

import json
import secrets
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from bench.others import rows
from bench.others.cases import PAGE, Kind, Request, Service
from bench.process import Server, own_environment

NAME: Final = "Datasette"
_TABLE: Final = """CREATE TABLE forums (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, description TEXT, parent_id INTEGER REFERENCES forums (id), permissions TEXT,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL)"""
_ONLY: Final = {"id": "bench"}  # the one who may
_RIGHTS: Final = {"allow": _ONLY, "databases": {"forums": {"permissions": {"insert-row": _ONLY, "update-row": _ONLY}}}}
_ROW: Final = (
    '"name": "Made by the bench {n}", "parent_id": {id}, "description": "<p>One of many.</p>", "permissions": "{}", '
    f'"created_at": "{rows.WHEN}", "updated_at": "{rows.WHEN}"'
)
_UPDATE: Final = f'"description": "<p>Changed by the bench, {{n}}.</p>", "updated_at": "{rows.WHEN}"'
_REQUESTS: Final[dict[Kind, Request]] = {
    "read": Request("GET", "/forums/forums/{id}.json"),
    "list": Request("GET", f"/forums/forums.json?_size={PAGE}"),
    "create": Request("POST", "/forums/forums/-/insert", f'{{"row": {{{_ROW}}}}}', 201),
    "update": Request("POST", "/forums/forums/{id}/-/update", f'{{"update": {{{_UPDATE}}}, "return": true}}'),
}


@contextmanager
def service(folder: Path, core: int, installed: Path) -> Iterator[Service]:
    """Make the database, and run Datasette over it from the virtual environment in `installed`."""
    file = folder / "forums.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(_TABLE)
        connection.execute("CREATE INDEX forums_parent_id ON forums (parent_id)")
    rows.fill(file)
    config = folder / "datasette.json"
    config.write_text(json.dumps(_RIGHTS))
    secret, program = secrets.token_hex(32), str(installed / "bin" / "python")
    token = _printed(program, "create-token", "bench", "--secret", secret)
    version = _printed(program, "--version").split()[-1]
    plugins = Path(__file__).parent / "datasette_plugins"
    command = ["-m", "datasette", "serve", str(file), "--port", "0", "--config", str(config), "--plugins-dir", str(plugins)]
    with Server(command, folder, {"DATASETTE_SECRET": secret}, core, program=program) as server:
        yield Service(NAME, version, server, token, _REQUESTS, _records, lambda: rows.count(file))


def _printed(program: str, *words: str) -> str:
    command = [program, "-m", "datasette", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=own_environment()).stdout.strip()


def _records(body: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body["rows"]
    return found
