"""Migrations: they make the tables as the code knows them, once, all or nothing, however many ask at the same time."""

import sys
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tests.forked import ForkedProcess
from tests.service_process import environment
from tests.wait import wait_until
from trellis.settings import Settings
from trellis.store import idempotency, keys, siblings, snapshots
from trellis.store.condition import explain_error
from trellis.store.counters import next_number
from trellis.store.engine import DatabaseInUse, Store, connect, limited, open_engine
from trellis.store.engine.transaction import Transaction
from trellis.store.lists import pages, search
from trellis.store.migrate import migrate
from trellis.store.nodes import deleted_ids, rows
from trellis.store.steps import find_newest_step, find_step, is_known_step
from trellis.store.tables import METADATA


def tables(settings: Settings) -> set[str]:
    with open_engine(settings) as engine, engine.connect() as connection:
        return set(sa.inspect(connection).get_table_names())


def test_a_new_database_is_brought_to_the_newest_step(empty_database: Settings) -> None:
    ran: list[str] = []
    assert migrate(empty_database, ran.append) == len(ran) > 0
    assert find_step(empty_database) == ran[-1] == find_newest_step()


def test_a_second_time_there_is_nothing_to_do(settings: Settings) -> None:
    ran: list[str] = []
    assert migrate(settings, ran.append) == 0
    assert ran == []


# What METADATA does not contain: indexes of expressions, and SQLite's full-text index with the tables it is stored in.
UNKNOWN = {"nodes_by_type", "search_names_by_trigram"}


def is_known(_object: Any, name: str | None, *_: Any) -> bool:
    return name not in UNKNOWN and not str(name).startswith(("search_index", "search_trigrams"))


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_the_migrations_make_the_tables_that_the_code_knows(settings: Settings) -> None:
    with open_engine(settings) as engine, engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "include_object": is_known}
        )
        assert compare_metadata(context, METADATA) == []
        assert {key["name"] for key in sa.inspect(connection).get_foreign_keys("nodes")} == {"nodes_parent"}
    assert {name for name in tables(settings) if is_known(None, name)} == {table.name for table in METADATA.sorted_tables} | {
        "alembic_version"
    }


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_the_partial_indexes_are_those_that_the_code_knows(engine: str, settings: Settings) -> None:
    known = {str(index.name): index.info.get("where") for table in METADATA.sorted_tables for index in table.indexes}
    with open_engine(settings) as opened:
        inspector = sa.inspect(opened)
        found = {
            str(index["name"]): None if condition is None else str(condition).strip("()").replace('"', "")
            for table in METADATA.sorted_tables
            for index in inspector.get_indexes(table.name)
            for condition in [index.get("dialect_options", {}).get(f"{engine}_where")]
        }
    assert {name: found[name] for name in known} == known


def test_every_community_begins_with_three_groups_and_nothing_else(settings: Settings) -> None:
    store = Store(settings)
    with store.reading() as tx:
        groups = rows.find_all(tx, "groups")
        total, _ = pages.read_page(tx, "groups", pages.Query({}))
        others = [rows.find_all(tx, kind) for kind in ("forums", "blogs", "calendars", "categories")]
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
    assert migrate(empty_database, to="0001") == 1


def test_ctrl_c_in_a_statement_ends_a_migration_and_leaves_nothing_behind(
    empty_database: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_cursor: Any, statement: str, *_: Any) -> None:
        if "CREATE TABLE nodes" in statement:
            raise KeyboardInterrupt

    create_engine = connect.create_engine

    def create_interrupted(settings: Settings, *, create: bool) -> sa.Engine:
        engine = create_engine(settings, create=create)
        sa.event.listen(engine, "do_execute", interrupt)
        return engine

    with monkeypatch.context() as patch:
        patch.setattr("trellis.store.engine.connect.create_engine", create_interrupted)
        with pytest.raises(KeyboardInterrupt):
            migrate(empty_database)
    assert tables(empty_database) == set()
    assert migrate(empty_database, to="0001") == 1


def test_a_step_for_which_the_disk_has_no_room_is_explained(
    engine: str, empty_database: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite has rolled back by itself then, and cannot do so again."""
    if engine == "postgresql":
        pytest.skip("PostgreSQL rolls back when it is told to")

    def fill(config: Any, _to: str) -> None:
        connection = config.attributes["connection"]
        connection.exec_driver_sql("CREATE TABLE large (text)")
        connection.exec_driver_sql("PRAGMA max_page_count=1").fetchall()
        for _ in range(100):
            connection.exec_driver_sql("INSERT INTO large VALUES (:text)", {"text": "x" * 60_000})

    monkeypatch.setattr(command, "upgrade", fill)
    with pytest.raises(sa.exc.OperationalError) as caught:
        migrate(empty_database)
    assert "cannot grow: the disk is full. Free some space" in str(explain_error(empty_database, caught.value))
    assert tables(empty_database) == set()


def read_tables(settings: Settings, names: dict[str, dict[str, str]]) -> dict[str, list[dict[str, Any]]]:
    """Read every row of every table, the tables and columns under the names that `names` gives them: table → (column → name)."""
    with open_engine(settings) as engine, engine.connect() as connection:
        tables = sa.MetaData()
        tables.reflect(connection, only=lambda name, _: is_known(None, name))
        return {
            names.get(table.name, {}).get("", table.name): sorted(
                (
                    {names.get(table.name, {}).get(column, column): value for column, value in row.items()}
                    for row in connection.execute(sa.select(table)).mappings()
                ),
                key=str,
            )
            for table in tables.sorted_tables
            if table.name not in {"alembic_version", "counters"}
        }


OLD_NAMES = {  # "" is the table itself
    "nodes": {"shelf": "block", "position": "block_offset"},
    "shelves": {"": "sibling_blocks", "above": "parent_block", "before": "start"},
    "node_gaps": {"": "deleted_id_counts", "level": "shift", "block": "prefix", "gone": "deleted"},
    "node_changes": {"n": "seq"},
    "node_names": {"": "search_names", "doc": "document_id"},
    "snapshots": {"how": "change", "beside": "neighbours"},
    "idempotent_answers": {"": "idempotent_responses", "answer": "response"},
}
INSERT = "INSERT INTO nodes (kind, id, shelf, position, name, name_key, fields, permissions, created_at, updated_at) VALUES "
# A hundred forums at the top level, in three blocks, of which the ninetieth was deleted; the names of the first 59 are indexed.
COMMUNITY_AT_0007 = (
    """INSERT INTO shelves (id, kind, parent_id, level, above, before, size) VALUES
    (1, 'forums', 0, 0, 4, 0, 48), (2, 'forums', 0, 0, 4, 48, 48), (3, 'forums', 0, 0, 4, 96, 3), (4, 'forums', 0, 1, 0, 0, 99)""",
    *(
        INSERT + f"('forums', {id}, {1 + at // 48}, {at % 48}, 'Forum {id}', 'forum {id}', '{{}}', '{{}}', '2026', '2026')"
        for at, id in enumerate(id for id in range(1, 101) if id != 90)
    ),
    "INSERT INTO counters (name, last, total) VALUES ('forums', 100, 99), ('events', 7, 0)",
    "INSERT INTO node_gaps (kind, level, block, gone) VALUES ('forums', 8, 0, 1), ('forums', 16, 0, 1)",
    "INSERT INTO node_names (kind, id, name_key) SELECT kind, id, name_key FROM nodes WHERE kind = 'forums' AND id < 60",
    "INSERT INTO search_index (search_index) VALUES ('rebuild')",  # SQLite
    "UPDATE counters SET last = (SELECT max(n) FROM node_changes WHERE kind = 'forums' AND id < 60) WHERE name = 'search'",
    """INSERT INTO snapshots
    (seq, kind, id, how, position, name, name_key, fields, permissions, created_at, updated_at, beside) VALUES
    (7, 'forums', 90, 'deleted', 89, 'Forum 90', 'forum 90', '{}', '{}', '2026', '2026', '{"before": [89], "behind": [91]}')""",
    "INSERT INTO idempotent_answers (key_id, token, fingerprint, answer, at) VALUES (1, 'token', 'print', '{}', '2026')",
)


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_renaming_tables_and_columns_keeps_every_row_and_what_is_found_by_them(engine: str, empty_database: Settings) -> None:
    migrate(empty_database, to="0007")
    store = Store(empty_database)
    statements = [sql for sql in COMMUNITY_AT_0007 if engine == "sqlite" or "search_index" not in sql]
    store.write(lambda tx: [tx.raw.execute(statement) for statement in statements], quiet=True).result(30)
    store.close()
    before = read_tables(empty_database, OLD_NAMES)
    assert migrate(empty_database, to="0008") == 1
    assert read_tables(empty_database, {}) == before

    migrate(empty_database)
    store = Store(empty_database)
    with store.reading() as tx:
        assert siblings.find_children(tx, "forums", None) == [id for id in range(1, 101) if id != 90]
        assert (siblings.check(tx, "forums"), deleted_ids.check(tx, "forums"), search.check_search_index(tx)) == ([], 0, 0)
        assert search.find_candidates(tx, "forums", "forum 41", 1000) == [41, *(id for id in range(60, 101) if id != 90)]
        (snapshot,) = snapshots.walk(tx, 7, snapshots.list_keys(tx, 7, "deleted"))
        assert (snapshot.change, snapshot.node.position, snapshot.neighbours) == ("deleted", 89, {"before": [89], "behind": [91]})
        assert idempotency.find_response(tx, 1, "token") == ("print", {}, "2026")

    def change(tx: Transaction) -> None:
        snapshots.restore(tx, 7, "forums", snapshot.node, 89)
        rows.update(tx, "forums", replace(snapshot.node, name="Renamed"))
        rows.delete_subtree(tx, "forums", rows.find(tx, "forums", 5) or snapshot.node)

    store.write(change).result(30)
    store.write(search.update_search_index).result(30)
    with store.reading() as tx:
        journalled = tx.raw.execute("SELECT id, name_key FROM node_changes WHERE id > 0 ORDER BY seq DESC LIMIT 3").fetchall()
        assert journalled == [(5, "forum 5"), (90, "forum 90"), (90, None)]
        assert siblings.find_children(tx, "forums", None) == [id for id in range(1, 101) if id != 5]
        assert (siblings.check(tx, "forums"), deleted_ids.check(tx, "forums"), search.check_search_index(tx)) == ([], 0, 0)
        assert search.find_candidates(tx, "forums", "renamed", 1000) == [90]
    store.close()


def test_the_keys_that_there_are_keep_our_own_dialect(empty_database: Settings) -> None:
    migrate(empty_database, to="0015")
    key = """INSERT INTO api_keys (id, public, name, digest, grants, addresses, log_requests, created_at, updated_at)
    VALUES (1, 'abcdefgh', 'Old', 'digest', '[]', '[]', true, '2026', '2026')"""
    store = Store(empty_database)
    store.write(lambda tx: tx.raw.execute(key), quiet=True).result(30)
    store.close()
    migrate(empty_database)
    store = Store(empty_database)
    with store.reading() as tx:
        found = keys.find(tx, 1)
    store.close()
    assert found is not None
    assert (found.name, found.dialect) == ("Old", "trellis")


def _migrate_when_told() -> None:
    """Tell that this process is ready, and migrate when there is the file that it was told of."""
    settings = Settings.load(dotenv=None)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    wait_until(Path(sys.argv[1]).exists)
    sys.stdout.write(f"{migrate(settings)}\n")
    sys.stdout.flush()


def test_programs_that_migrate_at_the_same_time_do_it_once(empty_database: Settings, tmp_path: Path) -> None:
    go, told = tmp_path / "go", [tmp_path / "one", tmp_path / "other"]
    with ExitStack() as open_ones:
        started = []
        for output in told:
            output.touch()
            started.append(ForkedProcess([str(go)], tmp_path, environment(empty_database), output, _migrate_when_told))
            open_ones.callback(started[-1].kill)
        wait_until(lambda: all(output.read_text() == "ready\n" for output in told))
        go.touch()
        assert [process.wait(60) for process in started] == [0, 0], [output.read_text() for output in told]
    ran = [int(output.read_text().split()[-1]) for output in told]
    assert min(ran) == 0 < max(ran)


def test_a_step_of_a_newer_version_is_not_known() -> None:
    assert is_known_step(find_newest_step())
    assert not is_known_step("9999")


def test_a_database_that_cannot_be_reached_is_no_success(engine: str, empty_database: Settings, tmp_path: Any) -> None:
    nowhere = f"sqlite:///{tmp_path}" if engine == "sqlite" else f"postgresql://nobody@/nothing?host={tmp_path}"
    with pytest.raises(sa.exc.OperationalError):
        migrate(replace(empty_database, database_url=nowhere))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_nobody_but_its_owner_may_read_a_new_database(engine: str, tmp_path: Path) -> None:
    settings = Settings(database_url=f"sqlite:///{tmp_path}/new/trellis.db")
    migrate(settings)
    file = tmp_path / "new" / "trellis.db"
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o640)
    migrate(settings)
    assert file.stat().st_mode & 0o777 == 0o640, "what the owner has decided stays"


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_one_that_waits_for_another_tells_so(empty_database: Settings) -> None:
    migrate(empty_database, to="0040")
    told: list[str] = []
    ran: list[int] = []

    def migrate_too() -> None:
        ran.append(migrate(empty_database, on_wait=told.append))

    second = threading.Thread(target=migrate_too)

    def stepped(_step: str) -> None:
        second.start()
        wait_until(lambda: bool(told))

    assert migrate(empty_database, stepped) == 1
    second.join(60)
    assert told == ["Another migration of this database has begun. This one waits until it has ended."]
    assert ran == [0]


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_write_that_is_under_way_is_finished_first(empty_database: Settings) -> None:
    """It may need a table that a step holds, which in turn waits for one that the write has used."""
    migrate(empty_database, to="0021")
    store = Store(empty_database)
    waits = "SELECT 1 FROM pg_locks JOIN pg_database ON oid = database WHERE datname = current_database() AND NOT granted"
    ran: list[str] = []
    migration = threading.Thread(target=migrate, args=(empty_database, ran.append))

    def use_what_the_steps_change(tx: Transaction) -> list[str]:
        tx.raw.execute("SELECT max(seq) FROM events")
        migration.start()
        with psycopg.connect(empty_database.database_url, autocommit=True) as connection:
            wait_until(lambda: connection.execute(waits).fetchone() is not None)
        tx.raw.execute("SELECT count(*) FROM api_keys")
        return list(ran)

    assert store.write(use_what_the_steps_change, quiet=True).result(60) == []
    migration.join(60)
    store.close()
    assert find_step(empty_database) == ran[-1] == find_newest_step()


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_reader_of_two_tables_and_the_steps_do_not_end_each_other(empty_database: Settings) -> None:
    """A step would hold the one table and wait for the other, which the reader has used: then the reader wants the first."""
    migrate(empty_database, to="0021")
    locked = (
        "SELECT 1 FROM pg_locks JOIN pg_database ON oid = database WHERE datname = current_database() "
        "AND granted AND mode = 'AccessExclusiveLock' AND relation = 'api_keys'::regclass"
    )
    told: list[str] = []
    migration = threading.Thread(target=migrate, args=(empty_database,), kwargs={"on_wait": told.append})
    with (
        psycopg.connect(empty_database.database_url, application_name="a report") as reader,
        psycopg.connect(empty_database.database_url, autocommit=True) as other,
    ):
        reader.execute("SELECT count(*) FROM requests")
        migration.start()
        wait_until(lambda: other.execute(locked).fetchone() is not None)
        reader.execute("SELECT count(*) FROM api_keys")
        wait_until(lambda: bool(told))
    migration.join(60)

    assert told[0].startswith("Other transactions use what a step needs (process ")
    assert "(a report), in a transaction for " in told[0]
    assert find_step(empty_database) == find_newest_step()


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_steps_that_get_no_turn_are_given_up_with_the_reason(empty_database: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.store.migrate._FOR_TABLE", 0.05)
    monkeypatch.setattr("trellis.store.migrate._PATIENCE", 0.0)
    migrate(empty_database, to="0021")
    with psycopg.connect(empty_database.database_url, application_name="a report") as reader:
        reader.execute("SELECT count(*) FROM requests")
        with pytest.raises(
            DatabaseInUse, match=r"was not changed: .* \(process \d+ \(a report\), in a transaction for \d+ s\)"
        ) as gave_up:
            migrate(empty_database)
    assert explain_error(empty_database, gave_up.value) == str(gave_up.value)
    assert find_step(empty_database) == "0021"


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("forbid", "advice"),
    [
        ("SET ROLE pg_read_all_data", "migrate with the account that owns the schema"),
        ("SET search_path = nowhere", "Set the account's search_path to a schema in which it may create tables"),
    ],
)
def test_where_no_table_can_be_created_the_operator_is_told_what_to_do(
    empty_database: Settings, forbid: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limited, "_SEE_COMMITS", forbid)
    with pytest.raises(sa.exc.DBAPIError) as refused:
        migrate(empty_database)
    assert advice in str(explain_error(empty_database, refused.value))
