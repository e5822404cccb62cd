"""Servers in processes of their own, pinned to a core unless they have several workers; their time on the processor, and memory."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_PATIENCE: Final = 60.0  # seconds for a start
_ADDRESS: Final = re.compile(r"(?:Address: +|Base URL: +|running on |Server started at )(http://127\.0\.0\.1:[0-9]+)")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def cores() -> tuple[int, int]:
    """Return the cores for the server and for the load; the same one twice where there is only one."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    return usable[0], usable[1] if len(usable) > 1 else usable[0]


def pinned(command: Sequence[str], core: int) -> list[str]:
    """Write a command so that it runs on one core, where the machine can do that."""
    return ["taskset", "-c", str(core), *command] if shutil.which("taskset") else list(command)


class Server:
    """A running server, of Python or of another program. As a context it ends with SIGTERM."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        core: int | None,
        *,
        program: str = sys.executable,
    ) -> None:
        self._command = [program, *command] if core is None else pinned([program, *command], core)
        self._folder = folder
        self._environment = own_environment() | dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self.address = ""

    def __enter__(self) -> Self:
        log = self._folder / f"server-{time.monotonic_ns()}.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                self._command, cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and self._process.poll() is None:
            if found := _ADDRESS.search(log.read_text(errors="replace")):
                self.address = found[1]
                return self
            time.sleep(0.02)
        self._process.kill()
        self._process.wait()
        raise SystemExit(f"A server did not start: {' '.join(self._command)}\n{log.read_text(errors='replace')}")

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """Its process; taskset has become it."""
        if self._process is None:
            raise RuntimeError("it was not started")
        return self._process.pid

    def cpu(self) -> float:
        """Return the seconds that it has spent on the processor, all threads and workers together, in user and system mode."""
        return sum(cpu_of(Path(f"/proc/{pid}/stat").read_text()) for pid in (self.pid, *children_of(self.pid)))

    def memory(self) -> int:
        """Return the bytes that it has in memory (RSS); with workers, those of the largest."""
        return max(memory_of(Path(f"/proc/{pid}/status").read_text()) for pid in (self.pid, *children_of(self.pid)))


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started, and that have not ended."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_of(stat: str) -> float:
    """Read the seconds on the processor out of /proc/PID/stat."""
    fields = stat.rpartition(")")[2].split()  # the name before it may hold blanks
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_of(status: str) -> int:
    """Read the bytes in memory out of /proc/PID/status."""
    found = re.search(r"^VmRSS:\s+([0-9]+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def own_environment() -> dict[str, str]:
    """Return this process's environment without settings of trellis, and with this checkout to import from."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("TRELLIS_")}
    root = Path(__file__).parent.parent
    return kept | {"PYTHONPATH": os.pathsep.join(map(str, (root, root / "src")))}
