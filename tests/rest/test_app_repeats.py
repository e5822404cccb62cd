"""The same request again and again: answered alike each time, judged anew each time, and taken for nobody else's."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import httpx
import pytest

from tests.api_client import read_refusal
from tests.api_fixtures import MakeService, listen
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until
from trellis.asgi import Application
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.settings import Settings

FORUMS: Final = "/forums/forums"
PASSING: Final = {"date", "x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset"}


def lasting(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in PASSING}


def number_of(run: Run, text: str) -> int:
    number: int = run("keys.list", search=text[4:12])["results"][0]["id"]
    return number


@contextmanager
def connected(service: Service) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        yield connection


def answered(connection: socket.socket, count: int) -> bytes:
    """Read so many answers with a length."""
    read = b""
    while True:
        rest, heads = read, 0
        while b"\r\n\r\n" in rest:
            head, _, rest = rest.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            if len(rest) < length:
                break
            rest, heads = rest[length:], heads + 1
        if heads >= count:
            return read
        part = connection.recv(65_536)
        assert part, "the service closed the connection"
        read += part


@pytest.mark.parametrize("cache", [0, 1 << 20])
def test_the_same_request_is_answered_alike_each_time(
    cache: int, serve: MakeService, community: Community, key: MakeKey, database: DatabaseState
) -> None:
    service, text = serve(answer_cache=cache), key("forums.*", rateLimit=50)
    paths = (
        *(FORUMS, f"{FORUMS}/", f"{FORUMS}?perPage=2&page=2", f"{FORUMS}/{community.news}"),
        *(f"{FORUMS}/999", f"{FORUMS}?pages=1", "/nothing"),
    )
    for path in paths:
        first, *others = [service.call("GET", path, text) for _ in range(5)]
        assert {other.status_code for other in others} == {first.status_code}
        if first.status_code == 200:
            assert {(other.content, str(lasting(other))) for other in others} == {(first.content, str(lasting(first)))}
        told = [first, *others]
        assert len({answer.headers["x-request-id"] for answer in told}) == 5
        left = [int(answer.headers["x-ratelimit-remaining"]) for answer in told]
        assert left == list(range(left[0], left[0] - 5, -1))
        assert all(answer.headers["date"] for answer in told)
    assert service.terminate() == 0
    logged = [(row["path"], row["operation"], row["status"]) for row in database.requests()]
    assert len(logged) == 5 * len(paths)
    assert [len(set(logged[at : at + 5])) for at in range(0, len(logged), 5)] == [1] * len(paths)
    assert {row["address"] for row in database.requests()} == {"127.0.0.1"}
    assert len({row["request_id"] for row in database.requests()}) == len(logged)


def test_conditions_and_heads_are_answered_alike_each_time(service: Service, community: Community, key: MakeKey) -> None:
    text, path = key("forums.get"), f"{FORUMS}/{community.news}"
    tag = service.call("GET", path, text).headers["etag"]
    for _ in range(4):
        unchanged = service.call("GET", path, text, {"If-None-Match": tag})
        assert (unchanged.status_code, unchanged.content, unchanged.headers["etag"]) == (304, b"", tag)
        head = service.call("HEAD", path, text)
        assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)
        assert service.call("GET", path, text, {"If-None-Match": '"other"'}).status_code == 200


def test_a_limit_is_a_limit(serve: MakeService, community: Community, key: MakeKey) -> None:
    service, text = serve(), key("forums.get", rateLimit=6)
    answers = [service.call("GET", f"{FORUMS}/{community.news}", text) for _ in range(9)]
    assert [answer.status_code for answer in answers] == [200] * 6 + [429] * 3
    read_refusal(answers[-1], 429, "RATE_LIMITED")


def test_a_key_that_runs_out_is_refused_without_any_commit(
    serve: MakeService, community: Community, key: MakeKey, run: Run
) -> None:
    service, bounded = serve(rate_limit=0), key("forums.get")  # no rate that a quick machine would reach
    assert service.call("GET", f"{FORUMS}/{community.news}", bounded).status_code == 200
    ends = int(time.time()) + 3  # a whole second: what is kept has milliseconds, and the clock here has more
    at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(ends))
    run("keys.update", number_of(run, bounded), expires=at)
    wait_until(lambda: time.time() > ends - 0.3)
    sent, last = 0.0, ends + 0.01
    while sent <= last:
        sent = time.time()
        status = service.call("GET", f"{FORUMS}/{community.news}", bounded).status_code
        if time.time() < ends:
            assert status == 200
        if sent > last:
            assert status == 401


@pytest.mark.either_engine
def test_a_throttled_address_is_throttled_for_known_callers_too(serve: MakeService, community: Community, key: MakeKey) -> None:
    service, text = serve(bad_key_limit=2), key("forums.get")
    path = f"{FORUMS}/{community.news}"
    assert {service.call("GET", path, text).status_code for _ in range(4)} == {200}
    assert {service.call("GET", path, "trl_00000000_0").status_code for _ in range(2)} == {401}
    read_refusal(service.call("GET", path, text), 429, "TOO_MANY_REQUESTS_WITH_BAD_KEY")


@pytest.mark.either_engine
def test_behind_a_proxy_each_caller_is_itself(serve: MakeService, key: MakeKey, database: DatabaseState) -> None:
    service = serve(trusted_proxies=("127.0.0.1",))
    bound = key("forums.list", addresses=["203.0.113.9"])
    for _ in range(3):
        assert service.call("GET", FORUMS, bound, {"X-Forwarded-For": "203.0.113.9"}).status_code == 200
        read_refusal(service.call("GET", FORUMS, bound, {"X-Forwarded-For": "203.0.113.8"}), 403, "IP_ADDRESS_NOT_ALLOWED")
        read_refusal(service.call("GET", FORUMS, bound), 403, "IP_ADDRESS_NOT_ALLOWED")
    assert service.terminate() == 0
    assert [row["address"] for row in database.requests()] == ["203.0.113.9", "203.0.113.8", "127.0.0.1"] * 3


@pytest.mark.either_engine
def test_a_key_in_the_query_is_no_known_caller(serve: MakeService, community: Community, key: MakeKey) -> None:
    service, text = serve(key_in_url=True), key("forums.get")
    path = f"{FORUMS}/{community.news}"
    for _ in range(3):
        assert service.call("GET", f"{path}?key={text}").status_code == 200
        read_refusal(service.call("GET", path), 401, "NO_API_KEY")


@pytest.mark.either_engine
def test_requests_in_pieces_and_one_behind_another_are_answered_in_order(
    service: Service, community: Community, key: MakeKey
) -> None:
    head = f"Host: forum.example\r\nAuthorization: Bearer {key('forums.get')}\r\n\r\n"
    one, two = (f"GET /api{FORUMS}/{node} HTTP/1.1\r\n{head}".encode() for node in (community.news, community.releases))
    with connected(service) as connection:
        for _ in range(3):
            connection.sendall(one)
            assert f'"id":{community.news}'.encode() in answered(connection, 1)
        connection.sendall(one + two + one)
        told = answered(connection, 3)
        places = [told.index(f'"id":{community.news},'.encode()), told.index(f'"id":{community.releases},'.encode())]
        assert places == sorted(places)
        connection.sendall(one[:20])
        time.sleep(0.05)
        connection.sendall(one[20:-3])
        time.sleep(0.05)
        connection.sendall(one[-3:] + two)
        told = answered(connection, 2)
        assert told.index(f'"id":{community.news},'.encode()) < told.index(f'"id":{community.releases},'.encode())


@pytest.mark.either_engine
def test_a_caller_that_wants_the_connection_closed_has_it_closed(service: Service, community: Community, key: MakeKey) -> None:
    head = f"Host: forum.example\r\nAuthorization: Bearer {key('forums.get')}\r\n"
    for version, end in (("1.1", "Connection: close\r\n\r\n"), ("1.0", "\r\n")):
        request = f"GET /api{FORUMS}/{community.news} HTTP/{version}\r\n{head}{end}".encode()
        for _ in range(3):
            assert service.raw(request).startswith(b"HTTP/1.1 200 OK\r\n"), "and the answer ends"


@pytest.mark.either_engine
def test_a_known_caller_with_a_body_is_read_to_its_end(service: Service, community: Community, key: MakeKey) -> None:
    head = f"Host: forum.example\r\nAuthorization: Bearer {key('forums.get')}\r\nContent-Length: 9\r\n\r\n"
    request = f"GET /api{FORUMS}/{community.news} HTTP/1.1\r\n{head}".encode()
    with connected(service) as connection:
        for _ in range(4):
            connection.sendall(request)
            time.sleep(0.05)
            connection.sendall(b"GET / HTT")  # the nine bytes of the body, and no request
            assert answered(connection, 1).count(b"HTTP/1.1 200 OK") == 1


# --- what one caller is told is not for another -------------------------------------------------------------------


def asked_from(service: Service, address: str, head: str) -> bytes:
    """Send one GET from an address of this machine, with these lines of headers; give the answer."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=60, source_address=(address, 0)) as connection:
        connection.sendall(f"GET /api{FORUMS} HTTP/1.1\r\n{head}\r\n\r\n".encode())
        return answered(connection, 1)


@pytest.mark.either_engine
@pytest.mark.parametrize("name", ["Host: forum.example\r\nAccept", "Accept: */*\r\nHost"])
def test_an_address_list_holds_whatever_the_headers_are(name: str, service: Service, key: MakeKey) -> None:
    """`1Host` from 127.0.0.1 was once taken for `Host` from 127.0.0.11, since a caller was known by both written in a row."""
    head = f"{name}: forum.example\r\nAuthorization: Bearer {key('forums.list', addresses=['127.0.0.11'])}"
    for _ in range(4):
        assert asked_from(service, "127.0.0.11", head).startswith(b"HTTP/1.1 200 ")
        assert asked_from(service, "127.0.0.1", f"1{head}")[:12] in {b"HTTP/1.1 403", b"HTTP/1.1 400"}
        assert asked_from(service, "127.0.0.1", head).startswith(b"HTTP/1.1 403 ")


def test_answers_keep_the_order_of_the_requests_that_come_one_close_behind_the_other(
    service: Service, community: Community, key: MakeKey
) -> None:
    """A GET that came a moment after a HEAD was once answered before it."""
    end = f"HTTP/1.1\r\nHost: forum.example\r\nAuthorization: Bearer {key('forums.get', rateLimit=0)}\r\n\r\n"
    head, get = (
        f"{method} /api{FORUMS}/{node} {end}".encode() for method, node in (("HEAD", community.news), ("GET", community.releases))
    )
    swapped = 0
    with connected(service) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for number in range(600):
            connection.sendall(head)
            until = time.perf_counter() + number % 30 / 100_000  # seconds: up to 300 microseconds between the two
            while time.perf_counter() < until:
                pass
            connection.sendall(get)
            first, second = two_answers(connection)
            assert f'"id":{community.releases},'.encode() in first + second
            swapped += b'"id"' in first
    assert swapped == 0


def two_answers(connection: socket.socket) -> tuple[bytes, bytes]:
    """Read two answers of which one has a body; split them where the second begins."""
    read = b""
    while read.count(b"\r\n\r\n") < 2 or not (read.endswith(b"}\n") or b"}\nHTTP/1.1 " in read):
        part = connection.recv(65_536)
        assert part, "the service closed the connection"
        read += part
    at = read.rindex(b"HTTP/1.1 ")
    return read[:at], read[at:]


# --- what was overtaken -------------------------------------------------------------------------------------------


def test_what_was_overtaken_within_one_turn_of_the_event_loop_is_not_answered(
    gate: Gate, settings: Settings, community: Community, key: MakeKey
) -> None:
    """An answer may leave before the turn ends, its receiver write elsewhere, and come back: all before the loop goes on."""
    path = f"/api{FORUMS}/{community.news}"

    async def walk() -> list[bytes]:
        application = Application(settings, gate)
        text = key("forums.get")
        elsewhere = compose(settings)
        read = []
        try:
            listen(gate)
            for name in ("Once", "Twice", "Thrice"):
                for _ in range(3):
                    await asyncio.create_task(body_of(application, path, text))
                before = gate.store.data_version()
                elsewhere.run(Call("forums.update", TERMINAL, {"name": name}, community.news))  # in the same turn
                wait_until(partial(_has_moved_on, gate, before))
                read.append(await asyncio.create_task(body_of(application, path, text)))  # a server begins each request as a task
        finally:
            elsewhere.store.close()
            await application.service.close()
        return read

    bodies = asyncio.run(walk())
    assert [name in body.decode() for name, body in zip(("Once", "Twice", "Thrice"), bodies, strict=True)] == [True] * 3


async def body_of(application: Application, path: str, text: str) -> bytes:
    """Ask the API in this process as a server does."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError

    headers = [(b"host", b"forum.example"), (b"authorization", f"Bearer {text}".encode())]
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "headers": headers}
    await application(scope | {"client": ("127.0.0.1", 1)}, receive, send)
    return b"".join(message.get("body", b"") for message in sent)


def _has_moved_on(gate: Gate, version: int | None) -> bool:
    return gate.store.data_version() != version
