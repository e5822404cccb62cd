"""What the benchmark shows on the terminal while it runs, and its tables."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Drawn

from bench.report import Table

console = Console(width=140 if not Console().is_terminal else None)


class Steps:
    """A line of progress: so many steps, and what is being done."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total)

    def say(self, text: str) -> None:
        """Say what is being done."""
        self._progress.update(self._task, description=text)

    def done(self, line: str = "") -> None:
        """Finish a step, with a line that stays."""
        self._progress.advance(self._task)
        if line:
            self._progress.console.print(line, highlight=False)


@contextmanager
def steps(total: int) -> Iterator[Steps]:
    """Show the progress of so many steps."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Steps(progress, total)


def show(found: Iterable[Table]) -> None:
    """Print tables."""
    for table in found:
        drawn = Drawn(title=table.title, title_justify="left", title_style="bold")
        for number, column in enumerate(table.columns):
            drawn.add_column(column, justify="right" if number else "left", no_wrap=bool(number))
        for row in table.rows:
            reached = row[-1] == "reached"
            short = row[-1].startswith(("short", "over"))
            drawn.add_row(*row, style="green" if reached else "red" if short else None)
        console.print(drawn)
        console.print()
