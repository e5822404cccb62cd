"""Counts of requests without a good key: added up, found, and purged by age and by number."""

from trellis.store import requests
from trellis.store.engine.store import Store
from trellis.store.requests import KeylessCount


def count(store: Store, minute: str, address: str = "192.0.2.7", times: int = 1) -> None:
    one = KeylessCount(f"2026-01-31T09:{minute}", address, 401, "2S290/6", times)
    store.write(lambda tx: requests.append_keyless(tx, [one])).result(30)


def found(store: Store, address: str | None = None, since: str | None = None, until: str | None = None) -> list[tuple[str, int]]:
    with store.reading() as tx:
        return [(one.minute[14:], one.times) for one in requests.search_keyless(tx, address, since, until, 100)]


def test_counts_of_a_minute_add_up_whoever_writes_them(store: Store) -> None:
    for _ in range(3):
        count(store, "30", times=2)
    count(store, "31")
    count(store, "31", "192.0.2.8", 5)
    assert found(store) == [("31", 5), ("31", 1), ("30", 6)]
    assert found(store, "192.0.2.7") == [("31", 1), ("30", 6)]
    assert found(store, since="2026-01-31T09:31:59.000Z") == [("31", 5), ("31", 1)]
    assert found(store, until="2026-01-31T09:31:00.000Z") == [("30", 6)]


def test_the_old_ones_go_and_the_oldest_of_too_many(store: Store) -> None:
    for minute in range(10, 20):
        count(store, str(minute))
        count(store, str(minute), "192.0.2.8")

    def purge(before: str, most: int) -> int:
        return store.write(lambda tx: requests.purge_keyless(tx, before, most)).result(30)

    assert purge("2026-01-31T09:12:30.000Z", 1000) == 4
    assert purge("2026-01-31T09:12:30.000Z", 1000) == 0
    assert purge("", 7) == 10, "whole minutes"
    assert [minute for minute, _ in found(store)] == ["19", "19", "18", "18", "17", "17"]
