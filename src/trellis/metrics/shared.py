"""Sharing metrics between the workers of one parent process: each worker writes a file in a folder, and reads those of all others.

The file of a worker that has ended remains, so that counters never decrease. The parent removes the folder when it ends.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson

from trellis.metrics.sample import Sample

log = logging.getLogger(__name__)

_EVERY: Final = 1.0  # seconds between two writes


class SharedSamples:
    """The shared folder as one worker uses it. `take` returns the sample of this process."""

    def __init__(self, folder: Path, take: Callable[[], Sample]) -> None:
        self._folder = folder
        self._take = take
        self._own = folder / f"{os.getpid()}.json"
        self._writing = threading.Lock()  # the last write must not overlap with an earlier one
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start writing every second, in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop, and write a last time."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self.write()

    async def _run(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.write)  # in a thread, so that a slow disk does not hold up requests
            except Exception:
                log.exception("The metrics of this process could not be shared.")
            await asyncio.sleep(_EVERY)

    def write(self) -> None:
        """Write the sample of this process. If that fails, the previous file remains."""
        with self._writing:
            sample = self._take()
            told = {
                "numbers": [[*key, value] for key, value in sample.numbers.items()],
                "histograms": [[*key, *value] for key, value in sample.histograms.items()],
            }
            draft = self._own.with_suffix(".new")
            with suppress(OSError):
                draft.write_bytes(orjson.dumps(told))
                draft.replace(self._own)

    def read(self) -> Iterator[tuple[Sample, bool]]:
        """Read the samples of the other processes, each with whether the process is alive."""
        for file in sorted(self._folder.glob("*.json")):
            if file != self._own:
                with suppress(OSError):
                    yield _read(orjson.loads(file.read_bytes())), _is_alive(int(file.stem))


def _read(told: dict[str, list[list]]) -> Sample:  # type: ignore[type-arg]
    sample = Sample()
    for name, labels, value in told["numbers"]:
        sample.numbers[name, tuple(labels)] = value
    for name, labels, classes, total in told["histograms"]:
        sample.histograms[name, tuple(labels)] = (classes, total)
    return sample


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True
