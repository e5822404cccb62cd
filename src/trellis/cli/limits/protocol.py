"""uvicorn's protocol for one connection, with limits."""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from secrets import token_hex
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trellis.cli.limits.connections import Connections
from trellis.cli.limits.limits import Limits
from trellis.cli.limits.pacing import Flow, Patience, Phase
from trellis.cli.limits.ready import ReadyRequests
from trellis.core.keys import redact_path
from trellis.core.networks import write_plain
from trellis.http.api import REQUEST
from trellis.http.server import ServerHooks, ServerRefusal, Whole, write_headers
from trellis.logs import SERVER_STATUS, log_refused

HEAD: Final = 65_536  # bytes of a request's first line and headers
_LAST: Final = 1.0  # seconds for which a connection without a request stays open when the server ends
_LINGER: Final = 1.0  # seconds for which a refused connection stays open, so that the caller can read the answer
_UNSENT: Final = 131_072  # bytes of answers that the system buffers for a connection before they can be sent
_PIECE: Final = 4096  # bytes that are parsed at a time: so many bytes of requests may wait for the answers to those before them


def make_protocol(limits: Limits, hooks: ServerHooks, metrics_port: int | None = None) -> Any:
    """Return a factory of the protocol for each connection of one server, for uvicorn's `http`; it counts refusals.

    If the metrics have a port of their own, they stay reachable even if somebody fills the public port.
    """
    public = Connections(limits.connections, limits.proxies)
    ports = {} if metrics_port is None else {metrics_port: Connections(limits.for_metrics, limits.proxies)}
    return partial(LimitedProtocol, limits, hooks, ReadyRequests(hooks, limits.proxies), public, ports)


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol for one connection, with limits.

    A head, and the next request, have to arrive by a deadline; for a body, and for the reader of an answer, see Patience. While a
    request is being answered, nothing is expected of the caller. Requests that arrive meanwhile wait in uvicorn's pipeline: what
    follows the first few of them is not parsed until those have been answered, and nothing more is read.
    """

    def __init__(
        self,
        limits: Limits,
        hooks: ServerHooks,
        ready: ReadyRequests,
        public: Connections,
        ports: Mapping[int, Connections],
        config: Config,
        *more: Any,
        **named: Any,
    ) -> None:
        super().__init__(config, *more, **named)
        self._limits = limits
        self._hooks = hooks
        self._ready = ready
        self._connections = self._public = public
        self._ports = ports
        self._phase = Phase.REQUEST
        self._until: float | None = None
        self._head = 0  # bytes of the head, or since the last part of the body, as far as they have come in pieces of their own
        self._unparsed = bytearray()  # what has arrived behind requests that wait
        self._unsent = 0  # bytes, when they were last counted
        self._checked_at = 0.0
        self._body_patience = Patience(limits.body)
        self._send_patience = Patience(limits.send)
        self._refused = False
        self._writes = False  # whether the request that is arriving writes, and all before it have been answered
        self._is_counted = False  # among the writes under way
        self._response: bytes | None = None  # to a write that is arriving, if the application does not see it
        self._asks_for_upgrade = False
        self._current: Any = None  # uvicorn's cycle of the request that is being answered; `cycle` is that of the newest one

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _is_answering(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    # --- what the transport and the parser call -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's type
        super().connection_made(transport)
        self.flow = Flow(transport, self._unparsed)
        # Otherwise the system would buffer megabytes that the caller has not read, and report progress only after a third of them.
        with suppress(OSError):  # Unix sockets do not have it
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
        if self.client is not None:  # trusted proxies are configured by IPv4 addresses, as in all other settings
            self.client = write_plain(self.client[0]), self.client[1]
        self._checked_at = self.loop.time()
        self._until = self._checked_at + self._limits.head
        self._connections = self._ports.get(self.server[1] or 0, self._connections) if self.server else self._connections
        if not self._connections.add(self, self._address):
            self._refuse(ServerRefusal.CONNECTIONS)
        elif self._connections.ending:  # it was accepted just before
            self.shutdown()

    def shutdown(self) -> None:
        """End the connection after the request that is under way on it, or that may be about to arrive.

        Closing at once would reset the connection while a request is sent but not read yet, and a write would be lost or done
        twice.
        """
        self._connections.ending = True
        cycle: Any = self.cycle
        if self._is_answering():
            cycle.keep_alive = False
        elif self._phase is Phase.REQUEST:
            self.loop.call_later(_LAST if cycle is None else 0, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._phase is Phase.REQUEST and not self._is_answering():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self, self._address)
        self._count_answered()
        if self._current is not None and not self._current.response_complete:  # uvicorn tells only the newest request
            self._current.disconnected = True
            self._current.message_event.set()
        self.pipeline.clear()  # rather than leave what they hold to the garbage collector
        self._unparsed.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        self._parse()

    def _parse(self) -> None:
        """Parse what has arrived, until a request has to wait for the answer to another one."""
        unparsed = self._unparsed
        while unparsed and not (self.pipeline or self._refused):
            piece = bytes(unparsed[:_PIECE])
            del unparsed[:_PIECE]
            if self._phase is Phase.REQUEST and piece.strip(b"\r\n"):  # empty lines before a request are nothing (RFC 9112, 2.2)
                self._begin()
            self._head += len(piece)
            while piece:
                piece = self._feed(piece)
            if self._head > HEAD:
                self._refuse_large()
        if self._refused:
            unparsed.clear()
        elif unparsed:
            self.flow.pause_reading()

    def _feed(self, data: bytes) -> bytes:
        """Pass bytes to the parser; return those that it must get afterwards."""
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            if self._asks_for_upgrade and not self._refused:
                return self._write_without_upgrade() + data[upgrade.args[0] :]
        except HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            if not (self._refused or self.transport.is_closing()):
                self._refuse_malformed()
        return b""

    def _write_without_upgrade(self) -> bytes:
        """Return the head of a request as if it did not ask for another protocol, for a new parser.

        The parser takes whatever follows such a head for the other protocol, even the body of the request. Clients of Java ask for
        HTTP/2 in this way.
        """
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        kept = write_headers(header for header in self.headers if header[0] != b"upgrade")
        self._asks_for_upgrade = False
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        return line + kept + b"\r\n"

    def on_message_begin(self) -> None:
        if self._phase is not Phase.HEAD:  # it follows another request in the same piece
            self._begin()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self._refused:
            return
        self._asks_for_upgrade = self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers)
        if self._asks_for_upgrade:
            return
        if self._head + _PIECE > HEAD and self._size_of_head() > HEAD:
            self._refuse(ServerRefusal.LARGE_HEAD, after_another=self._is_answering())
            return
        self._head = 0
        self._writes = self._hooks.writes.has(self.parser.get_method(), self.url) and self._can_respond()
        if self._writes:
            scope: Any = self.scope
            self._response = self._hooks.writes.refuse(scope)
        if self._response is None:
            self._connections.check_forwarding(self.headers, self._address)
            super().on_headers_complete()
            if self._connections.ending:
                self.cycle.keep_alive = False
        self._phase, self._until = Phase.BODY, None
        self._body_patience.renew()
        self.headers = []  # what follows are trailers, which must not count as headers (RFC 9110, 6.5.1)

    def on_body(self, body: bytes) -> None:
        if not self._refused:
            self._head = 0
            self._body_patience.count(len(body))
            if self._response is None:
                super().on_body(body)

    def on_message_complete(self) -> None:
        if self._refused or self._asks_for_upgrade:
            return
        if self._response is not None:
            self._respond(self._response)
            self._phase = Phase.REQUEST
            return
        self._phase = Phase.REQUEST
        super().on_message_complete()
        if self._writes and self._is_answering():
            self._is_counted = True
            self._hooks.writes.under_way += 1
        if self._connections.ending and not self._is_answering():  # it was answered before its body had come
            self.transport.close()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._current = cycle
        if self._connections is not self._public or cycle.waiting_for_100_continue or not self._ready.add(self, cycle, app):
            super()._start_asgi_task(cycle, app)

    def answer(self, cycle: Any, app: Any, response: Whole | None) -> None:
        """Send the response to a request that has come in this turn of the event loop, or let the application answer."""
        if response is None:
            super()._start_asgi_task(cycle, app)
            return
        cycle.response_started = cycle.response_complete = True
        own = self._ready.write_own(cycle.default_headers)
        end = b"\r\n" if cycle.keep_alive else b"connection: close\r\n\r\n"
        self.transport.write(b"".join((response.status, own, response.headers, end, response.body)))
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def on_response_complete(self) -> None:
        """Let the next request that has arrived be answered. uvicorn would set a timer, where `check` looks at the time."""
        self._count_answered()
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
            if self._unparsed:
                self._parse()
            self.flow.resume_reading()

    def _count_answered(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._hooks.writes.under_way -= 1

    def _can_respond(self) -> bool:
        """Return whether a response can be sent now: none is being sent; the caller reads, and does not wait for 100 Continue."""
        return not (self._is_answering() or self.expect_100_continue or self.transport.get_write_buffer_size())

    def _respond(self, response: bytes) -> None:
        """Send the response to a write that is refused unread. The connection stays open unless either side ends it."""
        self._response = None
        self._record(ServerRefusal.WRITES)
        if self.parser.should_keep_alive() and not self._connections.ending:
            self.transport.write(response)
        else:
            self.transport.write(response.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
            self.transport.close()

    def pause_writing(self) -> None:
        self._count_unsent()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._count_unsent()  # before the application sends the next part
        super().resume_writing()

    def _count_unsent(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._send_patience.count(max(0, self._unsent - unsent))
        self._unsent = unsent

    def _refuse_large(self) -> None:
        """Refuse a head of more than HEAD bytes, or that many bytes of trailers and other data between the parts of a body."""
        if not self._refused and self._phase is not Phase.REQUEST:
            follows = self._is_answering() if self._phase is Phase.HEAD else self._has_begun_to_answer()
            self._refuse(ServerRefusal.LARGE_HEAD, after_another=follows)

    def _begin(self) -> None:
        """Expect the head of a request, whose first byte has arrived."""
        self._phase, self._head = Phase.HEAD, 0
        if self._until is None or self.cycle is not None:  # the time for the first head began when the connection was made
            self._until = self.loop.time() + self._limits.head

    def _size_of_head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    # --- what is checked twice a second -----------------------------------------------------------------------------

    def check(self, now: float) -> None:
        """Close the connection if it has taken too long."""
        passed, self._checked_at = now - self._checked_at, now
        if self._is_read_too_slowly(passed):
            self.transport.abort()
        elif self._refused:
            return
        elif self.flow.read_paused:  # it is the service that does not read
            self._until = now + self._limits.head if self._phase is Phase.HEAD else None
        elif self._phase is Phase.BODY:
            self._check_body(passed)
        elif self._phase is Phase.REQUEST and self._is_answering():
            self._until = None
        elif self._until is None:
            self._until = now + self._limits.idle
        elif now >= self._until:
            self._give_up()

    def _check_body(self, passed: float) -> None:
        cycle: Any = self.cycle if self._response is None else None
        if cycle is not None and cycle.waiting_for_100_continue:  # nobody has asked for the body yet
            return
        if self._body_patience.is_over(passed):
            self._refuse(ServerRefusal.SLOW_BODY, after_another=self._has_begun_to_answer())

    def _has_begun_to_answer(self) -> bool:
        """Return whether the answer to the request whose body is arriving has begun."""
        cycle: Any = self.cycle if self._response is None else None
        return cycle is not None and cycle.response_started

    def _is_read_too_slowly(self, passed: float) -> bool:
        self._count_unsent()
        if self._unsent:
            return self._send_patience.is_over(passed)
        self._send_patience.renew()
        return False

    def _give_up(self) -> None:
        """Close a connection on which no request, or no complete head, has arrived in time."""
        if self._is_answering():  # an earlier request
            self._end_after_answer()
        elif self._phase is Phase.HEAD:
            self._refuse(ServerRefusal.SLOW_HEAD)
        else:
            self.transport.close()

    def _end_after_answer(self) -> None:
        """Read nothing more, and close the connection after the answers to the requests that have arrived."""
        self.cycle.keep_alive = False
        self._refused = True

    def _refuse(self, refusal: ServerRefusal, *, after_another: bool = False) -> None:
        """Answer in the application's place, stop reading, and close. After another answer, or in the middle of it, only close."""
        self._refused = True
        cycle: Any = self.cycle
        if cycle is not None:  # whatever the application sends from here on is dropped, and it receives nothing
            cycle.disconnected, cycle.waiting_for_100_continue = True, False
            cycle.message_event.set()
        if after_another or self.pipeline:
            self.transport.abort()
            return
        request_id = self._record(refusal, token_hex(12))
        self.transport.write(refusal.write(self._limits.headers, self._limits.base_url, request_id))
        if self._connections.may_linger(self):  # closing while bytes arrive would take the answer away from the caller
            self.transport.write_eof()
            self.loop.call_later(_LINGER, self.transport.close)
        else:
            self.transport.close()

    def _refuse_malformed(self) -> None:
        """Answer bytes that are not HTTP. If they follow a request that is still being answered, only its answer is sent."""
        if self._phase is Phase.HEAD and self._is_answering():
            self._end_after_answer()
            self._hooks.refused[ServerRefusal.MALFORMED] += 1
        else:
            self._refuse(ServerRefusal.MALFORMED, after_another=self._phase is Phase.BODY and self._has_begun_to_answer())

    def _record(self, refusal: ServerRefusal, request_id: str = "") -> str:
        """Count an answer in the application's place, and log it, alone or with the request under way. Return the request's id."""
        self._hooks.refused[refusal] += 1
        status = refusal.status
        if self._is_answering():
            scope: Any = self.cycle.scope
            scope[SERVER_STATUS] = status.value
            return scope[REQUEST].request_id if REQUEST in scope else request_id
        if self._limits.logs:
            url = getattr(self, "url", b"").partition(b"?")[0] if self._phase is not Phase.REQUEST else b""
            log_refused(status.value, redact_path(url.decode("latin-1")), self._address, request_id)
        return request_id
