"""Several processes that serve on the same sockets, and their parent, which starts, watches and replaces them."""

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from socket import socket
from typing import Final

import uvicorn

from trellis.cli.limits import Acceptor, keep_heap_small
from trellis.http.asgi import ENDING

log = logging.getLogger(__name__)

BEAT: Final = 2  # seconds between signs of life of a worker, the first of which means that it serves
START: Final = 120.0  # seconds that a worker may take until its first sign of life
SILENT: Final = 60.0  # seconds without a sign of life after which a worker counts as stuck
END: Final = 45.0  # seconds for workers to end, of which requests under way get thirty
STEADY: Final = 20.0  # seconds for which a worker has to serve before its start counts as one that succeeded
TRIES: Final = 5  # starts that fail in a row, with no worker serving, after which the parent gives up
LONGEST: Final = 30.0  # seconds between two starts, at most; the pause doubles from one second

_NO_SIGN: Final = "Worker %d has given no sign of life for too long, and is killed."
_NO_END: Final = "Worker %d does not end, and is killed."

MakeConfig = Callable[[], uvicorn.Config]
# Seconds for which a thread may hold the interpreter while another waits. With the default of 5 ms, a read on the event loop waits
# for the writer's thread several times while a large write runs.
_TURN: Final = 0.0005
# Thresholds of the garbage collector. A full collection stops everything for 60 to 130 ms while it scans what a large plan or
# export has made so far, and nearly all of that is freed by reference counting: with 200 in place of 10, it is rare.
# Younger generations are collected as often as by default. While a write runs, nothing is collected (store/engine/writer.py).
_COLLECTIONS: Final = (700, 10, 200)


class GaveUp(Exception):
    """No worker serves, and none can be started."""


@dataclass(eq=False)
class WorkerProcess:
    """One process, and what its parent has recorded about it."""

    process: SpawnProcess
    beats: Connection
    replaces: "WorkerProcess | None"
    last_sign: float = field(default_factory=time.monotonic)
    serves: bool = False
    since: float = 0.0  # when it began to serve
    leaving: bool = False
    dismissed: float = 0.0  # when it was told to leave

    @property
    def pid(self) -> int:
        return self.process.pid or 0

    @property
    def steady(self) -> bool:
        return self.serves and time.monotonic() - self.since > STEADY

    @property
    def late(self) -> bool:
        now = time.monotonic()
        return now - self.dismissed > END if self.leaving else now - self.last_sign > (SILENT if self.serves else START)


class Workers:
    """Keeps `count` workers serving until SIGTERM or SIGINT. SIGHUP replaces them, one after the other."""

    def __init__(self, make_config: MakeConfig, listeners: Sequence[socket], count: int) -> None:
        self._make_config = make_config
        self._listeners = tuple(listeners)
        self._count = count
        self._spawn = multiprocessing.get_context("spawn")
        self._workers: list[WorkerProcess] = []
        self._to_replace: list[WorkerProcess] = []
        self._failed = 0  # starts in a row
        self._next_start = 0.0
        self._ending = False
        self._awake, self._wake = os.pipe()

    def run(self) -> None:
        """Start the workers, and return when all have ended. Raises GaveUp."""
        os.set_blocking(self._wake, False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._signalled)
        try:
            while not self._ending:
                self._start_missing()
                self._wait()
                self._check_workers()
        finally:
            self._end_all()

    def _signalled(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP:
            self._to_replace = [worker for worker in self._workers if not worker.leaving]
        else:
            self._ending = True
        with suppress(BlockingIOError):  # the pipe is full, so the parent will wake up anyway
            os.write(self._wake, b"!")

    # --- starting -----------------------------------------------------------------------------------------------------

    def _start_missing(self) -> None:
        now = time.monotonic()
        if now < self._next_start:
            return
        staying = [worker for worker in self._workers if not worker.leaving and worker.replaces is None]
        missing = self._count - len(staying)
        if self._failed:  # one start is enough for the next try
            missing = min(missing, int(all(worker.serves for worker in staying)))
        for _ in range(missing):
            self._start()
        self._to_replace = [worker for worker in self._to_replace if worker in self._workers and not worker.leaving]
        if self._to_replace and all(worker.serves for worker in self._workers if not worker.leaving):
            self._start(replaces=self._to_replace.pop(0))

    def _start(self, replaces: WorkerProcess | None = None) -> None:
        try:
            worker = self._start_process(replaces)
        except OSError as error:  # there are too many processes, or too little memory for another one
            self._report_failed_start("No worker could be started", error.strerror or str(error), replaces)
            return
        self._workers.append(worker)
        log.info("Worker %d started%s.", worker.pid, f", to replace {replaces.pid}" if replaces else "")

    def _start_process(self, replaces: WorkerProcess | None) -> WorkerProcess:
        beats, sign = self._spawn.Pipe(duplex=False)
        process = self._spawn.Process(target=_serve, args=(self._make_config, self._listeners, sign), name="trellis-worker")
        try:
            process.start()
        except OSError:
            beats.close()
            raise
        finally:
            sign.close()
        return WorkerProcess(process, beats, replaces)

    def _report_failed_start(self, what: str, how: str, replaces: WorkerProcess | None) -> None:
        """Log a start that has failed, and count it, unless it was to replace a worker, which stays."""
        if replaces is not None:
            self._to_replace = []
            log.error("%s (%s); worker %d stays.", what, how, replaces.pid)
        else:
            log.error("%s (%s).", what, how)
            self._count_failure(how)

    # --- running ------------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait for a sign of life, a death or a signal, or until something is due."""
        pause = self._next_start - time.monotonic()
        due = pause if 0 < pause < BEAT else BEAT
        began = time.monotonic()
        ready = wait([self._awake, *(w.process.sentinel for w in self._workers), *(w.beats for w in self._workers)], due)
        if (stopped := time.monotonic() - began - due) > 0:  # this process did not run, and nor did the workers, on one machine
            for worker in self._workers:
                worker.last_sign += stopped
                worker.dismissed += stopped
        if self._awake in ready:
            os.read(self._awake, 4096)
        for worker in self._workers:
            if worker.beats in ready:
                self._receive_sign(worker)

    def _receive_sign(self, worker: WorkerProcess) -> None:
        try:
            worker.beats.recv_bytes()
        except (EOFError, OSError):
            worker.process.join(BEAT)  # the other end is closed: the process is about to end
            return
        worker.last_sign = time.monotonic()
        if not worker.serves:
            worker.serves, worker.since = True, worker.last_sign
            log.info("Worker %d serves.", worker.pid)
            if worker.replaces is not None:
                self._dismiss(worker.replaces)
                worker.replaces = None

    def _dismiss(self, worker: WorkerProcess) -> None:
        if not worker.leaving:
            worker.leaving, worker.dismissed = True, time.monotonic()
            worker.process.terminate()

    # --- ending -------------------------------------------------------------------------------------------------------

    def _check_workers(self) -> None:
        for worker in tuple(self._workers):
            if worker.process.is_alive() and worker.late:
                log.error(_NO_END if worker.leaving else _NO_SIGN, worker.pid)
                worker.process.kill()
                worker.process.join()
            if not worker.process.is_alive():
                self._remove_ended(worker)
        staying = [worker for worker in self._workers if not worker.leaving]
        if len(staying) >= self._count and all(worker.steady for worker in staying):
            self._failed = 0

    def _remove_ended(self, worker: WorkerProcess) -> None:
        self._workers.remove(worker)
        worker.beats.close()
        for other in self._workers:
            if other.replaces is worker:
                other.replaces = None  # it takes the place of the one that ended, so that no third one is started
        how = _how_ended(worker.process.exitcode)
        if worker.leaving or self._ending:
            log.info("Worker %d ended.", worker.pid)
        elif worker.serves:
            log.error("Worker %d ended by itself (%s); another one is started.", worker.pid, how)
            if not worker.steady:
                self._count_failure(how)
        else:
            self._report_failed_start(f"Worker {worker.pid} could not start", how, worker.replaces)

    def _count_failure(self, how: str) -> None:
        """Count a failed start, and wait longer before the next one. Raises GaveUp after TRIES of them, if no worker serves."""
        if time.monotonic() >= self._next_start:  # otherwise it was started together with another one that failed
            self._failed += 1
            self._next_start = time.monotonic() + min(LONGEST, 2.0 ** (self._failed - 1))
        if self._failed >= TRIES and not any(other.serves for other in self._workers):
            raise GaveUp(f"No worker can be started: {self._failed} tries have failed, the last one with {how}. The log says why.")

    def _end_all(self) -> None:
        for listener in self._listeners:
            listener.close()
        for worker in self._workers:
            self._dismiss(worker)
        until = time.monotonic() + END
        for worker in self._workers:
            worker.process.join(max(0.0, until - time.monotonic()))
            if worker.process.is_alive():
                log.error(_NO_END, worker.pid)
                worker.process.kill()
                worker.process.join()
            log.info("Worker %d ended.", worker.pid)


def _how_ended(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):  # real-time signals have no names
            return signal.Signals(-code).name
        return f"signal {-code}"
    return f"status {code}"


# --- in the worker ------------------------------------------------------------------------------------------------


def _serve(make_config: MakeConfig, listeners: Sequence[socket], sign: Connection) -> None:
    """Serve in this process, giving signs of life; end when the parent has ended."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # it is for the parent
    config = make_config()

    async def beat() -> None:
        with suppress(OSError):  # the parent has gone
            sign.send_bytes(b"!")

    config.callback_notify, config.timeout_notify = beat, BEAT
    run_server(config, listeners)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


class _Server(uvicorn.Server):
    """uvicorn's server, which also accepts many connections at a time, and tells the application that the process is about to end.

    It does so before it waits for the requests under way.
    """

    _acceptor: Acceptor | None = None

    async def startup(self, sockets: list[socket] | None = None) -> None:
        await super().startup([])
        state, config = self.server_state, self.config
        make_protocol: Callable[[], asyncio.BaseProtocol] = partial(  # type: ignore[call-arg]  # uvicorn declares no parameters
            config.http_protocol_class, config=config, server_state=state, app_state=self.lifespan.state
        )
        self._acceptor = Acceptor(sockets or [], make_protocol)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        for end in self.lifespan.state.get(ENDING, ()):
            end()
        if self._acceptor is not None:
            await self._acceptor.end()
        await super().shutdown(sockets)


def run_server(config: uvicorn.Config, listeners: Sequence[socket]) -> None:
    """Serve in this process until SIGTERM or SIGINT; exit with status 1 if serving did not even begin."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # an end that was requested is no failure
    sys.setswitchinterval(_TURN)
    gc.set_threshold(*_COLLECTIONS)
    keep_heap_small()
    server = _Server(config)
    with suppress(KeyboardInterrupt):
        server.run(sockets=list(listeners))
    if not server.started:
        sys.exit(1)
