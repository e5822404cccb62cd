"""Limits on connections of a running service: whoever does not send, or does not read, is cut off, and nobody else notices."""

import json
import logging
import re
import resource
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api_fixtures import MakeService, serve, service
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service, refuses_connections
from tests.wait import wait_until
from trellis.cli import main
from trellis.cli.limits import OncePerMinute
from trellis.http.policy import NO_SNIFFING, POLICY
from trellis.refusals import REFUSALS

__all__ = ["serve", "service"]

# No request of these comes to the database but as the first and the last step.
pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

STRANGER: Final = "127.0.0.3"  # an address of this machine
FORUMS: Final = "/forums/forums"
TOKEN: Final = "a-long-text-that-nobody-guesses"  # of the tests
HALF: Final = b"GET /healthz HTTP/1.1\r\nHost: forum.example\r\nX-Half: "
WHOLE: Final = b"GET /healthz HTTP/1.1\r\nHost: forum.example\r\n\r\n"


@contextmanager
def connected(service: Service, address: str = "127.0.0.1") -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", service.port), timeout=60, source_address=(address, 0)) as connection:
        yield connection


def rest(connection: socket.socket) -> bytes:
    """Read until the service closes the connection."""
    read = b""
    try:
        while part := connection.recv(65_536):
            read += part
    except ConnectionResetError:
        pass
    return read


def is_held(service: Service, connection: socket.socket, port: int | None = None) -> bool:
    """Return whether the service holds its end of a connection: `/proc/net/tcp` has both ports in hexadecimal, then the state."""
    ends = f":{port or service.port:04X} [0-9A-F]+:{connection.getsockname()[1]:04X} 01 "
    return re.search(ends, Path("/proc/net/tcp").read_text()) is not None


def ask(connection: socket.socket) -> None:
    """See that a connection still answers."""
    connection.sendall(WHOLE)
    read = b""
    while not read.endswith(b"ok\n"):
        part = connection.recv(65_536)
        assert part, read
        read += part
    assert status(read) == b"200"


def status(answer: bytes) -> bytes:
    return answer[9:12]


def test_half_sent_heads_stop_nobody_and_are_closed(serve: MakeService, key: MakeKey) -> None:
    service, text = serve(descriptors=256, head_timeout=3), key("*")
    with ExitStack() as open_ones:
        halves = [open_ones.enter_context(connected(service, STRANGER)) for _ in range(300)]
        for half in halves:
            half.sendall(HALF)
        for number in range(20):
            assert service.call("GET", FORUMS, text).status_code == 200
            assert service.call("POST", FORUMS, text, json={"name": f"Beside {number}"}).status_code == 201
        told = {status(rest(half)) for half in halves}
    assert {b"408", b"503"} <= told <= {b"408", b"503", b""}
    assert service.raw(WHOLE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")).endswith(b"ok\n")


def test_the_soft_limit_of_descriptors_is_raised(serve: MakeService) -> None:
    service = serve(options=("--workers", "2"))
    limits = Path(f"/proc/{service.process.pid}/limits").read_text()
    found = re.search(r"Max open files +(\d+) +(\d+)", limits)
    assert found is not None
    assert found[1] == found[2]


def serve_as_on_macos() -> None:
    """Run the command with an infinite hard limit of descriptors, which macOS rejects as the soft limit."""
    limits = [256, resource.RLIM_INFINITY]

    def set_limit(_: int, wanted: tuple[int, int]) -> None:
        if wanted[0] == resource.RLIM_INFINITY:
            raise ValueError("current limit exceeds maximum limit")
        limits[:] = wanted

    changes = {"getrlimit": lambda _: tuple(limits), "setrlimit": set_limit}
    for name, value in changes.items():
        setattr(resource, name, value)
    main()


def test_an_infinite_limit_of_descriptors_is_enough(serve: MakeService) -> None:
    service = serve(connections=8, program=serve_as_on_macos)
    with connected(service, STRANGER) as connection:
        ask(connection)


def test_connections_beyond_the_bound_are_refused_and_the_others_are_not(serve: MakeService) -> None:
    service = serve(connections=8)  # four for one address
    with ExitStack() as open_ones:
        good = [open_ones.enter_context(connected(service, STRANGER)) for _ in range(4)]
        for connection in good:
            ask(connection)
        with connected(service, STRANGER) as further:
            further.sendall(WHOLE)
            refused = rest(further)
        assert status(refused) == b"503"
        assert b"retry-after: 1\r\n" in refused
        assert service.client.get(f"{service.address}/healthz").status_code == 200, "another address has its own half"
        for connection in good:
            ask(connection)
    with connected(service, STRANGER) as again:
        ask(again)


def read_metrics(service: Service) -> dict[tuple[str, ...], float]:
    """Return what the metrics' own port tells, by name and values of labels."""
    (address,) = re.findall(r"The metrics are at (\S+)\.", service.output)
    with httpx.Client(trust_env=False) as client:
        text = client.get(address, headers={"Authorization": f"Bearer {TOKEN}"}).raise_for_status().text
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(sample.name, *(sample.labels[name] for name in sorted(sample.labels))): sample.value for sample in samples}


def test_whoever_fills_the_public_port_keeps_nobody_from_the_metrics_which_count_what_the_server_refuses(
    serve: MakeService, key: MakeKey
) -> None:
    service = serve(connections=8, head_timeout=2, body_timeout=1, metrics_token=TOKEN, metrics_listen="127.0.0.1:0")
    authorization = f"Authorization: Bearer {key('*')}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    half_body = f"POST /api{FORUMS} HTTP/1.1\r\nHost: h\r\n{authorization}{{".encode()
    long_head = HALF + b"x" * 70_000 + b"\r\n\r\n"
    for sent, told in ((b"nonsense\r\n\r\n", b"400"), (half_body, b"408"), (HALF, b"408"), (long_head, b"431")):
        with connected(service) as connection:
            connection.sendall(sent)
            assert status(rest(connection)) == told
    with ExitStack() as open_ones:
        for address in (*[STRANGER] * 4, *["127.0.0.4"] * 3):  # and the client of the test has one
            ask(open_ones.enter_context(connected(service, address)))
        with connected(service) as further:
            assert status(rest(further)) == b"503"
        found = [read_metrics(service) for _ in range(20)][-1]  # more than it may have at once: each gives its place back
        with connected(service) as further:
            assert status(rest(further)) == b"503", "the public port has no more than before"
    refused = {name[1:]: value for name, value in found.items() if name[0] == "trellis_server_refusals_total"}
    reasons = ("malformed", "400"), ("slow head", "408"), ("slow body", "408"), ("large head", "431"), ("connections", "503")
    assert refused == {**dict.fromkeys(reasons, 1), ("writes", "503"): 0}
    requests = {name[2:]: value for name, value in found.items() if name[0] == "trellis_requests_total"}
    assert requests == {("forums.create", "4xx"): 1}, "only the one whose body did not come was a request"


def test_the_metrics_port_has_a_bound_of_its_own(serve: MakeService) -> None:
    service = serve(connections=64, metrics_token=TOKEN, metrics_listen="127.0.0.1:0")
    (port,) = re.findall(r"The metrics are at http://127.0.0.1:(\d+)/", service.output)
    with ExitStack() as open_ones:

        def connect() -> socket.socket:
            return open_ones.enter_context(socket.create_connection(("127.0.0.1", int(port)), 60, (STRANGER, 0)))

        held = [connect() for _ in range(8)]
        assert status(rest(connect())) == b"503"
        assert read_metrics(service)["trellis_server_refusals_total", "connections", "503"] == 1, "another address has its own half"
        assert service.client.get(f"{service.address}/healthz").status_code == 200
        assert all(is_held(service, connection, int(port)) for connection in held)


def test_a_trusted_proxy_may_hold_all_connections(serve: MakeService) -> None:
    service = serve(connections=8, trusted_proxies=(STRANGER,))
    with ExitStack() as open_ones:
        for _ in range(7):
            connection = open_ones.enter_context(connected(service, STRANGER))
            ask(connection)


def test_a_head_of_more_than_64_kib_is_refused(service: Service) -> None:
    long = b"x" * 70_000
    for head in (WHOLE.replace(b"/healthz", b"/" + long), HALF + long + b"\r\n\r\n"):
        for size in (len(head), len(head) // 40):  # of the pieces in which it comes
            with connected(service) as connection:
                for at in range(0, len(head), size):
                    connection.sendall(head[at : at + size])
                    time.sleep(0.001)
                assert status(rest(connection)) == b"431"
    with connected(service) as connection:
        connection.sendall(HALF + b"x" * 60_000 + b"\r\nConnection: close\r\n\r\n")
        assert status(rest(connection)) == b"200"


def test_what_the_server_refuses_is_a_problem_document_that_says_what_to_do(serve: MakeService, key: MakeKey) -> None:
    public_url = "https://forum.example"
    service = serve(connections=8, head_timeout=1, body_timeout=1, public_url=public_url, log_format="json", access_log=True)
    begun = f"POST /api{FORUMS} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key('*')}\r\nX-Request-Id: mine\r\n"
    half_body = f"{begun}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode()
    for sent, expected, message, advice in (
        (b"BREW /api/forums/forums HTTP/1.1\r\nHost: h\r\n\r\n", 400, "MALFORMED_REQUEST", "Send GET, HEAD, OPTIONS, POST,"),
        (HALF, 408, "REQUEST_TIMEOUT", "on a new connection."),
        (half_body, 408, "REQUEST_TIMEOUT", "on a new connection."),
        (HALF + b"x" * 70_000 + b"\r\n\r\n", 431, "HEAD_TOO_LARGE", "Send long values in the body"),
    ):
        with connected(service) as connection:
            connection.sendall(sent)
            problem, headers = read_problem(rest(connection))
        assert (problem["status"], problem["errorMessage"], problem["errorCode"]) == (expected, message, REFUSALS[message].code)
        assert advice in problem["detail"]
        assert problem["type"] == f"{public_url}/api/docs#{message}"
        assert headers["strict-transport-security"] == "max-age=31536000; includeSubDomains", "as in the application's answers"
        assert [headers[name.decode()].encode() for name, _ in (POLICY, NO_SNIFFING)] == [POLICY[1], NO_SNIFFING[1]]
        assert headers["x-request-id"] == problem["requestId"] == ("mine" if sent is half_body else problem["requestId"])
        wait_until(lambda number=problem["requestId"]: f'"request": "{number}"' in service.output)  # type: ignore[misc]
    with ExitStack() as open_ones:
        for _ in range(4):
            ask(open_ones.enter_context(connected(service, STRANGER)))
        with connected(service, STRANGER) as further:
            problem, headers = read_problem(rest(further))
    assert (problem["status"], problem["errorMessage"], headers["retry-after"]) == (503, "TOO_MANY_CONNECTIONS", "1")


def read_problem(answer: bytes) -> tuple[dict[str, Any], Message]:
    head, _, body = answer.partition(b"\r\n\r\n")
    headers = message_from_bytes(head.partition(b"\r\n")[2])
    assert (headers["content-type"], headers["connection"]) == ("application/problem+json", "close")
    assert int(headers["content-length"]) == len(body)
    return json.loads(body), headers


def test_what_comes_byte_by_byte_is_not_waited_for_any_longer(serve: MakeService, key: MakeKey, database: DatabaseState) -> None:
    service = serve(head_timeout=2, body_timeout=2)
    head = f"POST /api{FORUMS} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key('*')}\r\nContent-Type: application/json\r\n"
    for begun in (HALF, f'{head}Content-Length: 60000\r\n\r\n{{"name": "Half'.encode()):
        with connected(service) as connection, database.unchanged():
            connection.sendall(begun)
            connection.settimeout(0.05)
            answer, sent = b"", 0
            while not answer:
                assert sent < 2000, "still waited for"
                connection.sendall(b"x")
                sent += 1
                with suppress(TimeoutError):
                    answer = connection.recv(65_536)
            assert status(answer) == b"408"


@pytest.mark.slow
def test_a_body_may_take_its_time_as_long_as_it_comes(serve: MakeService, key: MakeKey, run: Run) -> None:
    service = serve(body_timeout=3)
    body = b'{"name": "Long"' + b" " * 400_000 + b"}"
    head = f"POST /api{FORUMS} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {key('*')}\r\nContent-Type: application/json\r\n"
    with connected(service) as connection:
        connection.sendall(f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        for at in range(0, len(body), 40_000):
            connection.sendall(body[at : at + 40_000])
            time.sleep(0.4)
        assert status(rest(connection)) == b"201"


def test_a_body_that_comes_when_the_service_ends_keeps_it_from_nothing(serve: MakeService) -> None:
    service = serve()
    begun = b"POST /api/forums/forums HTTP/1.1\r\nHost: forum.example\r\nContent-Length: 10\r\n\r\n12345"
    with connected(service) as connection:
        connection.sendall(begun)
        answer = b""
        while not answer.endswith(b"}\n"):
            answer += connection.recv(65_536)
        assert status(answer) == b"401"
        service.process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(service.port))
        connection.sendall(b"12345")
        assert rest(connection) == b""
        assert service.process.wait(60) == 0
    assert "exceeded" not in service.output


def test_a_body_that_nobody_waits_for_any_more_ends_the_connection(serve: MakeService) -> None:
    service = serve(body_timeout=1)
    with connected(service) as connection:
        connection.sendall(f"POST /api{FORUMS} HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf".encode())
        answer = rest(connection)
    assert status(answer) == b"401"
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_silent_connection_is_closed(serve: MakeService) -> None:
    service = serve(head_timeout=1, idle_timeout=1)
    for sent in (b"", b"\r\n\r\n", WHOLE):
        with connected(service) as connection:
            connection.sendall(sent)
            assert rest(connection).count(b"HTTP/1.1 200 ") == (sent == WHOLE)


@pytest.mark.slow
def test_between_requests_a_connection_may_wait_longer_than_a_head(serve: MakeService) -> None:
    service = serve(head_timeout=1)
    with connected(service) as connection:
        for _ in range(2):
            ask(connection)
            time.sleep(2.5)
        connection.sendall(HALF)
        assert status(rest(connection)) == b"408"


def test_who_does_not_read_is_cut_off(serve: MakeService) -> None:
    service = serve(send_timeout=1)
    asked = b"GET /api/openapi.json HTTP/1.1\r\nHost: forum.example\r\n\r\n"
    with connected(service) as connection:
        connection.sendall(asked)
        size = len(connection.recv(65_536, socket.MSG_PEEK)) and int(
            connection.recv(4096, socket.MSG_PEEK).partition(b"content-length: ")[2].split(b"\r\n")[0]
        )
        wanted = 60_000_000 // size
        connection.sendall(asked * wanted)
        wait_until(lambda: not is_held(service, connection))
        assert len(rest(connection)) < size * wanted
    assert service.client.get(f"{service.address}/healthz").status_code == 200


def test_readers_who_do_not_read_hold_one_copy_of_what_they_asked_for(serve: MakeService, key: MakeKey, run: Run) -> None:
    for number in range(100):
        run("forums.create", name=f"Long {number}", description=f"{number:03d}" * 30_000)
    service, text = serve(send_timeout=30), key("*")
    size = len(service.call("GET", f"{FORUMS}?perPage=100", text).content)
    assert size > 9_000_000

    def memory() -> int:
        found = re.search(r"VmRSS:\s+([0-9]+) kB", Path(f"/proc/{service.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    asked = f"GET /api{FORUMS}?perPage=100 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {text}\r\n\r\n".encode()
    before = memory()
    with ExitStack() as open_ones:
        readers = [open_ones.enter_context(connected(service)) for _ in range(60)]
        for reader in readers:
            reader.sendall(asked)
        for reader in readers:
            assert status(reader.recv(4096, socket.MSG_PEEK)) == b"200"
        assert memory() - before < 10 * size, "not sixty times"
        whole = readers[0].recv(100)
        while not whole.endswith(b"}]}\n"):
            whole += readers[0].recv(1_000_000)
        assert len(whole) > size


def test_who_does_not_read_one_large_answer_is_cut_off_and_who_reads_slowly_is_not(
    serve: MakeService, key: MakeKey, run: Run
) -> None:
    for number in range(100):
        run("forums.create", name=f"Long {number}", description=f"{number:03d}" * 30_000)
    service, text = serve(send_timeout=2), key("*")
    asked = f"GET /api{FORUMS}?perPage=100 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {text}\r\nConnection: close\r\n\r\n"
    with socket.socket() as silent, socket.socket() as slow:
        for reader in (silent, slow):
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)  # so that the service notices what is read
            reader.settimeout(60)
            reader.connect(("127.0.0.1", service.port))
            reader.sendall(asked.encode())
        read = 0
        while is_held(service, silent):
            read += len(slow.recv(50_000))
            time.sleep(0.1)
        length = read + len(rest(slow))
        assert len(rest(silent)) < length
    assert length > 9_000_000, "the slow reader has got all of it"


# --- what strangers bring into the log ----------------------------------------------------------------------------


def test_a_forwarded_request_of_nobody_who_is_trusted_is_warned_of_once(serve: MakeService) -> None:
    service = serve(trusted_proxies=("127.0.0.2",))
    forwarded = WHOLE.replace(b"Host:", b"X-Forwarded-For: 198.51.100.7\r\nHost:")
    with connected(service, "127.0.0.2") as connection:
        connection.sendall(forwarded.replace(b"Host:", b"Connection: close\r\nHost:"))
        assert status(rest(connection)) == b"200"
    assert "X-Forwarded-For" not in service.output, "that is the proxy"
    for _ in range(3):
        with connected(service, STRANGER) as connection:
            connection.sendall(forwarded * 2)
            connection.sendall(WHOLE.replace(b"Host:", b"Connection: close\r\nHost:"))
            assert rest(connection).count(b"HTTP/1.1 200 ") == 3
    assert service.output.count("X-Forwarded-For") == 1
    assert f"A request from {STRANGER} " in service.output
    assert "TRELLIS_TRUSTED_PROXIES" in service.output


def test_requests_that_cannot_be_read_do_not_fill_the_log(serve: MakeService) -> None:
    service = serve()
    for _ in range(50):
        with connected(service) as connection:
            connection.sendall(b"\x16\x03\x01 nonsense\r\n\r\n")
            assert status(rest(connection)) == b"400"
    assert service.output.count("Invalid HTTP request") == 1


@pytest.mark.usefixtures("engine")
def test_a_warning_is_repeated_after_a_minute_with_how_often_it_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("trellis.cli.limits.once_per_minute.time.monotonic", lambda: now)
    once = OncePerMinute()

    def say(message: str, level: int = logging.WARNING) -> str | None:
        record = logging.LogRecord("uvicorn.error", level, __file__, 1, message, (), None)
        return record.getMessage() if once.filter(record) else None

    assert [say("odd") for _ in range(3)] == ["odd", None, None]
    assert say("other") == "other"
    assert [say("broken", logging.ERROR) for _ in range(2)] == ["broken", "broken"]
    now = 60.0
    assert [say("odd"), say("odd")] == ["odd (2 more of these since the last one)", None]
    for number in range(1000):
        say(f"message {number}")
    assert len(once._said) <= 100  # nothing else tells of memory
