"""The request log and the last use of keys: what is written, and when."""

import logging
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any
from unittest.mock import Mock

import pytest
import sqlalchemy as sa

from tests.api_client import CLIENT_ADDRESS, ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.store import requests
from trellis.store.engine.transaction import Transaction
from trellis.store.requests import Request

BAD = "trl_00000000_000000000000000000000000000000000000000"


def flushed(api: ApiClient, database: DatabaseState) -> list[dict[str, Any]]:
    api.do(api.application.service.log.flush())
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


def test_each_kind_of_request_leaves_a_row_whatever_came_of_it(
    make_api: MakeApiClient, community: Community, key: MakeKey, database: DatabaseState
) -> None:
    api = make_api(bad_key_limit=2)
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
    monkeypatch.setattr("trellis.http.api.request_log._BATCH", 10)
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


def test_what_is_completed_while_the_log_is_written_waits_for_the_next_time(
    api: ApiClient, gate: Gate, database: DatabaseState, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, under load, each commit has fewer requests than the one before, and the log is written without an end."""
    log, write, batches = api.application.service.log, requests.append, list[int]()

    def complete_another(tx: Transaction, batch: Sequence[Request]) -> None:
        batches.append(len(batch))
        if len(batches) < 5:
            log.record(batch[0]._replace(request_id=f"during {len(batches)}"))
        write(tx, batch)

    for _ in range(10):
        api.get("/core/hello")
    monkeypatch.setattr(requests, "append", complete_another)
    assert len(flushed(api, database)) == 10
    assert batches == [10]
    assert [row["request_id"] for row in flushed(api, database)[10:]] == ["during 1"]


def test_odd_texts_are_kept_as_they_can_be(api: ApiClient, database: DatabaseState) -> None:
    for method, path in (
        ("X" * 500, "/forums/forums"),
        ("GET", "/" + "a" * 4000),
        ("GET", "/forums%00forums"),
        ("GET", "/%F0%9F%8C%8D'"),
    ):
        api(method, path)
    api.get("/forums/forums", address="2001:db8::1")
    api.get("/forums/forums", address="x" * 5000)
    rows = flushed(api, database)
    assert [len(row["method"]) for row in rows] == [16, 3, 3, 3, 3, 3]
    assert len(rows[1]["path"]) == 512
    assert [row["path"] for row in rows[2:5]] == ["/api/forums%00forums", "/api/%F0%9F%8C%8D'", "/api/forums/forums"]
    assert [row["address"] for row in rows[4:]] == ["2001:db8::1", "x" * 64]


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


# --- without a good key -------------------------------------------------------------------------------------------


def test_requests_without_a_key_are_counted_by_address_and_minute_and_few_are_logged(
    api: ApiClient, run: Run, database: DatabaseState, clock: Clock
) -> None:
    def flood(address: str, times: int) -> None:
        for _ in range(times):
            api.get("/forums/forums", key=None, address=address)
            api("OPTIONS", "/forums/forums", key=None, address=address)

    flood("203.0.113.9", 40)
    flood("2001:db8::1", 3)
    flood("2001:db8::2", 3)
    clock.move(minutes=1)
    flood("203.0.113.9", 1)
    rows = flushed(api, database)
    examples = Counter((row["at"][14:16], row["address"]) for row in rows)
    assert examples == {("30", "203.0.113.9"): 5, ("30", "2001:db8::1"): 5, ("31", "203.0.113.9"): 2}
    counted = run("requests.keyless")["results"]
    assert [(one["minute"][11:16], one["address"], one["status"], one["times"]) for one in counted] == [
        ("09:31", "203.0.113.9", 204, 1),
        ("09:31", "203.0.113.9", 429, 1),
        ("09:30", "203.0.113.9", 204, 40),
        ("09:30", "203.0.113.9", 401, 30),
        ("09:30", "203.0.113.9", 429, 10),
        ("09:30", "2001:db8::/64", 204, 6),
        ("09:30", "2001:db8::/64", 401, 6),
    ]
    assert run("requests.keyless", address="2001:db8::77", limit=1)["results"] == counted[-2:-1]
    hour = run("overview.get")["hours"][-1]
    assert (hour["2xx"], hour["4xx"]) == (47, 47), "the overview counts all of them"


def test_the_log_names_a_key_that_was_sent_whole_and_may_not_be_used(
    api: ApiClient, key: MakeKey, run: Run, database: DatabaseState
) -> None:
    elsewhere, paused, revoked, unlogged, guessed = (
        key("forums.*", name="Elsewhere", addresses=["192.0.2.1"]),
        key("forums.*", name="Paused"),
        key("forums.*", name="Revoked"),
        key("forums.*", name="Unlogged", addresses=["192.0.2.1"], logRequests=False),
        key("forums.*", name="Guessed"),
    )
    run("keys.pause", key_named(run, "Paused")["id"])
    run("keys.revoke", key_named(run, "Revoked")["id"])
    answers = [api.get("/forums/forums", key=text) for text in (elsewhere, paused, revoked, unlogged)]
    wrong = guessed[:-1] + ("0" if guessed[-1] != "0" else "1")
    answers.append(api.get("/forums/forums", key=wrong))
    assert [response.status_code for response in answers] == [403, 401, 401, 403, 401]
    details = {response.json()["detail"] for response in answers if response.status_code == 401}
    assert len(details) == 1, "callers are not told which"
    named = [key_named(run, name)["id"] for name in ("Elsewhere", "Paused", "Revoked")]
    assert [row["key_id"] for row in flushed(api, database)] == [*named, None, None]
    (found,) = run("requests.list", key=named[0])["results"]
    assert (found["error"], found["address"]) == ("2S290/8", CLIENT_ADDRESS)


def test_the_log_names_the_key_whose_old_secret_is_still_sent(
    api: ApiClient, key: MakeKey, run: Run, database: DatabaseState, clock: Clock
) -> None:
    text = key("forums.*", name="Rotated")
    number = key_named(run, "Rotated")["id"]
    run("keys.rotate", number, overlapDays=1)
    clock.move(days=1)
    read_refusal(api.get("/forums/forums", key=text), 401, "INVALID_API_KEY")
    (row,) = flushed(api, database)
    assert (row["key_id"], row["status"]) == (number, 401)


def test_a_key_that_may_not_be_used_adds_no_more_to_the_log_than_a_wrong_one(
    api: ApiClient, key: MakeKey, run: Run, database: DatabaseState
) -> None:
    text = key("*", name="Elsewhere", addresses=["192.0.2.1"])
    for _ in range(20):
        api.get("/forums/forums", key=text)
    assert len(flushed(api, database)) == 5
    assert [(one["status"], one["times"]) for one in run("requests.keyless")["results"]] == [(403, 20)]
    assert run("overview.get")["hours"][-1]["4xx"] == 20
    assert key_named(run, "Elsewhere")["lastUsedAt"] is None


def test_many_addresses_without_a_key_make_no_more_rows_than_a_hundred_do(
    api: ApiClient, run: Run, database: DatabaseState
) -> None:
    log = api.application.service.log
    for number in range(20_000):
        log.record(refused(api, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"))
    rows = flushed(api, database)
    assert len(rows) == 100
    counted = run("requests.keyless", limit=500)["results"]
    assert len(counted) == 101
    assert (counted[0]["address"], counted[0]["times"]) == ("others", 19_900)


def test_requests_that_end_later_than_others_add_no_more_to_the_log(
    api: ApiClient, run: Run, database: DatabaseState, clock: Clock
) -> None:
    """A request is logged when its response was sent, with the time at which it was received, perhaps in an earlier minute."""
    log = api.application.service.log
    slow = [refused(api, f"10.0.{number >> 8}.{number & 255}") for number in range(500)]
    clock.move(minutes=1)
    for one in slow:
        log.record(refused(api, one.address))
        log.record(one)
    assert len(flushed(api, database)) == 100
    assert len(run("requests.keyless", limit=500)["results"]) <= 202


def refused(api: ApiClient, address: str) -> Request:
    return Request(api.application.gate.now(), "GET", "/api/x", None, None, address, 401, 1, "r", "2S290/6", is_example=True)


def test_the_database_grows_no_further_when_the_same_address_goes_on(api: ApiClient, gate: Gate, database: DatabaseState) -> None:
    sizes = []
    for _ in range(3):
        for _ in range(5_000):
            api.application.service.log.record(refused(api, "203.0.113.9"))
        flushed(api, database)
        with gate.store.reading() as tx:
            tables = ("logged_requests", "request_shapes", "keyless_requests", "key_uses", "request_hours")
            sizes.append([tx.raw.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables])  # noqa: S608
    assert sizes == [[5, 1, 1, 0, 1]] * 3


def test_the_log_has_a_greatest_size_and_the_oldest_requests_go_first(
    make_api: MakeApiClient, gate: Gate, database: DatabaseState, key: MakeKey
) -> None:
    text = key([], name="Chatty")
    api = make_api(text, request_log_size=1_048_576)
    log, known = api.application.service.log, Request(gate.now(), "GET", "/api/x", None, 1, CLIENT_ADDRESS, 200, 1, "r", None)
    for number in range(6_000):
        log.record(known._replace(path=f"/api/{number:06d}/".ljust(400, "x")))
        if number % 500 == 499:
            api.do(log.flush())
            with gate.store.reading() as tx:
                assert requests.check_size(tx)[0] <= 1_048_576
    paths = [row["path"][:11] for row in database.requests()]
    assert paths == [f"/api/{number:06d}" for number in range(6_000 - len(paths), 6_000)]
    assert 1_000 <= len(paths) < 2_000
    with gate.store.reading() as tx:
        counted, found = requests.check_size(tx)
    assert counted == found


def test_what_a_busy_database_could_not_take_is_counted_later(
    api: ApiClient, gate: Gate, key: MakeKey, run: Run, database: DatabaseState, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = key([], name="Used")
    api.get("/core/hello", key=text)
    api.get("/core/hello", key=None, address="203.0.113.9")
    with monkeypatch.context() as busy:
        busy.setattr(gate.store, "write", lambda *_, **__: refused_write())
        api.do(api.application.service.log.flush())
    api.get("/core/hello", key=None, address="203.0.113.9")
    assert len(flushed(api, database)) == 3
    assert key_named(run, "Used")["lastUsedAt"] is not None
    assert [one["times"] for one in run("requests.keyless")["results"]] == [2]


def refused_write() -> Future[None]:
    future: Future[None] = Future()
    future.set_exception(Refused("BUSY", "The database is busy."))
    return future


# --- by itself ----------------------------------------------------------------------------------------------------


def test_a_log_that_cannot_be_written_stops_no_request(
    api: ApiClient, database: DatabaseState, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.get("/core/hello")
    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(requests, "append", Mock(side_effect=ValueError))
        api.do(api.application.service.log.flush())
    assert "could not be written to the request log" in caplog.text
    assert api.get("/core/hello").status_code == 200
    assert len(flushed(api, database)) == 1, "the next batch is written again"


def test_uses_and_counts_are_written_though_requests_cannot_be_and_the_other_way_round(
    api: ApiClient,
    key: MakeKey,
    run: Run,
    database: DatabaseState,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = key([], name="Used")

    def ask_while_it_fails(name: str) -> list[dict[str, Any]]:
        api.get("/core/hello", key=text)
        api.get("/core/hello", key=None, address="203.0.113.9")
        with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
            patch.setattr(requests, name, Mock(side_effect=ValueError))
            api.do(api.application.service.log.flush())
        return database.requests()

    assert ask_while_it_fails("append") == []
    assert key_named(run, "Used")["lastUsedAt"] is not None
    assert [one["times"] for one in run("requests.keyless")["results"]] == [1]
    assert len(ask_while_it_fails("append_keyless")) == 2
    assert [record.getMessage() for record in caplog.records] == [
        "2 requests could not be written to the request log.",
        "The last uses of 0 keys and the counts of 1 requests without a valid key could not be written.",
    ]


def test_what_finds_no_table_of_the_log_waits_for_it(
    api: ApiClient, gate: Gate, database: DatabaseState, caplog: pytest.LogCaptureFixture
) -> None:
    gate.store.write(lambda tx: tx.connection.execute(sa.text("ALTER TABLE logged_requests RENAME TO away"))).result(60)
    api.get("/core/hello")
    with caplog.at_level(logging.ERROR):
        api.do(api.application.service.log.flush())
    assert "logged_requests" in caplog.text
    assert api.get("/core/hello").status_code == 200
    gate.store.write(lambda tx: tx.connection.execute(sa.text("ALTER TABLE away RENAME TO logged_requests"))).result(60)
    assert len(flushed(api, database)) == 2


def test_a_running_service_writes_its_log(service: Service, key: MakeKey, database: DatabaseState) -> None:
    assert service.call("GET", "/core/hello", key([]), {"X-Request-Id": "seen"}).status_code == 200
    wait_until(lambda: [row["request_id"] for row in database.requests()] == ["seen"])
    (row,) = database.requests()
    assert (row["request_id"], row["address"], row["status"], row["operation"]) == ("seen", "127.0.0.1", 200, "core.hello")
