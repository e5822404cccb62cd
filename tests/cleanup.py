"""A process beside a test run that ends what the run has left behind, however it ended: python cleanup.py MARK FOLDER.

The run holds the other end of this process's standard input. When that is closed, because the run is over or was killed, every
process that was started with the variable MARK_NAME=MARK is killed, and the folder of the run's databases is removed. It uses
the standard library alone, and Linux's /proc; elsewhere it only removes the folder.
"""

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MARK_NAME = "TESTS_OF_TRELLIS"  # not behind TRELLIS_, where the settings are


def processes_marked(mark: str) -> Iterator[int]:
    """Find the processes that were started with a mark in their environment."""
    wanted = f"{MARK_NAME}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile, or is somebody else's
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)


def end_postgresql(its_pid: Path) -> None:
    """Let PostgreSQL give its shared memory back, which it cannot when it is killed; wait for ten seconds at most."""
    with suppress(FileNotFoundError, ProcessLookupError):
        pid = int(its_pid.read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
        for _ in range(200):
            os.kill(pid, 0)
            time.sleep(0.05)


def main() -> None:
    """Wait for the end of the run, and tidy up."""
    mark, folder = sys.argv[1:]
    sys.stdin.read()
    end_postgresql(Path(folder) / "server" / "postmaster.pid")
    while left := list(processes_marked(mark)):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
