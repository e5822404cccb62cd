"""Limits on connections, set around uvicorn's parser: how many, how long each step may take, how large a head may be.

uvicorn limits the time between requests and nothing else: a head or a body that never ends and a reader that does not read would
each hold a descriptor and memory for ever. Nothing here looks at a byte that comes; what a connection waits for is known from the
calls of the parser.
"""

import asyncio
import logging
import math
import resource
import socket
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from typing import Any, Final

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trellis.core.keys import redact_keys
from trellis.http.policy import NO_SNIFFING, POLICY
from trellis.logs import REFUSED, log_refused
from trellis.settings import Settings

HEAD: Final = 65_536  # bytes of a request's first line and headers
RATE: Final = 10_240  # bytes a second at which a body must come, and an answer be read, on average
_OTHERS: Final = 96  # descriptors kept for logs, webhooks, static files and refusals
_REFUSALS: Final = 32  # connections without a place that linger at once
_LAST: Final = 1.0  # seconds for which a connection without a request stays open when the server ends
_LINGER: Final = 1.0  # seconds for which a refused connection stays open, so that the caller can read the answer
_UNSENT: Final = 131_072  # bytes of answers that the system takes of a connection before they can be sent
_TICK: Final = 0.5  # seconds between two looks at all connections
_MESSAGES: Final = 100  # that are remembered as said
_QUIET: Final = 60.0  # seconds for which a message is not repeated in the log

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections a process holds; and seconds for a head, a body, the next request, and an answer to be read.

    `headers` are those of answers in the application's place, besides those that say what they are; `logs`: they are in the log.
    """

    connections: int
    head: float
    body: float
    idle: float
    send: float
    proxies: tuple[str, ...] = ()
    headers: tuple[tuple[bytes, bytes], ...] = ()
    logs: bool = False

    def protocol(self) -> Any:
        """Return what makes the protocol of each connection of one server, for uvicorn's `http`."""
        return partial(LimitedProtocol, Connections(self))


def raise_descriptors() -> int:
    """Raise the limit of descriptors as far as this process may; give it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def count_descriptors(settings: Settings) -> int:
    """Return how many descriptors a process needs in order to have as many connections as it may."""
    return settings.connections + _OTHERS + 2 * settings.database_pool


def limits_of(settings: Settings, descriptors: int) -> Limits:
    """Take the limits of the settings; connections stay below the descriptors, of which some are kept for the database."""
    others = count_descriptors(settings) - settings.connections
    most = min(settings.connections, max(descriptors - others, descriptors // 4))
    times = settings.head_timeout, settings.body_timeout, settings.idle_timeout, settings.send_timeout
    headers = (POLICY, NO_SNIFFING, *settings.transport_headers)
    return Limits(most, *times, settings.trusted_proxies, headers, settings.access_log)


class Connections:
    """The connections of one server: counted, and looked at twice a second, which costs less than a timer for each."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._admitted: set[LimitedProtocol] = set()
        self._refused: set[LimitedProtocol] = set()
        self._by_address: Counter[str] = Counter()
        self._proxies = [ip_network(proxy, strict=False) for proxy in limits.proxies]
        self._watching = False
        self._warned = False
        self.ending = False

    def add(self, connection: "LimitedProtocol", address: str) -> bool:
        """Count a new connection; False where there is no place for it.

        An address gets half of the places at most, unless it is a trusted proxy's, so that no single caller can take them all.
        """
        if not self._watching:
            self._watching = True
            connection.loop.call_later(_TICK, self._look, connection.loop)
        most = self.limits.connections
        if len(self._admitted) < most and (self._by_address[address] < max(1, most // 2) or self._is_proxy(address)):
            self._admitted.add(connection)
            self._by_address[address] += 1
            return True
        return False

    def may_linger(self, connection: "LimitedProtocol") -> bool:
        """Return whether a connection that is refused may stay until the caller has read why."""
        if connection not in self._admitted and len(self._refused) >= _REFUSALS:
            return False
        self._refused.add(connection)
        return True

    def discard(self, connection: "LimitedProtocol", address: str) -> None:
        """Forget a connection that has ended."""
        self._refused.discard(connection)
        if connection in self._admitted:
            self._admitted.discard(connection)
            self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def check_forwarding(self, headers: list[tuple[bytes, bytes]], address: str) -> None:
        """Warn once where a request was forwarded by nobody who is trusted: then all callers behind it have its address."""
        if not self._warned and any(name == b"x-forwarded-for" for name, _ in headers) and not self._is_proxy(address):
            self._warned = True
            log.warning(
                "A request from %s has the header X-Forwarded-For, which is not believed. If that is your proxy, name it in "
                "TRELLIS_TRUSTED_PROXIES: otherwise all who come through it have one address, and share what it may do. "
                "This is said once.",
                address,
            )

    def _is_proxy(self, address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in self._proxies)
        except ValueError:  # a socket without addresses
            return False

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in tuple(self._admitted):
            connection.look(now)
        loop.call_later(_TICK, self._look, loop)


class OncePerMinute(logging.Filter):
    """Lets a warning into the log once a minute, with how often it was left out: anybody can send what the parser warns of."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, tuple[float, int]] = {}  # message → when it was said, and how often it was left out since

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.WARNING:
            return True
        now, message = time.monotonic(), str(record.msg)
        at, left_out = self._said.get(message, (-math.inf, 0))
        if now - at < _QUIET:
            self._said[message] = (at, left_out + 1)
            return False
        if left_out:
            record.msg = f"{message} ({left_out:,} more of these since the last one)"
        if len(self._said) >= _MESSAGES:
            self._said.clear()
        self._said[message] = (now, 0)
        return True


class _Step(Enum):
    """What comes next on a connection."""

    REQUEST = auto()
    HEAD = auto()
    BODY = auto()


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol of one connection, within limits.

    A head and the next request have to come until some moment. Patience with a body, and with who reads an answer, is a number of
    seconds that runs down, and is renewed by what comes or goes: a second for RATE bytes. While a request is answered nothing is
    asked of the caller.
    """

    def __init__(self, connections: Connections, config: Config, *more: Any, **named: Any) -> None:
        super().__init__(config, *more, **named)
        self._connections = connections
        self._limits = limits = connections.limits
        self._step = _Step.REQUEST
        self._until: float | None = None
        self._head = 0  # bytes of the head, as far as it has come in chunks of its own
        self._chunk = 0
        self._came = 0  # bytes of the body since the last look
        self._unsent = 0  # bytes, when that was last asked
        self._went = 0  # bytes of answers that were read since the last look
        self._looked = 0.0
        self._body_patience = limits.body
        self._send_patience = limits.send
        self._refused = False

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    # --- what the transport and the parser call -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        # The system would take megabytes that the caller has not read, and tell of them only when a third has been.
        with suppress(OSError):  # not of a socket in the file system
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
        self._looked = self.loop.time()
        self._until = self._looked + self._limits.head
        if not self._connections.add(self, self._address):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)
        elif self._connections.ending:  # it was accepted just before
            self.shutdown()

    def shutdown(self) -> None:
        """End the connection after the request that is under way on it, or that may be on its way.

        Closing at once would reset it under a request that has been sent and not read yet, and a write would be lost or done twice.
        """
        self._connections.ending = True
        cycle: Any = self.cycle
        if self._is_answering():
            cycle.keep_alive = False
        elif self._step is _Step.REQUEST:
            self.loop.call_later(_LAST if cycle is None else 0, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._step is _Step.REQUEST and not self._is_answering():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self, self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        if self._step is _Step.REQUEST:
            self._begin()
        self._head += len(data)
        self._chunk = len(data)
        super().data_received(data)
        if self._step is _Step.HEAD and self._head > HEAD:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, after_another=self._is_answering())

    def on_message_begin(self) -> None:
        if self._step is not _Step.HEAD:  # it follows another request in the same chunk
            self._begin()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._refused:
            return
        self._step, self._until = _Step.BODY, None
        self._came, self._body_patience = 0, self._limits.body
        if max(self._head, self._chunk) > HEAD and self._size_of_head() > HEAD:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, after_another=self._is_answering())
        else:
            self._connections.check_forwarding(self.headers, self._address)
            super().on_headers_complete()
            if self._connections.ending:
                self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            self._came += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            self._step = _Step.REQUEST
            super().on_message_complete()

    def pause_writing(self) -> None:
        self._count_unsent()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._count_unsent()  # before the application sends the next part
        super().resume_writing()

    def _count_unsent(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._went += max(0, self._unsent - unsent)
        self._unsent = unsent

    def _begin(self) -> None:
        """Expect the head of a request, whose first byte has come."""
        self._step, self._head = _Step.HEAD, 0
        if self._until is None or self.cycle is not None:  # the first head has been waited for since the connection was made
            self._until = self.loop.time() + self._limits.head

    def _size_of_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    # --- what is looked at twice a second -----------------------------------------------------------------------------

    def look(self, now: float) -> None:
        """End the connection where it has taken too long."""
        passed, self._looked = now - self._looked, now
        if self._is_read_too_slowly(passed):
            self.transport.abort()
        elif self._refused:
            return
        elif self.flow.read_paused:  # it is the service that does not read
            self._until = now + self._limits.head if self._step is _Step.HEAD else None
        elif self._step is _Step.BODY:
            self._look_at_body(passed)
        elif self._step is _Step.REQUEST and self._is_answering():
            self._until = None
        elif self._until is None:
            self._until = now + self._limits.idle
        elif now >= self._until:
            self._give_up()

    def _look_at_body(self, passed: float) -> None:
        cycle: Any = self.cycle
        if cycle.waiting_for_100_continue:  # nobody has asked for it yet
            return
        came, self._came = self._came, 0
        self._body_patience = min(self._limits.body, self._body_patience - passed + came / RATE)
        if self._body_patience <= 0:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, after_another=cycle.response_started)

    def _is_read_too_slowly(self, passed: float) -> bool:
        self._count_unsent()
        went, self._went = self._went, 0
        if not self._unsent:
            self._send_patience = self._limits.send
        else:
            self._send_patience = min(self._limits.send, self._send_patience - passed + went / RATE)
        return self._send_patience <= 0

    def _give_up(self) -> None:
        """Close a connection on which no request, or no whole head, has come in time."""
        if self._is_answering():  # a request before this one: its answer is the last
            self.cycle.keep_alive = False
            self._refused = True
        elif self._step is _Step.HEAD:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        else:
            self.transport.close()

    def _refuse(self, status: HTTPStatus, *, after_another: bool = False) -> None:
        """Answer in the application's place, read no more, and close. After, or in the middle of, another answer only close."""
        self._refused = True
        cycle: Any = self.cycle
        if cycle is not None:  # whatever the application says from here on is not sent
            cycle.disconnected = True
            cycle.message_event.set()
        if after_another or self.pipeline:
            self.transport.abort()
            return
        self._log(status)
        body = f"{status.value} {status.phrase}\n".encode()
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
        head += "retry-after: 1\r\n" if status is HTTPStatus.SERVICE_UNAVAILABLE else ""
        also = b"".join(b"%b: %b\r\n" % header for header in self._limits.headers)
        self.transport.write(f"{head}content-length: {len(body)}\r\n".encode() + also + b"\r\n" + body)
        if self._connections.may_linger(self):  # to close while bytes come would take the answer away from the caller
            self.transport.write_eof()
            self.loop.call_later(_LINGER, self.transport.close)
        else:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._log(HTTPStatus.BAD_REQUEST)
        super().send_400_response(msg)

    def _log(self, status: HTTPStatus) -> None:
        """Put an answer in the application's place into the log: by a line, or in that of the application, if that has begun."""
        if self._is_answering():
            scope: Any = self.cycle.scope
            scope[REFUSED] = status.value
        elif self._limits.logs:
            url, is_known = getattr(self, "url", b""), self._step is not _Step.REQUEST
            log_refused(status.value, redact_keys(url.partition(b"?")[0].decode("latin-1")) if is_known else "", self._address)
