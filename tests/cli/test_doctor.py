"""`trellis doctor`: it names what an operator has got wrong, says what to do, and looks at the rest all the same."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from tests.cli.conftest import Environment, Trellis
from tests.held_port import held_port
from tests.openid_provider import OpenIdProvider
from tests.service_process import Service
from tests.sqlite_file import file_of
from trellis.cli.doctor import command
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.settings import Settings
from trellis.store import last_runs, sqlite, tables
from trellis.store.admins import administrators
from trellis.store.engine import Store, Transaction, faults
from trellis.store.figures import Figures, read_figures
from trellis.store.requests import Request, append
from trellis.store.webhooks import Delivery, endpoints, outbox

on_sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

Look = Callable[[], dict[str, dict[str, Any]]]


@pytest.fixture
def look(trellis: Trellis) -> Look:
    """Return what doctor finds, by what it is about; where there are several, the worst."""

    def found() -> dict[str, dict[str, Any]]:
        order = ["good", "doubtful", "wrong"]
        findings = sorted(json.loads(trellis("doctor", "--json").stdout), key=lambda one: order.index(one["state"]))
        assert all(one["action"] for one in findings if one["state"] != "good")
        return {one["what"]: one for one in findings}

    return found


def test_a_sound_service_has_nothing_wrong(trellis: Trellis, settings: Settings) -> None:
    result = trellis("doctor")
    engine = "SQLite" if settings.database_url.startswith("sqlite") else "PostgreSQL"
    # The tests' PostgreSQL is quick rather than safe, which doctor says.
    assert (result.exit_code, "wrong" in result.stdout) == ((0, False) if engine == "SQLite" else (1, True))
    assert f"{engine} " in result.stdout
    assert "at the newest step." in result.stdout


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_server_that_can_lose_writes_is_named(trellis: Trellis) -> None:
    result = trellis("doctor")
    assert result.exit_code == 1
    assert "fsync is off: acknowledged writes can be lost." in result.stdout
    assert "Set fsync to on." in result.stdout


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_server_that_accepts_no_writes_is_named(settings: Settings, cli: Trellis, nowhere: Environment) -> None:
    sign = "&" if "?" in settings.database_url else "?"
    nowhere(database_url=f"{settings.database_url}{sign}options=-c%20default_transaction_read_only%3Don")

    assert "This server, database or account was set to read-only: it accepts no writes." in cli("doctor").stdout
    refused = cli("keys", "create", "Plugin")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("The database '")
    assert refused.stderr.endswith(" accepts no writes: its server is a standby, or was set to read-only.\n")


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_server_without_room_is_named_although_small_writes_succeed(
    settings: Settings, cli: Trellis, nowhere: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign = "&" if "?" in settings.database_url else "?"
    nowhere(database_url=f"{settings.database_url}{sign}options=-c%20temp_file_limit%3D100kB")
    monkeypatch.setattr(faults, "FULL", "53400")  # as if what the limit refuses had failed because the disk is full

    assert cli("keys", "create", "Plugin").exit_code == 0
    result = cli("doctor")
    assert result.exit_code == 1
    assert "database: Until it can be written to, reads go on, and writes are refused." in result.stdout


@on_sqlite
def test_a_file_that_cannot_be_written_to_is_named(look: Look, open_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file system may have become read-only, while its mode says that it can be written to."""
    open_store.try_to_write().result()  # so that there is a WAL, which could not be created later
    monkeypatch.setattr(sqlite._library, "SQLITE_OPEN_READWRITE", sqlite._library.SQLITE_OPEN_READONLY)
    found = look()
    assert (found["database"]["state"], "cannot be written to" in found["database"]["told"]) == ("wrong", True)
    assert "whether the file system has become read-only" in found["database"]["told"]
    assert found["clock"]["state"] == "good", "the rest is looked at all the same"


def test_a_clock_that_is_behind_the_newest_row_is_named_by_it_and_at_the_start(
    look: Look, settings: Settings, tmp_path: Path
) -> None:
    gate = compose(settings)
    ahead = (datetime.now(UTC) + timedelta(hours=3)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    row = Request(ahead, "GET", "/api/core/hello", "core.hello", None, "127.0.0.1", 200, 1, "r1", None)
    gate.store.write(lambda tx: append(tx, [row]), quiet=True).result()
    gate.store.close()
    clock = look()["clock"]
    assert (clock["state"], ahead in clock["told"]) == ("wrong", True)
    with Service(settings, tmp_path) as service:
        assert service.output.count(clock["told"].partition(" (")[0]) == 1


def test_a_database_that_is_slow_to_read_is_no_clock_that_is_wrong(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_slowly(tx: Transaction, now: str) -> Figures:
        monkeypatch.setattr(Gate, "now", lambda _gate: (datetime.now(UTC) + timedelta(minutes=1)).isoformat())
        return read_figures(tx, now)

    monkeypatch.setattr("trellis.cli.doctor.database.read_figures", read_slowly)
    assert look()["clock"]["state"] == "good"


@on_sqlite
def test_files_that_everybody_may_read_and_backups_that_are_old_are_doubtful(
    look: Look, settings: Settings, trellis: Trellis
) -> None:
    file = Path(settings.database_url.removeprefix("sqlite:///"))
    file.chmod(0o644)
    found = look()
    assert (found["files"]["state"], found["files"]["action"]) == ("doubtful", f"chmod 600 {file}")
    assert found["backups"]["told"] == "No backup was made by `trellis backup`."
    file.chmod(0o600)
    trellis("backup", "copy.db")
    found = look()
    assert (found["files"]["state"], found["backups"]["state"]) == ("good", "good")
    gate = compose(settings)
    gate.store.write(lambda tx: last_runs.record(tx, last_runs.BACKUP, 1_000), quiet=True).result()
    gate.store.close()
    backups = look()["backups"]
    assert (backups["state"], backups["told"]) == ("doubtful", "The last one was made at 1970-01-01T00:00:01Z.")
    gate = compose(settings)
    gate.store.write(lambda tx: last_runs.record(tx, last_runs.BACKUP, 4_000_000_000_000), quiet=True).result()
    gate.store.close()
    assert look()["backups"]["state"] == "doubtful", "the clock was ahead then"


@on_sqlite
@pytest.mark.parametrize(
    ("line", "is_secret"),
    [
        ("TRELLIS_WEBHOOK_KEY=a-long-text-that-nobody-guesses", True),
        ("TRELLIS_RATE_LIMIT_STORAGE=redis://:secret@127.0.0.1:1/0", True),
        ("TRELLIS_RATE_LIMIT_STORAGE=memory://", False),
        ("TRELLIS_COMMUNITY_NAME=me@home", False),
        ("TRELLIS_WEBHOOK_KEY=", False),
    ],
)
def test_a_settings_file_with_secrets_that_everybody_may_read_is_doubtful(look: Look, line: str, is_secret: bool) -> None:
    file = Path(".env")
    file.write_text(f"{line}\n")
    file.chmod(0o644)
    found = look()
    assert ("settings file" in found) is is_secret
    if is_secret:
        assert (found["settings file"]["state"], found["settings file"]["action"]) == ("doubtful", "chmod 600 .env")
    file.chmod(0o640)
    assert "settings file" not in look()


@on_sqlite
@pytest.mark.parametrize(
    ("settings_given", "what", "state", "part"),
    [
        ({"public_url": "http://api.example"}, "public address", "wrong", "does not use https"),
        ({"public_url": "http://127.0.0.2:8000"}, "public address", "good", "http://127.0.0.2:8000"),
        ({"public_url": "https://api.example"}, "proxies", "doubtful", "none is trusted"),
        ({"require_second_factor": "1"}, "second factors", "doubtful", "a copy of the database"),
        ({"rate_limit_storage": "redis://:secret@127.0.0.1:1/0"}, "Redis", "wrong", "does not answer"),
        ({"log_level": "loud"}, "settings", "wrong", "TRELLIS_LOG_LEVEL"),
        ({"database_url": "sqlite:///nothing.db"}, "database", "wrong", "trellis migrate"),
        ({"database_url": "postgresql://nobody:secret@127.0.0.1:1/x"}, "database", "wrong", "Connection refused"),
    ],
)
def test_what_is_set_wrong_is_named_without_secrets(
    trellis: Trellis, nowhere: Environment, settings_given: dict[str, str], what: str, state: str, part: str
) -> None:
    nowhere(**settings_given)
    result = trellis("doctor")
    assert (result.exit_code == 1) == (state == "wrong")
    assert any(line.startswith(f"{state}  ") and what in line and part in line for line in result.stdout.splitlines()), (
        result.stdout
    )
    assert "secret" not in result.stdout


@on_sqlite
def test_a_webhook_that_takes_all_but_one_message_is_not_said_to_take_nothing(look: Look, settings: Settings) -> None:
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    gate = compose(settings, clock=lambda: hour_ago)
    gate.run(Call("webhooks.create", TERMINAL, {"url": "https://hooks.example/", "events": ["*"]}))
    first, last = (gate.run(Call("forums.create", TERMINAL, {"name": name})).event or 0 for name in ("Refused", "Taken"))
    at = gate.now()

    def fill(tx: Transaction) -> None:
        outbox.insert(tx, Delivery(0, 1, first, "msg_1", "forum.created", "waiting", at, at, scheduled_attempts=3, attempted_at=at))
        outbox.insert(tx, Delivery(0, 1, last, "msg_2", "forum.created", "delivered", None, at, attempted_at=at))
        endpoints.move_cursors(tx, [1], last)

    gate.store.write(fill).result(30)
    gate.store.close()
    found = look()["webhooks"]
    assert (found["state"], found["told"]) == ("doubtful", "Messages have been waiting for more than 15 minutes for webhook 1.")


def test_what_cannot_be_looked_at_keeps_nothing_else_from_being_looked_at(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_at_everything(_settings: Settings) -> None:
        raise OSError("the machine is on fire")

    monkeypatch.setattr(command, "_LOOKS", (look_at_everything, *command._LOOKS))
    found = look()
    assert (found["everything"]["state"], "on fire" in found["everything"]["told"]) == ("wrong", True)
    assert found["descriptors"]["state"] == "good" or os.name != "posix"


@on_sqlite
def test_a_mail_server_that_is_down_is_named_and_how_long_mail_waits(look: Look, nowhere: Environment, settings: Settings) -> None:
    with held_port() as port:
        nowhere(database_url=settings.database_url, smtp_host="127.0.0.1", smtp_port=str(port), smtp_from="a@b.example")
        found = look()["mail"]
    assert (found["state"], "given up after about a day" in found["action"]) == ("wrong", True)


@on_sqlite
def test_a_provider_of_single_sign_on_is_asked(look: Look, nowhere: Environment, settings: Settings) -> None:
    with OpenIdProvider(lambda: 0.0) as provider:
        nowhere(
            database_url=settings.database_url, public_url="https://x.example", sso_issuer=provider.issuer, sso_client_id="trellis"
        )
        found = look()["single sign-on"]
        assert (found["state"], found["told"][:24]) == ("doubtful", "No owner has a password ")
        provider.answers = {"/jwks": (200, {"keys": []})}
        found = look()["single sign-on"]
        assert (found["state"], "It lists no keys." in found["told"]) == ("wrong", True)
        provider.metadata = {"issuer": "https://evil.example"}
        found = look()["single sign-on"]
        assert (found["state"], "issuer in its metadata is not" in found["told"]) == ("wrong", True)


@on_sqlite
def test_what_a_link_leads_to_is_looked_at(
    settings: Settings, cli: Trellis, nowhere: Environment, monkeypatch: pytest.MonkeyPatch, open_store: Store
) -> None:
    real = file_of(settings)
    open_store.write(lambda tx: last_runs.record(tx, last_runs.BACKUP, 1), quiet=True).result()
    real.chmod(0o600)
    (wal := Path(f"{real}-wal")).chmod(0o644)
    Path("link.db").symlink_to(real)
    nowhere(database_url="sqlite:///link.db")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=3 * 2**20 if Path(path) == real.parent else 2**40))

    found = cli("doctor").stdout

    assert "3.0 MiB are free where the database is" in found
    assert f"files: chmod 600 {wal}\n" in found


@on_sqlite
def test_a_database_behind_a_link_is_as_large_as_it_is(settings: Settings, tmp_path: Path, open_store: Store) -> None:
    open_store.write(lambda tx: last_runs.record(tx, last_runs.BACKUP, 1), quiet=True).result()
    (link := tmp_path / "link.db").symlink_to(file_of(settings))
    linked = Store(replace(settings, database_url=f"sqlite:///{link}"))
    sizes = []
    for store in (open_store, linked):
        with store.reading() as tx:
            sizes.append(read_figures(tx, "2026-01-01T00:00:00.000Z").size)
    linked.close()
    assert sizes[0] == sizes[1] > file_of(settings).stat().st_size


@pytest.fixture
def open_store(settings: Settings) -> Iterator[Store]:
    """The database in use, with a WAL."""
    store = Store(settings)
    yield store
    store.close()


@on_sqlite
def test_administrators_who_cannot_sign_in_are_as_good_as_none(look: Look, trellis: Trellis, open_store: Store) -> None:
    assert look()["administrators"]["told"].startswith("There is none")
    trellis("admins", "invite", "mira", "--role", "owner")
    assert look()["administrators"]["told"].startswith("Nobody can sign in")
    trellis("admins", "create", "ada")
    assert look()["administrators"]["state"] == "good"
    without_password = sa.update(tables.administrators).values(digest=administrators.NO_PASSWORD)
    open_store.write(lambda tx: tx.connection.execute(without_password), quiet=True).result(30)
    assert look()["administrators"]["told"].startswith("Nobody can sign in")  # no provider is set
