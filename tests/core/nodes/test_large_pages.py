"""Pages of records with very long texts: no more is read than there is room for, however a list is filtered and sorted."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, product
from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Run
from tests.memory_meter import MemoryMeter
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.store import nodes
from trellis.store.counters import next_numbers
from trellis.store.engine import Transaction
from trellis.store.lists import pages
from trellis.store.nodes import bounded

LONGEST = "x" * 20_000
ROOM = 2**20  # bytes
SORTS = ("id", "name", "position", "createdAt", "updatedAt")
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"parentId": "top"},
    {"type": "discussions"},
    {"type": "discussions,category"},
    {"search": "part"},
    {"search": "pa"},
    {"under": "top"},
    {"updatedSince": "2020-01-01"},
    {"ids": list(range(1, 1000))},
)


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MOST_BYTES", ROOM)
    monkeypatch.setattr(bounded, "AT_ONCE", 10)
    monkeypatch.setattr(pages, "AT_ONCE", 20)
    monkeypatch.setattr(pages, "_ALWAYS_SORTED", 20)


@pytest.fixture
def top(gate: Gate, run: Run, community: Community) -> int:
    """A forum with 5 MB of descriptions in its children and theirs."""

    def insert(tx: Transaction) -> None:
        node = nodes.find_by_ids(tx, "forums", (part,))[part]
        nodes.insert_siblings(tx, "forums", [replace(node, id=number) for number in next_numbers(tx, "forums", 200)])

    top = int(run("forums.create", name="Top")["id"])
    part = int(run("forums.create", name="Part", parentId=top, description=LONGEST, permissions={"read": "*"})["id"])
    for _ in range(6):
        run("forums.copy", part, withChildren=True, parentId=part)
    gate.store.write(insert).result()
    return top


def lists(top: int) -> Iterator[dict[str, Any]]:
    """Yield each filter with each order. Orders are odd in number: what alternates comes with each filter, and with each order."""
    for given, sort in product(FILTERS, SORTS):
        yield {"sortBy": sort, **{name: top if value == "top" else value for name, value in given.items()}}


@pytest.mark.slow
def test_pages_of_very_long_texts_are_refused_before_they_are_read(run: Run, top: int) -> None:
    large: dict[str, int] = {}
    for place, asked in zip(cycle(({"sortDir": "asc", "page": 2}, {"sortDir": "desc", "page": 1})), lists(top), strict=False):
        asked |= {**place, "perPage": 120}
        with MemoryMeter() as meter, pytest.raises(Refused) as refusal:
            run("forums.list", **asked)
        assert refusal.value.message == "PAGE_TOO_LARGE"
        assert "more than 1 MiB of text. Ask for fewer at once" in refusal.value.detail
        large[str(asked)] = meter.peak
    assert {asked: peak for asked, peak in large.items() if peak > 3 * ROOM} == {}


def test_a_page_that_one_statement_could_read_is_refused_too(gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """170 of the longest descriptions have more than 64 MiB if each character takes four bytes; here all is a 25th of that."""
    monkeypatch.undo()
    monkeypatch.setattr(bounded, "MOST_BYTES", bounded.MOST_BYTES // 25)

    def insert(tx: Transaction) -> None:
        node = nodes.find_by_ids(tx, "forums", (first,))[first]
        nodes.insert_siblings(tx, "forums", [replace(node, id=number) for number in next_numbers(tx, "forums", 180)])

    first = int(run("forums.create", name="First", description="\U0001f33b" * 4_000)["id"])
    gate.store.write(insert).result()
    with pytest.raises(Refused, match="PAGE_TOO_LARGE"):
        run("forums.list", perPage=180)
    assert len(run("forums.list", perPage=150)["results"]) == 150


@pytest.mark.slow
def test_a_smaller_page_is_answered_whatever_it_is_chosen_from(run: Run, top: int) -> None:
    large: dict[str, int] = {}
    for page, asked in zip(cycle((1, 3)), lists(top), strict=False):
        asked |= {"page": page, "perPage": 10}
        with MemoryMeter() as meter:
            assert len(run("forums.list", **asked)["results"]) == 10
        large[str(asked)] = meter.peak
    assert {asked: peak for asked, peak in large.items() if peak > 2 * ROOM} == {}


def test_a_level_of_very_long_texts_is_refused(run: Run, top: int) -> None:
    with pytest.raises(Refused, match="PAGE_TOO_LARGE"):
        run("forums.level", parentId=top, perPage=120)
    assert len(run("forums.level", parentId=top, perPage=20)["results"]) == 20


def test_what_a_group_may_do_in_nodes_with_very_long_texts_is_refused(run: Run, top: int) -> None:
    with pytest.raises(Refused, match="PAGE_TOO_LARGE"):
        run("access.view", group=3, resource="forums", perPage=200)
