"""What all commands share: the way to the gate, and how results, refusals and progress are shown."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final
from uuid import uuid4

import orjson
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call
from trellis.errors import Fault, Refused
from trellis.settings import Settings, SettingsError
from trellis.store.condition import Condition, describe_database, explain_error, find_condition, find_file
from trellis.store.migrate import migrate

FAILED: Final = 1
MISUSED: Final = 2

OUT: Final = Console(highlight=False)
ERR: Final = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]

_QUIET: Final = logging.NullHandler()  # the sentence on stderr says it; `serve` sets up a log of its own
_WIDE: Final = 240  # columns of a table that goes to a file or a pipe
# Seconds before progress is shown; then between two lines where there is no terminal, and between two states of a bar.
_PATIENCE: Final = 1.0
_PAUSE: Final = 10.0
_FRAME: Final = 0.1


class Failure(Exception):
    """A command cannot do what it was asked; the text is a sentence for whoever typed it."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


class Door(TyperGroup):
    """A group of commands that says in a sentence, on stderr, why one of them was refused or failed."""

    def invoke(self, ctx: Any) -> Any:
        logging.getLogger("trellis").addHandler(_QUIET)
        try:
            return super().invoke(ctx)
        except SettingsError as error:
            code = _told(str(error), MISUSED)
        except Failure as failure:
            code = _told(str(failure), failure.code)
        except Refused as refused:
            code = _told(refusal(refused), FAILED)
        raise typer.Exit(code)


def _told(sentence: str, code: int) -> int:
    say(sentence, style="red")
    return code


def refusal(refused: Refused) -> str:
    """Write a refusal: its message and what was wrong, with every faulty field on a line of its own."""
    if not refused.faults:
        return f"{refused.message}: {refused.detail}"
    return "\n".join((f"{refused.message}: {refused.refusal.title}.", *(f"  {_line(fault)}" for fault in refused.faults)))


def _line(fault: Fault) -> str:
    return fault.detail if fault.detail.startswith(fault.field) else f"{fault.field}: {fault.detail}"


# --- the way to the gate ------------------------------------------------------------------------------------------


@contextmanager
def community(settings: Settings, *, make: bool = True) -> Iterator[Gate]:
    """Open the community. A SQLite database that is not there is made, unless `make` is false.

    Raises Failure, with a sentence, when there is no database, when it is not at the newest step, or cannot be used.
    """
    with explaining(settings):
        _see_to_the_database(settings, make=make)
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


def _see_to_the_database(settings: Settings, *, make: bool) -> None:
    at = find_condition(settings)
    if at is Condition.READY:
        return
    if make and at in {Condition.MISSING, Condition.EMPTY} and find_file(settings) is not None:
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


# --- showing ------------------------------------------------------------------------------------------------------


def say(sentence: str, style: str = "") -> None:
    """Say something to the person, beside the output: on stderr, unwrapped."""
    ERR.print(Text(sentence, style=style), soft_wrap=True)


def show(line: str = "", style: str = "") -> None:
    """Print a line of output, unwrapped and as it is."""
    OUT.print(Text(line, style=style), soft_wrap=True)


def show_json(value: Any, *, plain: bool = False) -> None:
    """Print a value as JSON: coloured for a person at a terminal, plain for a program."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    if OUT.is_terminal and not plain:
        OUT.print_json(text)
    else:
        typer.echo(text)


def show_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table; into a file or a pipe each row stays on one line."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("–" if cell is None else str(cell)) for cell in row))
    (OUT if OUT.is_terminal else Console(width=_WIDE)).print(table)


@contextmanager
def progress_of(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show on stderr that something is under way, if it takes long; give a function that is told how much is done, and of how much.

    A terminal shows a bar, which pulses as long as nothing was told; elsewhere a line is written now and then.
    """
    reached = _Reached(time.monotonic())
    over = threading.Event()
    showing = threading.Thread(target=_show, args=(what, reached, over), name="trellis-progress", daemon=True)
    showing.start()
    try:
        yield reached.tell
    finally:
        over.set()
        showing.join()


@dataclass(slots=True)
class _Reached:
    """How far it is: `done` of `total`, of which None is known at first."""

    since: float
    far: tuple[int, int] | None = None

    def tell(self, done: int, total: int) -> None:
        self.far = (done, total)

    def __str__(self) -> str:
        return "" if self.far is None else f"{self.far[0]:,} of {self.far[1]:,}"


def _show(what: str, reached: _Reached, over: threading.Event) -> None:
    if over.wait(_PATIENCE):
        return
    if ERR.is_terminal:
        _draw(what, reached, over)
        return
    while True:
        sys.stderr.write(f"{what}: {reached if reached.far else f'{time.monotonic() - reached.since:.0f} s so far'}\n")
        sys.stderr.flush()
        if over.wait(_PAUSE):
            return


def _draw(what: str, reached: _Reached, over: threading.Event) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    with Progress(*columns, console=ERR, transient=True) as progress:
        task = progress.add_task(escape(what), total=None, told="")
        progress.tasks[0].start_time = reached.since
        while not over.wait(_FRAME):
            done, total = reached.far or (0, None)
            progress.update(task, completed=done, total=total, told=str(reached))
