"""The ASGI application: the API, the endpoint for agents, the panel, and the background tasks of the process."""

import asyncio
import gc
import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trellis.admin import PREFIX as PANEL
from trellis.compose import compose
from trellis.core.gate import Gate
from trellis.core.networks import write_plain
from trellis.health import Health
from trellis.housekeeping import Housekeeping
from trellis.http.access_log import run_logged
from trellis.http.addresses import LONGEST_ADDRESS, rewrite_address
from trellis.http.api import Service
from trellis.http.asgi import ENDING, App, Receive, Scope, Send
from trellis.http.policy import NO_SNIFFING, POLICY
from trellis.http.routes import REFERENCE
from trellis.http.server import ServerHooks
from trellis.http.tracing import run_traced
from trellis.mcp.app import PREFIX as AGENTS
from trellis.mcp.app import Mcp
from trellis.metrics import PATH as METRICS
from trellis.metrics import Metrics
from trellis.rest.app import PREFIX, Rest
from trellis.rest.dialect import allows_key_in_url
from trellis.rest.immediate import Immediate
from trellis.rest.overload import Overload
from trellis.settings import Settings
from trellis.store.condition import Condition, explain_condition, find_condition
from trellis.traces import load_traces
from trellis.webhooks import Background

if TYPE_CHECKING:
    from trellis.admin.app import Panel
    from trellis.mail import Mailer

log = logging.getLogger(__name__)


class Application:
    """The whole service as one ASGI application."""

    def __init__(
        self,
        settings: Settings,
        gate: Gate | None = None,
        shared: Path | None = None,
        metrics_port: int | None = None,
        hooks: ServerHooks | None = None,
    ) -> None:
        self.gate = gate or compose(settings, traces=load_traces())
        self.traces = self.gate.environment.traces
        self.service = Service(self.gate, settings, allows_key_in_url)
        self.rest = Rest(self.service)
        self.hooks = hooks = hooks or ServerHooks()
        hooks.writes = Overload(self.service, PREFIX)
        if not settings.access_log and self.traces is None:  # both cover only what the application itself answers
            hooks.reads = Immediate(self.rest, PREFIX)
        self.mcp = Mcp(self.service)
        self.settings = settings
        self.metrics = Metrics(self.service, hooks.refused, lambda: self.health.is_ready, shared)
        self.housekeeping = Housekeeping(self.gate, settings, self.service.log)
        self._deliverers = _find_deliverers(self.gate, settings)
        self.health = Health(self.gate.store, settings)
        app: App = self._dispatch if settings.metrics_listen is None else partial(self._dispatch_by_port, metrics_port)
        app = partial(run_logged, app) if settings.access_log else app
        self._respond: App = app if self.traces is None else partial(run_traced, self.traces, app)
        self._always = (POLICY, NO_SNIFFING, *settings.transport_headers)
        self._panel: Panel | None = None
        self._panel_loading = asyncio.Lock()
        self._is_ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            rewrite_address(scope, PREFIX)
            if client := scope.get("client"):  # proxies pass on whatever they receive
                scope["client"] = (write_plain(client[0])[:LONGEST_ADDRESS], client[1])
            await self._respond(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        else:
            raise RuntimeError(f"Trellis does not support {scope['type']}.")

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the interface to which its path belongs."""
        path: str = scope["path"]
        malformed = "" if _has_one_host(scope) else "A request must have exactly one Host header."
        if path.startswith(PREFIX + "/") or path == PREFIX:
            await self.rest(scope, receive, send, malformed)
        elif path.rstrip("/") == AGENTS:
            await self.mcp(scope, receive, send, malformed)
        elif malformed:
            await self._plain(send, 400, f"{malformed}\n".encode())
        elif path.startswith(PANEL + "/") or path == PANEL:
            panel = self._panel or await self._load_panel()
            await panel(scope, receive, send)
        else:
            await self._elsewhere(path, scope, send)

    async def _dispatch_by_port(self, metrics_port: int | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the metrics only on their own port, and everything else only on the other one."""
        is_apart = metrics_port is not None and (scope.get("server") or ("", None))[1] == metrics_port
        if (scope["path"] == METRICS) == is_apart:
            await (self._elsewhere(METRICS, scope, send) if is_apart else self._dispatch(scope, receive, send))
        else:
            text = b"Here are only the metrics, at /metrics.\n" if is_apart else b"The metrics have a port of their own.\n"
            await self._plain(send, 404, text)

    async def _load_panel(self) -> "Panel":
        """Load the panel once, on its first request, and in a thread, since loading would block the event loop for too long."""
        async with self._panel_loading:
            if self._panel is None:
                self._panel = await asyncio.to_thread(self._make_panel)
                if self._is_ending:
                    self._panel.end()
            return self._panel

    def _make_panel(self) -> "Panel":
        from trellis.admin.app import Panel  # noqa: PLC0415  # start-up time: most workers only ever serve the API
        from trellis.admin.runner import Runner  # noqa: PLC0415  # the same

        runner = Runner(self.gate, self.settings, self.service.large, self.service.long_reads)
        return Panel(self.gate, self.settings, self.service.counts, runner)

    def _end(self) -> None:
        """End requests that wait and connections that stay open, since the process is about to end."""
        self._is_ending = True
        self.service.waiting.end()
        if self._panel is not None:
            self._panel.end()

    async def _elsewhere(self, path: str, scope: Scope, send: Send) -> None:
        if path == "/":
            root = urlsplit(self.settings.public_url or "").path  # the part of the path that a proxy has removed
            await self._plain(send, 307, b"", (b"location", f"{root}{REFERENCE}".encode()))
        elif (answer := await self.health.respond(path)) is not None:
            await self._plain(send, *answer)
        elif path == METRICS:
            status, body, kind = await self.metrics.respond(scope)
            await self._plain(send, status, body, kind=kind)
        else:
            await self._plain(
                send,
                404,
                b"There is nothing at this path. The API is at /api, its reference at /api/docs, the tools for agents at /mcp, "
                b"the panel at /admin.\n",
            )

    async def _plain(
        self, send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes], kind: str = "text/plain; charset=utf-8"
    ) -> None:
        """Respond with a short body, by default plain text."""
        length = (b"content-length", b"%d" % len(body))
        given = [(b"content-type", kind.encode()), length, (b"cache-control", b"no-store"), *self._always, *headers]
        await send({"type": "http.response.start", "status": status, "headers": given})
        await send({"type": "http.response.body", "body": body})

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.gate.store.listen()
                self.housekeeping.start()
                self.metrics.start()
                self.health.start()
                for deliverer in self._deliverers:
                    deliverer.start()
                scope.get("state", {})[ENDING] = (self._end,)
                await send({"type": "lifespan.startup.complete"})
            else:
                self._end()
                for deliverer in self._deliverers:
                    await asyncio.to_thread(deliverer.stop)
                await self.housekeeping.stop()
                await self.metrics.stop()
                await self.health.stop()
                await self.service.close()
                self.gate.store.close()
                if self.traces is not None:
                    await asyncio.to_thread(self.traces.stop)
                await send({"type": "lifespan.shutdown.complete"})
                return


def _find_deliverers(gate: Gate, settings: Settings) -> "list[Background | Mailer]":
    """Return what sends webhooks and mail in this process, each in a thread of its own."""
    if not settings.webhook_delivery:
        return []
    if settings.smtp_host is None:
        return [Background(gate)]
    from trellis.mail import Mailer, MailServer  # noqa: PLC0415  # start-up time: most services send no mail

    return [Background(gate), Mailer(gate, MailServer(settings))]


def _has_one_host(scope: Scope) -> bool:
    """Return whether a request has one Host header, or none in HTTP/1.0 (RFC 9112, 3.2). The server does not check this."""
    hosts = sum(name == b"host" for name, _ in scope["headers"])
    return hosts == 1 or (hosts == 0 and scope.get("http_version") != "1.1")


def create(
    settings: Settings | None = None,
    shared: Path | None = None,
    metrics_port: int | None = None,
    hooks: ServerHooks | None = None,
) -> Application:
    """Create the application, by default from the environment, for a server: `uvicorn --factory trellis.asgi:create`.

    `shared` is a folder in which the processes of one service share their metrics. If TRELLIS_METRICS_LISTEN is set, the metrics
    are served only on `metrics_port`. `hooks` are functions that the server calls outside of ASGI. Raises RuntimeError if the
    database cannot be used as it is.
    """
    settings = settings or Settings.load()
    if (condition := find_condition(settings)) is not Condition.READY:
        raise RuntimeError(explain_condition(settings, condition))
    application = Application(settings, shared=shared, metrics_port=metrics_port, hooks=hooks)
    # Everything loaded so far stays in memory, so a full garbage collection need not scan it each time. Scanning it paused the
    # process for 220 to 360 ms on two busy cores; without that, a collection takes 1 to 20 ms.
    gc.freeze()
    return application
