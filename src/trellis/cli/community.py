"""Opens the community for commands: checks its database, and runs operations as the terminal."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import uuid4

import typer

from trellis.cli.terminal import Failure, print_message, refuse_empty
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.fields import MAX_ID, Invalid, invalid_id
from trellis.core.gate import Gate, Result
from trellis.core.keys import REASON, tidy_reason, to_one_line
from trellis.core.operation import Call
from trellis.core.paging import MOST_PER_PAGE, read_all
from trellis.errors import Refused, refuse_fault
from trellis.settings import Settings, SettingsError
from trellis.store.condition import Condition, describe_database, explain_condition, explain_error, find_condition, find_file
from trellis.store.engine import find_reserved
from trellis.traces import Traces

_NAME_IT: Final = "Give the id of a key, its public part or its name."


def _check_reason(text: str | None) -> str | None:
    """Refuse a reason that is too long, as the API does, even without what is not recorded of it. Raises Refused."""
    try:
        REASON.type.parse(to_one_line(text or ""))
    except Invalid as invalid:
        raise refuse_fault(REASON.name, invalid.message, f"{REASON.name} {invalid.detail}") from None
    return text


Reason = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="The reason; recorded in the event log.", callback=_check_reason),
]

KEY_HELP: Final = "The key: its id, its public part or its name; see `trellis keys list`."
OneKey = Annotated[str, typer.Argument(metavar="KEY", help=KEY_HELP, show_default=False, callback=refuse_empty(_NAME_IT))]


@contextmanager
def community(settings: Settings, *, make: bool = False, traces: Traces | None = None) -> Iterator[Gate]:
    """Open the community. A missing SQLite database is created if `make` is true.

    After Ctrl-C the store is not closed, as the command is to end. Raises Failure with a message if there is no database, or if it
    is not at the newest step or cannot be used.
    """
    with explaining(settings):
        _prepare_database(settings, make=make)
        gate = compose(settings, traces=traces)
        is_interrupted = False
        try:
            yield gate
        except KeyboardInterrupt:
            # Closing the store would finish the writes that wait. Its thread ends with the process, which leaves nothing half done.
            is_interrupted = True
            raise
        finally:
            if not is_interrupted:
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


def require_other_names(settings: Settings, *files: Path | None) -> None:
    """Refuse to write to the database, or to a file beside it that SQLite, its locks or a restore use. Raises Failure."""
    database = find_file(settings)
    for file in files:
        with suppress(OSError):  # if the file system refuses a name, the use of it says so
            if file is not None and database is not None and find_reserved(database, file) is not None:
                raise Failure(f"{file} is the name of a file that belongs to the database: choose another name.")


def _prepare_database(settings: Settings, *, make: bool) -> None:
    at = find_condition(settings)
    if at is Condition.READY:
        return
    if make and at in {Condition.MISSING, Condition.EMPTY} and find_file(settings) is not None:
        from trellis.store.migrate import migrate  # noqa: PLC0415  # start-up time: Alembic is rarely needed

        migrate(settings)
        print_message(f"Created a new database: {describe_database(settings)}")
        return
    raise Failure(explain_condition(settings, at))


def act(
    gate: Gate,
    operation: str,
    raw: Mapping[str, Any] | None = None,
    target: int | None = None,
    *,
    reason: str | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Result:
    """Run an operation as the terminal, with its own request id."""
    if target is not None and abs(target) > MAX_ID:  # no record has such an id, and databases do not accept it
        found = gate.catalogue.find(operation)
        raise invalid_id(found.singular, target, found.missing_code)
    why = tidy_reason(reason) or None if reason else None
    return gate.run(Call(operation, TERMINAL, raw or {}, target, request_id=uuid4().hex, reason=why, progress=progress))


def list_all(gate: Gate, operation: str) -> list[dict[str, Any]]:
    """Return all records of an operation that lists them in pages."""
    return read_all(lambda page: act(gate, operation, {"page": page, "perPage": MOST_PER_PAGE}).value)


def find_key(gate: Gate, named: str) -> int:
    """Return the id of a key that is named by its id, its public part or its name. Raises Refused."""
    return int(act(gate, "keys.find", {"key": named}).value["id"])
