"""Writes while too many wait: the server refuses them unseen, as the application would, and everything else goes on."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from threading import Event, Thread
from time import sleep
from typing import Final

import pytest

from tests.api_fixtures import MakeService, serve
from tests.cli.test_limits import TOKEN, read_metrics
from tests.fixture_types import MakeKey
from tests.service_process import Service
from tests.sqlite_file import open_sqlite
from tests.wait import wait_until
from trellis.settings import Settings

__all__ = ["serve"]

# The queue is one of the process, whatever the database.
pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

FORUMS: Final = "/forums/forums"
BODY: Final = b'{"name":"One too many"}'


@pytest.fixture
def crowded(settings: Settings, serve: MakeService, key: MakeKey) -> Iterator[tuple[Service, str]]:
    """Start a service whose only place in the queue of writes is taken until the fixture ends; give a key, too."""
    text = key("*")
    service = serve(
        write_queue=1,
        busy_timeout=300,  # the place is taken as long as a test on a busy machine may take
        cors_origins=("https://pages.example",),
        metrics_token=TOKEN,
        metrics_listen="127.0.0.1:0",
        access_log=True,
    )
    with closing(open_sqlite(settings)) as other:
        other.execute("BEGIN IMMEDIATE")
        full = Event()
        found: list[int] = []

        def create(name: str) -> None:
            while (status := service.call("POST", FORUMS, text, json={"name": name}).status_code) == 503 and not full.is_set():
                pass  # the writer has not taken the other one yet
            found.append(status)

        def stays_full() -> bool:
            before = read_metrics(service)["trellis_writes_waiting",]
            sleep(0.05)  # the writer takes the first that waits at once, and then waits for the lock
            return before == read_metrics(service)["trellis_writes_waiting",] > 0  # a row of the log has a place of its own

        waiting = [Thread(target=create, args=(name,)) for name in ("Begun", "In the queue")]
        for thread in waiting:
            thread.start()
        wait_until(stays_full)
        full.set()  # if the writer had a row of the log in its hands, one of the two is in the queue and the other has no place
        settled = -1.0
        while settled != (settled := count_refused(service)):
            sleep(0.05)
        yield service, text
        other.execute("ROLLBACK")
        for thread in waiting:
            thread.join()
    assert sorted(found) in ([201, 201], [201, 503])
    # A row of the log may be in the queue for a moment.
    wait_until(lambda: service.call("POST", FORUMS, text, json={"name": "Afterwards"}).status_code == 201)
    names = {forum["name"] for forum in service.call("GET", FORUMS, text).json()["results"]}
    assert len(names & {"Begun", "In the queue"}) == found.count(201)
    assert "Afterwards" in names
    assert "One too many" not in names


def request(text: str, method: str = "POST", *more: str, body: bytes = BODY, start: str = "") -> bytes:
    lines = [f"{method} {start}/api{FORUMS} HTTP/1.1", "Host: forum.example", f"Authorization: Bearer {text}", *more]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"] if method == "POST" else []
    return "\r\n".join((*lines, "", "")).encode() + (body if method == "POST" else b"")


def read_response(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Read one response, and nothing of the next."""
    read = b""
    while b"\r\n\r\n" not in read:
        part = connection.recv(1)
        assert part, read
        read += part
    first, *lines = read.decode().strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    body = b""
    while len(body) < int(headers["content-length"]):
        body += connection.recv(int(headers["content-length"]) - len(body))
    return int(first.split()[1]), headers, body


def count_logged(service: Service) -> int:
    """Return how many refused writes the access log tells of."""
    return service.output.count(f"The server refused a request to /api{FORUMS}: 503")


def count_refused(service: Service) -> float:
    return read_metrics(service)["trellis_server_refusals_total", "writes", "503"]


def test_a_write_is_refused_unseen_and_the_connection_goes_on(crowded: tuple[Service, str]) -> None:
    service, text = crowded
    before, logged = count_refused(service), count_logged(service)
    large = b" " * 300_000 + BODY
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(request(text, "POST", "X-Request-Id: mine-1"))
        seen = read_response(connection)
        connection.sendall(request(text, "GET"))
        assert read_response(connection)[0] == 200, "reads go on"
        connection.sendall(request(text, body=large)[:-9])
        connection.sendall(BODY[-9:])
        assert read_response(connection)[0] == 503
        connection.sendall(request(text) + request(text, "GET") + request(text))  # without waiting for the first
        assert [read_response(connection)[0] for _ in range(3)] == [503, 200, 503]
        for start in ("/", "http://forum.example", "HTTP://forum.example:80/"):
            connection.sendall(request(text, start=start))
            assert read_response(connection)[0] == 503
    assert count_refused(service) >= before + 6
    wait_until(lambda: count_logged(service) >= logged + 3)
    status, headers, body = seen
    assert (status, headers["retry-after"], headers["x-request-id"]) == (503, "1", "mine-1")

    told = count_refused(service)
    elsewhere = service.call(
        "POST", FORUMS, text, {"Origin": "https://pages.example", "X-Request-Id": "mine-1", "Host": "forum.example"}
    )
    assert count_refused(service) == told, "a page elsewhere reads what the application answers"
    assert elsewhere.headers["access-control-allow-origin"] == "https://pages.example"
    assert body == elsewhere.content
    only_seen = {"access-control-allow-origin", "access-control-expose-headers", "date"}
    only_seen |= {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}
    assert headers == {name: value for name, value in elsewhere.headers.items() if name not in only_seen}


def test_whoever_closes_or_waits_to_be_asked_for_the_body_is_answered_too(crowded: tuple[Service, str]) -> None:
    service, text = crowded
    before = count_refused(service)
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(request(text, "POST", "Connection: close"))
        status, headers, _ = read_response(connection)
        assert (status, headers["connection"]) == (503, "close")
        assert connection.recv(1) == b""
    assert count_refused(service) == before + 1
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
        connection.sendall(request(text, "POST", "Expect: 100-continue", body=b""))
        assert read_response(connection)[0] == 503
    assert count_refused(service) == before + 1, "the application has refused it without asking for the body"


def test_half_sent_writes_take_no_place(serve: MakeService, key: MakeKey) -> None:
    service, text = serve(write_queue=2), key("*")
    with ExitStack() as open_ones:
        for _ in range(5):
            half = open_ones.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=60))
            half.sendall(request(text)[:-1])
        for number in range(5):
            assert service.call("POST", FORUMS, text, json={"name": f"Beside {number}"}).status_code == 201
