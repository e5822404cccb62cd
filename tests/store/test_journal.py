"""What happened: events, kept answers and the request log, and how long they stay."""

from collections.abc import Iterator
from typing import Any

import pytest

from trellis.settings import Settings
from trellis.store import journal
from trellis.store.engine import Store
from trellis.store.journal import Event, Request


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    store = Store(settings)
    yield store
    store.close()


def event(**values: Any) -> Event:
    made: dict[str, Any] = {
        "seq": 0,
        "at": "2026-01-31T09:30:00.000Z",
        "operation": "forums.create",
        "actor": {"type": "terminal", "id": None, "name": "terminal"},
        "request_id": None,
        "reason": None,
        "resource": "forums",
        "resource_id": 1,
        "before": None,
        "after": {"id": 1, "name": "新聞 '\"\\"},
        "changed": [],
        "touched": [],
    }
    return Event(**(made | values))


def request(at: str, status: int = 200, **values: Any) -> Request:
    made: dict[str, Any] = {
        "at": at,
        "method": "GET",
        "path": "/api/forums/forums",
        "operation": "forums.list",
        "key_id": 7,
        "address": "192.0.2.7",
        "status": status,
        "duration": 1234,
        "request_id": f"r-{at}-{status}",
        "error": None if status < 400 else "2S291/3",
    }
    return Request(**(made | values))


def test_events_are_numbered_and_read_back_as_they_were_written(store: Store) -> None:
    bare = event(request_id=None, after=None, before={"a": [1, None]}, changed=["a"], touched=[{"resource": "forums", "id": 2}])
    assert store.write(lambda tx: [journal.append(tx, event(seq=99)), journal.append(tx, bare)]).result(30) == [1, 2]
    with store.reading() as tx:
        first, second = journal.event_page(tx, {}, 10, None, newest_first=False)
    assert first == event(seq=1)
    assert (second.before, second.after) == ({"a": [1, None]}, None)
    assert list(second.changed) == ["a"]


def test_events_are_filtered_and_paged(store: Store) -> None:
    rows = [event(resource_id=1), event(resource="blogs", operation="blogs.delete"), event(resource_id=2), event(resource_id=1)]
    store.write(lambda tx: [journal.append(tx, row) for row in rows]).result(30)

    def seqs(filters: dict[str, Any], limit: int = 10, after: int | None = None, *, newest: bool = False) -> list[int]:
        with store.reading() as tx:
            return [one.seq for one in journal.event_page(tx, filters, limit, after, newest_first=newest)]

    assert seqs({}) == [1, 2, 3, 4]
    assert seqs({}, 2, 1) == [2, 3]
    assert seqs({}, 2, newest=True) == [4, 3]
    assert seqs({}, 2, 3, newest=True) == [2, 1]
    assert seqs({"resource": "forums", "resource_id": 1}) == [1, 4]
    assert seqs({"operation": "blogs.delete"}) == [2]


def test_a_kept_answer_is_found_by_key_and_token_and_replaced_by_a_newer_one(store: Store) -> None:
    store.write(lambda tx: journal.keep_answer(tx, 7, "t", "f-1", {"id": 1, "name": None}, "2026-01")).result(30)
    store.write(lambda tx: journal.keep_answer(tx, 8, "t", "f-2", None, "2026-02")).result(30)
    with store.reading() as tx:
        assert journal.answer_of(tx, 7, "t") == ("f-1", {"id": 1, "name": None}, "2026-01")
        assert journal.answer_of(tx, 7, "u") is None
        assert journal.answer_of(tx, 9, "t") is None
    store.write(lambda tx: journal.keep_answer(tx, 7, "t", "f-3", {"id": 2}, "2026-03")).result(30)
    with store.reading() as tx:
        assert journal.answer_of(tx, 7, "t") == ("f-3", {"id": 2}, "2026-03")


def test_requests_are_logged_in_batches_and_read_newest_first(store: Store) -> None:
    batch = [
        request("2026-01-01T00:00:00.000Z"),
        request("2026-01-01T00:00:01.000Z", 403),
        request("2026-01-01T00:00:02.000Z", 401, operation=None, key_id=None, path="/api/新聞/'\";--", method="BREW"),
    ]
    store.write(lambda tx: journal.log_requests(tx, batch)).result(30)
    store.write(lambda tx: journal.log_requests(tx, [])).result(30)
    with store.reading() as tx:
        assert journal.request_page(tx) == batch[::-1]
        assert journal.request_page(tx, 1) == batch[2:]


def purge(store: Store, **values: Any) -> int:
    limits = {"successes_before": "2026-01-20", "failures_before": "2026-01-10", "answers_before": "2026-01-30"} | values
    return store.write(lambda tx: journal.purge(tx, **limits)).result(30)


def test_purging_deletes_by_age_failures_later_than_successes(store: Store) -> None:
    batch = [request(f"2026-01-{day}", status) for day in ("09", "10", "19", "20") for status in (200, 304, 404, 500)]
    store.write(lambda tx: journal.log_requests(tx, batch)).result(30)
    assert purge(store) == 8
    with store.reading() as tx:
        left = {(one.at[-2:], one.status) for one in journal.request_page(tx)}
    assert left == {("10", 404), ("10", 500), ("19", 404), ("19", 500), ("20", 200), ("20", 304), ("20", 404), ("20", 500)}
    assert purge(store) == 0


def test_purging_keeps_successes_longer_where_that_is_set(store: Store) -> None:
    store.write(lambda tx: journal.log_requests(tx, [request("2026-01-15"), request("2026-01-15", 500)])).result(30)
    assert purge(store, successes_before="2026-01-10", failures_before="2026-01-20") == 1
    with store.reading() as tx:
        assert [one.status for one in journal.request_page(tx)] == [200]


def test_purging_takes_so_many_at_a_time(store: Store) -> None:
    store.write(lambda tx: journal.log_requests(tx, [request(f"2026-01-0{day}") for day in range(1, 8)])).result(30)
    assert [purge(store, most=3) for _ in range(4)] == [3, 3, 1, 0]


def test_purging_forgets_old_answers_and_no_events(store: Store) -> None:
    store.write(lambda tx: journal.append(tx, event(at="1999-01-01"))).result(30)
    store.write(lambda tx: journal.keep_answer(tx, 7, "2026-01-29", "f", None, "2026-01-29")).result(30)
    store.write(lambda tx: journal.keep_answer(tx, 7, "2026-01-30", "f", None, "2026-01-30")).result(30)
    assert purge(store) == 1
    with store.reading() as tx:
        assert journal.answer_of(tx, 7, "2026-01-29") is None
        assert journal.answer_of(tx, 7, "2026-01-30") is not None
        assert len(journal.event_page(tx, {}, 10, None, newest_first=False)) == 1
