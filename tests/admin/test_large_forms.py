"""Large forms are few at a time, and of a visitor's no more is kept than can be carried through signing in."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from starlette.requests import Request

from tests.admin.conftest import MakeVisitor, Visitor, page_text
from tests.api_fixtures import MakeService, serve
from tests.memory_meter import MemoryMeter
from tests.wait import GIVE_UP, wait_until
from trellis.admin.form_body import LargeForms
from trellis.errors import Refused
from trellis.settings import Settings

__all__ = ["serve"]

TYPE = "multipart/form-data; boundary=cut"
SIZE = 17_000_000
LOST = "too long to be kept"


@pytest.fixture
def database(settings: Settings) -> Iterator[Settings]:
    """The database of a service."""
    return iter((settings,))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_visitor_sends_few_large_forms_at_a_time(serve: MakeService) -> None:
    service = serve()
    visitor = service.client.get(f"{service.address}/admin/sign-in").cookies["trellis_visitor"]
    head = f"POST /admin/structure HTTP/1.1\r\nHost: localhost:{service.port}\r\nCookie: trellis_visitor={visitor}\r\n"
    head += f"Sec-Fetch-Site: same-origin\r\nContent-Type: {TYPE}\r\nContent-Length: {SIZE}\r\n\r\n--cut\r\n"
    with ExitStack() as stack:
        sending = [stack.enter_context(socket.create_connection(("127.0.0.1", service.port), GIVE_UP)) for _ in range(4)]
        for connection in sending:
            connection.sendall(head.encode())

        def ask() -> bytes:
            with socket.create_connection(("127.0.0.1", service.port), GIVE_UP) as another:
                another.sendall(head.encode())
                another.settimeout(0.5)
                try:
                    return another.recv(12)
                except TimeoutError:  # it waits for the rest of the form
                    return b""

        wait_until(lambda: ask() == b"HTTP/1.1 503")
        sending.pop().close()
        wait_until(lambda: ask() == b"")
    small = service.client.post(f"{service.address}/admin/sign-in", data={"login": "mira"})
    assert small.status_code < 500


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("size", "told"),
    [
        (1_000, "What you typed is kept"),
        (300_000, LOST),
        (3_000_000, LOST),
        (SIZE, LOST),
    ],
)
def test_of_what_a_visitor_sends_no_more_is_kept_than_can_be_carried(visitor: MakeVisitor, size: int, told: str) -> None:
    somebody: Visitor = visitor()
    somebody.get("/sign-in")
    body = b'--cut\r\nContent-Disposition: form-data; name="document"\r\n\r\n' + b"x" * size + b"\r\n--cut--\r\n"
    with MemoryMeter() as meter:
        page = somebody.client.post("/admin/structure", content=body, headers={"content-type": TYPE}, follow_redirects=False)
    assert page.status_code == 401
    assert told in page_text(page)
    assert meter.peak < 12 * 2**20


def test_each_administrator_sends_few_at_a_time_and_takes_no_place_of_a_visitor() -> None:
    forms = LargeForms()

    def send(admin: int | None, address: str = "192.0.2.1", size: int = SIZE) -> Request:
        headers = [(b"content-length", str(size).encode())]
        forms.hold(request := Request({"type": "http", "headers": headers, "client": (address, 1)}), admin)
        return request

    first, *_ = [send(7) for _ in range(4)]
    with pytest.raises(Refused, match="BUSY"):
        send(7)
    send(7, size=1_000)
    send(8)
    for number in range(32):
        send(None, f"198.51.100.{number}")
    with pytest.raises(Refused, match="BUSY"):
        send(None, "203.0.113.1")
    for _ in range(2):  # the second time, it is not counted any more
        forms.release(first.scope)
    send(7)
    with pytest.raises(Refused, match="BUSY"):
        send(7)
