"""Output with Rich at a terminal: tables, coloured JSON and the progress bar."""

import threading
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from rich import progress as bars
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

_FRAME: Final = 0.1  # seconds between updates of the bar


class DrawnProgress(Protocol):
    """How much is done and the total if it is known, or None before anything is known. As a text, it says so."""

    since: float
    far: tuple[int, int | None] | None


def draw_json(text: str) -> None:
    """Print JSON in colours."""
    Console(highlight=False).print_json(text)


def draw_table(columns: Iterable[str], rows: Iterable[Iterable[str]], colours: Sequence[str] = ()) -> None:
    """Print a table that is at most as wide as the terminal. `colours` are those of the rows' first cells."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for at, (first, *others) in enumerate(rows):
        table.add_row(Text(first, style=colours[at] if colours else ""), *map(Text, others))
    Console(highlight=False).print(table)


def draw_progress(what: str, progress: DrawnProgress, over: threading.Event) -> None:
    """Show a bar on stderr until `over` is set. Before the total is known, the bar pulses."""
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TextColumn("{task.fields[told]}"),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as shown:
        task = shown.add_task(escape(what), total=None, told="")
        shown.tasks[0].start_time = progress.since
        while not over.wait(_FRAME):
            if (far := progress.far) is not None:
                shown.update(task, completed=far[0], total=far[1], told=str(progress))
