"""The migration step of a database, and the list of all steps, read without Alembic because it is slow to load."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, cast

import sqlalchemy as sa

from trellis.settings import Settings
from trellis.store.engine import Transaction, open_engine

READ_STEP: Final = "SELECT version_num FROM alembic_version"
_READ: Final = sa.text(READ_STEP)
_VERSIONS: Final = Path(__file__).parent / "migrations" / "versions"


@cache
def list_steps() -> Mapping[str, str]:
    """Return the modules of all steps: name of the step, such as `0001` → name of the module, which begins with it."""
    return {path.stem.partition("_")[0]: path.stem for path in _VERSIONS.glob("[0-9]*_*.py")}


def find_newest_step() -> str:
    """Return the name of the newest step."""
    return max(list_steps())


def is_known_step(step: str) -> bool:
    """Return whether this version of Trellis contains a step."""
    return step in list_steps()


def is_newer_step(step: str) -> bool:
    """Return whether a step seems to be from a newer version: its number is higher than that of the newest step here."""
    return step.isdecimal() and len(step) == len(find_newest_step()) and step > find_newest_step()


def read_step(tx: Transaction) -> str | None:
    """Return the name of the step that the database of a transaction is at."""
    return cast("str | None", tx.connection.execute(_READ).scalar())


def find_step(settings: Settings) -> str | None:
    """Return the name of the step that a database is at; None if it has not been migrated, for example because it is empty."""
    with open_engine(settings) as engine:
        return find_step_by(engine)


def find_step_by(engine: sa.Engine) -> str | None:
    """Return the same of the database of an engine."""
    with engine.connect() as connection:
        if not engine.dialect.has_table(connection, "alembic_version"):
            return None
        return cast("str | None", connection.execute(_READ).scalar())
