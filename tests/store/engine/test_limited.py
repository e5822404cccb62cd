"""A statement that PostgreSQL does not answer in time is given up, at both ends."""

import secrets
from contextlib import closing
from dataclasses import replace
from threading import Event
from traceback import format_exception

import psycopg
import pytest

from tests.wait import wait_until
from trellis.settings import Settings
from trellis.store.condition import explain_error, find_condition
from trellis.store.counters import next_number
from trellis.store.engine import Store, limited, open_engine
from trellis.store.engine.limited import LimitedConnection, connection_parameters
from trellis.store.engine.transaction import Transaction

pytestmark = pytest.mark.parametrize("engine", ["postgresql"], indirect=True)


def test_a_statement_that_takes_too_long_fails_and_ends_on_the_server_too(settings: Settings) -> None:
    with closing(LimitedConnection.connect(settings.database_url, autocommit=True)) as connection:
        connection.limit = 0.2
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match=r"did not answer within 0\.2 seconds"):
            connection.execute("SELECT pg_sleep(600)")
        assert connection.closed
    with psycopg.connect(settings.database_url, autocommit=True) as other:
        running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'"
        wait_until(lambda: other.execute(running).fetchone() == (0,))


def test_a_new_connection_that_gets_no_answer_is_given_up(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pooler accepts connections even if it has none to the server."""
    monkeypatch.setattr(limited, "_FOLLOW_INDEXES", "SELECT pg_sleep(600)")
    with pytest.raises(psycopg.OperationalError, match=r"did not answer within 0\.2 seconds"):
        limited.connect_limited(None, None, [settings.database_url], {"connect_timeout": 0.2})


def test_an_error_of_the_server_leaves_the_connection_open(settings: Settings) -> None:
    with closing(LimitedConnection.connect(settings.database_url, autocommit=True)) as connection:
        connection.limit = 10
        connection.execute("SET lock_timeout = 1")
        with psycopg.connect(settings.database_url) as other:
            other.execute("LOCK TABLE counters")
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT * FROM counters")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_an_error_tells_no_value_of_its_statement(settings: Settings) -> None:
    """The server adds the row to some errors, and with this setting all values to every error."""
    value, insert = secrets.token_hex(), "INSERT INTO counters (name, last, total) VALUES (%s, NULL, 0)"
    with closing(LimitedConnection.connect(settings.database_url, autocommit=True)) as connection:
        for length in (0, -1):
            connection.execute(f"SET log_parameter_max_length_on_error = {length}")
            for run in (
                lambda: connection.execute(insert, (value,)),
                lambda: connection.cursor().executemany(insert, [("one",), (value,)]),
                lambda: connection.execute("SELECT 1 / (length(%s) - 64)", (value,)),
            ):
                with pytest.raises(psycopg.Error, match=r"null value|division by zero") as refused:
                    run()
                told = "".join(format_exception(refused.value))
                assert value not in told
                assert refused.value.sqlstate in {"23502", "22012"}


def test_what_the_url_says_about_connections_goes_before(settings: Settings) -> None:
    with open_engine(settings) as engine:
        url = engine.url.update_query_dict({"tcp_user_timeout": "3000"})
    given = connection_parameters(url, 7)
    assert (given["connect_timeout"], given["keepalives"]) == (7, 1)
    assert "tcp_user_timeout" not in given


def test_texts_stay_as_they_are_whatever_encoding_a_database_sets_by_default(settings: Settings) -> None:
    with psycopg.connect(settings.database_url, autocommit=True) as other:
        other.execute(f"ALTER DATABASE \"{other.info.dbname}\" SET client_encoding = 'LATIN1'")
    with closing(Store(settings)) as store, store.reading() as tx:
        assert tx.raw.execute("SELECT %s::text", ("Łódź ★",)).fetchone() == ("Łódź ★",)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_cannot_store_every_text_is_refused_with_advice(settings: Settings, encoding: str) -> None:
    with psycopg.connect(settings.database_url, autocommit=True) as other:
        name = f"{other.info.dbname}_{encoding}"
        other.execute(f"CREATE DATABASE \"{name}\" ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        there = replace(settings, database_url=settings.database_url.replace(other.info.dbname, name))
        try:
            with pytest.raises(Exception, match="encoding") as refused:
                find_condition(there)
            assert f"its encoding is {encoding}, which cannot store every text. Create" in str(explain_error(there, refused.value))
        finally:
            other.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_writes_take_turns_whatever_isolation_a_database_sets_by_default(settings: Settings) -> None:
    """Seen from a snapshot that was taken while another one was writing, each write after it would fail."""
    with psycopg.connect(settings.database_url, autocommit=True) as other:
        name = other.info.dbname
        other.execute(f"ALTER DATABASE \"{name}\" SET default_transaction_isolation = 'repeatable read'")
    stores = Store(settings), Store(settings)
    try:
        begun, go = Event(), Event()

        def write_slowly(tx: Transaction) -> int:
            begun.set()
            go.wait(30)
            return next_number(tx, "tickets")

        first = stores[0].write(write_slowly)
        begun.wait(30)
        second = stores[1].write(lambda tx: next_number(tx, "tickets"))
        with psycopg.connect(settings.database_url, autocommit=True) as other:
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            wait_until(lambda: other.execute(waiting).fetchone() == (1,))
        go.set()
        assert (first.result(30), second.result(30)) == (1, 2)
    finally:
        for store in stores:
            store.close()
        with psycopg.connect(settings.database_url, autocommit=True) as other:
            other.execute(f'ALTER DATABASE "{name}" RESET default_transaction_isolation')
