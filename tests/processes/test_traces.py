"""Traces of a service with two workers, as a collector takes them: who is whose child, and that nothing waits for a collector."""

import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.api_fixtures import MakeService
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until
from tests.webhook_receiver import Receiver

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SENT = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
FORUMS = "/forums/forums"


@dataclass(frozen=True)
class Told:
    """A span, as the collector was told of it."""

    process: int
    trace: str
    id: str
    parent: str
    name: str
    failed: bool
    facts: Mapping[str, str | int]


class Collector(Receiver):
    """Takes spans by OTLP over HTTP."""

    @property
    def spans(self) -> list[Told]:
        """All spans so far."""
        return list(self._read())

    def _read(self) -> Iterator[Told]:
        for received in tuple(self.received):
            assert received.path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(received.body).resource_spans:
                of = {one.key: one.value for one in resource.resource.attributes}
                assert of["service.name"].string_value == "trellis"
                for span in (span for scope in resource.scope_spans for span in scope.spans):
                    facts = {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
                    ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                    yield Told(of["process.pid"].int_value, *ids, span.name, span.status.code == 2, facts)

    def find(self, name: str, **about: str) -> list[Told]:
        """Return the spans with a name, and with an id, a trace or a parent."""
        return [span for span in self.spans if span.name == name and all(getattr(span, n) == v for n, v in about.items())]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector to which services that are started send their spans."""
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        yield collector


def names(collector: Collector, parent: str) -> list[str]:
    return sorted(span.name for span in collector.spans if span.parent == parent)


def test_two_workers_tell_of_requests_and_what_they_lead_to_and_no_secret(
    serve: MakeService, key: MakeKey, collector: Collector
) -> None:
    text = key(["*", "webhooks.*"])
    with Receiver() as hook:
        service = serve(options=("--workers", "2"), webhook_allow=("127.0.0.1",), access_log=True, log_format="json")
        made = service.call("POST", "/core/webhooks", text, json={"url": hook.url, "events": ["forum.created"]}).json()
        created = service.call("POST", FORUMS, text, SENT, json={"name": "Garden", "password": "a-secret-word"})
        (event,) = service.call("GET", f"/core/events?after={int(created.headers['Event']) - 1}", text).json()["results"]
        assert service.call("GET", f"{FORUMS}/999?key={text}", text, SENT).status_code == 403
        assert service.call("GET", f"{FORUMS}/{text}", text).status_code == 404
        assert service.client.get(f"{service.address}/admin/sign-in?next={text}").status_code == 200
        wait_until(lambda: hook.received)
        (message,) = hook.received

    wait_until(lambda: collector.find("webhook delivery") and collector.find("GET /admin/sign-in"))
    wait_until(lambda: collector.find("forums.create") and collector.find("commit", trace=TRACE) and collector.find("forums.get"))
    (request,) = collector.find("forums.create")
    (gate,) = collector.find("gate", parent=request.id)
    assert (request.trace, request.parent, request.failed) == (TRACE, PARENT, False)
    assert (request.facts["trellis.operation"], request.facts["trellis.key"]) == ("forums.create", 1)
    assert (request.facts["http.response.status_code"], request.facts["trellis.request"]) == (201, created.headers["X-Request-Id"])
    wait_until(lambda: names(collector, gate.id) == ["commit", "transaction", "webhook delivery", "writer wait"])
    engine = "sqlite" if service.settings.database_url.startswith("sqlite") else "postgresql"
    assert collector.find("transaction", parent=gate.id)[0].facts["db.system.name"] == engine

    (sent,) = collector.find("webhook delivery")
    assert event["traceparent"] == f"00-{TRACE}-{gate.id}-01"
    assert (sent.trace, sent.parent, sent.facts["trellis.webhook"]) == (TRACE, gate.id, made["id"])
    assert message.headers["traceparent"] == f"00-{TRACE}-{sent.id}-01"
    of_status = {span.facts.get("http.response.status_code"): span.facts.get("trellis.refusal") for span in collector.spans}
    refused = {of_status[403], of_status[404]}
    assert refused == {"CANNOT_USE_KEY_AS_URL_PARAM", "INVALID_ID"}
    assert not any(span.failed for span in collector.spans)

    def ask(_number: int = 0) -> bool:
        with httpx.Client(trust_env=False) as client:  # a connection of its own, so that both workers serve
            client.get(f"{service.address}/livez").raise_for_status()
        return len({span.process for span in collector.spans}) == 2

    wait_until(ask)
    service.terminate()
    told = b"".join(received.body for received in collector.received)
    for secret in (text.rpartition("_")[2], made["secret"], made["secret"].removeprefix("whsec_"), "a-secret-word", "Garden"):
        assert secret.encode() not in told


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_stream_is_told_while_it_goes_on_and_a_request_that_waited_says_so(
    serve: MakeService, key: MakeKey, run: Run, collector: Collector
) -> None:
    run("admins.create", name="Mira Holm", login="mira", password="a quiet garden in november", mustChangePassword=False)
    service, text = serve(), key("*")
    newest = int(service.call("POST", FORUMS, text, json={"name": "Garden"}).headers["Event"])
    assert service.call("GET", f"/core/events?after={newest}&wait=1", text).json()["results"] == []
    wait_until(lambda: collector.find("events.list"))
    assert int(collector.find("events.list")[0].facts["trellis.waited"]) > 0
    with httpx.Client(base_url=service.address, trust_env=False) as browser:
        token = re.search(r'name="csrf" value="([0-9a-f]{64})"', browser.get("/admin/sign-in").text)
        assert token is not None
        browser.post("/admin/sign-in", data={"login": "mira", "password": "a quiet garden in november", "csrf": token[1]})
        with browser.stream("GET", "/admin/news", headers={"Accept": "text/event-stream"}) as stream:
            wait_until(lambda: collector.find("GET /admin/news"))
            service.call("POST", FORUMS, text, json={"name": "Betas"})
            assert any("events/forums" in line for line in stream.iter_lines()), "it goes on"
    assert service.terminate() == 0
    (told,) = collector.find("GET /admin/news")
    assert (told.facts["http.response.status_code"], told.failed) == (200, False)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_without_traces_the_callers_trace_is_passed_on_as_it_came(serve: MakeService, key: MakeKey) -> None:
    text = key(["*", "webhooks.*"])
    with Receiver() as hook:
        service = serve(webhook_allow=("127.0.0.1",))
        service.call("POST", "/core/webhooks", text, json={"url": hook.url, "events": ["forum.created"]})
        for headers in (SENT, {"traceparent": "00-made-up"}, {}):
            assert service.call("POST", FORUMS, text, headers, json={"name": "Garden"}).status_code == 201
        wait_until(lambda: len(hook.received) == 3)
    assert [received.headers.get("traceparent") for received in hook.received] == [SENT["traceparent"], None, None]
    events = service.call("GET", "/core/events?type=forum.created", text).json()["results"]
    assert [event["traceparent"] for event in events] == [SENT["traceparent"], None, None]


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """A collector that takes connections, and never answers; the connections so far."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as stack:

        def take() -> None:
            while True:
                try:
                    taken.append(stack.enter_context(listener.accept()[0]))
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://me:a-password@127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
        yield taken
        listener.shutdown(socket.SHUT_RDWR)


def lines(service: Service) -> list[str]:
    return [line for line in service.output.splitlines() if " Traces " in line or "raceback" in line]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_collector_that_never_answers_holds_up_neither_requests_nor_the_end_and_is_told_of_once(
    serve: MakeService, key: MakeKey, silent: list[socket.socket]
) -> None:
    text = key("*")
    service = serve()
    wait_until(lambda: silent)

    def create() -> bool:
        assert service.call("POST", FORUMS, text, json={"name": "Garden"}).status_code == 201
        return len(silent) > 2  # it goes on trying

    wait_until(create)
    assert len(lines(service)) == 1
    assert "Traces cannot be sent to http://127.0.0.1:" in lines(service)[0]
    assert service.terminate() == 0
    assert service.output.splitlines()[-1].endswith("Trellis has stopped.")
    assert len(lines(service)) == 1
    assert "a-password" not in service.output
