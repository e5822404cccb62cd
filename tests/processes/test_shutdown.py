"""The end of the process: requests in flight are finished, and the log is written."""

import socket

from tests.api_fixtures import MakeService
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service, begin_post, refuses_connections
from tests.wait import wait_until


def test_a_request_in_flight_is_finished_before_the_process_ends(
    service: Service, key: MakeKey, run: Run, database: DatabaseState
) -> None:
    text, body = key("calendars.*"), b'{"name": "Just in time"}'
    assert (
        service.call("GET", "/calendar/calendar", text, {"X-Request-Id": "before"}).status_code == 200
    )  # leaves an idle connection
    with begin_post(service.port, "/api/calendar/calendar", text, body, 5) as connection:
        service.process.terminate()
        wait_until(lambda: refuses_connections(service.port))
        assert service.running, "it waits for the request"
        connection.sendall(body[5:])
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b'"name":"Just in time"' in answer
    assert service.process.wait(60) == 0
    assert [calendar["name"] for calendar in run("calendars.list")["results"]] == ["Just in time"]
    assert {row["request_id"]: row["status"] for row in database.requests()} == {"before": 200, "in-flight": 201}
    assert "Traceback" not in service.output


def test_a_request_whose_head_has_begun_is_answered_before_the_process_ends(service: Service, key: MakeKey) -> None:
    head = f"GET /api/core/hello HTTP/1.1\r\nHost: {service.address.removeprefix('http://')}\r\nAuthorization: Bearer {key([])}\r\n"
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(head.encode())
        assert service.client.get(f"{service.address}/healthz").status_code == 200  # by now the connection was accepted
        service.process.terminate()
        wait_until(lambda: refuses_connections(service.port))
        connection.sendall(b"\r\n")
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in answer.lower()
    assert service.process.wait(60) == 0


def test_an_idle_process_ends_and_writes_its_log_first(service: Service, key: MakeKey, run: Run, database: DatabaseState) -> None:
    text = key([], name="Used")
    for number in range(20):
        service.call("GET", "/core/hello", text, {"X-Request-Id": f"r-{number}"})
    assert service.terminate() == 0
    assert sorted(row["request_id"] for row in database.requests()) == sorted(f"r-{number}" for number in range(20))
    (used,) = [known for known in run("keys.list")["results"] if known["name"] == "Used"]
    assert used["lastUsedAt"] is not None
    assert "Traceback" not in service.output


def test_several_workers_end_together(serve: MakeService, key: MakeKey, database: DatabaseState) -> None:
    service = serve(options=("--workers", "2"))
    text = key("calendars.*")
    for number in range(10):
        made = service.client.post(
            f"{service.address}/api/calendar/calendar",
            json={"name": f"C {number}"},
            headers={"Authorization": f"Bearer {text}", "Connection": "close"},
        )
        assert made.status_code == 201
    assert service.terminate() == 0
    assert len(database.requests()) == 10
    assert refuses_connections(service.port)
