"""How long the event loop is held at a time, in processor time of its thread: the same whatever else the machine does."""

import asyncio
import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

_CHUNK: Final = 65_536  # bytes of a body that come at once, as from a server
Answer = tuple[int, bytes]


@dataclass
class LoopMeter:
    """While it is entered, measures every step of the event loops of this thread: the longest one, and all together, in seconds."""

    longest: float = 0.0
    total: float = 0.0
    _honest: Any = field(default=None, repr=False)

    def __enter__(self) -> Self:
        self._honest = honest = asyncio.Handle._run  # the one place that all steps pass

        def measured(handle: asyncio.Handle) -> None:
            start = time.thread_time()
            honest(handle)
            took = time.thread_time() - start
            self.longest = max(self.longest, took)
            self.total += took

        asyncio.Handle._run = measured  # type: ignore[assignment, method-assign]
        return self

    def __exit__(self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None) -> None:
        asyncio.Handle._run = self._honest  # type: ignore[method-assign]


async def send_request(application: Any, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> Answer:
    """Send a request straight to an ASGI application, its body in chunks; return status and body."""
    address, _, query = path.partition("?")
    scope: dict[str, Any] = {"type": "http", "http_version": "1.1", "method": method, "scheme": "http", "root_path": ""}
    scope |= {"client": ("198.51.100.7", 1), "path": address, "raw_path": address.encode(), "query_string": query.encode()}
    sent = {"host": "api.example", "content-length": str(len(body))} | headers
    scope["headers"] = [(name.encode(), value.encode()) for name, value in sent.items()]
    chunks = [body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK)] or [b""]
    status, answer = 0, bytearray()

    async def receive() -> MutableMapping[str, Any]:
        await asyncio.sleep(0)
        chunk = chunks.pop(0) if chunks else b""
        return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        answer.extend(message.get("body", b""))

    await application(scope, receive, send)
    return status, bytes(answer)
