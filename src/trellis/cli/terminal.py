"""Output of results, messages and progress."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, Final, Protocol

import typer

from trellis.errors import Fault, Refused
from trellis.invisible import escape_unsafe

FAILED: Final = 1
MISUSED: Final = 2
STDIN: Final = "-"  # stands for standard input in place of a file
_LONGEST_LINE: Final = 10_000  # characters of a secret: more than any has, but a device may have no end

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

# Seconds before progress is shown, and between two lines of it if there is no terminal.
_PATIENCE: Final = 1.0
_PAUSE: Final = 10.0


def make_app(**options: Any) -> typer.Typer:
    """Return a Typer application for a command, or for a group of commands, with the options that all of them share."""
    return typer.Typer(**options, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")


def refuse_empty(advice: str = "Give a value, or leave the option out.") -> Callable[[str | None], str | None]:
    """Return a callback that refuses an empty text, which a shell variable that is not set would give, as if it were left out."""

    def refuse(text: str | None) -> str | None:
        if text is not None and not text.strip():
            raise typer.BadParameter(f"it is empty. {advice}")
        return text

    return refuse


class Failure(Exception):
    """A command failed; the text is a message for the user."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def settle_streams() -> None:
    """Make sure that this process has stdin, stdout and stderr, and that every character can be written to stdout.

    If one of them is closed, the next file or connection that is opened would get its number, and then receive what is written
    to stderr. Files and pipes get UTF-8, whatever the locale: they receive JSON, or a document that `trellis apply` reads.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003  # the lowest free number: this one
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115  # for good
    if isinstance(sys.stdout, TextIOWrapper):
        encoding = sys.stdout.encoding if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")


def read_line(file: str) -> str:
    """Return the first line of a file, or of standard input (STDIN), such as a secret. Raises OSError, UnicodeDecodeError."""
    with nullcontext(sys.stdin) if file == STDIN else Path(file).open(encoding="utf-8") as opened:
        return opened.readline(_LONGEST_LINE).rstrip("\r\n")


def format_refusal(refused: Refused) -> str:
    """Format a refusal: its message and what was wrong, with every invalid field on a line of its own."""
    if not refused.faults:
        return f"{refused.message}: {refused.detail}"
    more = (f"  … and {refused.more_faults:,} more.",) if refused.more_faults else ()
    return "\n".join((f"{refused.message}: {refused.refusal.title}.", *(f"  {_line(fault)}" for fault in refused.faults), *more))


def _line(fault: Fault) -> str:
    return fault.detail if fault.detail.startswith(fault.field) else f"{fault.field}: {fault.detail}"


def print_message(sentence: str, style: str = "") -> None:
    """Print a message to stderr, apart from the output."""
    _echo(sentence, style, err=True)


def show(line: str = "", style: str = "") -> None:
    """Print a line of output unchanged. `style` is a colour, or `bold`."""
    _echo(line, style, err=False)


def _echo(text: str, style: str, *, err: bool) -> None:
    colour = None if style in {"", "bold"} else style
    with _writing():
        typer.secho(
            escape_unsafe(text),
            err=err,
            fg=colour,
            bold=style == "bold" or None,
            color=False if os.environ.get("NO_COLOR") else None,
        )


@contextmanager
def _writing() -> Iterator[None]:
    """Turn an error of the output into a Failure, not to be taken for one of the database. A broken pipe ends the command."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(explain_output(error)) from None


def explain_output(error: OSError) -> str:
    """Explain an error of the output."""
    return f"The output could not be written: {error.strerror or error}. What the command did before that is not undone."


def show_document(text: str) -> None:
    """Print a text that ends with a line break: unchanged, unless it is shown at a terminal, which some characters would change."""
    with _writing():
        typer.echo(escape_unsafe(text) if sys.stdout.isatty() else text, nl=False)


def show_json(value: Any, *, coloured: bool = False) -> None:
    """Print a value as JSON: in colours at a terminal, if they are wanted."""
    from orjson import OPT_INDENT_2, OPT_NON_STR_KEYS, dumps  # noqa: PLC0415  # start-up time: `trellis --version` prints none

    text = escape_unsafe(dumps(value, option=OPT_INDENT_2 | OPT_NON_STR_KEYS).decode())
    if not (coloured and sys.stdout.isatty()):
        show_document(f"{text}\n")
        return
    from trellis.cli.drawing import draw_json  # noqa: PLC0415  # start-up time: Rich is slow to load

    draw_json(text)


def show_table(columns: Iterable[str], rows: Iterable[Iterable[object]], colours: Iterable[str] = ()) -> None:
    """Print a table: at most as wide as the terminal, or each row on one line if there is no terminal.

    `colours` are those of the rows' first cells at a terminal.
    """
    cells = [["–" if cell is None else escape_unsafe(str(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from trellis.cli.drawing import draw_table  # noqa: PLC0415  # start-up time: Rich is slow to load

        draw_table(columns, cells, list(colours))
        return
    lines = [list(columns), *cells]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        show_document("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n")


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let the signals of `timeout` and of a closed terminal end what runs inside as Ctrl-C does, so that no half is left."""
    changed = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]  # not `nohup`'s
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


# --- progress -----------------------------------------------------------------------------------------------------


class Tell(Protocol):
    """Tells how much is done and, if it is known, the total."""

    def __call__(self, done: int, total: int | None = None, /) -> None: ...


@contextmanager
def progress_of(what: str) -> Iterator[Tell]:
    """Show progress on stderr if something takes long. Yields a function to call with how much is done and, if known, the total.

    A terminal shows a bar, which pulses until the function is called; elsewhere a line is written now and then.
    """
    progress = CommandProgress(time.monotonic())
    over = threading.Event()
    thread = threading.Thread(target=_show, args=(what, progress, over), name="trellis-progress", daemon=True)
    thread.start()
    try:
        yield progress.tell
    finally:
        over.set()
        thread.join()


def progress_at_terminal(what: str) -> AbstractContextManager[Callable[[int, int], None]]:
    """Show progress at a terminal only: elsewhere stderr gets nothing but refusals, for a log or a comment."""
    return progress_of(what) if sys.stderr.isatty() else nullcontext(lambda _done, _all: None)


@dataclass(slots=True)
class CommandProgress:
    """The progress of a command: `far` is how much is done and the total if it is known, or None before anything is known."""

    since: float
    far: tuple[int, int | None] | None = None

    def tell(self, done: int, total: int | None = None) -> None:
        self.far = (done, total)

    def __str__(self) -> str:
        if self.far is None:
            return ""
        done, total = self.far
        if total is None:
            return f"{done:,} so far"
        return f"{done:,} of {total:,}" + (", finishing" if done >= total else "")  # a copy is verified, a change committed


def _show(what: str, progress: CommandProgress, over: threading.Event) -> None:
    if over.wait(_PATIENCE):
        return
    if sys.stderr.isatty():
        from trellis.cli.drawing import draw_progress  # noqa: PLC0415  # start-up time: Rich is slow to load

        draw_progress(what, progress, over)
        return
    while True:
        sys.stderr.write(f"{what}: {progress if progress.far else f'{time.monotonic() - progress.since:.0f} s so far'}\n")
        sys.stderr.flush()
        if over.wait(_PAUSE):
            return
