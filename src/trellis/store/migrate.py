"""Migrating a database to the newest step, once, however many processes start it at the same time."""

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from trellis.settings import Settings
from trellis.store.engine import create_engine

_LOCK: Final = 0x6D69677261746500  # PostgreSQL's advisory lock for migrations: 'migrate'


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "trellis.store:migrations")
    return config


def find_newest_step() -> str:
    """Return the newest step this release knows, such as `0007`."""
    return ScriptDirectory.from_config(_config()).get_current_head() or ""


def is_known_step(step: str) -> bool:
    """Return whether this release knows a step."""
    return any(script.revision == step for script in ScriptDirectory.from_config(_config()).walk_revisions())


def find_step(settings: Settings) -> str | None:
    """Return the step that a database is at; None for an empty one."""
    engine = create_engine(settings)
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()


def migrate(settings: Settings, on_step: Callable[[str], None] = lambda _: None, to: str = "head") -> int:
    """Run the steps that a database lacks, up to one or to the newest, all or none; return their number.

    `on_step` is called with the name of each step. Raises sqlalchemy.exc.OperationalError when there is no database.
    """
    ran: list[str] = []

    def stepped(*, step: Any, **_: Any) -> None:
        ran.append(step.up_revision_id)
        on_step(step.up_revision_id)

    engine = create_engine(settings)
    try:
        with engine.connect() as connection:
            begin = "BEGIN IMMEDIATE" if engine.dialect.name == "sqlite" else "BEGIN"
            connection.exec_driver_sql(begin)
            try:
                if engine.dialect.name != "sqlite":
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
                config = _config()
                config.attributes.update(connection=connection, on_step=stepped)
                command.upgrade(config, to)
            except BaseException:
                connection.exec_driver_sql("ROLLBACK")
                raise
            connection.exec_driver_sql("COMMIT")
    finally:
        engine.dispose()
    return len(ran)
