"""Prometheus itself reads two workers under load: its counters add up to what was sent."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.api_fixtures import MakeService
from tests.fixture_types import MakeKey
from tests.wait import GIVE_UP, wait_until

TOKEN = "a-long-text-that-nobody-guesses"  # of the tests
WRITES, READS, WRONG = 60, 540, 50

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None,
    reason="prometheus (Debian's package of that name, no Python package) is not on the PATH, and no check may need it",
)


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[Callable[[str], dict[str, float]]]:
    """Run Prometheus over one target, read ten times a second; give what asks it: the values by the labels that are left."""
    configuration = {
        "global": {"scrape_interval": "100ms", "scrape_timeout": "100ms"},
        "scrape_configs": [
            {"job_name": "trellis", "authorization": {"credentials": TOKEN}, "static_configs": [{"targets": [target]}]},
        ],
    }
    folder.mkdir()
    (folder / "prometheus.yml").write_text(json.dumps(configuration))  # JSON is YAML
    options = {"config.file": folder / "prometheus.yml", "storage.tsdb.path": folder / "data", "web.listen-address": "127.0.0.1:0"}
    with (folder / "log").open("wb") as log, httpx.Client(timeout=GIVE_UP, trust_env=False) as client:
        command = ["prometheus", *(f"--{name}={value}" for name, value in options.items())]
        process = subprocess.Popen(command, stdout=log, stderr=log, process_group=0)

        def is_ready() -> bool:
            told = (folder / "log").read_text()
            assert process.poll() is None, told
            if (found := re.search(r'"Listening on" address=(127\.0\.0\.1:\d+)', told)) is None:
                return False
            client.base_url = httpx.URL(f"http://{found[1]}")
            return client.get("/-/ready").status_code == 200

        def ask(expression: str) -> dict[str, float]:
            answer = client.get("/api/v1/query", params={"query": expression}).raise_for_status().json()
            return {" ".join(one["metric"].values()): float(one["value"][1]) for one in answer["data"]["result"]}

        try:
            wait_until(is_ready)
            yield ask
        finally:
            process.terminate()
            process.wait(GIVE_UP)


@pytest.mark.slow
@needs_prometheus
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_prometheus_counts_what_was_sent_to_two_workers(serve: MakeService, key: MakeKey, tmp_path: Path) -> None:
    service = serve(options=("--workers", "2"), metrics_token=TOKEN, metrics_listen="127.0.0.1:0")
    (target,) = re.findall(r"The metrics are at http://(\S+)/metrics\.", service.output)
    headers = {"Authorization": f"Bearer {key('*')}", "Connection": "close"}  # each on a connection of its own, so that both serve

    def send(number: int) -> int:
        path = f"{service.address}/api/forums/forums"
        if number < WRITES:
            return service.client.post(path, json={"name": f"Garden {number}"}, headers=headers).status_code
        return service.client.get(path if number < WRITES + READS else f"{path}/999999", headers=headers).status_code

    with prometheus(tmp_path / "prometheus", target) as ask:
        wait_until(lambda: ask("trellis_workers") and list(ask("sum(trellis_workers)").values()) == [2])
        with ThreadPoolExecutor(8) as callers:
            statuses = list(callers.map(send, range(WRITES + READS + WRONG)))
        assert [statuses.count(status) for status in (201, 200, 404)] == [WRITES, READS, WRONG]
        sent = {"forums.create 2xx": WRITES, "forums.list 2xx": READS, "forums.get 4xx": WRONG}
        wait_until(lambda: ask("sum by (operation, status) (trellis_requests_total)") == sent)
        assert ask("sum by (operation) (trellis_request_duration_seconds_count)") == {name[:-4]: n for name, n in sent.items()}
        assert ask("sum by (reason) (trellis_refusals_total)") == {"INVALID_ID": WRONG}
        assert ask("count by (job) (resets(trellis_requests_total[1m]) > 0)") == {}, "no counter has gone back"
    assert service.client.get(f"{service.address}/metrics").status_code == 404
    assert "Traceback" not in service.output
