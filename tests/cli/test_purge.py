"""`trellis purge`."""

import re
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.conftest import Trellis
from tests.fixture_types import Run
from tests.wait import wait_until
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.sentences import say
from trellis.store import events, last_runs, proposals, requests
from trellis.store.engine import Transaction
from trellis.store.requests import Request


def test_what_is_old_is_deleted_at_once_and_the_clock_is_trusted(gate: Gate, run: Run, trellis: Trellis) -> None:
    run("forums.create", name="News")  # by the tests' clock, which stands still, more than 90 days ago
    now = datetime.now(UTC)
    recent = Request(format_timestamp(now - timedelta(hours=1)), "GET", "/api", None, None, "-", 200, 1, "recent", None)

    def jumped(tx: Transaction) -> None:
        requests.append(tx, [recent])
        last_runs.record(tx, last_runs.PURGE, 0)

    gate.store.write(jumped).result(30)
    result = trellis("purge")
    assert (result.exit_code, result.output.startswith("Deleted what was past its retention time")) == (0, True)
    with gate.store.reading() as tx:
        assert events.count(tx) == 0
        assert last_runs.find_newest_timestamp(tx) == recent.at
        assert (last_runs.find(tx, last_runs.PURGE) or 0) >= now.timestamp() * 1000 - 1


def test_a_database_that_cannot_be_written_to_is_not_said_to_be_purged(trellis: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise Refused("BUSY", say("The database cannot be written to."))

    monkeypatch.setattr("trellis.store.requests.purge", refuse)
    result = trellis("purge")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("BUSY: The database cannot be written to.")


def test_what_cannot_be_deleted_is_said(trellis: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise RuntimeError

    monkeypatch.setattr("trellis.store.proposals.purge", fail)
    result = trellis("purge")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "These could not be deleted: proposals. The rest of what was past its retention time is gone.\n"


def test_what_takes_long_is_told(gate: Gate, run: Run, trellis: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    gate.store.write(lambda tx: last_runs.record(tx, last_runs.PURGE, 0)).result(30)
    run("forums.create", name="News")  # more than 90 days ago: its event is deleted
    monkeypatch.setattr("trellis.cli.terminal._PAUSE", 0.05)
    monkeypatch.setattr("trellis.cli.terminal._PATIENCE", 0.0)
    delete = proposals.purge

    def delete_slowly(*arguments: Any) -> int:
        said: Any = sys.stderr.buffer  # in memory: it is that of Typer's runner
        wait_until(lambda: b"so far\n" in said.getvalue().replace(b" s so far", b""))
        return delete(*arguments)

    monkeypatch.setattr("trellis.store.proposals.purge", delete_slowly)
    result = trellis("purge")
    assert result.exit_code == 0
    assert re.fullmatch(r"(Deleting rows: 0 s so far\n)*(Deleting rows: \d+ so far\n)+", result.stderr)
