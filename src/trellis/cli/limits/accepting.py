"""Accepts new connections, many in each turn of the event loop."""

import asyncio
import logging
import resource
from collections.abc import Callable, Sequence
from functools import partial
from socket import socket
from typing import Final

log = logging.getLogger(__name__)

_MOST: Final = 256  # new connections at once
_SHARE: Final = 16  # one in so many of the descriptors may be taken by connections that are not counted yet
_PAUSE: Final = 1.0  # seconds until the next try after one that failed, for lack of descriptors or memory


class Acceptor:
    """Accepts the connections of listeners, each with a protocol of its own.

    The event loop's own servers accept one connection per turn, and a turn takes long while many connections are busy: new callers
    would wait for seconds. `end` stops accepting, and returns when each accepted connection has its protocol, so that whoever
    closes the connections finds all of them.
    """

    def __init__(
        self, listeners: Sequence[socket], make_protocol: Callable[[], asyncio.BaseProtocol], most: int | None = None
    ) -> None:
        self._listeners = listeners
        self._make_protocol = make_protocol
        self._most = most or _find_most()
        self._loop = asyncio.get_running_loop()
        self._begun: set[asyncio.Task[object]] = set()
        self._ended = False
        for listener in listeners:
            listener.settimeout(0)
            self._resume(listener)

    async def end(self) -> None:
        """Accept no more connections, and wait until each accepted one has its protocol."""
        self._ended = True
        for listener in self._listeners:
            self._loop.remove_reader(listener)
        if self._begun:
            await asyncio.wait(self._begun)

    def _resume(self, listener: socket) -> None:
        if not self._ended:
            self._loop.add_reader(listener, partial(self._take, listener))

    def _take(self, listener: socket) -> None:
        while len(self._begun) < self._most:
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError):  # no more have come, or another worker was quicker
                return
            except ConnectionAbortedError:  # its caller has gone
                continue
            except OSError as error:
                log.error("New connections are not accepted for a moment: %s.", error.strerror or error)  # noqa: TRY400  # says it all
                self._loop.remove_reader(listener)
                self._loop.call_later(_PAUSE, self._resume, listener)
                return
            connection.settimeout(0)
            task = self._loop.create_task(self._begin(connection))
            self._begun.add(task)
            task.add_done_callback(self._begun.discard)

    async def _begin(self, connection: socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, connection)
        except OSError:  # its caller has gone
            connection.close()


def _find_most() -> int:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if descriptors == resource.RLIM_INFINITY else max(1, min(_MOST, descriptors // _SHARE))
