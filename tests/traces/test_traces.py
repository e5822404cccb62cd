"""Traces: what of the header is taken, when there are none, and that nobody waits for who takes the spans."""

import logging
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import ClassVar

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tests.local_server import LocalServer, QuietHandler
from tests.wait import GIVE_UP, wait_until
from trellis.traces import find_traceparent, load_traces, log_fields
from trellis.traces.sending import SentTraces, _find_endpoint, _Sender

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("sent", "taken"),
    [
        (f"00-{TRACE}-{PARENT}-01", True),
        (f"cc-{TRACE}-{PARENT}-01-what-later-versions-add", True),
        (f"ff-{TRACE}-{PARENT}-01", False),
        (f"00-{'0' * 32}-{PARENT}-01", False),
        (f"00-{TRACE}-{'0' * 16}-01", False),
        (f"00-{TRACE.upper()}-{PARENT}-01", False),
        (f"00-{TRACE}-{PARENT}", False),
        (f"00-{TRACE}-{PARENT}-01\n", False),
        ("", False),
    ],
)
def test_a_traceparent_is_taken_if_it_is_valid(sent: str, *, taken: bool) -> None:
    found = find_traceparent([(b"traceparent", sent.encode())])
    assert found == (f"00-{TRACE}-{PARENT}-01" if taken else None)
    assert log_fields("r", found)["trace"] == (TRACE if taken else None)


@pytest.mark.parametrize("off", [{}, {**ENDPOINT, "OTEL_SDK_DISABLED": "true"}, {**ENDPOINT, "OTEL_TRACES_EXPORTER": "none"}])
def test_without_an_endpoint_or_switched_off_there_are_none(off: dict[str, str]) -> None:
    assert load_traces(off) is None


@pytest.mark.parametrize("address", ["collector.example:4317", "u:SECRET@collector.example"])
def test_an_endpoint_that_is_no_web_address_is_said(address: str, caplog: pytest.LogCaptureFixture) -> None:
    assert load_traces({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": address}) is None
    assert "There are no traces: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must begin with http:// or https://." in caplog.text
    assert "SECRET" not in caplog.text


def test_a_protocol_that_is_not_spoken_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert load_traces({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) is None
    assert "grpc is asked for" in caplog.text


def test_without_the_packages_it_is_said_how_to_get_them(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trellis.traces.sending", None)
    assert load_traces(ENDPOINT) is None
    assert "Install trellis-community[traces]." in caplog.text


@pytest.mark.parametrize("name", ["OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_BSP_SCHEDULE_DELAY"])
def test_a_value_that_cannot_be_used_is_said(name: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "-1")
    assert load_traces(ENDPOINT) is None
    assert "There are no traces: a variable of OpenTelemetry has a wrong value (" in caplog.text


class Endpoint(SpanExporter):
    """Takes spans once it is told to, with the results that it is given; then with success."""

    def __init__(self, *results: SpanExportResult) -> None:
        self.answers = threading.Event()
        self.taken: list[ReadableSpan] = []
        self._results: Iterator[SpanExportResult] = iter(results)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.answers.wait(GIVE_UP)
        self.taken += spans
        return next(self._results, SpanExportResult.SUCCESS)


def test_an_endpoint_that_hangs_takes_no_more_memory_than_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    endpoint = Endpoint()
    traces = SentTraces(endpoint)
    for _ in range(10_000):  # nobody answers meanwhile
        traces.begin("gate", None).end()
    last = traces.begin("the last", None)
    last.end()
    endpoint.answers.set()
    wait_until(lambda: any(span.name == "the last" for span in endpoint.taken))
    assert len(endpoint.taken) <= 2048 + 512
    traces.stop()


def test_that_spans_cannot_be_sent_is_said_once_and_that_they_can_again_once(caplog: pytest.LogCaptureFixture) -> None:
    endpoint = Endpoint(SpanExportResult.FAILURE, SpanExportResult.FAILURE, SpanExportResult.SUCCESS, SpanExportResult.SUCCESS)
    endpoint.answers.set()
    sender = _Sender(endpoint)
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            sender.export([ReadableSpan("gate")])
    assert [record.getMessage().partition(" to ")[0] for record in caplog.records] == [
        "Traces cannot be sent",
        "Traces are sent again. At least 2 spans were left out.",
    ]


class _Collector(QuietHandler):
    def do_POST(self) -> None:  # noqa: N802  # the standard library's name
        self.rfile.read(int(self.headers["content-length"]))
        collector: Collector = self.server.owner
        self.send_response(collector.status)
        for name, value in collector.headers.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            for _ in range(collector.size // 65_536):
                self.wfile.write(b"x" * 65_536)
                collector.sent += 65_536


class Collector(LocalServer):
    """A receiver of spans whose responses have this status, these headers, and so many bytes. `sent` is how many it could send."""

    handler: ClassVar[type[QuietHandler]] = _Collector

    def __init__(self, status: int, headers: dict[str, str], size: int) -> None:
        self.status, self.headers, self.size, self.sent = status, headers, size, 0


@pytest.mark.parametrize(
    ("status", "headers", "size", "taken"),
    [
        (200, {"content-length": "0"}, 0, True),
        (200, {"content-length": str(2**40)}, 2**27, True),  # it has no end
        (307, {"location": "http://127.0.0.1:1/", "content-length": "0"}, 0, False),
        (404, {"content-length": str(2**40)}, 2**27, False),
    ],
)
def test_of_what_an_endpoint_answers_only_the_status_counts(
    status: int,
    headers: dict[str, str],
    size: int,
    taken: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Collector(status, headers, size) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
        traces = SentTraces()
        for _ in range(2):
            traces.begin("gate", None).end()
            assert traces._provider.force_flush()
        traces.stop()
    assert ("Traces cannot be sent" in caplog.text) is not taken
    assert collector.sent <= size  # of twice as much: it was not read


class _Dripping(QuietHandler):
    def do_POST(self) -> None:  # noqa: N802  # the standard library's name
        self.rfile.read(int(self.headers["content-length"]))
        dripping: Dripping = self.server.owner
        dripping.count += 1
        if dripping.count > 1:
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        self.wfile.write(b"HTTP/1.1 200 OK\r\nx: ")
        try:
            while not dripping.over.wait(0.02):  # each byte is in time
                self.wfile.write(b"x")
        except OSError:
            dripping.is_cut.set()
        self.close_connection = True


class Dripping(LocalServer):
    """A receiver of spans whose first response has a header without an end, which arrives byte by byte."""

    handler: ClassVar[type[QuietHandler]] = _Dripping

    def __init__(self) -> None:
        self.count = 0
        self.is_cut, self.over = threading.Event(), threading.Event()


def test_an_endpoint_that_never_completes_its_headers_is_cut_and_later_spans_are_sent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Dripping() as endpoint:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{endpoint.port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        traces = SentTraces()
        traces.begin("gate", None).end()
        try:
            assert endpoint.is_cut.wait(GIVE_UP)
        finally:
            endpoint.over.set()
        wait_until(lambda: "Traces cannot be sent" in caplog.text)
        traces.begin("gate", None).end()
        wait_until(lambda: "Traces are sent again" in caplog.text)
        traces.stop()


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("https://u:p@SECRET@traces.example:4318/v1", "https://traces.example:4318"),
        ("https://u:SECRET/p@traces.example", "the address in OTEL_EXPORTER_OTLP_ENDPOINT"),
        ("https://u:SECRET#p@traces.example", "the address in OTEL_EXPORTER_OTLP_ENDPOINT"),
        ("", "://"),
    ],
)
def test_no_part_of_a_password_for_traces_is_shown(monkeypatch: pytest.MonkeyPatch, endpoint: str, shown: str) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    assert _find_endpoint() == shown
