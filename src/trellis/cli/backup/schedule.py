"""Makes copies on a schedule in one folder, in which the newest ones are kept."""

import fcntl
import logging
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from trellis.cli.terminal import Failure

log = logging.getLogger(__name__)

_NAME: Final = re.compile(r"trellis-[0-9]{8}T[0-9]{6}Z\.db", re.ASCII)
DRAFT: Final = ".partial"  # ends the name of a copy until it is complete: a process may be killed in the middle of it


@dataclass(frozen=True, slots=True)
class Schedule:
    """The folder for copies, the time between two of them, and how many to keep."""

    folder: Path
    every: timedelta
    keep: int


def run_schedule(schedule: Schedule, copy: Callable[[Path], None]) -> None:
    """Make copies until SIGTERM or SIGINT. A copy that fails is logged, and the next one is made when it is due."""
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    log.info("A copy every %s in %s; the newest %d are kept. Send SIGTERM to stop.", schedule.every, schedule.folder, schedule.keep)
    while True:
        make_one(schedule, copy, datetime.now(UTC))
        if over.wait(schedule.every.total_seconds()):
            log.info("Trellis has stopped.")
            return


def make_one(schedule: Schedule, copy: Callable[[Path], None], at: datetime) -> None:
    """Make a copy, and then delete the oldest ones beyond those to keep. If no copy was made, none is deleted."""
    target = schedule.folder / f"trellis-{at:%Y%m%dT%H%M%SZ}.db"
    try:
        schedule.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _without_leftovers(schedule.folder):
            copy(draft := target.with_name(target.name + DRAFT))
            size = draft.stat().st_size
            draft.rename(target)
    except (Failure, OSError) as error:
        log.error("No copy was made: %s", error)  # noqa: TRY400  # the sentence says it; a traceback would not help
        return
    except Exception:
        log.exception("No copy was made.")
        return
    log.info("Copied the database to %s (%d bytes).", target, size)
    try:
        surplus = _list_oldest_first(schedule.folder, target)[: -schedule.keep]
    except OSError as error:
        log.error("Older copies cannot be listed, and none was deleted: %s", error)  # noqa: TRY400  # as above
        return
    for old in surplus:
        try:
            old.unlink(missing_ok=True)  # another schedule may have been quicker
        except OSError as error:
            log.error("%s could not be deleted: %s", old, error.strerror)  # noqa: TRY400  # as above


@contextmanager
def _without_leftovers(folder: Path) -> Iterator[None]:
    """Delete what killed processes have left in a folder, unless another process is copying to it, and keep others from doing so.

    In a file system without locks, nothing is deleted.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in folder.glob(f"trellis-*Z.db{DRAFT}*"):  # and its journal
                left.unlink()
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _list_oldest_first(folder: Path, newest: Path) -> list[Path]:
    """List the copies. A later name than the newest copy's is from before the clock was put back: such a copy counts as old."""
    copies = (path for path in folder.iterdir() if _NAME.fullmatch(path.name))
    return sorted(copies, key=lambda path: (path.name <= newest.name, path.name))
