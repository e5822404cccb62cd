"""Directus as a contestant: one process over one collection, with the static token of a user whose policy it checks."""

import json
import secrets
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from bench.others import rows
from bench.others.cases import PAGE, Kind, Request, Service
from bench.others.install import node
from bench.process import Server, own_environment

NAME: Final = "Directus"
_NOBODY: Final = "http://127.0.0.1:9"  # where what it would report about itself goes
_PATH: Final = "/items/forums"
_REQUESTS: Final[dict[Kind, Request]] = {
    "read": Request("GET", f"{_PATH}/{{id}}"),
    "list": Request("GET", f"{_PATH}?limit={PAGE}"),
    "create": Request("POST", _PATH, '{"name": "Made by the bench {n}", "parent_id": {id}, "description": "<p>One of many.</p>"}'),
    "update": Request("PATCH", f"{_PATH}/{{id}}", '{"description": "<p>Changed by the bench, {n}.</p>"}'),
}
_FIELDS: Final = (
    {"field": "id", "type": "integer", "schema": {"is_primary_key": True, "has_auto_increment": True}, "meta": {}},
    {"field": "name", "type": "string", "schema": {"is_nullable": False}, "meta": {}},
    {"field": "description", "type": "text", "schema": {}, "meta": {}},
    {"field": "parent_id", "type": "integer", "schema": {"is_indexed": True}, "meta": {}},
    {"field": "permissions", "type": "json", "schema": {}, "meta": {"special": ["cast-json"]}},
    {"field": "created_at", "type": "timestamp", "schema": {}, "meta": {"special": ["date-created"]}},
    {"field": "updated_at", "type": "timestamp", "schema": {}, "meta": {"special": ["date-created", "date-updated"]}},
)


@contextmanager
def service(folder: Path, core: int, installed: Path) -> Iterator[Service]:
    """Make the database, and run Directus over it from the packages in `installed`."""
    file, admin, token = folder / "directus.db", secrets.token_hex(16), secrets.token_hex(16)
    environment = _environment(folder, file, admin)
    # not node_modules/directus/cli.js, which first asks the registry whether there is a newer version
    program = [str(installed / "node_modules" / "@directus" / "api" / "dist" / "cli" / "run.js")]
    done = subprocess.run(
        [node(), *program, "bootstrap"],
        env=own_environment() | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        raise SystemExit(f"Directus could not make its database:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    with Server([*program, "start"], folder, environment, core, program=node()) as server:
        _set_up(server.address, admin, token)
    rows.fill(file, round(datetime.fromisoformat(rows.WHEN).timestamp() * 1000))
    with Server([*program, "start"], folder, environment, core, program=node()) as server:
        yield Service(NAME, _version(installed), server, token, _REQUESTS, _records, lambda: rows.count(file))


def _environment(folder: Path, file: Path, admin: str) -> dict[str, str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    for name in ("extensions", "uploads"):
        (folder / name).mkdir(exist_ok=True)
    return {
        "NODE_ENV": "production",
        "DB_CLIENT": "sqlite3",
        "DB_FILENAME": str(file),
        "SECRET": secrets.token_hex(32),
        "HOST": "127.0.0.1",
        "PORT": port,
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "ADMIN_EMAIL": "admin@example.com",
        "ADMIN_PASSWORD": secrets.token_urlsafe(24),
        "ADMIN_TOKEN": admin,
        "SERVE_APP": "false",
        "LOG_STYLE": "raw",
        "EXTENSIONS_PATH": str(folder / "extensions"),
        "STORAGE_LOCAL_ROOT": str(folder / "uploads"),
        "PRESSURE_LIMITER_ENABLED": "false",  # or it would answer 503 as soon as its core is busy
        "TELEMETRY": "false",
        "TELEMETRY_URL": _NOBODY,
        "COMPLIANCE_URL": _NOBODY,
    }


def _set_up(address: str, admin: str, token: str) -> None:
    """Make the collection, and a user with a token who may read, create and update its items, and nothing else."""
    _post(address, admin, "/collections", {"collection": "forums", "schema": {}, "meta": {}, "fields": _FIELDS})
    actions: list[dict[str, Any]] = [
        {"collection": "forums", "action": action, "fields": ["*"], "permissions": {}} for action in ("read", "create", "update")
    ]
    policy = {"name": "Bench", "admin_access": False, "app_access": False, "permissions": actions}
    made = _post(address, admin, "/policies", policy)
    users = [{"email": "bench@example.com", "token": token}]
    _post(address, admin, "/roles", {"name": "Bench", "policies": [{"policy": made["id"]}], "users": users})


def _post(address: str, token: str, path: str, body: Mapping[str, Any]) -> Any:
    connection = HTTPConnection(urlsplit(address).netloc, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise SystemExit(f"Directus answered {answer.status} to POST {path}: {text.decode(errors='replace')[:500]}")
    return json.loads(text)["data"]


def _version(installed: Path) -> str:
    package = json.loads((installed / "node_modules" / "directus" / "package.json").read_text())
    return str(package["version"])


def _records(body: Any) -> list[dict[str, Any]]:
    found = body["data"]
    return found if isinstance(found, list) else [found]
