"""What starting costs: the processor time of commands, and of a service until it answers, each beside an import that it needs."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench.process import Server, own_environment

_TYPER: Final = "import typer"
_SQLITE: Final = "import sqlalchemy, sqlalchemy.dialects.sqlite"
_PATIENCE: Final = 30.0  # seconds until the first answer


@dataclass(frozen=True, slots=True)
class Start:
    """One start, beside the import of what it needs, and how many times the processor time of that it may take."""

    name: str
    title: str
    command: tuple[str, ...]
    yardstick: str
    bound: float


STARTS: Final = (
    Start("version", "trellis --version", ("--version",), _TYPER, 3.0),
    Start("keys-list", "trellis keys list", ("keys", "list"), _SQLITE, 1.5),
    Start("worker", "trellis serve, until it answers", ("serve", "--port", "0"), _SQLITE, 2.3),
)


def measured(folder: Path, repetitions: int, core: int) -> dict[str, list[dict[str, float]]]:
    """Start each as often as asked for, by turns with its yardstick, over a new SQLite database; give seconds on the processor."""
    environment = {"TRELLIS_DATABASE_URL": f"sqlite:///{folder}/start.db"}
    _run(["-m", "trellis", "migrate"], environment)
    found: dict[str, list[dict[str, float]]] = {start.name: [] for start in STARTS}
    for _ in range(repetitions):
        for start in STARTS:
            words = ["-m", "trellis", *start.command]
            cpu = _until_it_answers(words, folder, environment, core) if start.name == "worker" else _run(words, environment)
            found[start.name].append({"cpu": cpu, "yardstick": _run(["-c", start.yardstick], environment)})
    return found


def _run(words: Sequence[str], environment: dict[str, str]) -> float:
    """Run Python to its end; give its seconds on the processor."""
    process = subprocess.Popen([sys.executable, *words], env=own_environment() | environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"This failed: python {' '.join(words)}")
    return used.ru_utime + used.ru_stime


def _until_it_answers(words: Sequence[str], folder: Path, environment: dict[str, str], core: int) -> float:
    with Server(words, folder, environment, core) as server:
        deadline = time.monotonic() + _PATIENCE
        while not _answers(server.address):
            if time.monotonic() > deadline:
                raise SystemExit("The service did not answer.")
            time.sleep(0.02)
        return server.cpu()


def _answers(address: str) -> bool:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=_PATIENCE)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
