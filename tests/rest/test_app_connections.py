"""Over real connections: proxies, clients that go away, servers that are busy, and requests one behind another."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import httpx
import pytest

from tests.api_client import ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient, MakeService
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey
from tests.service_process import Service
from tests.wait import wait_in_loop_until
from trellis.asgi import Application
from trellis.compose import compose
from trellis.settings import Settings

FORUMS = "/forums/forums"
BEHIND = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "Host": "api.forum.example"}


@pytest.mark.either_engine
def test_what_a_trusted_proxy_says_about_the_caller_is_believed(serve: MakeService, key: MakeKey, database: DatabaseState) -> None:
    service = serve(trusted_proxies=("127.0.0.1", "10.0.0.0/8"))
    bound = key("calendars.*", addresses=["203.0.113.0/24"])
    made = service.call("POST", "/calendar/calendar", bound, BEHIND, json={"name": "Behind"})
    assert made.status_code == 201
    assert made.headers["location"] == f"https://api.forum.example/api/calendar/calendar/{made.json()['id']}"
    chain = BEHIND | {"X-Forwarded-For": "198.51.100.1, 203.0.113.9, 10.1.2.3"}
    assert service.call("GET", "/calendar/calendar", bound, chain).status_code == 200, "the last one that is no proxy of ours"
    read_refusal(service.call("GET", "/calendar/calendar", bound), 403, "IP_ADDRESS_NOT_ALLOWED")
    assert service.terminate() == 0
    assert [row["address"] for row in database.requests()] == ["203.0.113.9", "203.0.113.9", "127.0.0.1"]


@pytest.mark.either_engine
def test_a_proxy_that_comes_over_a_socket_for_both_families_is_the_same(
    serve: MakeService, key: MakeKey, database: DatabaseState
) -> None:
    service = serve(options=("--host", "::"), trusted_proxies=("127.0.0.0/8",))
    bound = key("calendars.*", addresses=["203.0.113.0/24"])
    made = service.call("POST", "/calendar/calendar", bound, BEHIND, json={"name": "Behind"})
    assert made.status_code == 201, made.text
    assert made.headers["location"].startswith("https://api.forum.example/")
    for _ in range(2):  # the second time from memory
        assert service.call("GET", "/calendar/calendar", bound, BEHIND).status_code == 200
    assert "X-Forwarded-For" not in service.output
    assert service.call("GET", "/core/hello", key([])).status_code == 200
    assert service.terminate() == 0
    assert [row["address"] for row in database.requests()] == [*["203.0.113.9"] * 3, "127.0.0.1"]


@pytest.mark.either_engine
def test_what_anybody_else_says_is_not(service: Service, serve: MakeService, key: MakeKey, database: DatabaseState) -> None:
    elsewhere = serve(trusted_proxies=("192.0.2.1",))
    bound = key("calendars.*", addresses=["203.0.113.9"])
    for reached in (service, elsewhere):
        read_refusal(reached.call("GET", "/calendar/calendar", bound, BEHIND), 403, "IP_ADDRESS_NOT_ALLOWED")
        assert reached.call("GET", "/core/hello", key([]), BEHIND).status_code == 200
        assert reached.terminate() == 0
    assert {row["address"] for row in database.requests()} == {"127.0.0.1"}


def test_a_client_that_goes_away_in_the_middle_of_its_body_changes_nothing(
    service: Service, key: MakeKey, database: DatabaseState
) -> None:
    text = key("*")
    head = f"POST /api{FORUMS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {text}\r\nContent-Type: application/json\r\n"
    with database.unchanged():
        for framing in ("Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n10\r\n"):
            with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
                connection.sendall(f'{head}{framing}{{"name": "Half'.encode())
                time.sleep(0.1)
        assert service.call("GET", FORUMS, text).json()["totalResults"] == 0
    assert service.terminate() == 0
    assert sorted((row["method"], row["status"]) for row in database.requests()) == [("GET", 200), ("POST", 400), ("POST", 400)]
    assert "Traceback" not in service.output


@pytest.mark.either_engine
def test_requests_may_follow_each_other_on_one_connection(service: Service, key: MakeKey, community: Community) -> None:
    text = key("*")
    end = f"HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {text}\r\n"
    body = b'{"name": "Piped"}'
    sent = b"".join(
        (
            f"HEAD /api{FORUMS}/{community.news} {end}\r\n".encode(),
            f"GET /api{FORUMS}/999 {end}\r\n".encode(),
            f"POST /api/calendar/calendar {end}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body,
            f"OPTIONS /api{FORUMS} {end}\r\n".encode(),
            f"PROPFIND /api{FORUMS} {end}\r\n".encode(),
            f"GET /api{FORUMS}/{community.news} {end}Connection: close\r\n\r\n".encode(),
        )
    )
    answer = service.raw(sent)
    statuses = [part.split(b" ", 1)[0] for part in answer.split(b"HTTP/1.1 ")[1:]]
    assert statuses == [b"200", b"404", b"201", b"204", b"405", b"200"]
    assert answer.count(b'"name":"News"') == 1, "HEAD has no body"


@pytest.mark.either_engine
def test_a_method_that_no_server_knows_is_refused_by_it(service: Service, key: MakeKey) -> None:
    """The server in front of us reads no such request; that it answers, and goes on, is what can be asked for."""
    answer = service.raw(f"BREW /api{FORUMS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key('*')}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 4")
    assert service.call("GET", FORUMS, key("*")).status_code == 200


# --- when the database is busy ------------------------------------------------------------------------------------


@contextmanager
def writing_elsewhere(settings: Settings) -> Iterator[None]:
    """Hold the one write lock in another process's place."""
    other = compose(settings)
    begun, done = threading.Event(), threading.Event()

    def hold(_tx: object) -> None:
        begun.set()
        done.wait(600)

    held = other.store.write(hold)
    assert begun.wait(60)
    try:
        yield
    finally:
        done.set()
        held.result(60)
        other.store.close()


@pytest.fixture
def hasty(settings: Settings, key: MakeKey) -> Iterator[ApiClient]:
    """A worker that waits a second, and no longer, for its turn to write."""
    hurried = replace(settings, busy_timeout=1)
    gate = compose(hurried)
    api = ApiClient(Application(hurried, gate), key("*"))
    yield api
    api.close()
    gate.store.close()


def test_while_another_process_writes_reads_are_served_and_a_write_is_told_to_come_again(
    hasty: ApiClient, settings: Settings, community: Community, database: DatabaseState
) -> None:
    with database.unchanged(), writing_elsewhere(settings):
        assert hasty.get(f"{FORUMS}/{community.news}").status_code == 200
        answer = hasty.post(FORUMS, {"name": "Too soon"})
        assert read_refusal(answer, 503, "BUSY")["errorCode"] == "4T104/1"
        assert int(answer.headers["retry-after"]) >= 1
        assert hasty.get(FORUMS).status_code == 200
    assert hasty.post(FORUMS, {"name": "Now"}).status_code == 201


def test_a_write_whose_client_has_gone_while_it_waited_is_not_begun(
    service: Service, settings: Settings, key: MakeKey, community: Community
) -> None:
    text, body = key("*"), b'{"name": "Nobody waits for it"}'
    head = f"POST /api{FORUMS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {text}\r\nContent-Type: application/json\r\n"
    with writing_elsewhere(settings):
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
                connection.sendall(f"{head}Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode())
                assert connection.recv(1000).startswith(b"HTTP/1.1 100")
                connection.sendall(body)
        for _ in range(5):  # each is a connection that is taken after those have ended: by now the service knows of it
            assert service.raw(f"GET /api{FORUMS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert service.call("POST", FORUMS, text, json={"name": "Somebody waits for it"}).status_code == 201
    names = [forum["name"] for forum in service.call("GET", f"{FORUMS}?perPage=1000", text).json()["results"]]
    assert "Somebody waits for it" in names
    assert "Nobody waits for it" not in names


def test_what_waits_behind_a_long_write_is_refused_when_its_time_is_over(hasty: ApiClient) -> None:
    done = threading.Event()
    held = hasty.application.gate.store.write(lambda _: done.wait(600))
    for _ in range(2):
        read_refusal(hasty.post(FORUMS, {"name": "Too late"}), 503, "BUSY")
    done.set()
    assert held.result(60)
    assert hasty.get(FORUMS).json()["totalResults"] == 0


def test_the_queue_of_writes_has_an_end(make_api: MakeApiClient) -> None:
    api = make_api()
    done = threading.Event()
    store = api.application.gate.store
    store.writer._timeout, store.writer._room = 30, 2
    held = store.write(lambda _: done.wait(600))

    async def send_many() -> list[httpx.Response]:
        sending = [asyncio.create_task(api.sending("POST", FORUMS, json={"name": f"Forum {number}"})) for number in range(20)]
        await wait_in_loop_until(lambda: sum(task.done() for task in sending) >= 17)
        done.set()
        return list(await asyncio.gather(*sending))

    answers = api.do(send_many())
    assert held.result(60)
    refused = [answer for answer in answers if answer.status_code != 201]
    for answer in refused:
        assert "Too many writes are already waiting" in read_refusal(answer, 503, "BUSY")["detail"]
        assert int(answer.headers["retry-after"]) >= 1
    assert api.get(FORUMS).json()["totalResults"] == 20 - len(refused) <= 3
