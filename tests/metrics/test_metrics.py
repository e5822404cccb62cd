"""What a monitoring system reads at /metrics, and who may."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import orjson
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from tests.api_client import CLIENT_ADDRESS, ApiClient
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.fixture_types import Clock, MakeKey
from tests.wait import GIVE_UP, wait_in_loop_until
from trellis.asgi import Application
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.metrics.sample import Sample, sum_up
from trellis.metrics.shared import SharedSamples
from trellis.metrics.table import METRICS, PREFIX
from trellis.settings import Settings
from trellis.store import last_runs
from trellis.store.engine import Transaction
from trellis.store.figures import Figures, read_figures

TOKEN = "a-long-text-that-nobody-guesses"  # of the tests
Labels = tuple[tuple[str, str], ...]


def read(
    api: ApiClient, *, token: str | None = TOKEN, address: str = CLIENT_ADDRESS, accept: str = "*/*", scheme: str = "Bearer"
) -> httpx.Response:
    """Read the metrics."""
    headers = {"Accept": accept} | ({} if token is None else {"Authorization": f"{scheme} {token}"})
    transport = httpx.ASGITransport(api.application, client=(address, 50_000))

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://trellis.example") as client:
            return await client.get("/metrics", headers=headers)

    answer = api.do(ask())
    assert isinstance(answer, httpx.Response)
    return answer


def parse(text: str) -> dict[str, dict[Labels, float]]:
    """Return the values by name of the sample and labels."""
    found: dict[str, dict[Labels, float]] = {}
    for metric in text_string_to_metric_families(text):
        for sample in metric.samples:
            found.setdefault(sample.name.removeprefix(PREFIX), {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def labelled(**labels: str) -> Labels:
    return tuple(sorted(labels.items()))


# --- who may ------------------------------------------------------------------------------------------------------


@pytest.mark.either_engine
def test_without_a_setting_there_are_none(api: ApiClient) -> None:
    answer = read(api)
    assert answer.status_code == 404
    assert "TRELLIS_METRICS_TOKEN" in answer.text
    assert api.application.service.counts is None


@pytest.mark.either_engine
@pytest.mark.parametrize("token", [None, "", "nope", TOKEN[:-1], TOKEN + "x", TOKEN.upper()])
def test_only_the_token_reads_them(make_api: MakeApiClient, token: str | None) -> None:
    api = make_api(metrics_token=TOKEN)
    refused = read(api, token=token)
    assert refused.status_code == 401
    assert TOKEN not in refused.text
    assert read(api).status_code == 200


@pytest.mark.either_engine
@pytest.mark.parametrize(("scheme", "status"), [("bearer", 200), ("BEARER ", 200), ("Basic", 401), ("Bearer Bearer", 401)])
def test_the_scheme_of_the_token_is_read_as_for_keys(make_api: MakeApiClient, scheme: str, status: int) -> None:
    assert read(make_api(metrics_token=TOKEN), scheme=scheme).status_code == status


@pytest.mark.either_engine
def test_an_address_outside_the_list_reads_nothing_with_the_right_token_either(make_api: MakeApiClient) -> None:
    api = make_api(metrics_token=TOKEN, metrics_allow=("192.0.2.0/24",))
    assert read(api, address="198.51.100.1").status_code == 403
    assert read(api, address="192.0.2.7", token="nope").status_code == 401
    assert read(api, address="192.0.2.7").status_code == 200
    assert read(make_api(metrics_allow=("192.0.2.0/24",)), address="192.0.2.7", token=None).status_code == 200


@pytest.mark.either_engine
def test_guesses_slow_an_address_down_like_bad_keys(make_api: MakeApiClient) -> None:
    api = make_api(metrics_token=TOKEN, bad_key_limit=3)
    assert [read(api, token=f"guess {number}").status_code for number in range(5)] == [401, 401, 401, 429, 429]
    assert read(api).status_code == 429
    assert read(api, address="192.0.2.9").status_code == 200


@pytest.mark.either_engine
def test_only_get_reads_them(make_api: MakeApiClient) -> None:
    api = make_api(metrics_token=TOKEN)
    headers = [(b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"type": "http", "method": "POST", "headers": headers, "client": ("192.0.2.1", 1)}
    assert api.do(api.application.metrics.respond(scope))[0] == 405


# --- what they say ------------------------------------------------------------------------------------------------


@pytest.fixture
def watched(make_api: MakeApiClient) -> ApiClient:
    return make_api(metrics_token=TOKEN)


def test_requests_refusals_and_the_cache_add_up(watched: ApiClient, community: Community, key: MakeKey) -> None:
    poor = key(name="Poor")
    for _ in range(3):
        watched.get(f"/forums/forums/{community.news}")
    watched.get("/forums/forums/999999")
    watched.post("/forums/forums", {"name": "Garden"})
    watched.get("/forums/forums", key=poor)
    watched.get("/forums/forums", key="trl_nonsense")

    found = parse(read(watched).text)
    counted = found["requests_total"]
    assert counted[labelled(interface="api", operation="forums.get", status="2xx")] == 3
    assert counted[labelled(interface="api", operation="forums.get", status="4xx")] == 1
    assert counted[labelled(interface="api", operation="forums.create", status="2xx")] == 1
    assert sum(counted.values()) == 7
    assert sum(found["request_duration_seconds_count"].values()) == 7
    assert found["cache_lookups_total"] == {labelled(result="hit"): 2, labelled(result="miss"): 2}
    refusals = {(dict(labels)["reason"], dict(labels)["key"] != "0"): times for labels, times in found["refusals_total"].items()}
    assert refusals == {("INVALID_ID", True): 1, ("NO_PERMISSION", True): 1, ("INVALID_API_KEY", False): 1}


@pytest.mark.either_engine
def test_durations_are_counted_in_the_classes_that_they_are_below(watched: ApiClient) -> None:
    for duration in (999, 1000, 1001, 9_999_999, 60_000_000):  # microseconds
        watched.application.service.counts.count("api", "forums.get", 200, duration, None, 1)  # type: ignore[union-attr]
    found = parse(read(watched).text)
    classes = {dict(labels)["le"]: times for labels, times in found["request_duration_seconds_bucket"].items()}
    assert (classes["0.001"], classes["0.0025"], classes["2.5"], classes["10.0"], classes["+Inf"]) == (2, 3, 3, 4, 5)
    assert sum(found["request_duration_seconds_sum"].values()) == pytest.approx(70.002999)


def test_writes_and_the_database_are_told(watched: ApiClient, community: Community) -> None:
    before = parse(read(watched).text)
    for number in range(5):
        watched.post("/forums/forums", {"name": f"Garden {number}"})
    watched.post("/forums/forums", {"nmae": "refused"})
    watched.application.metrics._figures = (-10, None)  # as after a while
    after = parse(read(watched).text)
    assert after["events_total"][()] - before["events_total"][()] == 5
    assert after["writes_total"][()] - before["writes_total"][()] == 5
    assert after["commits_total"][()] > before["commits_total"][()]
    assert after["database_bytes"][()] > 10_000
    assert after["process_resident_bytes"][()] > 10_000_000
    assert (after["database_up"][()], after["workers"][()], after["writes_waiting"][()]) == (1, 1, 0)


def test_a_webhook_that_is_behind_is_told(watched: ApiClient, community: Community, clock: Clock) -> None:
    made = watched.post("/core/webhooks", {"url": "https://receiver.example/", "events": ["forum.created"]})
    assert made.status_code == 201, made.text
    (fresh,) = parse(read(watched).text)["webhook_lag_seconds"].values()
    assert fresh == 0
    watched.post("/forums/forums", {"name": "Garden"})
    clock.move(minutes=2)
    watched.application.metrics._figures = (-10, None)
    found = parse(read(watched).text)
    assert found["webhook_lag_seconds"][labelled(webhook="1")] == 120
    assert found["webhook_failures"][labelled(webhook="1")] == 0


def test_a_database_that_does_not_answer_is_not_waited_for(watched: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    def wait(tx: Transaction, now: str) -> Figures:
        answers.wait(GIVE_UP)
        return read_figures(tx, now)

    monkeypatch.setattr("trellis.metrics.app._PATIENCE", 0.05)
    monkeypatch.setattr("trellis.metrics.app.read_figures", wait)
    try:
        found = parse(read(watched).text)
        assert found["database_up"][()] == 0
        assert found["workers"][()] == 1
    finally:
        answers.set()


def test_reads_that_hang_do_not_hold_up_the_metrics(watched: ApiClient) -> None:
    answers = threading.Event()

    async def take_the_shared_thread() -> asyncio.Future[bool]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        return loop.run_in_executor(None, answers.wait, GIVE_UP)

    reading = watched.do(take_the_shared_thread())
    try:
        assert parse(read(watched).text)["workers"][()] == 1
        assert not reading.done()
    finally:
        answers.set()


def test_a_scrape_every_moment_reads_the_database_once(watched: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("trellis.metrics.app._FRESH", GIVE_UP)

    def count(tx: Transaction, now: str) -> Figures:
        asked.append(now)
        return read_figures(tx, now)

    monkeypatch.setattr("trellis.metrics.app.read_figures", count)
    watched.application.metrics._figures = (-2 * GIVE_UP, None)
    assert {parse(read(watched).text)["database_up"][()] for _ in range(20)} == {1}
    assert len(asked) == 1


@pytest.mark.either_engine
def test_pages_of_the_panel_are_counted_by_what_their_route_has_and_what_strangers_make_up_makes_no_label(
    watched: ApiClient,
) -> None:
    transport = httpx.ASGITransport(watched.application)

    async def ask() -> list[int]:
        async with httpx.AsyncClient(transport=transport, base_url="http://trellis.example") as client:
            paths = ("/admin/keys/7", "/admin/keys/8", "/admin/sign-in", *(f"/admin/made/up/{number}" for number in range(20)))
            return [(await client.get(path)).status_code for path in paths]

    assert watched.do(ask()) == [303, 303, 200, *[404] * 20]
    for number in range(20):
        watched(f"MADE{number}", f"/made/up/{number}", key=f"made-up-{number}")
        watched(f"MADE{number}", f"/forums/forums/{number}")
        called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": f"made_{number}", "arguments": {}}}
        watched("POST", "/mcp", prefix="", json=called)
    found = parse(read(watched).text)
    pages = {(dict(labels)["operation"], dict(labels)["status"]): times for labels, times in found["requests_total"].items()
             if dict(labels)["interface"] == "admin"}  # fmt: skip
    assert pages == {("/keys/{id}", "3xx"): 2, ("/sign-in", "2xx"): 1, ("", "4xx"): 20}
    assert {dict(labels)["operation"] for labels in found["requests_total"]} == {"", "/keys/{id}", "/sign-in"}
    assert {dict(labels)["key"] for labels in found["refusals_total"]} <= {"0", "1"}


def test_proposals_that_are_open_are_told(watched: ApiClient, key: MakeKey) -> None:
    watched.post("/forums/forums", {"name": "Garden"}, key=key("forums.create", bounds={"forums.create": {"level": "propose"}}))
    assert parse(read(watched).text)["proposals_open"][()] == 1


@pytest.mark.either_engine
def test_with_a_port_of_their_own_there_are_none_elsewhere(make_api: MakeApiClient) -> None:
    api = make_api(metrics_token=TOKEN, metrics_listen="127.0.0.1:9464")
    api.application._respond = partial(api.application._dispatch_by_port, 9464)
    transport = httpx.ASGITransport(api.application)

    async def ask(address: str) -> tuple[int, str]:
        async with httpx.AsyncClient(transport=transport) as client:
            answer = await client.get(address, headers={"Authorization": f"Bearer {TOKEN}"})
            return answer.status_code, answer.text

    def find(address: str) -> tuple[int, str]:
        found: tuple[int, str] = api.do(ask(address))
        return found

    assert find("http://trellis.example:9464/metrics")[0] == 200
    assert find("http://trellis.example:8000/metrics") == (404, "The metrics have a port of their own.\n")
    assert find("http://trellis.example:9464/livez") == (404, "Here are only the metrics, at /metrics.\n")
    assert find("http://trellis.example:8000/livez")[0] == 200


def test_a_database_that_is_away_leaves_the_rest(watched: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object, __: str) -> None:
        raise Refused("BUSY", "The database cannot be read.")

    monkeypatch.setattr("trellis.metrics.app.read_figures", fail)
    watched.get("/core/hello")
    found = parse(read(watched).text)
    assert found["database_up"][()] == 0
    assert "events_total" not in found
    assert sum(found["requests_total"].values()) == 1


def test_a_database_that_lacks_a_table_leaves_the_rest(watched: ApiClient) -> None:
    """Such as one that an operator restores while the service runs."""
    store = watched.application.gate.store
    store.write(lambda tx: tx.raw.execute("ALTER TABLE webhooks RENAME TO gone"), quiet=True).result()
    watched.application.metrics._figures = (-10, None)
    response = read(watched)
    store.write(lambda tx: tx.raw.execute("ALTER TABLE gone RENAME TO webhooks"), quiet=True).result()
    assert response.status_code == 200
    assert parse(response.text)["database_up"][()] == 0
    watched.application.metrics._figures = (-10, None)
    assert parse(read(watched).text)["database_up"][()] == 1


@pytest.mark.either_engine
def test_every_metric_is_told_in_both_formats(watched: ApiClient, community: Community) -> None:
    watched.get("/forums/forums/999999")
    watched.post("/core/webhooks", {"url": "https://receiver.example/", "events": ["forum.created"]})
    store = watched.application.gate.store
    store.write(lambda tx: last_runs.record(tx, last_runs.BACKUP, 1_700_000_000_000), quiet=True).result()
    plain, open_ = read(watched), read(watched, accept="application/openmetrics-text; version=1.0.0")
    assert plain.headers["content-type"].startswith("text/plain; version=")
    assert open_.headers["content-type"].startswith("application/openmetrics-text; version=")
    told = list(parse_openmetrics(open_.text))  # type: ignore[no-untyped-call]
    assert {metric.name: metric.type for metric in told} == {PREFIX + metric.name: metric.kind for metric in METRICS}
    assert [metric.name for metric in told if not metric.samples] == []


@pytest.mark.either_engine
@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=latest", "text/plain; version=1..0"])
def test_a_version_that_is_none_is_answered_in_the_usual_format(watched: ApiClient, accept: str) -> None:
    answer = read(watched, accept=accept)
    assert (answer.status_code, answer.headers["content-type"]) == (200, read(watched).headers["content-type"])


def test_no_secret_and_nothing_that_callers_make_up_stands_in_them(watched: ApiClient, key: MakeKey) -> None:
    secret = key("forums.list", name="Very private name")
    for path in (f"/forums/{secret}", f"/forums/forums?key={secret}", "/made/up"):
        watched.get(path, key=secret)
    text = read(watched).text
    for hidden in (secret, secret.partition("_")[2], TOKEN, "Very private", "made"):
        assert hidden not in text


# --- several workers ----------------------------------------------------------------------------------------------


def test_workers_are_summed_up_and_what_ended_ones_counted_stays(
    gate: Gate, settings: Settings, key: MakeKey, tmp_path: Path
) -> None:
    labels, classes = ("api", "core.hello", "2xx"), [1, *[0] * 12]

    def take() -> Sample:
        sample = Sample()
        sample.add("requests", 10, *labels)
        sample.add("workers", 1)
        sample.add("cache_bytes", 5000)
        sample.histograms["request_duration_seconds", labels[:2]] = (classes, 0.5)
        return sample

    api = ApiClient(Application(replace(settings, metrics_token=TOKEN), gate, tmp_path), key("*"))
    try:
        api.get("/core/hello")
        living, ended = SharedSamples(tmp_path, take), SharedSamples(tmp_path, take)  # with the same process id, as it happens
        living.write()
        asyncio.run(ended.stop())
        for _ in range(2):
            found = parse(read(api).text)
            assert found["requests_total"] == {labelled(interface="api", operation="core.hello", status="2xx"): 21}
            assert found["workers"][()] == 2
            assert found["cache_bytes"][()] == 5000
            assert sum(found["request_duration_seconds_count"].values()) == 3
            api.application.metrics._shared.write()  # type: ignore[union-attr]  # its own file is not counted again
        told = [orjson.loads(file.read_bytes())["numbers"] for file in tmp_path.glob("*.json")]
        assert sum(["requests", [*labels], 11] in numbers for numbers in told) == 1  # with those of the one that has ended
        asyncio.run(living.stop())
        assert parse(read(api).text)["workers"][()] == 1
    finally:
        asyncio.run(api.application.metrics.stop())
        api.close()


def test_workers_that_end_one_after_the_other_leave_one_file_with_what_they_have_counted(tmp_path: Path) -> None:
    def take() -> Sample:
        sample = Sample()
        sample.add("requests", 10, "api", "core.hello", "2xx")
        sample.add("workers", 1)
        sample.histograms["request_duration_seconds", ("api", "core.hello")] = ([1, *[0] * 12], 0.5)
        return sample

    for _ in range(5):
        asyncio.run(SharedSamples(tmp_path, take).stop())
    assert len(list(tmp_path.glob("*.json"))) == 1
    living = SharedSamples(tmp_path, take)
    assert living.write().numbers["workers", ()] == 1
    whole = sum_up(SharedSamples(tmp_path, Sample).read())
    assert (whole.numbers["requests", ("api", "core.hello", "2xx")], whole.numbers["workers", ()]) == (60, 1)
    assert whole.histograms["request_duration_seconds", ("api", "core.hello")] == ([6, *[0] * 12], 3.0)
    SharedSamples(tmp_path, take).write()  # which takes over nothing: the first one lives
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_what_a_worker_has_told_stays_in_the_sum_if_it_is_killed_right_after_that(
    gate: Gate, settings: Settings, key: MakeKey, tmp_path: Path
) -> None:
    api = ApiClient(Application(replace(settings, metrics_token=TOKEN), gate, tmp_path), key("*"))
    try:
        for told in (1, 2):
            api.get("/core/hello")
            name = labelled(interface="api", operation="core.hello", status="2xx")
            assert parse(read(api).text)["requests_total"] == {name: told}
            others = sum_up(SharedSamples(tmp_path, Sample).read())  # as another worker tells it, after no further write
            assert others.numbers["requests", ("api", "core.hello", "2xx")] == told
    finally:
        api.close()


def test_no_file_grows_so_old_that_the_system_deletes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.metrics.shared._TOUCH_EVERY", 0)
    living, ended = SharedSamples(tmp_path, Sample), SharedSamples(tmp_path, Sample)
    living.write()
    asyncio.run(ended.stop())
    for file in tmp_path.iterdir():
        os.utime(file, (0, 0))
    living.write()
    assert [file.suffix for file in tmp_path.iterdir() if file.stat().st_mtime > 0].count(".lock") == 2
    assert all(file.stat().st_mtime > 0 for file in tmp_path.iterdir())


def test_the_last_writing_waits_for_one_that_is_not_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on, written = threading.Event(), threading.Event(), list[str]()
    write_bytes = Path.write_bytes

    def write_slowly(path: Path, data: bytes) -> int:
        began.set()
        assert go_on.wait(GIVE_UP)
        written.append("whole")
        return write_bytes(path, data)

    def take() -> Sample:
        written.append("begun")
        return Sample()

    async def end_while_writing() -> None:
        shared = SharedSamples(tmp_path, take)
        shared.start()
        await asyncio.to_thread(began.wait, GIVE_UP)
        threading.Timer(0.2, go_on.set).start()
        await shared.stop()

    monkeypatch.setattr(Path, "write_bytes", write_slowly)
    asyncio.run(end_while_writing())

    assert written == ["begun", "whole"] * 2
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".lock"]


def test_a_sample_that_cannot_be_taken_does_not_end_the_sharing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken = iter([LookupError("no sample")])

    def take() -> Sample:
        if (error := next(taken, None)) is not None:
            raise error
        return Sample()

    async def share_until_written() -> None:
        shared = SharedSamples(tmp_path, take)
        shared.start()
        await wait_in_loop_until(lambda: list(tmp_path.glob("*.json")))
        await shared.stop()

    monkeypatch.setattr("trellis.metrics.shared._EVERY", 0.01)
    asyncio.run(share_until_written())
    assert caplog.text.count("could not be shared") == 1
