"""Whether a database can be used, and explanations for the operator if it cannot."""

from collections.abc import Iterator
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import sqlalchemy as sa

from trellis.sentences import say
from trellis.settings import Settings, SettingsError, description, variable
from trellis.store import sqlite
from trellis.store.engine import FORBIDDEN, FULL, NO_WRITES, READ_ONLY, DatabaseInUse, open_engine
from trellis.store.inspection import shares_sessions
from trellis.store.steps import READ_STEP, find_newest_step, find_step_by, is_known_step, is_newer_step

if TYPE_CHECKING:
    import psycopg


class Condition(Enum):
    """The condition of a database: ready, or the reason why it cannot be used."""

    MISSING = "missing"  # on SQLite: the file does not exist
    EMPTY = "empty"
    OLDER = "older"
    READY = "ready"
    NEWER = "newer"  # migrated by a newer release
    FOREIGN = "foreign"  # it belongs to another program
    POOLED = "pooled"  # on PostgreSQL: behind a pooler that leaves no connection its own session


def find_file(settings: Settings) -> Path | None:
    """Return the file of a SQLite database; None for PostgreSQL. Raises SettingsError if the address is invalid."""
    url = _url(settings)
    return Path(url.database or "") if url.drivername.startswith("sqlite") else None


def describe_database(settings: Settings) -> str:
    """Describe the database for people to read, without the password."""
    if (file := find_file(settings)) is not None:
        return str(file)
    url = _url(settings)
    where = url.host or dict(url.query).get("host") or "localhost"
    return f"'{url.database or ''}' at {where}" + (f":{url.port}" if url.port else "")


def find_condition(settings: Settings) -> Condition:
    """Determine the condition of a database without creating or changing anything."""
    file = find_file(settings)
    if file is not None:
        if not file.exists():
            return Condition.MISSING
        tables, step = _look_into(file)
        if not tables:
            return Condition.EMPTY
        if "alembic_version" not in tables:
            return Condition.FOREIGN
    else:
        with open_engine(settings) as engine:
            if shares_sessions(engine):
                return Condition.POOLED
            step = find_step_by(engine)
    return Condition.EMPTY if step is None else _judge(step)


def _judge(step: str) -> Condition:
    if step == find_newest_step():
        return Condition.READY
    if is_newer_step(step):
        return Condition.NEWER
    return Condition.OLDER if is_known_step(step) else Condition.FOREIGN


def explain_condition(settings: Settings, at: Condition) -> str:
    """Explain in a sentence why a database in a condition cannot be used, and what to do."""
    name = describe_database(settings)
    return {
        Condition.MISSING: f"There is no database {name}. To create it, run: trellis migrate",
        Condition.EMPTY: f"The database {name} is empty. Run: trellis migrate",
        Condition.OLDER: f"The database {name} is from an older release. Run: trellis migrate",
        Condition.NEWER: f"The database {name} is from a newer release of Trellis, and this one goes "
        f"only to step {find_newest_step()}: install that release, or restore an older backup. It was not changed.",
        Condition.FOREIGN: f"The database {name} belongs to another program. It was not changed.",
        Condition.POOLED: f"The database {name} is behind a pooler that gives each transaction another session, such as PgBouncer "
        "in transaction mode. Connect to PostgreSQL directly, or through a pool in session mode. It was not changed.",
        Condition.READY: f"The database {name} is ready.",
    }[at]


def explain_error(settings: Settings, error: BaseException) -> str | None:
    """Explain a database error in a sentence; None if the error is not about the database."""
    # Start-up time: Alembic and psycopg take longer to load than most commands run, and are needed only after an error.
    from alembic.script.revision import ResolutionError  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415
    from psycopg import Error  # noqa: PLC0415

    for cause in _causes(error):
        if isinstance(cause, DatabaseInUse):
            return str(cause)
        if isinstance(cause, sqlite.Error):
            return _about_sqlite(find_file(settings) or Path(), cause)
        if isinstance(cause, Error):
            return _about_postgresql(describe_database(settings), cause)
        if isinstance(cause, OSError) and not isinstance(cause, BrokenPipeError):
            return f"The database {describe_database(settings)} cannot be used: {cause.strerror or cause}."
        if isinstance(cause, CommandError | ResolutionError):
            return f"The database {describe_database(settings)} cannot be brought up to date: {_first_line(cause)}"
    return None


def _url(settings: Settings) -> sa.URL:
    try:
        return sa.make_url(settings.database_url)
    except (sa.exc.ArgumentError, ValueError):
        raise SettingsError(f"{variable('database_url')} cannot be read as an address. {description('database_url')}") from None


def _look_into(file: Path) -> tuple[set[str], str | None]:
    """Return the tables in a file, and the step that Alembic has recorded there, which may be another program's."""
    # Not through the engine: it would switch the file to write-ahead logging, even if the file belongs to another program.
    with closing(sqlite.connect(file)) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = connection.execute(READ_STEP).fetchone() if "alembic_version" in tables else None
        return tables, None if found is None else str(found[0])


def _causes(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    for _ in range(10):
        if at is None:
            return
        yield at
        if isinstance(at, sa.exc.DBAPIError) and at.orig is not None:
            yield at.orig
        at = at.__cause__


def _about_postgresql(name: str, error: "psycopg.Error") -> str:
    if error.sqlstate == READ_ONLY:
        return say(NO_WRITES, database=f"The database {name}")
    told = f"PostgreSQL cannot use the database {name}: {_first_line(error)}"
    return told if (advice := _ADVICE.get(error.sqlstate or "")) is None else f"{told.rstrip('.')}. {advice}"


_ADVICE: Final = {
    FULL: "Free some space on the disk of its server; nothing has to be restarted.",
    FORBIDDEN: "Grant the account this right (see docs/security.md), or migrate with the account that owns the schema.",
    "3F000": "Set the account's search_path to a schema in which it may create tables.",
}

_OF_STATEMENTS: Final = (
    ("no such table", "is not one of Trellis, or not complete. `trellis migrate` brings an older one up to date."),
    ("no such column", "is not one of Trellis, or not complete. `trellis migrate` brings an older one up to date."),
    ("already exists", "contains tables of another program. Give Trellis its own file."),
)


def _about_sqlite(file: Path, error: Exception) -> str:
    if (meaning := sqlite.explain(error, file)) is not None:
        return f"{meaning.describe(f'The database {file}')} {meaning.advice}".rstrip()
    for part, what in _OF_STATEMENTS:
        if part in str(error):
            return f"The database {file} {what}"
    return f"The database {file} cannot be used: {error}."


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
