"""The request log and the last use of keys: what is written, when, and for how long."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.api_client import CLIENT_ADDRESS, ApiClient
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until
from trellis.core.gate import Gate
from trellis.store import lists, requests
from trellis.store.engine.transaction import Transaction
from trellis.store.lists import journal, search
from trellis.store.requests.log import Request

BAD = "trl_00000000_000000000000000000000000000000000000000"


def flushed(api: ApiClient, database: DatabaseState) -> list[dict[str, Any]]:
    api.do(api.application.rest.books.flush())
    return database.requests()


def key_named(run: Run, name: str) -> dict[str, Any]:
    (found,) = [key for key in run("keys.list", perPage=1000)["results"] if key["name"] == name]
    return dict(found)


def test_a_row_tells_what_was_asked_by_whom_and_what_came_of_it(
    api: ApiClient, community: Community, database: DatabaseState, run: Run, clock: Clock
) -> None:
    number = key_named(run, "Everything")["id"]
    api.get("/forums/forums/?search=secret+plans&page=1", headers={"X-Request-Id": "r-1"})
    clock.move(seconds=1)
    api.post(f"/forums/forums/{community.news}", {"type": "chat"}, headers={"X-Request-Id": "r-2"})
    first, second = flushed(api, database)
    assert first.pop("duration") > 0
    assert second.pop("duration") > 0
    assert first == {
        "id": first["id"],
        "at": "2026-01-31T09:30:00.000Z",
        "method": "GET",
        "path": "/api/forums/forums",
        "operation": "forums.list",
        "key_id": number,
        "address": CLIENT_ADDRESS,
        "status": 200,
        "request_id": "r-1",
        "error": None,
    }
    assert second == {
        "id": second["id"],
        "at": "2026-01-31T09:30:01.000Z",
        "method": "POST",
        "path": f"/api/forums/forums/{community.news}",
        "operation": "forums.update",
        "key_id": number,
        "address": CLIENT_ADDRESS,
        "status": 400,
        "request_id": "r-2",
        "error": "1F363/4",
    }


def test_every_request_leaves_one_row_whatever_came_of_it(
    make_api: MakeApiClient, community: Community, key: MakeKey, database: DatabaseState
) -> None:
    api = make_api(bad_key_limit=1)
    nobody, everything = key([], name="Nobody"), 1
    asked: list[tuple[str, str, str | None, int, str | None, int | None, str | None]] = [
        ("GET", "/forums/forums", None, 401, "2S290/6", None, None),
        ("GET", "/forums/forums", nobody, 403, "2S291/3", 2, "forums.list"),
        ("GET", "/nowhere", nobody, 404, "2S291/1", 2, None),
        ("PUT", "/forums/forums", nobody, 405, "3S291/2", 2, None),
        ("HEAD", "/forums/forums", api.key, 200, None, everything, "forums.list"),
        ("OPTIONS", "/forums/forums", None, 204, None, None, None),
        ("DELETE", f"/forums/forums/{community.betas}", api.key, 200, None, everything, "forums.delete"),
        ("POST", "/forums/forums", BAD, 401, "3S290/7", None, None),
        ("POST", "/forums/forums", api.key, 429, "1S290/D", None, None),
    ]
    for method, path, text, *_ in asked:
        api(method, path, key=text)
    found = [(r["method"], r["path"], r["status"], r["error"], r["key_id"], r["operation"]) for r in flushed(api, database)]
    assert found == [(method, f"/api{path}", *rest) for method, path, _, *rest in asked]


def test_nothing_is_written_before_the_answer_and_everything_in_batches_after_it(
    api: ApiClient, gate: Gate, database: DatabaseState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis.rest.log._BATCH", 10)
    batches: list[int] = []
    write = requests.append

    def counted(tx: Transaction, batch: Sequence[Request]) -> None:
        batches.append(len(batch))
        write(tx, batch)

    monkeypatch.setattr(requests, "append", counted)
    for _ in range(25):
        api.get("/core/hello")
    assert database.requests() == []
    assert len(flushed(api, database)) == 25
    assert batches == [10, 10, 5]
    assert len(flushed(api, database)) == 25, "each is written once"


def test_odd_texts_are_kept_as_they_can_be(api: ApiClient, database: DatabaseState) -> None:
    for method, path in (
        ("X" * 500, "/forums/forums"),
        ("GET", "/" + "a" * 4000),
        ("GET", "/forums%00forums"),
        ("GET", "/%F0%9F%8C%8D'"),
    ):
        api(method, path)
    api.get("/forums/forums", address="2001:db8::1")
    rows = flushed(api, database)
    assert [len(row["method"]) for row in rows] == [16, 3, 3, 3, 3]
    assert len(rows[1]["path"]) == 512
    assert [row["path"] for row in rows[2:]] == ["/api/forums%00forums", "/api/%F0%9F%8C%8D'", "/api/forums/forums"]
    assert rows[-1]["address"] == "2001:db8::1"


def test_a_key_whose_requests_are_not_logged_leaves_no_row(api: ApiClient, key: MakeKey, database: DatabaseState, run: Run) -> None:
    quiet = key("forums.list", name="Quiet", logRequests=False)
    for path in ("/forums/forums", "/forums/forums/1", "/nowhere"):
        api.get(path, key=quiet)
    assert flushed(api, database) == []
    run("keys.update", key_named(run, "Quiet")["id"], logRequests=True)
    api.get("/forums/forums", key=quiet)
    assert len(flushed(api, database)) == 1


def test_the_last_use_of_a_key_is_written_at_most_once_a_minute(
    api: ApiClient, key: MakeKey, run: Run, database: DatabaseState, clock: Clock
) -> None:
    text = key([], name="Used")
    assert key_named(run, "Used")["lastUsedAt"] is None
    api.get("/forums/forums", key=text)
    first = clock.text
    flushed(api, database)
    assert key_named(run, "Used")["lastUsedAt"] == first
    clock.move(seconds=59)
    api.get("/forums/forums", key=text)
    flushed(api, database)
    assert key_named(run, "Used")["lastUsedAt"] == first
    clock.move(seconds=1)
    api.get("/forums/forums", key=text)
    flushed(api, database)
    assert key_named(run, "Used")["lastUsedAt"] == clock.text


def test_a_key_that_is_refused_was_not_used(api: ApiClient, key: MakeKey, run: Run, database: DatabaseState) -> None:
    text = key("*", name="Elsewhere", addresses=["192.0.2.1"])
    api.get("/forums/forums", key=text)
    flushed(api, database)
    assert key_named(run, "Elsewhere")["lastUsedAt"] is None


def test_using_a_key_changes_nothing_else_about_it(api: ApiClient, key: MakeKey, run: Run, database: DatabaseState) -> None:
    text = key("*", name="Used")
    with database.unchanged():
        api.get("/forums/forums", key=text)
        flushed(api, database)


# --- how long -----------------------------------------------------------------------------------------------------


def made(gate: Gate, status: int, **ago: float) -> Request:
    return Request(gate.ago(timedelta(**ago)), "GET", "/api/x", None, None, CLIENT_ADDRESS, status, 1, f"{status} {ago}", None)


@pytest.mark.parametrize(("successes", "failures"), [(7, 30), (30, 7), (0, 0), (1, 1)])
def test_rows_stay_for_as_many_days_as_the_settings_say(
    make_api: MakeApiClient, gate: Gate, database: DatabaseState, successes: int, failures: int, clock: Clock
) -> None:
    api = make_api(keep_successes=successes, keep_failures=failures)
    books = api.application.rest.books
    for status, days in ((200, successes), (304, successes), (400, failures), (500, failures)):
        books.note(made(gate, status, days=days, seconds=1))
        books.note(made(gate, status, days=days, seconds=-1))
    assert len(flushed(api, database)) == 8
    api.do(books.purge())
    kept = [row["request_id"] for row in database.requests()]
    assert len(kept) == 4
    assert all("'seconds': -1" in text for text in kept)


def test_many_old_rows_are_deleted_in_portions(api: ApiClient, gate: Gate, database: DatabaseState) -> None:
    books = api.application.rest.books
    for _ in range(5_100):
        books.note(made(gate, 200, days=8))
    books.note(made(gate, 200, days=1))
    flushed(api, database)
    api.do(books.purge())
    assert len(database.requests()) == 1


def test_kept_answers_go_after_a_day(api: ApiClient, database: DatabaseState, clock: Clock) -> None:
    api.post("/calendar/calendar", {"name": "Once"}, headers={"Idempotency-Key": "a"})
    clock.move(hours=24)
    api.do(api.application.rest.books.purge())
    assert len(database.rows()["idempotent_responses"]) == 1
    clock.move(seconds=1)
    api.do(api.application.rest.books.purge())
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
        api.do(api.application.rest.books.catch_up())
    api.do(api.application.rest.books.purge())
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
        api.do(api.application.rest.books.catch_up())
    assert "could not be brought up to date" in caplog.text
    assert api.get("/forums/forums?search=late").json()["totalResults"] == 1


# --- by itself ----------------------------------------------------------------------------------------------------


def test_a_log_that_cannot_be_written_stops_no_request(
    api: ApiClient, gate: Gate, database: DatabaseState, caplog: pytest.LogCaptureFixture
) -> None:
    gate.store.write(lambda tx: tx.connection.execute(sa.text("ALTER TABLE requests RENAME TO away"))).result(60)
    api.get("/core/hello")
    with caplog.at_level(logging.ERROR):
        api.do(api.application.rest.books.flush())
    assert "could not be written to the request log" in caplog.text
    assert api.get("/core/hello").status_code == 200
    gate.store.write(lambda tx: tx.connection.execute(sa.text("ALTER TABLE away RENAME TO requests"))).result(60)
    assert len(flushed(api, database)) == 1, "the next batch is written again"


def test_a_running_service_writes_its_log_and_purges_it(
    service: Service, key: MakeKey, gate: Gate, database: DatabaseState
) -> None:
    old = Request("2020-01-01T00:00:00.000Z", "GET", "/api/old", None, None, CLIENT_ADDRESS, 500, 1, "old", None)
    gate.store.write(lambda tx: requests.append(tx, [old])).result(60)
    assert service.call("GET", "/core/hello", key([]), {"X-Request-Id": "seen"}).status_code == 200
    wait_until(lambda: [row["request_id"] for row in database.requests()] == ["seen"])
    (row,) = database.requests()
    assert (row["request_id"], row["address"], row["status"], row["operation"]) == ("seen", "127.0.0.1", 200, "core.hello")
