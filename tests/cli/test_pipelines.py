"""Unlucky and hostile requests on one connection: each answer belongs to its request, and nothing else is read as a request."""

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import uvicorn
from uvicorn.server import ServerState

from tests.api_fixtures import MakeService, serve, service
from tests.fixture_types import MakeKey
from tests.service_process import Service
from tests.wait import GIVE_UP, wait_in_loop_until
from trellis.cli.limits import Limits, make_protocol
from trellis.http.server import ServerHooks

__all__ = ["serve", "service"]

# What reaches the database here is the same on every engine.
pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

CALENDARS: Final = "/calendar/calendar"
PIPED: Final = b'{"name": "Piped"}'
LENGTH: Final = f"Content-Length: {len(PIPED)}"
HEALTH: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST: Final = HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
CHUNKED: Final = "Transfer-Encoding: chunked"
UPGRADE: Final = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA")


def build_head(key: str | None, *more: str) -> bytes:
    lines = f"POST /api{CALENDARS} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *more
    return "\r\n".join((*lines, *([] if key is None else [f"Authorization: Bearer {key}"]), "", "")).encode()


def send_parts(service: Service, parts: Sequence[bytes]) -> bytes:
    """Send parts one by one, so that the service reads them one by one; give the answers."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=GIVE_UP) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connection.sendall(part)
            service.client.get(f"{service.address}/healthz").raise_for_status()
        read = b""
        while part := connection.recv(65_536):
            read += part
        return read


def find_statuses(answers: bytes) -> list[bytes]:
    return [part.split(b" ", 1)[0] for part in answers.split(b"HTTP/1.1 ")[1:]]


def count_calendars(service: Service, key: str) -> Any:
    return service.call("GET", CALENDARS, key).json()["totalResults"]


def test_what_is_no_http_ends_the_connection_after_the_answer_to_the_request_before(service: Service, key: MakeKey) -> None:
    """Otherwise its caller would take the 400 for the answer to a write that was done."""
    text = key("calendars.*")
    for nonsense in (
        b"\x16\x03 nonsense",
        b"GET http://localhost HTTP/1.1\r\nHost: localhost",
        b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80",
    ):
        answer = service.raw(build_head(text, LENGTH) + PIPED + nonsense + b"\r\n\r\n")
        assert find_statuses(answer) == [b"201"], nonsense
        assert b"connection: close\r\n" in answer
    assert count_calendars(service, text) == 3


def test_a_body_that_is_no_http_is_refused(service: Service, key: MakeKey) -> None:
    text = key("calendars.*")
    for asked_for in ((), ("Expect: 100-continue",)):
        assert find_statuses(service.raw(build_head(text, CHUNKED, *asked_for) + b"nonsense\r\n")) == [b"400"]
    assert count_calendars(service, text) == 0
    assert "Traceback" not in service.output


def test_a_url_that_is_none_is_refused_on_a_connection_that_was_used(service: Service) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=GIVE_UP) as connection:
        connection.sendall(HEALTH)
        answer = connection.recv(65_536)
        while not answer.endswith(b"\r\n\r\nok\n"):  # its body may come later than its head
            part = connection.recv(65_536)
            assert part, answer
            answer += part
        assert answer.startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"GET http://localhost:99999/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 400 ")


def test_an_empty_line_between_requests_is_nothing(service: Service) -> None:
    answer = send_parts(service, [HEALTH, b"\r\n", b"\r\n" + HEALTH, b"\r\n\r\n" + LAST])
    assert find_statuses(answer) == [b"200"] * 3


def test_very_many_requests_are_answered_in_their_order(service: Service) -> None:
    """More than are parsed, and read, at a time."""
    root = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 200 + b"\r\n\r\n"
    answer = service.raw((HEALTH + root) * 500 + LAST)
    assert find_statuses(answer) == [b"200", b"307"] * 500 + [b"200"]


def test_requests_before_and_behind_a_large_body_are_answered(service: Service, key: MakeKey) -> None:
    text, large = key("calendars.*"), b" " * 300_000 + PIPED
    answer = service.raw(HEALTH * 300 + build_head(text, f"Content-Length: {len(large)}") + large + HEALTH * 300 + LAST)
    assert find_statuses(answer) == [b"200"] * 300 + [b"201"] + [b"200"] * 301


def test_requests_without_end_take_no_memory(service: Service) -> None:
    """Whoever sends faster than is answered, and does not read either, has to wait."""

    def measure() -> int:
        status = Path(f"/proc/{service.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) >> 10

    before, sent, full = measure(), 0, 0
    with socket.create_connection(("127.0.0.1", service.port), timeout=GIVE_UP) as connection:
        connection.settimeout(0)
        while sent < 16_000_000 and full < 20:
            try:
                sent += connection.send(HEALTH * 1000)
            except BlockingIOError:
                full += 1
                service.client.get(f"{service.address}/healthz").raise_for_status()
        assert measure() - before < 64, "MiB"


def test_very_many_requests_that_ask_for_another_protocol_are_answered(service: Service) -> None:
    asked = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
    assert find_statuses(service.raw(asked * 1000 + LAST)) == [b"307"] * 1000 + [b"200"]
    assert "Traceback" not in service.output


def test_a_request_that_asks_for_another_protocol_is_read_with_its_body(service: Service, key: MakeKey) -> None:
    """The client of Java's library asks for HTTP/2 with the first request on each connection."""
    text = key("calendars.*")
    for framing, *body in ((LENGTH, PIPED[:5], PIPED[5:]), (CHUNKED, b"%x\r\n" % len(PIPED), PIPED, b"\r\n0\r\n\r\n")):
        parts = [
            *(build_head(text, *UPGRADE, framing), *body),
            *(build_head(text, *UPGRADE, "Connection: close", framing), *body),
        ]
        for sent in (parts, [b"".join(parts)]):
            assert find_statuses(send_parts(service, sent)) == [b"201", b"201"]
    assert count_calendars(service, text) == 8
    assert "upgrade" not in service.output.lower()


def test_no_body_is_read_as_a_request(service: Service, key: MakeKey) -> None:
    text = key("calendars.*")
    hidden = build_head(text, LENGTH) + PIPED
    head = build_head(text, *UPGRADE, f"Content-Length: {len(hidden)}")
    last = build_head(text, "Connection: close", LENGTH) + PIPED
    assert find_statuses(send_parts(service, [head, hidden, last])) == [b"400", b"201"]
    assert count_calendars(service, text) == 1


def test_a_tunnel_is_refused_as_before(service: Service) -> None:
    answer = service.raw(b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost:80\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n")
    assert find_statuses(answer) == [b"400"]


def test_a_trailer_is_no_header(serve: MakeService, key: MakeKey) -> None:
    """A proxy may pass trailers on: they are the caller's own words, whatever the proxy says in the headers."""
    service = serve(trusted_proxies=("127.0.0.1",))
    bound = key("calendars.*", addresses=["203.0.113.0/24"])
    sent = b"%x\r\n%b\r\n0\r\n%b\r\n\r\n"
    close = "Connection: close", CHUNKED

    def send(head: bytes, trailer: str) -> list[bytes]:
        return find_statuses(service.raw(head + sent % (len(PIPED), PIPED, trailer.encode())))

    elsewhere = build_head(bound, *close, "X-Forwarded-For: 198.51.100.1")
    assert send(elsewhere, "X-Forwarded-For: 203.0.113.9") == [b"403"]
    assert send(build_head(None, *close, "X-Forwarded-For: 203.0.113.9"), f"Authorization: Bearer {bound}") == [b"401"]
    assert send(build_head(bound, *close, "X-Forwarded-For: 203.0.113.9"), "If-Match: nonsense") == [b"201"]


def test_trailers_of_more_than_64_kib_are_refused(service: Service, key: MakeKey) -> None:
    text = key("calendars.*")
    trailers = b"".join(b"X-%d: %b\r\n" % (number, b"x" * 1000) for number in range(1000))
    with socket.create_connection(("127.0.0.1", service.port), timeout=GIVE_UP) as connection:
        connection.sendall(build_head(text, CHUNKED) + b"%x\r\n%b\r\n0\r\n" % (len(PIPED), PIPED) + trailers)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 431 ")
    assert count_calendars(service, text) == 0


@pytest.mark.usefixtures("engine")
def test_a_client_that_has_gone_is_noticed_even_if_it_has_sent_another_request() -> None:
    async def run() -> None:
        gone: list[str] = []

        async def wait_for_end(scope: Any, receive: Any, _send: Any) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.append(scope["path"])

        http: Any = make_protocol(Limits(10, GIVE_UP, GIVE_UP, GIVE_UP, GIVE_UP), ServerHooks())
        config = uvicorn.Config(wait_for_end, http=http, ws="none", lifespan="off", log_config=None)
        server = await asyncio.get_running_loop().create_server(lambda: http(config, ServerState(), {}), "127.0.0.1", 0)
        async with server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"".join(b"GET /%b HTTP/1.1\r\nHost: localhost\r\n\r\n" % name for name in (b"first", b"second")))
            await writer.drain()
            writer.transport.abort()
            await wait_in_loop_until(lambda: gone)
        assert gone == ["/first"]

    asyncio.run(run())
