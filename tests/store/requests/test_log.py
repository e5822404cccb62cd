"""The request log as it is written and purged."""

from typing import Any

from trellis.store import requests
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Transaction
from trellis.store.requests import Request


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


def logged(tx: Transaction) -> list[Request]:
    """Read the whole log, the newest first."""
    return [one.request for one in requests.search(tx, {}, 1000).found]


def test_requests_are_logged_in_batches_and_read_newest_first(store: Store) -> None:
    batch = [
        request("2026-01-01T00:00:00.000Z"),
        request("2026-01-01T00:00:01.000Z", 403),
        request("2026-01-01T00:00:02.000Z", 401, operation=None, key_id=None, path="/api/新聞/'\";--", method="BREW"),
    ]
    store.write(lambda tx: requests.append(tx, batch)).result(30)
    store.write(lambda tx: requests.append(tx, [])).result(30)
    with store.reading() as tx:
        assert logged(tx) == batch[::-1]


def purge(store: Store, **values: Any) -> int:
    limits = {"successes_before": "2026-01-20", "failures_before": "2026-01-10"} | values
    return store.write(lambda tx: requests.purge(tx, **limits)).result(30)


def test_purging_deletes_by_age_failures_later_than_successes(store: Store) -> None:
    batch = [request(f"2026-01-{day}", status) for day in ("09", "10", "19", "20") for status in (200, 304, 404, 500)]
    store.write(lambda tx: requests.append(tx, batch)).result(30)
    assert purge(store) == 8
    with store.reading() as tx:
        left = {(one.at[-2:], one.status) for one in logged(tx)}
    assert left == {("10", 404), ("10", 500), ("19", 404), ("19", 500), ("20", 200), ("20", 304), ("20", 404), ("20", 500)}
    assert purge(store) == 0


def test_purging_keeps_successes_longer_where_that_is_set(store: Store) -> None:
    store.write(lambda tx: requests.append(tx, [request("2026-01-15"), request("2026-01-15", 500)])).result(30)
    assert purge(store, successes_before="2026-01-10", failures_before="2026-01-20") == 1
    with store.reading() as tx:
        assert [one.status for one in logged(tx)] == [200]


def test_purging_takes_so_many_at_a_time(store: Store) -> None:
    store.write(lambda tx: requests.append(tx, [request(f"2026-01-0{day}") for day in range(1, 8)])).result(30)
    assert [purge(store, most=3) for _ in range(4)] == [3, 3, 1, 0]


def test_what_requests_have_in_common_goes_with_the_last_of_them(store: Store) -> None:
    batch = [request(f"2026-01-0{day}", address=f"192.0.2.{day // 3}") for day in range(1, 8)]
    store.write(lambda tx: requests.append(tx, batch)).result(30)
    assert count_shapes(store) == 3
    assert purge(store, most=2) == 2
    assert count_shapes(store) == 2
    store.write(lambda tx: requests.append(tx, batch[:1])).result(30)  # it is made anew
    with store.reading() as tx:
        assert len(logged(tx)) == 6
        assert requests.check_size(tx)[0] == requests.check_size(tx)[1]
    while purge(store):
        pass
    assert count_shapes(store) == 0
    with store.reading() as tx:
        assert requests.check_size(tx) == (0, 0)


def count_shapes(store: Store) -> int:
    with store.reading() as tx:
        return int(tx.raw.execute("SELECT count(*) FROM request_shapes").fetchone()[0])


def test_a_request_that_took_very_long_is_logged_with_the_others(store: Store) -> None:
    """A caller may take an hour to read a large answer: more microseconds than the column has room for."""
    batch = [
        request("2026-01-01T00:00:00.000Z", duration=3_600_000_000),
        request("2026-01-01T00:00:01.000Z"),
    ]
    store.write(lambda tx: requests.append(tx, batch)).result(30)
    with store.reading() as tx:
        assert [one.duration for one in logged(tx)] == [1234, 2**31 - 1]
        for milliseconds, found in ((2_000_000, 1), (3_600_000, 1), (1, 2)):
            assert len(requests.search(tx, {"slower": milliseconds * 1000}, 10).found) == found
