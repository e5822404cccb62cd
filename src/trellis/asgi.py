"""The web roof: the REST application beside the panel, and what starts and stops with the process."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trellis.admin import PREFIX as PANEL
from trellis.compose import compose
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.rest.app import PREFIX, Rest
from trellis.rest.request import Receive, Scope, Send
from trellis.settings import Settings
from trellis.store.steps import find_newest_step, find_step
from trellis.webhooks import Background

if TYPE_CHECKING:
    from trellis.admin.app import Panel

log = logging.getLogger(__name__)


class Application:
    """The whole service as one ASGI application."""

    def __init__(self, settings: Settings, gate: Gate | None = None) -> None:
        self.gate = gate or compose(settings)
        self.rest = Rest(self.gate, settings)
        self.settings = settings
        self.outgoing = Background(self.gate) if settings.webhook_delivery else None

    @cached_property
    def panel(self) -> "Panel":
        """The panel, loaded for its first visitor."""
        from trellis.admin.app import Panel  # noqa: PLC0415  # start-up time: most workers only ever serve the API

        return Panel(self.gate, self.settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path: str = scope["path"]
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            if len(hosts) > 1 or (not hosts and scope.get("http_version") == "1.1"):  # RFC 9112, 3.2; the server lets it pass
                await _plain(send, 400, b"A request names its host once, in the header Host.\n")
                return
            if path.startswith(PREFIX + "/") or path == PREFIX:
                await self.rest(scope, receive, send)
            elif path.startswith(PANEL + "/") or path == PANEL:
                if "panel" not in self.__dict__:
                    await asyncio.to_thread(lambda: self.panel)  # loading it takes long
                await self.panel(scope, receive, send)
            else:
                await self._elsewhere(path, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            raise RuntimeError(f"Trellis does not speak {scope['type']}.")

    async def _elsewhere(self, path: str, send: Send) -> None:
        if path == "/":
            await _plain(send, 307, b"", (b"location", f"{PREFIX}/docs".encode()))
        elif path == "/healthz":
            await self._health(send)
        else:
            await _plain(
                send, 404, b"There is nothing here. The API is under /api, its reference at /api/docs, the panel under /admin.\n"
            )

    async def _health(self, send: Send) -> None:
        """Say whether this process can read its database: for a balancer or a supervisor."""
        try:
            if self.gate.store.reads_inline:
                self._look()
            else:
                await asyncio.to_thread(self._look)
        except Refused:
            await _plain(send, 503, b"the database cannot be read\n")
        else:
            await _plain(send, 200, b"ok\n")

    def _look(self) -> None:
        with self.gate.store.reading():
            pass

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.gate.store.listen()
                self.rest.books.start()
                if self.outgoing is not None:
                    self.outgoing.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                if self.outgoing is not None:
                    await asyncio.to_thread(self.outgoing.stop)
                await self.rest.books.stop()
                await self.rest.throttle.close()
                self.gate.store.close()
                await send({"type": "lifespan.shutdown.complete"})
                return


async def _plain(
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]], status: int, body: bytes, *headers: tuple[bytes, bytes]
) -> None:
    length = (b"content-length", str(len(body)).encode())
    kind = (b"content-type", b"text/plain; charset=utf-8")
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [kind, length, (b"cache-control", b"no-store"), *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})


def create() -> Application:
    """Make the application from the environment, for a server such as uvicorn: `uvicorn --factory trellis.asgi:create`."""
    settings = Settings.load()
    if (at := find_step(settings)) != find_newest_step():
        newest = find_newest_step()
        raise RuntimeError(f"The database is at step {at or 'none'}, and this release needs {newest}. Run: trellis migrate")
    roof = Application(settings)
    # What has been loaded and made stays for good, and a full collection need not walk through it each time: it stopped everything
    # for 220 to 360 ms on two busy cores, and now for 1 to 20. Higher thresholds made no difference that could be measured.
    gc.collect()
    gc.freeze()
    return roof
