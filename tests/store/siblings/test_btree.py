"""The arithmetic of shelves: what is dealt out is sound and whole, and what is damaged is told from it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trellis.store.siblings.btree import HEIGHT, Shelf, cut, dealt, fill, sound


def leaves(shelves: list[Shelf]) -> dict[int, int]:
    return {shelf.id: shelf.size for shelf in shelves if shelf.level == 0}


@given(count=st.integers(1, 3000), first=st.integers(1, 99), capacity=st.integers(2, 64))
def test_siblings_that_are_dealt_out_stand_on_sound_shelves(count: int, first: int, capacity: int) -> None:
    shelves = dealt(count, first, capacity)
    assert [shelf.id for shelf in shelves] == list(range(first, first + len(shelves)))
    assert sound(shelves, leaves(shelves))
    assert (shelves[-1].above, shelves[-1].size) == (0, count)
    assert all(shelf.size <= fill(capacity) for shelf in shelves if shelf.level == 0)
    below = {shelf.id: sum(one.above == shelf.id for one in shelves) for shelf in shelves if 0 < shelf.level < HEIGHT}
    assert all(things <= capacity for things in below.values())


@given(count=st.integers(1, 3000), capacity=st.integers(2, 64), data=st.data())
def test_a_place_is_the_sum_of_what_stands_before_its_shelves(count: int, capacity: int, data: st.DataObject) -> None:
    shelves = {shelf.id: shelf for shelf in dealt(count, 1, capacity)}
    place = data.draw(st.integers(0, count - 1))
    shelf = shelves[1 + place // fill(capacity)]
    told = place % fill(capacity)
    while shelf.above:
        told += shelf.before
        shelf = shelves[shelf.above]
    assert (told, shelf.before) == (place, 0)


@given(count=st.integers(20, 400), data=st.data())
def test_a_shelf_that_does_not_agree_with_the_others_is_found(count: int, data: st.DataObject) -> None:
    shelves = dealt(count, 1, 4)
    standing = leaves(shelves)
    at = data.draw(st.integers(0, len(shelves) - 1))
    member = data.draw(st.sampled_from(["level", "above", "before", "size"]))
    by = data.draw(st.sampled_from([-2, -1, 1, 2]))
    shelves[at] = replace(shelves[at], **{member: getattr(shelves[at], member) + by})
    twins = shelves[at].level == 1 and member == "above"  # under another that is as large, it may be right by chance
    assert twins or not sound(shelves, standing)


@pytest.mark.parametrize("standing", [{}, {1: 3, 2: 3, 3: 3}, {1: 3, 2: 4}, {1: 3, 2: 3, 9: 1}])
def test_shelves_must_agree_with_who_stands_on_them(standing: dict[int, int]) -> None:
    shelves = dealt(6, 1, 4)
    assert sound(shelves, {1: 3, 2: 3})
    assert not sound(shelves, standing)
    assert not sound([], standing)


def test_a_full_shelf_is_cut_in_the_middle_and_at_the_end_when_things_come_in_order() -> None:
    assert cut([0, 10, 20, 30], at_end=False) == 20
    assert cut([0, 10, 20, 30], at_end=True) == 30
