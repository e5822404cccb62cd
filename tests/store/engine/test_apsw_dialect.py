"""SQLAlchemy over APSW: what a driver for it has to give."""

from collections.abc import Iterator

import apsw
import pytest
import sqlalchemy as sa

from trellis.settings import Settings
from trellis.store.engine import open_engine

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

_TABLE = sa.Table("things", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.Text, unique=True))


@pytest.fixture
def connection(settings: Settings) -> Iterator[sa.Connection]:
    """A connection to a database with an empty table of things."""
    with open_engine(settings) as engine, engine.connect() as connection:
        _TABLE.create(connection)
        yield connection


def test_the_driver_is_apsw(connection: sa.Connection) -> None:
    assert (connection.dialect.name, connection.dialect.driver) == ("sqlite", "apsw")


def test_plans_do_not_depend_on_values(connection: sa.Connection) -> None:
    raw = connection.connection.driver_connection
    assert raw is not None
    assert raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1


def test_columns_are_known_where_there_are_no_rows(connection: sa.Connection) -> None:
    result = connection.execute(sa.select(_TABLE))
    assert (list(result.keys()), result.all()) == (["id", "name"], [])


def test_changed_rows_are_counted(connection: sa.Connection) -> None:
    added = connection.execute(sa.insert(_TABLE), [{"name": name} for name in ("one", "two", "three")])
    assert added.rowcount == 3
    assert connection.execute(sa.update(_TABLE).where(_TABLE.c.id < 3).values(name=_TABLE.c.name + "!")).rowcount == 2
    assert connection.execute(sa.delete(_TABLE)).rowcount == 3


def test_the_id_of_an_insert_is_known(connection: sa.Connection) -> None:
    connection.execute(sa.insert(_TABLE).values(id=41, name="one"))
    assert connection.execute(sa.insert(_TABLE).values(name="two")).inserted_primary_key == (42,)


def test_rows_are_fetched_in_parts_and_may_be_left(connection: sa.Connection) -> None:
    connection.execute(sa.insert(_TABLE), [{"name": str(number)} for number in range(10)])
    result = connection.execute(sa.select(_TABLE.c.id).order_by(_TABLE.c.id))
    assert [row.id for row in result.fetchmany(3)] == [1, 2, 3]
    assert result.fetchone() == (4,)
    result.close()
    assert connection.execute(sa.delete(_TABLE)).rowcount == 10


def test_an_error_is_that_of_sqlalchemy(connection: sa.Connection) -> None:
    connection.execute(sa.insert(_TABLE).values(name="one"))
    with pytest.raises(sa.exc.IntegrityError):
        connection.execute(sa.insert(_TABLE).values(name="one"))
    with pytest.raises(sa.exc.OperationalError, match="no such table"):
        connection.execute(sa.text("SELECT * FROM gone"))
