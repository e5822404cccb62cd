"""Bringing a database to the newest step, once, however many processes ask for it at the same time."""

from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from trellis.settings import Settings
from trellis.store.engine import engine_of

_LOCK: Final = 0x6D69677261746500  # PostgreSQL's advisory lock for migrations: 'migrate'


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "trellis.store:migrations")
    return config


def newest() -> str:
    """Give the name of the newest step."""
    return ScriptDirectory.from_config(_config()).get_current_head() or ""


def known(step: str) -> bool:
    """Say whether this version of Trellis knows a step."""
    return any(script.revision == step for script in ScriptDirectory.from_config(_config()).walk_revisions())


def current(settings: Settings) -> str | None:
    """Give the name of the step that a database is at; None for an empty one."""
    engine = engine_of(settings)
    try:
        with engine.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()


def migrate(settings: Settings, on_step: Callable[[str], None] = lambda _: None, to: str = "head") -> int:
    """Run the steps that a database lacks, up to one or to the newest, all or none; give their number.

    `on_step` is called with the name of each step. Raises sqlalchemy.exc.OperationalError when there is no database.
    """
    ran: list[str] = []

    def stepped(*, step: Any, **_: Any) -> None:
        ran.append(step.up_revision_id)
        on_step(step.up_revision_id)

    engine = engine_of(settings)
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
