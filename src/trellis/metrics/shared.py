"""Sharing metrics between the workers of one parent process: each worker writes a file in a folder, and reads those of all others.

The file of a worker that has ended remains, so that counters never decrease, until another worker begins, which takes it over and
goes on with its counts: there are never more files than workers. A worker writes its file before it tells anybody of its counts,
since it may be killed right after that. As long as it lives, it holds a lock on a second file. Process ids are not used for either,
since a later process can have the same one. The parent removes the folder when it ends.
"""

import asyncio
import fcntl
import logging
import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from trellis.metrics.sample import Sample, sum_up

log = logging.getLogger(__name__)

_EVERY: Final = 1.0  # seconds between two writes
_LOCK: Final = ".lock"
_TOUCH_EVERY: Final = 3600.0  # seconds: systems delete files from folders for temporary ones after days without a change


class SharedSamples:
    """The shared folder as one worker uses it. `take` returns the sample of this process."""

    def __init__(self, folder: Path, take: Callable[[], Sample]) -> None:
        self._folder = folder
        self._take = take
        self._own = folder / f"{secrets.token_hex(8)}.json"
        self._inherited = Sample()  # what the workers have counted whose file this one has taken over
        self._lock: int | None = None
        self._writing = threading.Lock()  # the last write must not overlap with an earlier one
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "trellis-metrics-file")
        self._touched_at = -math.inf

    def start(self) -> None:
        """Start writing every second, in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop, and write a last time. From now on this process counts as ended."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._thread.shutdown(wait=False)
        self.write()
        if self._lock is not None:
            os.close(self._lock)

    async def _run(self) -> None:
        while True:
            try:
                # In a thread, so that a slow disk does not hold up requests, and that no request holds it up.
                await asyncio.get_running_loop().run_in_executor(self._thread, self.write)
            except Exception:
                log.exception("The metrics of this process could not be shared.")
            await asyncio.sleep(_EVERY)

    def write(self) -> Sample:
        """Write the sample of this process, and return it. If it cannot be written, the previous file remains."""
        with self._writing:
            with suppress(OSError):
                self._lock = self._find_file() if self._lock is None else self._lock
            sample = sum_up([(self._inherited, False), (self._take(), True)])
            if self._lock is not None:
                with suppress(OSError):
                    self._replace(sample)
            if time.monotonic() - self._touched_at >= _TOUCH_EVERY:
                self._touched_at = time.monotonic()
                self._touch_files()
            return sample

    def _find_file(self) -> int | None:
        """Take over the file of a worker that has ended, or else begin a new one; return the lock on it. Raises OSError."""
        for file in (*self._folder.glob("*.json"), self._own):
            if (lock := _lock(file.with_suffix(_LOCK))) is not None:
                with suppress(FileNotFoundError):  # the new one
                    self._inherited = _read(orjson.loads(file.read_bytes()))
                self._own = file
                return lock
        return None

    def _replace(self, sample: Sample) -> None:
        content = {
            "numbers": [[*key, value] for key, value in sample.numbers.items()],
            "histograms": [[*key, *value] for key, value in sample.histograms.items()],
        }
        draft = self._own.with_suffix(".new")
        draft.write_bytes(orjson.dumps(content))
        draft.replace(self._own)

    def _touch_files(self) -> None:
        """Let all files seem new: those of workers that have ended, and locks, are not written again, and must not be deleted."""
        for file in self._folder.glob("*.*"):
            with suppress(OSError):  # its worker has just replaced it
                os.utime(file)

    def read(self) -> Iterator[tuple[Sample, bool]]:
        """Read the samples of the other processes, each with whether the process is alive."""
        for file in sorted(self._folder.glob("*.json")):
            if file != self._own:
                with suppress(OSError):
                    yield _read(orjson.loads(file.read_bytes())), _is_locked(file.with_suffix(_LOCK))


def _read(content: dict[str, list[list]]) -> Sample:  # type: ignore[type-arg]
    sample = Sample()
    for name, labels, value in content["numbers"]:
        sample.numbers[name, tuple(labels)] = value
    for name, labels, classes, total in content["histograms"]:
        sample.histograms[name, tuple(labels)] = (classes, total)
    return sample


def _lock(file: Path) -> int | None:
    """Create a file and lock it until the returned descriptor is closed; None if it is locked already. Raises OSError."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _is_locked(file: Path) -> bool:
    with file.open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
