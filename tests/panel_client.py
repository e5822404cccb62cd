"""A client of the panel in this process and in this thread.

Starlette's hands each step of a request to a thread of its own and waits for it there, eight times for each page, which takes as
long as the page does.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Self
from urllib.parse import unquote

import httpx2
from starlette.testclient import TestClient

Message = MutableMapping[str, Any]
Application = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


class PanelClient(TestClient):
    """Sends requests as Starlette's client does, and runs the application in an event loop that runs while a request does."""

    def __init__(self, application: Application, base_url: str, *, client: tuple[str, int]) -> None:
        super().__init__(application, base_url, client=client)
        self._in_thread = _InThread(application, client)
        self._transport = self._in_thread

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _InThread(httpx2.BaseTransport):
    """Runs an application for each request, and gives its response when it is whole."""

    def __init__(self, application: Application, client: tuple[str, int]) -> None:
        self._application = application
        self._client = client
        self._runner = asyncio.Runner()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._runner.run(self._answer(request))

    def close(self) -> None:
        self._runner.close()

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        content = request.read()
        to_send: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]
        whole = asyncio.Event()
        started: list[Message] = []
        parts: list[bytes] = []

        async def receive() -> Message:
            if to_send:
                return to_send.pop()
            await whole.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                assert not started
                started.append(message)
            elif message["type"] == "http.response.body":
                assert started
                assert not whole.is_set()
                parts.append(bytes(message.get("body", b"")))
                if not message.get("more_body", False):
                    whole.set()

        await self._application(self._scope(request), receive, send)
        assert started, "The panel did not answer."
        (start,) = started
        body = b"" if request.method == "HEAD" else b"".join(parts)
        return httpx2.Response(start["status"], headers=start["headers"], stream=httpx2.ByteStream(body), request=request)

    def _scope(self, request: httpx2.Request) -> Message:
        url = request.url
        return {
            "type": "http",
            "http_version": "1.1",
            "method": request.method,
            "path": unquote(url.path),
            "raw_path": url.raw_path.partition(b"?")[0],
            "root_path": "",
            "scheme": url.scheme,
            "query_string": url.query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "client": self._client,
            "server": [url.host, url.port or {"http": 80, "https": 443}[url.scheme]],
            "extensions": {},
            "state": {},
        }
