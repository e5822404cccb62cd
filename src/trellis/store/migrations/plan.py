"""The plan of a migration: its steps, how long they may take, and their effect on users of the database."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

import sqlalchemy as sa

from trellis.settings import Settings
from trellis.store.condition import Condition, find_condition
from trellis.store.engine import open_engine
from trellis.store.migrations.effect import Effect
from trellis.store.steps import find_newest_step, find_step, list_steps

_ESTIMATE = sa.text("SELECT reltuples FROM pg_class WHERE oid = to_regclass(quote_ident(:name))")


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step that would run: its name, a one-line summary, the estimated seconds for the current rows, and its effect."""

    name: str
    summary: str
    seconds: float
    effect: Effect


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """The steps that are missing in a database. `at` is its step; None if it is missing or empty, so that no release uses it yet.

    `blocked` are the tables that nobody else can read until all steps are done.
    """

    engine: str
    at: str | None
    newest: str
    steps: tuple[PlannedStep, ...]
    blocked: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """The estimated seconds for all steps."""
        return sum(step.seconds for step in self.steps)

    @property
    def reads(self) -> bool:
        """Whether the release that the database is from can still read it afterwards."""
        return all(step.effect.reads for step in self.steps)

    @property
    def writes(self) -> bool:
        """Whether that release still writes everything that is needed."""
        return self.reads and all(step.effect.writes for step in self.steps)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Descriptions of what that release would ignore."""
        return tuple(step.effect.unknown for step in self.steps if step.effect.unknown is not None)


def plan_migration(settings: Settings) -> MigrationPlan:
    """Plan what `migrate` would do with a database that is missing, empty, older or ready, without changing anything."""
    is_there = find_condition(settings) in {Condition.OLDER, Condition.READY}
    at = find_step(settings) if is_there else None
    lacking = [(name, _load(file)) for name, file in sorted(list_steps().items()) if at is None or name > at]
    with open_engine(settings) as engine:
        tables = {table for _, step in lacking for table in (*step.effect.seconds, *step.effect.blocks)}
        rows = _count(engine, tables) if is_there else {}
        is_sqlite = engine.dialect.name == "sqlite"
        steps = tuple(
            PlannedStep(name, _summary(step), _estimate(step.effect, rows, is_sqlite=is_sqlite), step.effect)
            for name, step in lacking
        )
        blocked = () if is_sqlite else tuple(sorted({table for step in steps for table in step.effect.blocks if table in rows}))
        return MigrationPlan(engine.dialect.name, at, find_newest_step(), steps, blocked)


def list_blocked(at: str, to: str) -> set[str]:
    """Return the tables that the steps after `at` up to `to`, which may be "head", block for others while they run."""
    steps = (_load(file) for name, file in list_steps().items() if at < name and (to == "head" or name <= to))
    return {table for step in steps for table in step.effect.blocks}


def _load(file: str) -> Any:
    return import_module(f"trellis.store.migrations.versions.{file}")


def _summary(step: Any) -> str:
    return cast("str", step.__doc__).splitlines()[0]


def _estimate(effect: Effect, rows: dict[str, int], *, is_sqlite: bool) -> float:
    return sum(rows.get(table, 0) / 1e6 * each[not is_sqlite] for table, each in effect.seconds.items())


def _count(engine: sa.Engine, tables: Iterable[str]) -> dict[str, int]:
    """Count the rows of those tables that exist. On PostgreSQL, use the server's own estimate if it has one."""
    with engine.connect() as connection:
        there = set(sa.inspect(connection).get_table_names()) & set(tables)
        return {table: _count_rows(connection, table) for table in there}


def _count_rows(connection: sa.Connection, table: str) -> int:
    if connection.dialect.name == "postgresql" and (estimate := connection.execute(_ESTIMATE, {"name": table}).scalar_one()) >= 0:
        return int(estimate)
    return int(connection.execute(sa.select(sa.func.count()).select_from(sa.table(table))).scalar_one())
