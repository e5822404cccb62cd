"""`trellis` in processes forked from one that has it loaded already, which saves each a second of processor time."""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any, Final

import pytest

from tests import savings
from tests.wait import search_patiently

_LOADED: Final = (
    *(__name__, "trellis.asgi", "trellis.cli.serve", "trellis.admin.app", "trellis.rest.docs.reference", "tests.preloaded"),
    *("uvicorn.lifespan.on", "uvicorn.loops.uvloop"),
    *("trellis.store.engine.apsw_dialect", "trellis.store.engine.limited", "sqlalchemy.dialects.postgresql.psycopg", "psycopg"),
)


@cache
def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_LOADED))
    return context


class ForkedProcess:
    """`trellis` with some arguments, in a process group of its own, with the part of `subprocess.Popen` that tests use.

    `output` is the file to which it prints and logs. It ends with the test run, if nobody ends it before. `program` is what runs
    instead, with the same arguments in `sys.argv`. Workers of a service are forked from the same process, not from the service.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        output: Path,
        program: Callable[[], object] | None = None,
    ) -> None:
        told = (list(arguments), str(folder), dict(environment), str(output), program)
        self._process = _context().Process(target=_run, args=told, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return its exit status; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status when it has ended. Raises TimeoutExpired."""
        self._process.join(timeout)
        if (status := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired("trellis", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended just now
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self.send_signal(signal.SIGKILL)


def _run(arguments: list[str], folder: str, environment: dict[str, str], output: str, program: Callable[[], object] | None) -> None:
    from trellis.cli import main  # noqa: PLC0415  # in the forked process alone

    sys.argv = ["trellis", *arguments]
    patch = pytest.MonkeyPatch()  # until this process ends
    vars(multiprocessing.current_process())["_config"]["daemon"] = False  # it may start processes of its own
    patch.setattr("trellis.cli.workers.multiprocessing.get_context", lambda _method: _Workers(output))
    _act(folder, environment, output, program or main)


def _act(folder: str, environment: Mapping[str, str], output: str, program: Callable[[], object]) -> None:
    """Run something in this process as if it had been started there, with an environment and an output of its own."""
    os.setpgid(0, 0)  # Ctrl-C is for the test run, which then ends this
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    number = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(number, sys.stdout.fileno())
    os.dup2(number, sys.stderr.fileno())
    os.close(number)
    patch = pytest.MonkeyPatch()  # until this process ends
    if savings.FOLDER in os.environ:
        savings.share_templates(patch)
    search_patiently(patch)
    try:
        program()
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves them out: the last lines of the log wait for one


class _Workers:
    """The context by which a forked service starts its workers: the server that forked it forks them too."""

    def __init__(self, output: str) -> None:
        self._output = output
        # The server runs: it is only unknown in what it has forked, which would start another one.
        vars(forkserver._forkserver)["ensure_running"] = lambda: None

    def Pipe(self, duplex: bool) -> tuple[Connection, Connection]:  # noqa: N802  # the library's name
        """Make a pipe."""
        return multiprocessing.Pipe(duplex)

    def Process(self, target: Callable[..., object], args: tuple[Any, ...], name: str) -> ForkServerProcess:  # noqa: N802  # the same
        """Make a process that logs to where its parent does."""
        told = (str(Path.cwd()), dict(os.environ), self._output, partial(target, *args))
        return ForkServerProcess(target=_act, args=told, name=name)
