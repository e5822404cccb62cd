"""The latency of reads at a fixed rate, with and without other work going on in the service."""

import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from types import TracebackType
from typing import Final, Self

_EVERY: Final = 0.002  # seconds from the start of one read to the start of the next
_SHARE: Final = 0.99
_QUIET: Final = 4.0  # seconds


class Reader:
    """Reads one record after the other over a connection of its own. As a context it reads until the end of it.

    Reads start at fixed times, and each one's latency counts from the time at which it was to start: one that waits for the one
    before it is as late as a caller would find it.
    """

    def __init__(self, address: str, key: str, paths: list[str]) -> None:
        self._connection = HTTPConnection(address.removeprefix("http://"))
        self._headers = {"Authorization": f"Bearer {key}"}
        self._paths = paths
        self._latencies: list[float] = []
        self._failures: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self._connection.close()

    def p99(self) -> float:
        """Return the 99th percentile of the latencies in seconds. Raises RuntimeError if a read was refused."""
        if self._failures:
            raise RuntimeError(f"{len(self._failures)} reads were refused: {self._failures[0]}")
        return sorted(self._latencies)[int(len(self._latencies) * _SHARE)]

    def _read(self) -> None:
        due = time.perf_counter()
        number = 0
        while not self._stop.is_set():
            time.sleep(max(0.0, due - time.perf_counter()))
            self._connection.request("GET", self._paths[number % len(self._paths)], headers=self._headers)
            with self._connection.getresponse() as response:
                answer = response.read()
                if response.status != 200:
                    self._failures.append(f"{response.status} {answer[:300].decode(errors='replace')}")
            self._latencies.append(time.perf_counter() - due)
            number += 1
            due += _EVERY


def measure_quiet(reader: Callable[[], Reader]) -> float:
    """Return the 99th percentile of the latencies of reads with nothing beside them."""
    with reader() as quiet:
        time.sleep(_QUIET)
    return quiet.p99()
