"""Numbers of sequences, taken by writes that share a commit: counted in memory, and written together."""

from concurrent.futures import Future
from threading import Event
from typing import Any

import pytest

from trellis.store.counters import add_to_total, last_number, next_number, next_numbers, read_counters, read_total, set_counter
from trellis.store.engine import Rollback, Store, Transaction


def _run_together(store: Store, *works: Any) -> list[Any]:
    """Run pieces of work in one commit; return what each returned or raised."""
    go = Event()
    first = store.write(lambda _: go.wait(10))
    waiting: list[Future[Any]] = [store.write(work) for work in works]
    go.set()
    assert first.result()
    return [one.exception() or one.result() for one in waiting]


def _read(store: Store, name: str) -> tuple[int, int]:
    with store.reading() as tx:
        return read_counters(tx)[name]


def _fail(tx: Transaction) -> None:
    next_numbers(tx, "forums", 7)
    raise ZeroDivisionError


def test_writes_that_share_a_commit_get_numbers_without_gaps(store: Store) -> None:
    taken = _run_together(
        store,
        lambda tx: next_numbers(tx, "forums", 1)[0],
        lambda tx: next_number(tx, "calendars"),
        lambda tx: list(next_numbers(tx, "forums", 3)),
        _fail,
        lambda tx: next_numbers(tx, "forums", 1)[0],
        lambda tx: next_number(tx, "calendars"),
    )
    assert taken[:3] == [1, 1, [2, 3, 4]]
    assert isinstance(taken[3], ZeroDivisionError)
    assert taken[4:] == [5, 2]
    assert _read(store, "forums") == (5, 5)
    assert _read(store, "calendars") == (2, 0)
    assert store.write(lambda tx: next_numbers(tx, "forums", 1)[0]).result() == 6


def test_a_number_that_was_not_kept_is_given_again(store: Store) -> None:
    def try_it(tx: Transaction) -> None:
        raise Rollback(next_numbers(tx, "forums", 1)[0])

    def try_inside(tx: Transaction) -> tuple[int, int, int]:
        one = next_numbers(tx, "forums", 1)[0]
        with pytest.raises(ZeroDivisionError), tx.savepoint():
            _fail(tx)
        return one, next_numbers(tx, "forums", 1)[0], last_number(tx, "forums")

    assert _run_together(store, try_it, try_it, try_inside, try_it) == [1, 1, (1, 2, 2), 3]
    assert _read(store, "forums") == (2, 2)


def test_what_reads_the_counters_in_a_transaction_sees_what_was_taken_before(store: Store) -> None:
    def take_and_look(tx: Transaction) -> list[Any]:
        next_numbers(tx, "forums", 2)
        next_numbers(tx, "forums", 3)
        seen: list[Any] = [read_total(tx, "forums"), next_numbers(tx, "forums", 1)[0], read_counters(tx)["forums"]]
        next_numbers(tx, "forums", 4)
        add_to_total(tx, "forums", -2)
        set_counter(tx, "forums", 100, 50)
        return [*seen, last_number(tx, "forums"), next_numbers(tx, "forums", 1)[0]]

    assert store.write(take_and_look).result() == [5, 6, (6, 6), 100, 101]
    assert _read(store, "forums") == (101, 51)
