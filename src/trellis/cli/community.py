"""How the commands reach the community: its database is looked at, opened, and operations are run as the terminal."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from trellis.cli.terminal import Failure, say
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.settings import Settings, SettingsError
from trellis.store.condition import Condition, describe_database, explain_error, find_condition, find_file


@contextmanager
def community(settings: Settings, *, make: bool = True) -> Iterator[Gate]:
    """Open the community. A SQLite database that is not there is made, unless `make` is false.

    Raises Failure, with a sentence, when there is no database, when it is not at the newest step, or cannot be used.
    """
    with explaining(settings):
        _prepare_database(settings, make=make)
        gate = compose(settings)
        try:
            yield gate
        finally:
            gate.store.close()


@contextmanager
def explaining(settings: Settings) -> Iterator[None]:
    """Turn an error of the database into a Failure that says what to do about it."""
    try:
        yield
    except (Failure, SettingsError):
        raise
    except Exception as error:
        known = isinstance(error, Refused) and error.status < 500
        sentence = None if known else explain_error(settings, error)
        if sentence is None:
            raise
        raise Failure(sentence) from error


def _prepare_database(settings: Settings, *, make: bool) -> None:
    at = find_condition(settings)
    if at is Condition.READY:
        return
    if make and at in {Condition.MISSING, Condition.EMPTY} and find_file(settings) is not None:
        from trellis.store.migrate import migrate  # noqa: PLC0415  # start-up time: Alembic is rarely needed

        migrate(settings)
        say(f"Made a new database: {describe_database(settings)}")
        return
    raise Failure(unready(settings, at))


def unready(settings: Settings, at: Condition) -> str:
    """Say why a database cannot be used as it is, and what to do."""
    name = describe_database(settings)
    return {
        Condition.MISSING: f"There is no database {name}. To make one, run: trellis migrate",
        Condition.EMPTY: f"The database {name} is empty. Run: trellis migrate",
        Condition.OLDER: f"The database {name} is from an older release. Run: trellis migrate",
        Condition.FOREIGN: f"The database {name} belongs to another program, or to a newer Trellis. It was left alone.",
        Condition.READY: f"The database {name} is ready.",
    }[at]


def act(
    gate: Gate,
    operation: str,
    raw: Mapping[str, Any] | None = None,
    target: int | None = None,
    *,
    reason: str | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Result:
    """Run an operation as the terminal, under a request id of its own."""
    return gate.run(
        Call(operation, TERMINAL, raw or {}, target, request_id=uuid4().hex, reason=reason, progress=progress),
    )
