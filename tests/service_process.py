"""`trellis serve` in a process of its own."""

import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx

from tests.forked import ForkedProcess
from tests.wait import GIVE_UP
from trellis.cli import main
from trellis.settings import Settings, definitions, variable

Program = Sequence[str] | Callable[[], object]

_FOREVER: Final = {"keep_events": 36500, "keep_snapshots": 36500}


def environment(settings: Settings) -> dict[str, str]:
    """Write settings as variables, beside those of this process.

    The tests' clock stands still in the past. A service goes by the real one, and must not take what they left for old.
    """
    told = _FOREVER | {name: value for name, value in asdict(settings).items() if value != definitions()[name].default}
    texts = {name: ",".join(value) if isinstance(value, tuple) else str(value) for name, value in told.items()}
    return {**os.environ, **{variable(name): text for name, text in texts.items()}}


class Service:
    """A running service. As a context it ends with SIGTERM, unless it has ended before.

    It is forked from a process that has loaded everything, and so are its workers, unless it is told what Python is to run.
    """

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        port: int = 0,
        options: Sequence[str] = (),
        descriptors: int | None = None,
        program: Program | None = None,
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._port = port
        self._options = options
        self._descriptors = descriptors  # that the process may have open at most; as many as this one by default
        self._program = program  # arguments of a Python of its own, or what runs in a forked process in place of the command
        self._output = Path()
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self.client = httpx.Client(timeout=GIVE_UP, trust_env=False)

    @property
    def settings(self) -> Settings:
        """The settings that it runs with."""
        return self._settings

    def __enter__(self) -> Self:
        number, name = tempfile.mkstemp(prefix="service-", suffix=".log", dir=self._folder)
        self._output = Path(name)
        self._process = self._start(["serve", "--port", str(self._port), *self._options], number)
        try:
            self._port = int(self._told(r"Base URL: +http://127\.0\.0\.1:([0-9]+)/api"))
            self.client.base_url = httpx.URL(f"{self.address}/api/")
            self.client.get(f"{self.address}/healthz").raise_for_status()
        except BaseException:
            self.client.close()
            self.kill()
            raise
        return self

    def _start(self, arguments: Sequence[str], output: int) -> "subprocess.Popen[bytes] | ForkedProcess":
        program = self._program if self._descriptors is None else partial(_serve_with, self._descriptors)
        with os.fdopen(output, "wb") as file:
            if program is None or callable(program):
                return ForkedProcess(arguments, self._folder, environment(self._settings), self._output, program)
            return subprocess.Popen(
                [sys.executable, *program, *arguments],
                cwd=self._folder,
                env=environment(self._settings),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                process_group=0,  # Ctrl-C is for the test run, which then ends the service
            )

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self.client.close()
        if self._process is None or not self.running:
            return
        try:
            status = self.terminate()
        finally:
            self.process.kill()
            self.process.wait(GIVE_UP)
        assert kind is not None or status == 0, self.output

    def _told(self, pattern: str) -> str:
        deadline = time.monotonic() + GIVE_UP
        while time.monotonic() < deadline:
            if found := re.search(pattern, self.output):
                return found[1]
            if not self.running:
                break
            time.sleep(0.02)
        raise RuntimeError(f"The service did not start: {self.output}")

    @property
    def process(self) -> "subprocess.Popen[bytes] | ForkedProcess":
        """The process."""
        assert self._process is not None, "it was not started"
        return self._process

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    @property
    def output(self) -> str:
        """Everything that it has printed and logged."""
        return self._output.read_text()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._port

    @property
    def address(self) -> str:
        """Where it is, without /api."""
        return f"http://127.0.0.1:{self._port}"

    def call(
        self, method: str, path: str, key: str | None = None, headers: Mapping[str, str] | None = None, **body: Any
    ) -> httpx.Response:
        """Send one request; paths are those of the contract, behind /api."""
        sent = dict(headers or {}) | ({"Authorization": f"Bearer {key}"} if key is not None else {})
        return self.client.request(method, path.removeprefix("/"), headers=sent, **body)

    def raw(self, request: bytes) -> bytes:
        """Send bytes as they are; give the answer's bytes until the service closes the connection."""
        with socket.create_connection(("127.0.0.1", self._port), timeout=GIVE_UP) as connection:
            connection.sendall(request)
            answer = b""
            while part := connection.recv(65_536):
                answer += part
            return answer

    def terminate(self) -> int:
        """End it with SIGTERM; give its exit status."""
        self.process.terminate()
        return self.process.wait(GIVE_UP)

    def kill(self) -> None:
        """End it with SIGKILL, in the middle of whatever it does."""
        self.process.kill()
        self.process.wait(GIVE_UP)


def _serve_with(descriptors: int) -> None:
    """Run the command, with as many open files as it may have at most."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    main()


def begin_post(port: int, path: str, key: str, body: bytes, sent: int) -> socket.socket:
    """Send a POST up to some byte of its body, its request id being `in-flight`; return once the service waits for the rest."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=GIVE_UP)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"X-Request-Id: in-flight\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode() + body[:sent])
    assert connection.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
    return connection


def refuses_connections(port: int) -> bool:
    """Return whether nobody listens on a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=GIVE_UP).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # the listener was closed just now, with this connection waiting: ask again
        return False
    return False
