"""Housekeeping: what is purged and when, and the search index."""

import logging
from datetime import timedelta
from typing import Any

import pytest

from tests.api_client import CLIENT_ADDRESS, ApiClient
from tests.api_fixtures import MakeApiClient, api, database, make_api
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, Run
from trellis.core.gate import Gate
from trellis.store import lists
from trellis.store.admins import Attempts, Session, sessions
from trellis.store.engine import Transaction
from trellis.store.lists import journal, search
from trellis.store.requests import Request

__all__ = ["api", "database", "make_api"]


def flushed(api: ApiClient, database: DatabaseState) -> list[dict[str, Any]]:
    api.do(api.application.rest.log.flush())
    return database.requests()


# --- how long -----------------------------------------------------------------------------------------------------


def made(gate: Gate, status: int, **ago: float) -> Request:
    return Request(gate.ago(timedelta(**ago)), "GET", "/api/x", None, None, CLIENT_ADDRESS, status, 1, f"{status} {ago}", None)


@pytest.mark.parametrize(("successes", "failures"), [(7, 30), (30, 7), (0, 0), (1, 1)])
def test_rows_stay_for_as_many_days_as_the_settings_say(
    make_api: MakeApiClient, gate: Gate, database: DatabaseState, successes: int, failures: int, clock: Clock
) -> None:
    api = make_api(keep_successes=successes, keep_failures=failures)
    log = api.application.rest.log
    for status, days in ((200, successes), (304, successes), (400, failures), (500, failures)):
        log.record(made(gate, status, days=days, seconds=1))
        log.record(made(gate, status, days=days, seconds=-1))
    assert len(flushed(api, database)) == 8
    api.do(api.application.housekeeping.purge())
    kept = [row["request_id"] for row in database.requests()]
    assert len(kept) == 4
    assert all("'seconds': -1" in text for text in kept)


def test_many_old_rows_are_deleted_in_portions(api: ApiClient, gate: Gate, database: DatabaseState) -> None:
    log = api.application.rest.log
    for _ in range(5_100):
        log.record(made(gate, 200, days=8))
    log.record(made(gate, 200, days=1))
    flushed(api, database)
    api.do(api.application.housekeeping.purge())
    assert len(database.requests()) == 1


def test_kept_answers_go_after_a_day(api: ApiClient, database: DatabaseState, clock: Clock) -> None:
    api.post("/calendar/calendar", {"name": "Once"}, headers={"Idempotency-Key": "a"})
    clock.move(hours=24)
    api.do(api.application.housekeeping.purge())
    assert len(database.rows()["idempotent_responses"]) == 1
    clock.move(seconds=1)
    api.do(api.application.housekeeping.purge())
    assert database.rows()["idempotent_responses"] == []


# --- the index for searching --------------------------------------------------------------------------------------


def test_names_are_worked_into_the_index_and_old_changes_go(
    api: ApiClient, gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "KEPT", 5)
    for number in range(20):
        run("forums.create", name=f"Forum {number}")
    for behind in (True, False):
        with gate.store.reading() as tx:
            assert search.is_search_index_behind(tx) is behind
        assert api.get("/forums/forums?search=forum+1").json()["totalResults"] == 11
        api.do(api.application.housekeeping.index_names())
    api.do(api.application.housekeeping.purge())
    with gate.store.reading() as tx:
        first, last = journal.find_bounds(tx)
        assert last - first == 4
        assert search.find_candidates(tx, "forums", "forum 19", 100) == [20]


def test_an_index_that_cannot_be_written_stops_nothing(
    api: ApiClient, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: Transaction) -> int:
        raise LookupError

    monkeypatch.setattr(lists, "update_search_index", fail)
    run("forums.create", name="Late")
    with caplog.at_level(logging.ERROR):
        api.do(api.application.housekeeping.index_names())
    assert "could not be brought up to date" in caplog.text
    assert api.get("/forums/forums?search=late").json()["totalResults"] == 1


# --- sessions and sign-in attempts --------------------------------------------------------------------------------


def test_expired_sessions_and_forgotten_browsers_go(
    api: ApiClient, gate: Gate, run: Run, database: DatabaseState, clock: Clock
) -> None:
    admin = run("admins.create", name="Mira Holm", login="mira", password="correct horse battery")["id"]
    now = gate.now()

    def write(tx: Transaction) -> None:
        for digest, ends in (("a", "2026-02-01T00:00:00.000Z"), ("b", "2026-12-01T00:00:00.000Z")):
            sessions.insert(tx, Session(digest, admin, now, now, ends, None, "-", "-"))
        sessions.save_attempts(tx, Attempts("browser/x", 0, now, now))

    gate.store.write(write).result(30)
    clock.move(days=89)
    api.do(api.application.housekeeping.purge())
    assert [row["digest"] for row in database.rows()["sessions"]] == ["b"]
    assert len(database.rows()["sign_in_attempts"]) == 1
    clock.move(days=2)
    api.do(api.application.housekeeping.purge())
    assert database.rows()["sign_in_attempts"] == []
