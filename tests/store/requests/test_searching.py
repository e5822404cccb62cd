"""The request log as it is searched: every filter alone and together, page by page, and never for long."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from random import Random
from typing import Any

import pytest

from trellis.store import log_search, requests
from trellis.store.engine.store import Store
from trellis.store.requests import Request

Write = Callable[[Sequence[Request]], None]


@pytest.fixture
def write(store: Store) -> Write:
    return lambda batch: store.write(lambda tx: requests.append(tx, batch)).result(30)


def request(number: int, **values: Any) -> Request:
    """Make a request; a second lies between one and the next."""
    at = f"2026-01-31T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}.000Z"
    made = Request(at, "GET", "/api/forums/forums", "forums.list", 1, "192.0.2.7", 200, 500, f"r-{number}", None)
    return made._replace(**values)


FILTERS: dict[str, tuple[Any, Callable[[Request], bool]]] = {
    "key_id": (2, lambda r: r.key_id == 2),
    "operation": ("forums.get", lambda r: r.operation == "forums.get"),
    "address": ("192.0.2.1", lambda r: r.address == "192.0.2.1"),
    "status": (404, lambda r: r.status == 404),
    "method": ("POST", lambda r: r.method == "POST"),
    "path": ("/7%_'", lambda r: "/7%_'" in r.path),
    "status_class": (4, lambda r: 400 <= r.status < 500),
    "slower": (900, lambda r: r.duration >= 900),
    "since": ("2026-01-31T00:00:12.000Z", lambda r: r.at >= "2026-01-31T00:00:12.000Z"),
    "until": ("2026-01-31T00:00:40.000Z", lambda r: r.at < "2026-01-31T00:00:40.000Z"),
}


def _some(count: int) -> list[Request]:
    dice = Random(3)  # noqa: S311  # not for secrets
    return [
        request(
            number // 3 * 3,  # some at the same moment
            method=dice.choice(("GET", "POST")),
            path=dice.choice(("/api/forums/forums", "/api/forums/forums/7%_'")),
            operation=dice.choice(("forums.list", "forums.get", None)),
            key_id=dice.choice((1, 2, None)),
            address=dice.choice(("192.0.2.1", "192.0.2.2")),
            status=dice.choice((200, 304, 403, 404, 500)),
            duration=dice.choice((100, 900, 1200)),
            request_id=f"r-{number}",
        )
        for number in range(count)
    ]


# Of many shapes those with the newest rows are enough, unless rows have to be compared: then all of them count, if these are rare.
SHAPES: dict[str, dict[str, int]] = {
    "few": {},
    "more": {"_FEW": 1},
    "rare": {"_FEW": 1, "_RARE": 0},
    "too many": {"_FEW": 1, "_MANY": 1},
}


IN_CHUNKS = {"few", "more"}  # of these, the rows are searched in several chunks, of the others in one


@pytest.fixture(params=SHAPES)
def shapes(monkeypatch: Any, request: Any) -> str:
    for name, number in SHAPES[request.param].items():
        monkeypatch.setattr(f"trellis.store.requests.searching.{name}", number)
    return str(request.param)


def test_every_pair_of_filters_finds_what_passes_both(store: Store, write: Write, monkeypatch: Any, shapes: str) -> None:
    monkeypatch.setattr("trellis.store.requests.searching._CHUNK", 20 if shapes in IN_CHUNKS else 5000)
    everything = _some(60)
    write(everything)
    pairs = [*combinations(FILTERS, 2)]
    if shapes != "few":  # each of the others has a third of them
        pairs = pairs[[*SHAPES].index(shapes) - 1 :: 3]
    for names in [(), *((name,) for name in FILTERS), *pairs]:
        filters = {name: FILTERS[name][0] for name in names}
        passing = [r for r in everything[::-1] if all(FILTERS[name][1](r) for name in names)]
        with store.reading() as tx:
            found = requests.search(tx, filters, 1000)
        assert [one.request for one in found.found] == passing, names
        assert (found.next, found.complete) == (None, True)


@pytest.mark.usefixtures("shapes")
@pytest.mark.parametrize("filters", [{"key_id": 2}, {"path": "7%", "status": 404}])
def test_pages_follow_on_each_other_without_a_gap(store: Store, write: Write, monkeypatch: Any, filters: dict[str, Any]) -> None:
    compare_pages(store, write, monkeypatch, filters)


@pytest.mark.parametrize("filters", [{}, {"slower": 900}])
def test_so_do_pages_of_all_shapes(store: Store, write: Write, monkeypatch: Any, filters: dict[str, Any]) -> None:
    compare_pages(store, write, monkeypatch, filters)


def compare_pages(store: Store, write: Write, monkeypatch: Any, filters: dict[str, Any]) -> None:
    monkeypatch.setattr("trellis.store.requests.searching._CHUNK", 16)
    write(_some(100))
    with store.reading() as tx:
        whole = [one.id for one in requests.search(tx, filters, 1000).found]
        for time_limit in (60.0, 0.0):
            monkeypatch.setattr(log_search, "LONGEST", time_limit)
            pages, place = list[int](), None
            for _ in range(100):
                result = requests.search(tx, filters, 8, place)
                pages += [one.id for one in result.found]
                place = result.next
                if place is None:
                    break
            assert pages == whole, time_limit
    assert len(whole) > 8


@pytest.mark.parametrize("filters", [{}, {"key_id": 1}, {"key_id": 1, "path": "forums"}])
def test_a_search_goes_on_from_any_position(store: Store, write: Write, filters: dict[str, Any]) -> None:
    write([request(1), request(2)])
    with store.reading() as tx:
        for at in ("", "0001-01-01T00:00:00.000Z", "2026-01-31T00:00:01.000Z", "9999-12-31T23:59:59.999Z"):
            found = requests.search(tx, filters, 10, (at, 99))
            assert [one.request.request_id for one in found.found] == [f"r-{n}" for n in (2, 1) if request(n).at <= at], at
            assert (found.next, found.complete) == (None, True), at
        limits = {"since": "0001-01-01T00:00:00.000Z", "until": "9999-12-31T23:59:59.999Z"}
        assert len(requests.search(tx, filters | limits, 10).found) == 2
        assert requests.search(tx, filters | {"until": limits["since"]}, 10).found == []
        assert requests.search(tx, filters | {"since": limits["until"]}, 10).found == []


@pytest.mark.parametrize("filters", [{}, {"key_id": 1}, {"path": "forums"}, {"key_id": 1, "slower": 1}])
def test_a_log_of_a_few_rows_is_searched_whole_however_little_time_there_is(
    store: Store, write: Write, monkeypatch: Any, filters: dict[str, Any]
) -> None:
    write([request(number, at=f"20{number + 10}-01-31T00:00:00.000Z") for number in range(10)])
    monkeypatch.setattr(log_search, "LONGEST", 0.0)
    with store.reading() as tx:
        found = requests.search(tx, filters, 100)
    assert (len(found.found), found.next, found.complete) == (10, None, True)


def test_requests_without_a_key_are_found_by_0(store: Store, write: Write) -> None:
    write([request(1), request(2, key_id=None, status=401)])
    with store.reading() as tx:
        assert [one.request.request_id for one in requests.search(tx, {"key_id": 0}, 10).found] == ["r-2"]


def test_the_size_of_the_log_is_estimated(store: Store, write: Write) -> None:
    with store.reading() as tx:
        assert requests.estimate_count(tx) == 0
    write([request(number) for number in range(5)])
    with store.reading() as tx:
        assert requests.estimate_count(tx) == 5


# --- what keys use ------------------------------------------------------------------------------------------------


def test_uses_are_counted_by_day_operation_and_status(store: Store, write: Write) -> None:
    refused = [request(second, status=403, operation="forums.delete") for second in (3, 2)]  # which ended in this order
    write([request(1), request(2), *refused, request(4, key_id=None)])
    write([request(5, status=404), request(6, operation=None, status=404), request(7, key_id=2)])
    with store.reading() as tx:
        counted = requests.read_quarters(tx, [1], "2026-01-31")
        assert sorted(counted) == [(1, f"{request(1).at[:14]}00", 2, 2), (1, f"{request(1).at[:14]}00", 4, 4)]
        used = {use.operation: use for use in requests.count_uses(tx, 1)}
        assert requests.read_quarters(tx, [1], "2026-02-01") == []
    assert set(used) == {"forums.list", "forums.delete"}
    assert used["forums.list"][1:] == (3, request(5).at, 0, None)
    assert used["forums.delete"][1:] == (0, None, 2, request(3).at)


def test_uses_outlive_the_requests_until_they_are_purged(store: Store, write: Write) -> None:
    write([request(1)])
    purge = partial(requests.purge, successes_before="2027", failures_before="2027")
    store.write(lambda tx: purge(tx, uses_before="2026-01-31T00:00:00.000Z")).result(30)
    with store.reading() as tx:
        assert requests.search(tx, {}, 10).found == []
        assert len(requests.count_uses(tx, 1)) == 1
    assert store.write(lambda tx: purge(tx, uses_before="2026-02-01T00:00:00.000Z")).result(30) == 3  # and its hour and quarter
    with store.reading() as tx:
        assert requests.count_uses(tx, 1) == []
