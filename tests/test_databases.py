"""The databases of tests: what one test leaves behind, the next does not see."""

from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from tests.conftest import NewSettings, runner, settings_for
from tests.database_state import DatabaseState
from tests.databases import Databases
from tests.kept_connections import KEPT
from tests.wait import wait_until
from trellis.compose import compose
from trellis.settings import Settings


def _read_whole(settings: Settings) -> tuple[object, object]:
    gate = compose(settings)
    state = DatabaseState(gate)
    found = state.rows(), state.requests()
    gate.store.close()
    return found


def _write_to_many_tables(settings: Settings) -> None:
    gate = compose(settings)
    run = runner(gate)
    parent = run("forums.create", name="Left behind")["id"]
    for number in range(3):
        run("forums.create", name=f"Below {number}", parent=parent)
    run("keys.create", name="Left behind", grants=["*"])
    run("forums.update", parent, name="Renamed")
    run("forums.delete", parent, deleteChildrenOrMove=-1)
    gate.store.close()


@pytest.mark.parametrize("times", [1, 3])
def test_what_a_test_wrote_is_gone(databases: Databases, new_settings: NewSettings, times: int) -> None:
    template = new_settings().database_url
    pristine = _read_whole(settings_for(databases.new(template)))
    for _ in range(times):
        settings = settings_for(databases.new(template))
        _write_to_many_tables(settings)
        assert _read_whole(settings) != pristine
        databases.drop(settings.database_url)
    settings = settings_for(databases.new(template))
    assert _read_whole(settings) == pristine
    first = compose(settings)
    assert runner(first)("forums.create", name="The first")["id"] == 1, "ids begin anew"
    first.store.close()
    databases.drop(settings.database_url)


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_databases_that_wait_for_another_test_keep_few_connections(databases: Databases, new_settings: NewSettings) -> None:
    template = new_settings().database_url
    urls = [databases.new(template) for _ in range(12)]
    for url in urls:
        databases.drop(url)
    names = [urlsplit(url).path[1:] for url in urls]
    counting = sa.select(sa.func.count()).where(sa.column("datname").in_(names)).select_from(sa.text("pg_stat_activity"))

    def count() -> int:
        with _connect(settings_for(template)).connect() as connection:
            return int(connection.execute(counting).scalar_one())

    wait_until(lambda: 0 < count() < len(names))


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_connections_are_kept_for_the_database_used_last(new_settings: NewSettings) -> None:
    names = []
    for settings in [new_settings() for _ in range(6)]:
        gate = compose(settings)
        run = runner(gate)
        run("forums.create", name="Left behind")
        run("forums.list")
        gate.store.close()
        names.append(urlsplit(settings.database_url).path[1:])
    assert KEPT.count(names[-1]) > 0
    assert KEPT.count(names[0]) == 0


def test_a_database_with_other_tables_is_not_used_again(databases: Databases, new_settings: NewSettings) -> None:
    template = new_settings().database_url
    for command in (
        "CREATE TABLE left_behind (id INTEGER)",
        "ALTER TABLE nodes ADD COLUMN left_behind INTEGER",
        "DROP INDEX nodes_by_type",
    ):
        url = databases.new(template)
        _execute(settings_for(url), command)
        databases.drop(url)
        following = databases.new(template)
        assert following != url
        assert _shape(settings_for(following)) == _shape(settings_for(template))
        databases.drop(following)


def _connect(settings: Settings) -> sa.Engine:
    return sa.create_engine(settings.database_url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)


def _execute(settings: Settings, command: str) -> None:
    with _connect(settings).begin() as connection:
        connection.exec_driver_sql(command)


def _shape(settings: Settings) -> object:
    inspector = sa.inspect(_connect(settings))
    return {table: [column["name"] for column in inspector.get_columns(table)] for table in inspector.get_table_names()}
