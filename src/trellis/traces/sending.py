"""Spans made with the SDK of OpenTelemetry, and sent by OTLP over HTTP in a separate thread, so that nothing else waits for it."""

import logging
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import requests
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    format_span_id,
    format_trace_id,
    set_span_in_context,
)
from opentelemetry.trace import Span as OtelSpan

from trellis import __version__
from trellis.traces.spans import Facts

log = logging.getLogger(__name__)

_QUEUE: Final = 2048  # spans that may wait; beyond that the oldest are dropped
_BATCH: Final = 512
_PATIENCE: Final = 5.0  # seconds for sending a batch, including retries, unless OTEL_EXPORTER_OTLP_TIMEOUT sets another time
_LAST: Final = 2.0  # seconds for sending the remaining spans when the process ends
_TIMEOUTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_KINDS: Final[Mapping[str, SpanKind]] = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT, "internal": SpanKind.INTERNAL}
_ROOT: Final = Context()
_NOTHING: Final[Facts] = {}


class SentTraces:
    """The `Traces` of this process. By default they are sent to the endpoint that the variables of OpenTelemetry name."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        for package in ("opentelemetry", "urllib3"):  # they would log each attempt; `_Sender` logs what operators need
            logging.getLogger(package).setLevel(logging.CRITICAL)
        self._provider = TracerProvider(resource=_describe_process(), shutdown_on_exit=False)
        sender = _Sender(exporter or _make_exporter())
        self._provider.add_span_processor(
            BatchSpanProcessor(sender, max_queue_size=_QUEUE, max_export_batch_size=_BATCH)  # the interval is set by OTEL_BSP_…
        )
        self._tracer = self._provider.get_tracer("trellis", __version__)

    def begin(
        self, name: str, parent: str | None, facts: Facts = _NOTHING, kind: Literal["server", "client", "internal"] = "internal"
    ) -> "_Span":
        return _Span(self._tracer.start_span(name, _find_parent(parent), _KINDS[kind], _known(facts)))

    def record(self, name: str, parent: str | None, began: int, ended: int, facts: Facts = _NOTHING) -> None:
        self._tracer.start_span(name, _find_parent(parent), attributes=_known(facts), start_time=began).end(max(began, ended))

    def stop(self) -> None:
        # The SDK would wait for thirty. If the receiver hangs, the thread ends with the process.
        last = threading.Thread(target=self._provider.shutdown, name="trellis-traces", daemon=True)
        last.start()
        last.join(_LAST)


class _Span:
    def __init__(self, span: OtelSpan) -> None:
        self._span = span
        of = span.get_span_context()
        self.traceparent = f"00-{format_trace_id(of.trace_id)}-{format_span_id(of.span_id)}-{of.trace_flags:02x}"

    def end(self, error: str | None = None, facts: Facts = _NOTHING, name: str | None = None) -> None:
        if name is not None:
            self._span.update_name(name)
        self._span.set_attributes(_known(facts))
        if error is not None:
            self._span.set_status(Status(StatusCode.ERROR, error))
        self._span.end()


def _known(facts: Facts) -> dict[str, str | int | bool]:
    return {name: value for name, value in facts.items() if value is not None}


def _find_parent(traceparent: str | None) -> Context:
    if traceparent is None:
        return _ROOT
    _, trace, span, flags = traceparent.split("-")
    context = SpanContext(int(trace, 16), int(span, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16) & 1))
    return set_span_in_context(NonRecordingSpan(context), _ROOT)


def _describe_process() -> Resource:
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    facts: dict[str, str | int] = {"service.version": __version__, "process.pid": os.getpid()}
    return Resource.create(facts if named else facts | {SERVICE_NAME: "trellis"})


def _make_exporter() -> SpanExporter:
    is_told = any(os.environ.get(name) for name in _TIMEOUTS)
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _LimitedAdapter())
    session.stream = True  # only the status counts: the body is not read, which may have no end
    session.hooks["response"].append(_end_response)
    return OTLPSpanExporter(timeout=None if is_told else _PATIENCE, session=session)


def _end_response(response: requests.Response, **_: object) -> None:
    """Close a response. Raises RequestException for a redirect: it is not followed, and the exporter would take it for success."""
    if response.headers.get("content-length") == "0":  # as usual: then the connection can be used again
        response.raw.release_conn()
    response.close()
    if 300 <= response.status_code < 400:
        raise requests.RequestException("a redirect")


class _LimitedConnection:
    """Cuts a connection on which the head of a response is not complete in time. The usual limit begins again with each byte."""

    sock: Any
    timeout: Any

    def getresponse(self) -> Any:
        cut = threading.Event()
        timer = threading.Timer(self.timeout, self._cut, (self.sock, cut))
        timer.daemon = True
        timer.start()
        try:
            response = super().getresponse()  # type: ignore[misc]  # that of the connection's class
        finally:
            timer.cancel()
        if cut.is_set():  # what was read until then would count as the head
            response.close()
            raise TimeoutError
        return response

    @staticmethod
    def _cut(connection: socket.socket, cut: threading.Event) -> None:
        cut.set()
        with suppress(OSError):  # it has ended by itself
            socket.socket.shutdown(connection, socket.SHUT_RDWR)  # TLS's own would take from the reading thread what it uses


class _LimitedAdapter(requests.adapters.HTTPAdapter):
    """Opens connections that are cut, be they direct or by a proxy."""

    def get_connection_with_tls_context(self, *given: Any, **named: Any) -> Any:
        pool = super().get_connection_with_tls_context(*given, **named)
        if not issubclass(usual := pool.ConnectionCls, _LimitedConnection):
            pool.ConnectionCls = type("Limited", (_LimitedConnection, usual), {})
        return pool


class _Sender(SpanExporter):
    """Sends spans. Logs once when they cannot be sent, and once when they can again. The spans in between are lost."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            if not self._lost:
                log.warning("Traces cannot be sent to %s. Spans are left out until they can.", _find_endpoint())
            self._lost += len(spans)
        elif self._lost:
            log.warning("Traces are sent again. At least %d spans were left out.", self._lost)
            self._lost = 0
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _find_endpoint() -> str:
    """Return the scheme and host to which spans are sent, without a user and password."""
    told = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    parts = urlsplit(told)
    if "@" in parts.path + parts.query + parts.fragment:  # perhaps after a slash in the password, which then begins in the host
        return "the address in OTEL_EXPORTER_OTLP_ENDPOINT"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
