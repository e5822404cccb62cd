"""Requests that wait for events, over HTTP, with two processes on one database."""

import socket
from concurrent.futures import ThreadPoolExecutor

from tests.api_fixtures import MakeService
from tests.fixture_types import MakeKey
from tests.service_process import Service
from tests.wait import GIVE_UP


def _is_answering(service: Service, key: str) -> None:
    """Let a process take up what was sent to it before."""
    for _ in range(3):
        assert service.call("GET", "/core/hello", key).status_code == 200


def test_what_one_process_does_wakes_what_waits_in_another(serve: MakeService, key: MakeKey) -> None:
    here, there = serve(), serve()
    text = key("*", name="Everything")
    with ThreadPoolExecutor(1) as pool:
        for way in ((here, there), (there, here), (here, here)):
            waits, acts = way
            cursor = waits.call("GET", "/core/events?limit=1000", text).json()["next"]
            asked = pool.submit(waits.call, "GET", f"/core/events?wait=30&after={cursor}", text)
            _is_answering(acts, text)
            acts.call("POST", "/forums/forums", text, json={"name": "News"})
            answer = asked.result(GIVE_UP)
            assert [event["seq"] for event in answer.json()["results"]] == [cursor + 1]


def test_a_process_ends_without_waiting_for_those_who_wait(serve: MakeService, key: MakeKey) -> None:
    service, text = serve(), key("*", name="Everything")
    cursor = service.call("GET", "/core/events?limit=1000", text).json()["next"]
    head = f"GET /api/core/events?wait=30&after={cursor} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {text}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=GIVE_UP) as connection:
        connection.sendall(head.encode())
        _is_answering(service, text)
        assert service.terminate() == 0
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b'"results":[],"next":%d' % cursor in answer
    assert "Traceback" not in service.output
