"""Migrating a database to the newest step. If several processes start at the same time, each step runs only once."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from trellis.settings import Settings
from trellis.store.condition import find_file
from trellis.store.engine import WRITE_LOCK, create_engine

_LOCK: Final = 0x6D69677261746500  # PostgreSQL's advisory lock for migrations: 'migrate'


def migrate(settings: Settings, on_step: Callable[[str], None] = lambda _: None, to: str = "head") -> int:
    """Run the missing steps of a database in one transaction, up to the step `to` (by default the newest); return their number.

    `on_step` is called with the name of each step. Raises sqlalchemy.exc.OperationalError if the database cannot be reached.
    """
    ran: list[str] = []
    if (file := find_file(settings)) is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # SQLite reports below what is wrong
            os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))  # nobody else may read the digests of keys and passwords

    def stepped(*, step: Any, **_: Any) -> None:
        ran.append(step.up_revision_id)
        on_step(step.up_revision_id)

    engine = create_engine(settings, create=True)
    try:
        with engine.connect() as connection:
            begin = "BEGIN IMMEDIATE" if engine.dialect.name == "sqlite" else "BEGIN"
            connection.exec_driver_sql(begin)
            try:
                if engine.dialect.name != "sqlite":
                    # The second keeps out writes: one that has used some tables already would wait for a step that waits for it.
                    for lock in (_LOCK, WRITE_LOCK):
                        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(lock)))
                config = Config()
                config.set_main_option("script_location", "trellis.store:migrations")
                config.attributes.update(connection=connection, on_step=stepped)
                command.upgrade(config, to)
            except BaseException:
                with suppress(sa.exc.DBAPIError):  # on a full disk, for example, SQLite has rolled back already
                    connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")
    finally:
        engine.dispose()
    return len(ran)
