"""Upgrading a database that is in use: what `migrate --plan` says of it beforehand is what happens.

Every step since the first can be upgraded. TRELLIS_TEST_UPGRADE=1000000 does it with so many rows of request log, and with -s
prints how long each step took.
"""

import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

import pytest
import sqlalchemy as sa

from trellis.cli.community import act
from trellis.compose import compose
from trellis.settings import Settings
from trellis.store.condition import Condition, find_condition
from trellis.store.engine import Store, open_engine
from trellis.store.migrate import migrate
from trellis.store.migrations import plan_migration
from trellis.store.steps import find_step, list_steps

ROWS: Final = int(os.environ.get("TRELLIS_TEST_UPGRADE", "1000"))
FIRST: Final = min(list_steps())
FILL: Final = """INSERT INTO requests (id, at, method, path, operation, key_id, address, status, duration, request_id)
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})
    SELECT n, '2026-01-' || (10 + n % 20) || 'T' || (10 + n % 14) || ':00:00.000Z', 'GET', '/api/forums/forums/' || n, 'forums.get',
    1 + n % 5, '192.0.2.' || n % 250, CASE WHEN n % 10 = 0 THEN 404 ELSE 200 END, 3, 'request-' || n FROM numbers"""
LOG_OF_FIRST: Final = (
    "SELECT id, at, method, path, operation, key_id, address, status, duration, request_id, error FROM requests"
    " WHERE at < '2026-02' ORDER BY at DESC, id DESC LIMIT 50"
)
LOCKED: Final = """
    SELECT relname FROM pg_locks JOIN pg_class ON pg_class.oid = relation
    WHERE mode = 'AccessExclusiveLock' AND relkind = 'r'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def read(settings: Settings, query: str) -> list[Any]:
    with open_engine(settings) as engine, engine.connect() as connection:
        return list(connection.exec_driver_sql(query).scalars())


def write(settings: Settings, statement: str) -> None:
    store = Store(settings)
    store.write(lambda tx: tx.raw.execute(statement), quiet=True).result(600)
    store.close()


def read_as_first_release(connection: sa.Connection) -> tuple[list[Any], list[str]]:
    """Read the log and the names of the groups."""
    connection.exec_driver_sql("BEGIN")
    rows = connection.exec_driver_sql(LOG_OF_FIRST).scalars().all()
    names = connection.exec_driver_sql("SELECT name FROM nodes WHERE kind = 'groups' ORDER BY id").scalars().all()
    connection.exec_driver_sql("COMMIT")
    return list(rows), list(names)


def test_a_long_log_is_upgraded_while_the_first_release_reads_it(engine: str, empty_database: Settings) -> None:
    migrate(empty_database, to=FIRST)
    write(empty_database, FILL.format(rows=ROWS))
    plan = plan_migration(empty_database)
    assert (find_step(empty_database), plan.at, plan.reads) == (FIRST, FIRST, False)
    assert ("requests" in plan.blocked) == (engine == "postgresql")
    assert plan.seconds > 0

    with ThreadPoolExecutor(1) as pool, open_engine(empty_database) as opened, opened.connect() as connection:
        first = read_as_first_release(connection)
        assert len(first[0]) == 50
        ran: list[str] = []
        waiting: list[Future[Any]] = []
        since = time.monotonic()

        def stepped(step: str) -> None:
            nonlocal since
            now = time.monotonic()
            sys.stdout.write(f"{engine} {step}: {now - since:.2f} s, planned {estimates[step]:.2f}\n")
            ran.append(step)
            if not waiting:
                asked = pool.submit(read_as_first_release, connection)
                if engine == "postgresql":  # from the beginning: no step may have to wait
                    waiting.append(asked)
                else:
                    assert asked.result(60) == first  # in the midst of the migration
            since = time.monotonic()

        estimates = {step.name: step.seconds for step in plan.steps}
        migrate(empty_database, stepped)
        assert [asked.result(60) for asked in waiting] == [first] * (engine == "postgresql")
        assert read_as_first_release(connection) == first
    assert ran == [step.name for step in plan.steps]
    assert plan_migration(empty_database).steps == ()

    assert read(empty_database, "SELECT sum(times) FROM request_hours UNION ALL SELECT sum(times) FROM key_uses") == [ROWS, ROWS]
    gate = compose(empty_database)
    found = act(gate, "check.list").value
    newest = act(gate, "requests.list", {"limit": 1}).value["results"]
    gate.store.close()
    assert found["problems"] == []
    assert newest[0]["id"] == first[0][0]


def test_a_process_of_the_release_before_logs_requests_and_purges_them(empty_database: Settings) -> None:
    columns = "at, method, path, operation, key_id, address, status, duration, request_id, error"
    log = "INSERT INTO requests ({}) VALUES ('2026-01-{}', 'GET', '/api', NULL, NULL, '192.0.2.1', 401, 3, 'r-{}', '3S290/7')"
    migrate(empty_database, to="0038")
    for day in (10, 11):
        write(empty_database, log.format(columns, day, day))
    migrate(empty_database)
    for day in (12, 13):
        write(empty_database, log.format(columns, day, day))
    write(empty_database, "DELETE FROM requests WHERE id IN (SELECT id FROM requests WHERE at < '2026-01-11')")
    assert read(empty_database, "SELECT count(*) FROM request_shapes") == [1]
    assert read(empty_database, "SELECT request_id FROM requests ORDER BY at") == ["r-11", "r-12", "r-13"]
    write(empty_database, "UPDATE counters SET total = total + 700 WHERE name = 'request log bytes'")  # by its own measure
    gate = compose(empty_database)
    found = act(gate, "requests.list", {"key": 0}).value["results"]
    wrong = act(gate, "check.list").value["problems"]
    act(gate, "check.repair")
    left = act(gate, "check.list").value["problems"]
    gate.store.close()
    assert ([one["resource"] for one in wrong], left) == (["requests"], []), "which is repaired as the page on upgrading says"
    assert [(one["requestId"], one["operation"], one["error"]) for one in found] == [
        (f"r-{day}", None, "3S290/7") for day in (13, 12, 11)
    ]


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_each_step_blocks_the_tables_that_it_declares(empty_database: Settings) -> None:
    found: dict[str, set[str]] = {}
    migrate(empty_database, to=FIRST)
    declared = {step.name: set(step.effect.blocks) for step in plan_migration(empty_database).steps}
    for name in declared:
        migrate(empty_database, lambda step: found.update({step: set(read(empty_database, LOCKED))}), to=name)
    assert found == declared


def test_a_plan_changes_nothing_and_knows_a_database_that_is_not_there(empty_database: Settings) -> None:
    plan = plan_migration(empty_database)
    assert [step.name for step in plan.steps] == sorted(list_steps())
    assert (plan.at, plan.seconds, plan.blocked) == (None, 0, ())
    assert find_condition(empty_database) in {Condition.MISSING, Condition.EMPTY}
    migrate(empty_database)
    assert plan_migration(empty_database).steps == ()


def test_every_step_is_a_sentence() -> None:
    assert all(step.summary.endswith(".") for step in plan_migration(Settings(database_url="sqlite:///nothing.db")).steps)
