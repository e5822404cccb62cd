"""Positions of siblings that leave and come back one by one, against lists from which they are really taken."""

from hypothesis import given
from hypothesis import strategies as st

from trellis.store.siblings.succession import positions_after_return, positions_on_leaving

leaving = st.integers(1, 30).flatmap(lambda count: st.tuples(st.just(count), st.lists(st.integers(0, count - 1), unique=True)))


@given(leaving)
def test_who_leaves_has_the_position_that_those_before_have_left(line: tuple[int, list[int]]) -> None:
    count, gone = line
    there, found = [*range(count)], []
    for one in gone:
        found.append(there.index(one))
        there.remove(one)
    assert positions_on_leaving(gone) == found
    assert positions_after_return(found, len(there)) == gone


@given(st.integers(0, 30), st.lists(st.integers(0, 60)))
def test_who_comes_back_is_where_a_list_has_it(others: int, wanted: list[int]) -> None:
    there: list[int | None] = [None] * others
    for one in reversed(range(len(wanted))):
        there.insert(wanted[one], one)
    assert positions_after_return(wanted, others) == [there.index(one) for one in range(len(wanted))]
