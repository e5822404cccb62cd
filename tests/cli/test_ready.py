"""Responses that a running service sends from memory: in their order, to whom they are for, and as the connection wants it."""

import re
import socket
import time
from collections import Counter
from typing import Final

import httpx
import pytest

from tests.api_fixtures import MakeService, serve, service
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service

__all__ = ["serve", "service"]

CALENDARS: Final = "/calendar/calendar"
FORWARDED: Final = {"X-Forwarded-For": "203.0.113.9", "Host": "api.forum.example"}


def build_request(method: str, path: str, key: str, number: int, *more: str) -> bytes:
    lines = f"{method} /api{path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {key}", f"X-Request-Id: n-{number}", *more
    return "\r\n".join((*lines, "", "")).encode()


def read_until_closed(connection: socket.socket) -> bytes:
    read = b""
    while part := connection.recv(65_536):
        read += part
    return read


@pytest.fixture
def calendars(run: Run) -> list[int]:
    return [run("calendars.create", name=f"Calendar {number}")["id"] for number in range(4)]


def test_requests_that_come_together_are_answered_in_their_order(service: Service, key: MakeKey, calendars: list[int]) -> None:
    """Some are answered from memory, some by the application, some have no body."""
    text = key("calendars.*")
    asked = [
        ("HEAD" if number % 5 == 0 else "GET", f"{CALENDARS}/{calendars[number % 4]}{'?pretty' if number % 7 == 0 else ''}")
        for number in range(100)
    ]
    sent = [build_request(method, path, text, number) for number, (method, path) in enumerate(asked)]
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(b"".join(sent) + build_request("GET", CALENDARS, text, len(asked), "Connection: close"))
        read = read_until_closed(connection)
    assert re.findall(rb"x-request-id: n-([0-9]+)\r\n", read) == [b"%d" % number for number in range(101)]
    bodies = re.findall(rb'"id": ?([0-9]+), ?\s*"name": ?"Calendar [0-9]"', read.rpartition(b"HTTP/1.1")[0])
    assert bodies == [path.rpartition("/")[2].partition("?")[0].encode() for method, path in asked if method == "GET"]
    assert b"connection: close\r\n" in read.rpartition(b"HTTP/1.1")[2]


@pytest.mark.either_engine
def test_a_connection_that_is_to_be_closed_is(service: Service, key: MakeKey, calendars: list[int]) -> None:
    text, path = key("calendars.*"), f"{CALENDARS}/{calendars[0]}"
    kept = service.call("GET", path, text)
    for _ in range(2):
        answer = service.raw(build_request("GET", path, text, 1, "Connection: close"))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nconnection: close" in head
        assert body == kept.content
    known = service.raw(build_request("GET", path, text, 1, "Connection: close", f"If-None-Match: {kept.headers['etag']}"))
    assert known.startswith(b"HTTP/1.1 304 Not Modified\r\n")
    assert known.endswith(b"\r\n\r\n")


@pytest.mark.either_engine
def test_whoever_is_behind_a_trusted_proxy_is_judged_by_their_own_address(
    serve: MakeService, key: MakeKey, database: DatabaseState, calendars: list[int]
) -> None:
    service = serve(trusted_proxies=("127.0.0.1",))
    bound, path = key("calendars.*", addresses=["203.0.113.0/24"]), f"{CALENDARS}/{calendars[0]}"

    def call(address: str) -> httpx.Response:
        return service.call("GET", path, bound, FORWARDED | {"X-Forwarded-For": address})

    for _ in range(3):
        assert call("203.0.113.9").status_code == 200
        assert call("203.0.113.10, 127.0.0.1").status_code == 200
        assert call("203.0.113.11, ::ffff:127.0.0.1").status_code == 200  # as a proxy with a dual-stack socket reports the next one
        assert call("::ffff:203.0.113.12").status_code == 200
        assert call("198.51.100.1").status_code == 403
        assert call("203.0.113.9, 198.51.100.1").status_code == 403
        assert service.call("GET", path, bound).status_code == 403
    for scheme in ("https", "http", "https", "http"):
        page = service.call("GET", f"{CALENDARS}?perPage=1", bound, FORWARDED | {"X-Forwarded-Proto": scheme})
        assert page.headers["link"].startswith(f"<{scheme}://api.forum.example/api/")
    assert service.terminate() == 0
    served = Counter(row["address"] for row in database.requests() if row["status"] == 200)
    assert served == {"203.0.113.9": 3 + 4, "203.0.113.10": 3, "203.0.113.11": 3, "203.0.113.12": 3}


@pytest.fixture
def many_forums(run: Run) -> None:
    """Fifty forums, whose list is a little less than what is sent in one piece; twice as many are more than that."""
    forums = [{"name": f"{number}", "description": "x" * 900} for number in range(100)]
    run("core.batch", operations=[{"operation": "forums.create", "body": body} for body in forums])


@pytest.mark.usefixtures("many_forums")
@pytest.mark.parametrize("cache", [0, 33_554_432])
def test_a_list_too_large_for_one_piece_is_read_counted_and_logged_once_behind_a_proxy_too(
    serve: MakeService, key: MakeKey, database: DatabaseState, cache: int
) -> None:
    service = serve(trusted_proxies=("127.0.0.1",), answer_cache=cache)
    text, path = key("forums.*", rateLimit=50), "/forums/forums?perPage=100"
    answers = [service.call("GET", path, text, FORWARDED) for _ in range(4)]
    assert {len(answer.content) > 100_000 for answer in answers} == {True}
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["49", "48", "47", "46"]
    assert service.terminate() == 0
    logged = [row for row in database.requests() if row["path"] == "/api/forums/forums"]
    assert [(row["address"], row["status"]) for row in logged] == [("203.0.113.9", 200)] * 4
    assert all(row["duration"] > 0 for row in logged)


@pytest.mark.usefixtures("many_forums")
def test_what_is_asked_by_somebody_who_does_not_read_is_counted_and_logged_once(
    serve: MakeService, key: MakeKey, database: DatabaseState
) -> None:
    service, text, asked = serve(), key("forums.*", rateLimit=1000), 150
    path = "/forums/forums?perPage=45"
    assert 50_000 < len(service.call("GET", path, text).content) < 65_536
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        for number in range(asked):
            connection.sendall(build_request("GET", path, text, number))
        time.sleep(1)  # until the service has sent what the system takes
        connection.sendall(build_request("GET", path, text, asked, "Connection: close"))
        read = read_until_closed(connection)
    left = re.findall(rb"x-ratelimit-remaining: ([0-9]+)\r\n", read)
    assert left == [b"%d" % (998 - number) for number in range(asked + 1)]
    assert service.terminate() == 0
    assert len([row for row in database.requests() if row["path"] == "/api/forums/forums"]) == asked + 2
