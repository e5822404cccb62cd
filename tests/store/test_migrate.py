"""Migrations: they make the tables as the code knows them, once, all or nothing, however many ask at the same time."""

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tests.program import running
from trellis.settings import Settings
from trellis.store.counters import next_number
from trellis.store.engine.store import Store, engine_of
from trellis.store.lists import pages
from trellis.store.migrate import migrate
from trellis.store.nodes import rows
from trellis.store.steps import current, newest
from trellis.store.tables import METADATA


def tables(settings: Settings) -> set[str]:
    engine = engine_of(settings)
    with engine.connect() as connection:
        found = set(sa.inspect(connection).get_table_names())
    engine.dispose()
    return found


def test_a_new_database_is_brought_to_the_newest_step(empty_database: Settings) -> None:
    ran: list[str] = []
    assert current(empty_database) is None
    assert migrate(empty_database, ran.append) == len(ran) > 0
    assert current(empty_database) == ran[-1] == newest()


def test_a_second_time_there_is_nothing_to_do(settings: Settings) -> None:
    ran: list[str] = []
    assert migrate(settings, ran.append) == 0
    assert ran == []


# What METADATA does not know: indexes of expressions, and SQLite's index for searching with the tables it is kept in.
BESIDE = {"nodes_by_type", "node_names_by_gram"}


def is_known(_object: Any, name: str | None, *_: Any) -> bool:
    return name not in BESIDE and not str(name).startswith("search_index")


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_the_migrations_make_the_tables_that_the_code_knows(settings: Settings) -> None:
    engine = engine_of(settings)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "include_object": is_known}
        )
        assert compare_metadata(context, METADATA) == []
        assert {key["name"] for key in sa.inspect(connection).get_foreign_keys("nodes")} == {"nodes_parent"}
    engine.dispose()
    assert {name for name in tables(settings) if is_known(None, name)} == {table.name for table in METADATA.sorted_tables} | {
        "alembic_version"
    }


def test_every_community_begins_with_three_groups_and_nothing_else(settings: Settings) -> None:
    store = Store(settings)
    with store.reading() as tx:
        groups = rows.every(tx, "groups")
        total, _ = pages.page(tx, "groups", pages.Query({}))
        others = [rows.every(tx, kind) for kind in ("forums", "blogs", "calendars", "categories")]
    assert [(group.id, group.position, group.name) for group in groups] == [
        (2, 0, "Guests"),
        (3, 1, "Members"),
        (4, 2, "Administrators"),
    ]
    assert (total, others) == (3, [[]] * 4)
    assert store.write(lambda tx: next_number(tx, "groups")).result(30) == 5
    store.close()


def test_a_step_that_fails_leaves_nothing_behind(empty_database: Settings) -> None:
    def fail(step: str) -> None:
        raise LookupError(step)

    with pytest.raises(LookupError):
        migrate(empty_database, fail)
    assert tables(empty_database) == set()
    assert current(empty_database) is None
    assert migrate(empty_database) > 0


def test_programs_that_migrate_at_the_same_time_do_it_once(empty_database: Settings) -> None:
    program = """if True:
        import sys
        from trellis.settings import Settings
        from trellis.store.migrate import migrate

        settings = Settings.load({"TRELLIS_DATABASE_URL": sys.argv[1]}, None)
        sys.stdin.readline()
        print(migrate(settings))
    """
    command = (sys.executable, "-c", program, empty_database.database_url)
    with ExitStack() as open_ones:
        started = [
            open_ones.enter_context(running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)) for _ in range(3)
        ]
        for process in started:
            assert process.stdin is not None
            process.stdin.write("now\n")
            process.stdin.flush()
        ran = [int(process.communicate(timeout=60)[0]) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert sorted(ran)[:2] == [0, 0]
    assert sum(ran) > 0


def test_a_database_that_cannot_be_reached_is_no_success(engine: str, empty_database: Settings, tmp_path: Any) -> None:
    nowhere = f"sqlite:///{tmp_path}" if engine == "sqlite" else f"postgresql://nobody@/nothing?host={tmp_path}"
    with pytest.raises(sa.exc.OperationalError):
        migrate(replace(empty_database, database_url=nowhere))
