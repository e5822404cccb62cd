"""The endpoint /metrics: the check of who may read it, and its responses."""

import asyncio
import hmac
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Final

from trellis import __version__
from trellis.core.networks import is_address_allowed
from trellis.errors import Refused
from trellis.http.api import Service
from trellis.http.asgi import Scope
from trellis.http.reading import SharedRead
from trellis.http.server import ServerRefusal
from trellis.metrics.sample import Sample, sum_up, take_sample
from trellis.metrics.shared import SharedSamples
from trellis.store.figures import Figures, read_figures

PATH: Final = "/metrics"
_FRESH: Final = 1.0  # seconds for which figures from the database are used again
_PATIENCE: Final = 1.0  # seconds that a response waits for the database; after that it omits the figures
_TEXT: Final = "text/plain; charset=utf-8"


class Metrics:
    """The metrics of this process, or of all workers together if they share a folder."""

    def __init__(
        self,
        service: Service,
        refusals: Mapping[ServerRefusal, int],
        is_ready: Callable[[], bool],
        folder: Path | None = None,
    ) -> None:
        self._service = service
        self._refusals = refusals
        self._is_ready = is_ready
        self._settings = service.settings
        self._shared = SharedSamples(folder, self._take) if folder is not None and self._settings.has_metrics else None
        self._figures: tuple[float, Figures | None] = (-_FRESH, None)
        self._answering = asyncio.Lock()
        # Threads of their own, since reads from a database that hangs may hold all shared ones.
        self._reading = SharedRead("trellis-metrics", self._read_figures)
        self._encoding = ThreadPoolExecutor(1, "trellis-metrics-text")

    def start(self) -> None:
        """Start sharing the metrics with other workers, in the running event loop."""
        if self._shared is not None:
            self._shared.start()

    async def stop(self) -> None:
        """Stop sharing, and end the threads."""
        if self._shared is not None:
            await self._shared.stop()
        self._reading.close()
        self._encoding.shutdown(wait=False)

    async def respond(self, scope: Scope) -> tuple[int, bytes, str]:
        """Return the status, body and content type of the response to a request."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if (refusal := await self._judge(scope, headers)) is not None:
            return refusal
        if scope["method"] not in {"GET", "HEAD"}:
            return 405, b"Only GET reads the metrics.\n", _TEXT
        async with self._answering:  # one at a time, so that frequent scrapes hold up only each other
            figures = await self._find_figures()
            accepted = headers.get(b"accept", b"").decode("latin-1")
            body, kind = await asyncio.get_running_loop().run_in_executor(self._encoding, self._encode, figures, accepted)
        return 200, body, kind

    async def _judge(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, bytes, str] | None:
        """Return the status, body and content type that refuse a request; None if it may read the metrics."""
        if not self._settings.has_metrics:
            return 404, b"There are no metrics: TRELLIS_METRICS_TOKEN or TRELLIS_METRICS_ALLOW switches them on.\n", _TEXT
        address = scope["client"][0] if scope.get("client") else "-"
        if self._settings.metrics_allow and not is_address_allowed(address, self._settings.metrics_allow):
            return 403, b"This address is not in TRELLIS_METRICS_ALLOW.\n", _TEXT
        if (token := self._settings.metrics_token) is not None:
            try:
                await self._service.throttle.admit_address(address)
            except Refused:
                return 429, b"Too many requests without a good key from this address. Wait for a minute.\n", _TEXT
            scheme, _, sent = headers.get(b"authorization", b"").strip().partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(sent.strip(), token.encode()):
                await self._service.throttle.count_bad_key(address)
                return 401, b"Send Authorization: Bearer and the text of TRELLIS_METRICS_TOKEN.\n", _TEXT
        return None

    def _take(self) -> Sample:
        service = self._service
        if service.counts is None:
            return Sample()
        cache = service.responses.used
        return take_sample(service.gate, service.counts, self._refusals, cache, is_ready=self._is_ready())

    def _encode(self, figures: Figures | None, accepted: str) -> tuple[bytes, str]:
        from trellis.metrics.exposition import encode  # noqa: PLC0415  # start-up time: most services have no metrics

        shared = self._shared
        whole = sum_up([(self._take(), True)] if shared is None else [(shared.write(), True), *shared.read()])
        _add_figures(whole, figures, self._service.gate.now())
        whole.add("info", 1, __version__, self._service.gate.store.engine.dialect.name)
        return encode(whole, accepted)

    async def _find_figures(self) -> Figures | None:
        """Return figures from the database, at most a second old. None if it cannot be read, or does not answer within a second."""
        read_at, figures = self._figures
        if time.monotonic() - read_at < _FRESH:
            return figures
        try:
            async with asyncio.timeout(_PATIENCE):
                figures = await self._reading.run()
        except TimeoutError:
            figures = None
        except Exception as error:  # noqa: BLE001  # such as a missing table: the other metrics are right all the same
            self._service.gate.store.outage.record_failure(error)
            figures = None
        self._figures = (time.monotonic(), figures)
        return figures

    def _read_figures(self) -> Figures | None:
        try:
            with self._service.gate.store.reading() as tx:
                return read_figures(tx, self._service.gate.now())
        except Refused:
            return None


def _add_figures(whole: Sample, figures: Figures | None, now: str) -> None:
    whole.add("database_up", figures is not None)
    if figures is None:
        return
    whole.add("database_bytes", figures.size)
    whole.add("events", figures.newest_event)
    whole.add("proposals_open", figures.proposals)
    whole.add("mails_waiting", figures.mails)
    if figures.last_backup is not None:
        whole.add("last_backup_timestamp_seconds", figures.last_backup / 1000)
    for webhook in figures.webhooks:
        since = webhook.waiting_since
        lag = max(0.0, (datetime.fromisoformat(now) - datetime.fromisoformat(since)).total_seconds()) if since is not None else 0.0
        whole.add("webhook_lag_seconds", lag, str(webhook.id))
        whole.add("webhook_failures", webhook.failures, str(webhook.id))
