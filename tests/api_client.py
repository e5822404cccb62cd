"""A client of the REST API in this process, straight through ASGI, and a check of what every refusal must look like."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from typing import Any, Final, NamedTuple

import httpx

from trellis.asgi import Application
from trellis.http.asgi import Receive, Scope, Send
from trellis.http.server import Whole
from trellis.refusals import REFUSALS

BASE_URL: Final = "http://api.example:8000"
OWN: Final = "the caller's own key"
CLIENT_ADDRESS: Final = "198.51.100.7"  # from where the caller calls (RFC 5737)

_MEMBERS: Final = frozenset(("type", "title", "status", "detail", "errorCode", "errorMessage", "requestId", "errors", "moreErrors"))

Json = dict[str, Any]
Sending = Coroutine[Any, Any, httpx.Response]


class _NoCookies(httpx.Cookies):
    """Keeps no cookies: the API sets none, and to look for one in each response takes a tenth of a request."""

    def extract_cookies(self, response: httpx.Response) -> None:
        pass


class ApiClient:
    """Calls a service in this process, and waits for the answer.

    Paths are those of the contract, behind /api. The key is the caller's own, which may do everything, unless a call names
    another one; None sends none.
    """

    def __init__(self, application: Application, key: str) -> None:
        self.application = application
        self.key = key
        self._runner = asyncio.Runner()
        self._clients: dict[str, httpx.AsyncClient] = {}

    async def sending(
        self,
        method: str,
        path: str,
        *,
        key: str | None = OWN,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        address: str = CLIENT_ADDRESS,
        prefix: str = "/api",
        **body: Any,
    ) -> httpx.Response:
        """Send one request, headers in UTF-8; `body` is httpx's json, data, files, content or params."""
        sent = list(headers.items() if isinstance(headers, Mapping) else headers)
        if key is not None:
            sent.append(("Authorization", f"Bearer {self.key if key is OWN else key}"))
        if (client := self._clients.get(address)) is None:
            transport = httpx.ASGITransport(self._serve, raise_app_exceptions=True, client=(address, 50_000))
            client = self._clients[address] = httpx.AsyncClient(transport=transport, base_url=BASE_URL)
            client._cookies = _NoCookies()
        return await client.request(
            method, f"{prefix}/{path.removeprefix('/')}", headers=[(name.encode(), text.encode()) for name, text in sent], **body
        )

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the server does: with the response that is in memory, or else by the application."""
        found = _look(self.application, scope)
        if not isinstance(found, Whole):
            await (found or self.application)(scope, receive, send)
            return
        whole = _read(found)
        await send({"type": "http.response.start", "status": whole.status, "headers": whole.headers})
        await send({"type": "http.response.body", "body": whole.body})

    def __call__(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self._runner.run(self.sending(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self("GET", path, **more)

    def post(self, path: str, json: Any = None, **more: Any) -> httpx.Response:
        return self("POST", path, **({} if json is None else {"json": json}), **more)

    def delete(self, path: str, **more: Any) -> httpx.Response:
        return self("DELETE", path, **more)

    def together(self, *requests: Sending) -> list[httpx.Response]:
        """Send several requests at once; give the answers in the order of the requests."""

        async def gathered() -> list[httpx.Response]:
            return list(await asyncio.gather(*requests))

        return self._runner.run(gathered())

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something else of the service in the same event loop."""
        return self._runner.run(work)

    def close(self) -> None:
        """End the service in this process."""
        self._runner.run(self.application.housekeeping.stop())
        self._runner.run(self.application.service.close())
        self._runner.close()


class InMemory(NamedTuple):
    """A response that the server would send without asking the application."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def find_in_memory(application: Application, scope: Scope) -> InMemory | None:
    """Ask for what the server asks for before it starts the application; in the event loop of this."""
    found = _look(application, scope)
    return _read(found) if isinstance(found, Whole) else None


def _look(application: Application, scope: Scope) -> Any:
    reads = application.hooks.reads
    reads.begin()
    return reads.find(scope)


def _read(whole: Whole) -> InMemory:
    lines = [line.split(b": ", 1) for line in whole.headers.split(b"\r\n")[:-1]]
    return InMemory(int(whole.status.split()[1]), [(name, value) for name, value in lines], whole.body)


async def chunks(*parts: bytes, told: list[int] | None = None) -> AsyncIterator[bytes]:
    """Return a body piece by piece, without saying how long it is; `told` learns of every piece that was asked for."""
    for part in parts:
        if told is not None:
            told.append(len(part))
        yield part


def read_refusal(answer: httpx.Response, status: int, message: str) -> Json:
    """Check that an answer is a refusal of the contract, and give its document."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    document: Json = answer.json()
    assert document["errorMessage"] == message, document
    row = REFUSALS[message]
    assert document["status"] == status == row.status
    assert document["title"] == row.title
    assert document.keys() - _MEMBERS <= {member.name for member in row.members}
    assert all(name in answer.headers for name in row.headers)
    assert "errors" not in document or row.at_fault
    assert "moreErrors" not in document or len(document["errors"]) == REFUSALS[document["errorMessage"]].most_faults
    assert document["type"].startswith("http")
    assert document["type"].endswith(f"/api/docs#{message}")
    assert document["detail"]
    assert document["errorCode"]
    assert document["requestId"] == answer.headers["x-request-id"]
    for fault in document.get("errors", ()):
        assert set(fault) >= {"field", "code", "message"}
        assert fault["code"] in REFUSALS
    return document


def read_field_errors(answer: httpx.Response, status: int = 400) -> dict[str, str]:
    """Return the fields at fault of a refused request, each with its code; the first one must give the refusal its own."""
    document = read_refusal(answer, status, answer.json()["errorMessage"])
    assert document["errors"][0]["code"] == document["errorMessage"]
    return {fault["field"]: fault["code"] for fault in document["errors"]}
