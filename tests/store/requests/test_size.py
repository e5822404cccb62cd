"""The size of the request log: what is counted is near what the rows occupy, and the oldest go when it is too much."""

from functools import partial

import pytest

from tests.store.requests.test_log import request
from trellis.store import requests
from trellis.store.engine.store import Store
from trellis.store.engine.transaction import Transaction


def occupied(tx: Transaction) -> int:
    """Measure the bytes of the table and its indexes, those of a whole SQLite file with everything that does not change."""
    if not tx.sqlite:
        return int(
            tx.raw.execute(
                "SELECT pg_total_relation_size('logged_requests') + pg_total_relation_size('request_shapes')"
            ).fetchone()[0]
        )
    pages, size, free = (tx.raw.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size", "freelist_count"))
    return int((pages - free) * size)


def fill(store: Store, count: int, path: int) -> None:
    rows = [
        request(
            f"2026-01-{1 + i // 100:02d}T{i // 60 % 24:02d}:{i % 60:02d}:00.000Z",
            path="/" + "p" * path,
            operation=f"forums.{i % 7}",
            address=f"192.0.2.{i % 200}",
            request_id=f"{i:024x}",
        )
        for i in range(count)
    ]
    for first in range(0, count, 500):
        store.write(partial(requests.append, batch=rows[first : first + 500])).result(60)


@pytest.mark.parametrize("path", [20, 300])
def test_the_counted_size_is_near_what_the_rows_occupy(store: Store, path: int) -> None:
    with store.reading() as tx:
        before = occupied(tx)
    fill(store, 3_000, path)
    with store.reading() as tx:
        counted, found = requests.check_size(tx)
        assert counted == found
        assert 0.75 < counted / (occupied(tx) - before) < 1.33


@pytest.fixture
def in_hundreds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement deletes a hundred requests, not a thousand."""
    monkeypatch.setattr("trellis.store.requests.size._PER_STATEMENT", 100)


def test_trimming_deletes_the_oldest_until_it_fits(store: Store, in_hundreds: None) -> None:
    fill(store, 300, 20)
    with store.reading() as tx:
        size = requests.check_size(tx)[0]
    assert store.write(lambda tx: requests.trim(tx, size)).result(60) == 0
    assert store.write(lambda tx: requests.trim(tx, size // 2)).result(60) == 200, "a hundred at a time"
    with store.reading() as tx:
        counted, found = requests.check_size(tx)
        assert counted == found <= size // 2
        kept = [one.id for one in requests.search(tx, {}, 5_000).found]
    assert len(kept) == 100
    assert min(kept) == 201, "the oldest are gone"


def test_one_write_deletes_so_many_and_no_more(store: Store, in_hundreds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.store.requests.size._MOST", 100)
    fill(store, 250, 20)
    assert store.write(lambda tx: requests.trim(tx, 1)).result(60) == 100
    assert [store.write(lambda tx: requests.trim(tx, 1)).result(60) for _ in range(2)] == [100, 50]


def test_a_table_that_was_emptied_by_hand_is_counted_anew(store: Store) -> None:
    fill(store, 100, 20)
    store.write(lambda tx: tx.raw.execute("DELETE FROM logged_requests")).result(60)
    assert store.write(lambda tx: requests.trim(tx, 1)).result(60) == 0
    with store.reading() as tx:
        assert requests.check_size(tx) == (0, 0)


def test_purging_by_age_takes_off_what_it_deletes(store: Store) -> None:
    fill(store, 200, 20)
    purge = store.write(lambda tx: requests.purge(tx, successes_before="2026-01-02", failures_before="2026-01-02"))
    assert purge.result(60) == 100
    with store.reading() as tx:
        counted, found = requests.check_size(tx)
        assert counted == found > 0
