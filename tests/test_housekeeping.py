"""Housekeeping: what is purged and when, and the search index."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final

import pytest

from tests.api_client import CLIENT_ADDRESS, ApiClient
from tests.api_fixtures import MakeApiClient, api, make_api
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, MakeKey, Run
from tests.wait import wait_in_loop_until
from trellis import housekeeping
from trellis.core.actor import TERMINAL
from trellis.core.admins import (
    Credentials,
    address_lane,
    find_invited,
    find_lane,
    find_session,
    remember_browser,
)
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.proposals import find_overdue
from trellis.housekeeping import Purges
from trellis.store import last_runs, lists
from trellis.store.admins import Attempts, Session, attempts, sessions
from trellis.store.engine import Transaction
from trellis.store.lists import journal, search
from trellis.store.requests import Request

__all__ = ["api", "make_api"]

PASSWORD: Final = "correct horse battery"


def flushed(api: ApiClient, database: DatabaseState) -> list[dict[str, Any]]:
    api.do(api.application.service.log.flush())
    return database.requests()


def purge(api: ApiClient) -> None:
    """Purge what is past its retention time, however far the clock has moved."""
    api.do(Purges(api.application.gate, api.application.settings).run(trusting=True))


# --- what the service does by itself ---------------------------------------------------------------------------------


def test_proposals_that_have_expired_are_closed(api: ApiClient, run: Run, clock: Clock, database: DatabaseState) -> None:
    keeping = api.application.housekeeping
    for number in range(5):
        run("proposals.create", operation="forums.create", input={"name": f"Forum {number}"})
    clock.move(days=7)
    with database.new_events() as events:
        api.do(keeping.run_calls("Proposals could not be closed.", find_overdue))
        api.do(keeping.run_calls("Proposals could not be closed.", find_overdue))
    assert [event["type"] for event in events()] == ["proposal.expired"] * 5
    clock.move(days=89)
    purge(api)
    assert len(database.rows()["proposals"]) == 5
    clock.move(days=2)
    purge(api)
    assert database.rows()["proposals"] == []


# --- how long -----------------------------------------------------------------------------------------------------


def made(gate: Gate, status: int, **ago: float) -> Request:
    return Request(gate.ago(timedelta(**ago)), "GET", "/api/x", None, None, CLIENT_ADDRESS, status, 1, f"{status} {ago}", None)


@pytest.mark.parametrize(("successes", "failures"), [(7, 30), (30, 7), (0, 0), (1, 1)])
def test_rows_stay_for_as_many_days_as_the_settings_say(
    make_api: MakeApiClient, gate: Gate, database: DatabaseState, successes: int, failures: int, clock: Clock
) -> None:
    api = make_api(keep_successes=successes, keep_failures=failures)
    log = api.application.service.log
    for status, days in ((200, successes), (304, successes), (400, failures), (500, failures)):
        log.record(made(gate, status, days=days, seconds=1))
        log.record(made(gate, status, days=days, seconds=-1))
    assert len(flushed(api, database)) == 8
    api.do(api.application.housekeeping.purge())
    kept = [row["request_id"] for row in database.requests()]
    assert len(kept) == 4
    assert all("'seconds': -1" in text for text in kept)


def test_many_old_rows_are_deleted_in_portions(api: ApiClient, gate: Gate, database: DatabaseState) -> None:
    log = api.application.service.log
    for _ in range(5_100):
        log.record(made(gate, 200, days=8))
    log.record(made(gate, 200, days=1))
    flushed(api, database)
    api.do(api.application.housekeeping.purge())
    assert len(database.requests()) == 1


def test_kept_answers_go_after_a_day(api: ApiClient, database: DatabaseState, clock: Clock) -> None:
    api.post("/calendar/calendar", {"name": "Once"}, headers={"Idempotency-Key": "a"})
    clock.move(hours=24)
    purge(api)
    assert len(database.rows()["idempotent_responses"]) == 1
    clock.move(seconds=1)
    purge(api)
    assert database.rows()["idempotent_responses"] == []


# --- a clock that has jumped --------------------------------------------------------------------------------------


@dataclass
class Monotonic:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def purges_of(gate: Gate, monotonic: Monotonic) -> Purges:
    return Purges(gate, gate.store.settings, monotonic)


def test_a_clock_far_ahead_at_the_start_purges_nothing_for_an_hour(
    api: ApiClient, gate: Gate, clock: Clock, database: DatabaseState, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    api.post("/forums/forums", {"name": "News"})
    flushed(api, database)
    before = database.rows() | {"counters": []}
    logged = database.requests()
    clock.move(days=100)
    monotonic = Monotonic()
    purges = purges_of(gate, monotonic)
    for restarted in range(2):  # what the jumped clock wrote, and a restart, do not make it trusted
        monotonic = Monotonic()
        purges = purges_of(gate, monotonic)
        api.do(purges.note_beginning())
        for second in (600, 1200, 600 + 3599):
            monotonic.now = 1000.0 + second
            api.do(purges.run())
        assert database.rows() | {"counters": []} == before
        assert database.requests()[: len(logged)] == logged
        assert caplog.text.count("Nothing is purged for an hour") == restarted + 1
        api.get("/core/hello")
        flushed(api, database)
    assert "trellis purge" in caplog.text
    monotonic.now = 1000.0 + 600 + 3600
    api.do(purges.run())
    assert database.rows()["events"] == []


def test_a_clock_that_jumps_while_the_service_runs_purges_nothing_for_an_hour(
    api: ApiClient, gate: Gate, clock: Clock, database: DatabaseState
) -> None:
    api.post("/forums/forums", {"name": "News"})
    monotonic = Monotonic()
    purges = purges_of(gate, monotonic)
    for _ in range(20):
        monotonic.now += 600
        clock.move(seconds=600)
        api.do(purges.run())
    events = database.events()
    clock.move(days=100)
    monotonic.now += 600
    api.do(purges.run())
    assert database.events() == events != []
    clock.move(days=-100)
    api.do(purges.run())
    clock.move(days=100)
    monotonic.now += 3600
    api.do(purges.run())
    assert database.events() == events, "the hour begins anew with each jump"


def test_the_operator_can_say_that_the_clock_is_right(api: ApiClient, gate: Gate, clock: Clock, database: DatabaseState) -> None:
    api.post("/forums/forums", {"name": "News"})
    purges = purges_of(gate, Monotonic())
    api.do(purges.run())
    clock.move(days=100)
    api.do(purges.run())
    assert database.events() != []
    api.do(purges_of(gate, Monotonic()).run(trusting=True))
    assert database.rows()["events"] == []


def sign_in(gate: Gate, admin: int) -> str:
    return str(gate.run(Call("admins.sign_in", TERMINAL, {"address": CLIENT_ADDRESS}, admin)).value["token"])


def test_what_begins_while_the_clock_is_ahead_does_not_last_until_the_true_time_reaches_it(
    api: ApiClient, gate: Gate, run: Run, clock: Clock, key: MakeKey, database: DatabaseState
) -> None:
    admin = run("admins.create", name="Mira Holm", login="mira", password=PASSWORD, mustChangePassword=False)["id"]
    counted = key(["forums.list"], expires="365d", bounds={"forums.list": {"perDay": 1}})
    purges = purges_of(gate, Monotonic())
    api.do(purges.run())
    clock.move(days=30)
    session, link = sign_in(gate, admin), run("admins.invite", name="Ada Berg", login="ada", role="auditor")["link"]
    browser = remember_browser(gate, "mira", "").result()
    assert api.get("/forums/forums", key=counted).status_code == 200
    assert api.get("/forums/forums", key=counted).json()["errorMessage"] == "GRANT_USED_UP"
    clock.move(days=-30)
    api.do(purges.run())
    assert find_session(gate, session) is None
    assert find_invited(gate, link) is None
    assert find_lane(gate, Credentials("mira", PASSWORD, CLIENT_ADDRESS, browser)) == address_lane(CLIENT_ADDRESS)
    clock.move(days=30)
    assert find_session(gate, session) is None
    assert find_invited(gate, link) is None
    assert api.get("/forums/forums", key=counted).status_code == 200
    rows = database.rows()
    assert (rows["sessions"], rows["invitations"], rows["sign_in_attempts"]) == ([], [], [])


def test_a_clock_that_is_hours_ahead_deletes_no_kept_answer(
    api: ApiClient, gate: Gate, clock: Clock, database: DatabaseState
) -> None:
    purges, once = purges_of(gate, Monotonic()), {"Idempotency-Key": "a"}
    api.do(purges.run())
    made = api.post("/calendar/calendar", {"name": "Once"}, headers=once).json()["id"]
    for minutes in (50, 50, 23 * 60, -23 * 60):
        clock.move(minutes=minutes)
        api.do(purges.run())
    assert api.post("/calendar/calendar", {"name": "Once"}, headers=once).json()["id"] == made
    assert len(database.rows()["idempotent_responses"]) == 1


def test_kept_answers_from_when_the_clock_was_ahead_go_a_day_after_it_is_put_right(
    api: ApiClient, gate: Gate, clock: Clock, database: DatabaseState
) -> None:
    once = {"Idempotency-Key": "a"}
    clock.move(days=30)
    made = api.post("/calendar/calendar", {"name": "Once"}, headers=once).json()["id"]
    clock.move(days=-30)
    for _ in range(2):
        api.do(purges_of(gate, Monotonic()).run(trusting=True))
        assert api.post("/calendar/calendar", {"name": "Once"}, headers=once).json()["id"] == made
        clock.move(hours=24)
    clock.move(seconds=1)
    purge(api)
    assert database.rows()["idempotent_responses"] == []


def test_a_clock_that_is_behind_deletes_nothing_for_an_hour(api: ApiClient, gate: Gate, run: Run, clock: Clock) -> None:
    admin = run("admins.create", name="Mira Holm", login="mira", password=PASSWORD, mustChangePassword=False)["id"]
    monotonic = Monotonic()
    purges = purges_of(gate, monotonic)
    api.do(purges.run())
    session = sign_in(gate, admin)
    clock.move(days=-3)
    for _ in range(2):
        api.do(purges.run())
        monotonic.now += 3599
    clock.move(days=3)
    assert find_session(gate, session) is not None


def test_the_first_purge_waits_ten_minutes(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "_INTERVAL", 0.01)
    running, minutes, purged, rounds = api.application.housekeeping, 0, [], 0

    async def purge() -> None:
        purged.append(minutes)

    async def index_names() -> None:
        nonlocal rounds
        rounds += 1

    async def watch() -> None:
        nonlocal minutes
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda honest=loop.time: honest() + minutes * 60)
        running.start()
        for at in (1, 5, 9, 11):
            minutes, before = at, rounds
            await wait_in_loop_until(lambda before=before: rounds > before + 2)  # type: ignore[misc]  # of each turn its own

    monkeypatch.setattr(running, "purge", purge)
    monkeypatch.setattr(running, "index_names", index_names)
    api.do(watch())
    assert purged == [11]


@pytest.mark.parametrize("work", ["purge", "index_names"])
def test_requests_are_logged_during_long_work_and_the_service_can_be_stopped(
    api: ApiClient, gate: Gate, database: DatabaseState, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    monkeypatch.setattr(housekeeping, "_INTERVAL", 0.01)
    monkeypatch.setattr(housekeeping, "_PURGE_INTERVAL", 0.01)
    running, working = api.application.housekeeping, asyncio.Event()

    async def work_for_ever() -> None:
        working.set()
        await asyncio.Event().wait()

    async def watch() -> None:
        running.start()
        await working.wait()
        api.application.service.log.record(made(gate, 200))
        await wait_in_loop_until(lambda: len(database.requests()) == 1)
        await running.stop()

    monkeypatch.setattr(running, work, work_for_ever)
    api.do(watch())


def test_the_log_is_not_written_all_the_time_however_much_there_is_to_write(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, log = api.application.housekeeping, api.application.service.log
    monkeypatch.setattr(housekeeping, "_INTERVAL", 60.0)
    times: list[float] = []

    async def flush() -> None:
        times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.1 if len(times) == 3 else 0)
        log.urgent.set()

    async def run_for_a_while() -> None:
        log.urgent.set()
        keeping.start()
        await wait_in_loop_until(lambda: len(times) == 6)
        await keeping.stop()

    monkeypatch.setattr(log, "flush", flush)
    api.do(run_for_a_while())
    pauses = [later - earlier for earlier, later in pairwise(times[:6])]
    assert min(pauses) >= 0.008
    assert pauses[2] >= 0.35, "other writes have had the database three times as long"


def test_an_error_in_a_round_is_logged_and_ends_nothing(
    api: ApiClient, gate: Gate, database: DatabaseState, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(housekeeping, "_INTERVAL", 0.01)
    monkeypatch.setattr(housekeeping, "_PURGE_INTERVAL", 0.01)
    running = api.application.housekeeping

    def fail(_tx: Transaction, _name: str) -> int | None:
        raise LookupError

    async def watch() -> None:
        running.start()
        await wait_in_loop_until(lambda: caplog.text.count("Old rows could not be deleted.") > 1)
        api.application.service.log.record(made(gate, 200))
        await wait_in_loop_until(lambda: len(database.requests()) == 1)
        await running.stop()

    monkeypatch.setattr(last_runs, "find", fail)
    api.do(watch())
    assert "The first purge could not be noted." in caplog.text


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
        first, last = journal.find_range(tx)
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
        attempts.save_attempts(tx, Attempts("browser/x", 0, now, now))

    gate.store.write(write).result(30)
    clock.move(days=88)
    gate.store.write(lambda tx: attempts.save_attempts(tx, Attempts("account/y", 3, gate.now(), gate.now()))).result(30)
    purge(api)
    assert [row["digest"] for row in database.rows()["sessions"]] == ["b"]
    assert len(database.rows()["sign_in_attempts"]) == 2
    clock.move(hours=23)
    purge(api)
    assert [row["subject"] for row in database.rows()["sign_in_attempts"]] == ["account/y", "browser/x"]
    clock.move(hours=2)
    purge(api)
    assert [row["subject"] for row in database.rows()["sign_in_attempts"]] == ["browser/x"], "nobody has to sign in for that"
    clock.move(days=1)
    purge(api)
    assert database.rows()["sign_in_attempts"] == []
