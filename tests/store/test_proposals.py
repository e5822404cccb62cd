"""Proposals in the database: pages of thousands of them are listed from indexes, past whose rows nothing is read."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pytest
import sqlalchemy as sa

from trellis.core.gate import Gate
from trellis.store import proposals
from trellis.store.engine import Store, Transaction
from trellis.store.proposals import Proposal

NOW: Final = "2026-01-31T09:30:00.000Z"
THEN: Final = "2026-02-07T09:30:00.000Z"
STATES: Final = ("open", "rejected")
ONE: Final = Proposal(
    1, "prp_1", "open", "key", 1, "Agent", "forums.delete", 1, None, "", None, None, None, None, {}, 1, "", NOW, THEN
)


@pytest.fixture
def made(gate: Gate) -> list[Proposal]:
    """Sixty of them, by three keys, of two operations, in two states; those with a number that five divides have expired."""
    some = [
        replace(
            ONE,
            id=number,
            identity=str(number),
            actor_id=number % 3 + 1,
            state=STATES[number // 3 % 2],
            operation=("forums.delete", "forums.update")[number // 6 % 2],
            expires_at=NOW if number % 5 == 0 else THEN,
        )
        for number in range(1, 61)
    ]

    def insert(tx: Transaction) -> None:
        for one in some:
            proposals.insert(tx, one, {"plan": "x" * 5000})

    gate.store.write(insert).result()
    return some


@contextmanager
def statements(store: Store) -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that are executed."""
    collected: list[tuple[str, Any]] = []

    def collect(
        _connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool
    ) -> None:  # as SQLAlchemy calls it
        collected.append((statement, parameters))

    sa.event.listen(store.engine, "before_cursor_execute", collect)
    yield collected
    sa.event.remove(store.engine, "before_cursor_execute", collect)


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"state": "open"},
        {"state": "expired"},
        {"operation": "forums.update"},
        {"state": "open", "operation": "forums.update"},
        {"actor": ("key", 2)},
        {"actor": ("key", 2), "state": "open"},
    ],
    ids=str,
)
def test_a_page_is_chosen_from_indexes_alone(gate: Gate, made: list[Proposal], filters: dict[str, Any]) -> None:
    def is_wanted(one: Proposal) -> bool:
        state = "expired" if one.state == "open" and one.expires_at <= NOW else one.state
        wanted = {"state": state, "operation": one.operation, "actor": ("key", one.actor_id)}
        return all(wanted[name] == value for name, value in filters.items())

    expected = [one.id for one in reversed(made) if is_wanted(one)]
    with gate.store.reading() as tx:
        with statements(gate.store) as executed:
            total, page = proposals.read_page(tx, filters, 5, 2, now=NOW)
        assert (total, [one.id for one in page]) == (len(expected), expected[2:7])
        if tx.sqlite:
            plans = [str(row[3]) for sql, given in executed for row in tx.raw.execute(f"EXPLAIN QUERY PLAN {sql}", given)]
            read = [step for step in plans if step.startswith(("SCAN", "SEARCH")) and "COVERING INDEX" not in step]
            assert all("PRIMARY KEY" in step or (step.startswith("SCAN proposals") and not filters) for step in read), plans
