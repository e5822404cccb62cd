"""Migrating a database to the newest step. If several processes start at the same time, each step runs only once."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from trellis.settings import Settings
from trellis.store.condition import find_file
from trellis.store.engine import WRITE_LOCK, DatabaseInUse, open_engine
from trellis.store.migrations import list_blocked
from trellis.store.steps import READ_STEP

_LOCK: Final = 0x6D69677261746500  # PostgreSQL's advisory lock for migrations: 'migrate'
_NOT_HAD: Final = {"40P01", "55P03"}  # PostgreSQL's codes for a deadlock, and for a lock that could not be had in time
# Seconds of waiting for a table; whoever needs one that is locked already waits too. After a second, PostgreSQL would look for
# deadlocks, and might end somebody's read: the migration gives way before that.
_FOR_TABLE: Final = 0.4
_PATIENCE: Final = 120.0  # seconds after which no further attempt begins
_PAUSE: Final = 0.5  # seconds between two attempts, for those who have waited
_OTHERS: Final = sa.text("""
    SELECT 'process ' || pid || coalesce(' (' || nullif(application_name, '') || ')', '') || ', in a transaction for '
        || greatest(0, extract(epoch FROM clock_timestamp() - xact_start)::int) || ' s'
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
    ORDER BY xact_start LIMIT 3
""")


def migrate(
    settings: Settings,
    on_step: Callable[[str], None] = lambda _: None,
    to: str = "head",
    on_wait: Callable[[str], None] = lambda _: None,
) -> int:
    """Run the missing steps of a database in one transaction, up to the step `to` (by default the newest); return their number.

    `on_step` is called with the name of each step. On PostgreSQL, another migration ends first, and a long transaction of somebody
    else may use a table that a step needs: then everything is rolled back and tried again. `on_wait` is called with a sentence on
    what is waited for. Raises DatabaseInUse if that transaction does not end in time, and sqlalchemy.exc.OperationalError if the
    database cannot be reached.
    """
    if (file := find_file(settings)) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # SQLite reports below what is wrong
            os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))  # nobody else may read the digests of keys and passwords
    until, is_told = time.monotonic() + _PATIENCE, False
    with open_engine(settings, create=True) as engine, engine.connect() as connection:
        while True:
            try:
                return _run_steps(connection, on_step, to, on_wait)
            except sa.exc.DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in _NOT_HAD:
                    raise
                others = "; ".join(connection.execute(_OTHERS).scalars()) or "they have ended by now"
                if time.monotonic() >= until:
                    raise DatabaseInUse(
                        f"The database was not changed: other transactions use what a step needs ({others}). End them, or wait "
                        "until they have ended, and run `trellis migrate` again."
                    ) from error
            if not is_told:
                is_told = True
                on_wait(
                    f"Other transactions use what a step needs ({others}). Everything was rolled back, and is tried again "
                    f"for up to {_PATIENCE / 60:g} minutes."
                )
            time.sleep(_PAUSE)


def _run_steps(connection: sa.Connection, on_step: Callable[[str], None], to: str, on_wait: Callable[[str], None]) -> int:
    ran: list[str] = []

    def stepped(*, step: Any, **_: Any) -> None:
        ran.append(step.up_revision_id)
        on_step(step.up_revision_id)

    is_sqlite = connection.dialect.name == "sqlite"
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_sqlite else "BEGIN")
    try:
        if not is_sqlite:
            if not connection.scalar(sa.select(sa.func.pg_try_advisory_xact_lock(_LOCK))):
                on_wait("Another migration of this database has begun. This one waits until it has ended.")
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            _limit_waiting(connection, _PATIENCE)
            # Keeps out writes: one that has used some tables already would wait for a step that waits for it.
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(WRITE_LOCK)))
            _limit_waiting(connection, _FOR_TABLE)
            _lock_tables(connection, to)
        config = Config()
        config.set_main_option("script_location", "trellis.store:migrations")
        config.attributes.update(connection=connection, on_step=stepped)
        command.upgrade(config, to)
    except BaseException:
        # On a full disk, for example, SQLite has rolled back already; and Ctrl-C in a statement closes the connection.
        with suppress(sa.exc.SQLAlchemyError):
            connection.exec_driver_sql("ROLLBACK")
        raise
    connection.exec_driver_sql("COMMIT")
    return len(ran)


def _lock_tables(connection: sa.Connection, to: str) -> None:
    """Lock the tables that the missing steps block, all before the first step: no step then waits, or was done in vain."""
    there = set(sa.inspect(connection).get_table_names())
    at = connection.exec_driver_sql(READ_STEP).scalar() if "alembic_version" in there else None
    if names := sorted(there & list_blocked(at or "", to)):
        connection.exec_driver_sql(f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE")


def _limit_waiting(connection: sa.Connection, seconds: float) -> None:
    """Let each statement from here on wait for a lock for so long at most."""
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{int(seconds * 1000)}ms'")
