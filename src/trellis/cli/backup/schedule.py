"""Makes copies on a schedule in one folder, in which the newest ones are kept."""

import fcntl
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from errno import EEXIST
from pathlib import Path
from typing import Final

from trellis.cli.terminal import Failure, interrupted_by_signals
from trellis.store.engine import sync_folder

log = logging.getLogger(__name__)

_NAME: Final = re.compile(r"trellis-[0-9]{8}T[0-9]{6}Z\.db", re.ASCII)
_OWNER: Final = ".trellis-copies-of"  # the file in a folder that names the database whose copies the folder is for
DRAFT: Final = ".partial"  # ends the name of a copy until it is complete: a process may be killed in the middle of it


@dataclass(frozen=True, slots=True)
class Schedule:
    """The folder for copies, the time between two of them, and how many to keep."""

    folder: Path
    every: timedelta
    keep: int


def run_schedule(schedule: Schedule, database: Path, copy: Callable[[Path], None]) -> None:
    """Make copies of a database until SIGTERM or SIGINT. A copy that fails is logged, and the next one is made when it is due.

    A copy that is being made when the signal comes is removed: to complete it may take longer than a supervisor waits. Raises
    Failure if the folder has the copies of another database.
    """

    def copy_to_own(target: Path) -> None:
        claim_folder(schedule.folder, database)
        copy(target)

    with suppress(OSError):  # logged with the copy, which fails as well
        claim_folder(schedule.folder, database)
    log.info("A copy every %s in %s; the newest %d are kept. Send SIGTERM to stop.", schedule.every, schedule.folder, schedule.keep)
    with suppress(KeyboardInterrupt), interrupted_by_signals():
        while True:
            make_one(schedule, copy_to_own, datetime.now(UTC))
            time.sleep(schedule.every.total_seconds())
    log.info("Trellis has stopped.")


def make_one(schedule: Schedule, copy: Callable[[Path], None], at: datetime) -> None:
    """Make a copy, and then delete the oldest ones beyond those to keep. If no copy was made, none is deleted."""
    try:
        schedule.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _without_leftovers(schedule.folder):
            target = _name_copy(schedule.folder, at)
            copy(draft := _draft(target))
            size = draft.stat().st_size
            try:
                rename_new(draft, target)
            finally:
                draft.unlink(missing_ok=True)
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


def claim_folder(folder: Path, database: Path) -> None:
    """Note in a folder that it is for the copies of a database, unless that is noted already.

    Raises Failure if it is for those of another database, and OSError if the note cannot be read or written.
    """
    owner, own = folder / _OWNER, os.fsencode(os.path.realpath(database)) + b"\n"
    if not owner.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = owner.with_name(f"{owner.name}.{secrets.token_hex(4)}")
        try:
            draft.write_bytes(own)
            with suppress(FileExistsError):  # another process was quicker
                rename_new(draft, owner)
        finally:
            draft.unlink(missing_ok=True)
    if (found := owner.read_bytes()) != own:
        other = os.fsdecode(found).strip() or "another database"
        raise Failure(
            f"{folder} has the copies of {other}, and older ones would be deleted. Use another folder, or, if the database was "
            f"moved, delete {owner}."
        )


def rename_new(draft: Path, file: Path) -> None:
    """Rename a file durably without overwriting another. Raises OSError. The old name may remain, as a second one."""
    try:
        os.link(draft, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(file):
            raise FileExistsError(EEXIST, os.strerror(EEXIST), str(file)) from None
        draft.rename(file)
    sync_folder(file.parent)


def _name_copy(folder: Path, at: datetime) -> Path:
    """Return an unused name for a copy: that of its time, or of the next second without a copy."""
    while True:
        target = folder / f"trellis-{at:%Y%m%dT%H%M%SZ}.db"
        if not os.path.lexists(target) and not os.path.lexists(_draft(target)):
            return target
        at += timedelta(seconds=1)


def _draft(target: Path) -> Path:
    return target.with_name(target.name + DRAFT)


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
