"""The metrics of several workers, while they are used, and when one of them is killed."""

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.api_fixtures import MakeService
from tests.fixture_types import MakeKey
from tests.service_process import Service
from tests.wait import wait_until

TOKEN = "a-long-text-that-nobody-guesses"  # of the tests
WRITES, READS = 20, 60
WORKER = re.compile(r"Worker (\d+) serves")


def read(service: Service) -> dict[tuple[str, str], float]:
    """Return the requests by operation and class of status, and the number of workers under ("workers", "")."""
    (address,) = re.findall(r"The metrics are at (\S+)\.", service.output)
    answer = service.client.get(address, headers={"Authorization": f"Bearer {TOKEN}", "Connection": "close"})
    assert answer.status_code == 200, answer.text
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            if sample.name == "trellis_requests_total":
                found[sample.labels["operation"], sample.labels["status"]] = sample.value
            elif sample.name == "trellis_workers":
                found["workers", ""] = sample.value
    return found


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"], indirect=True)
def test_counters_of_two_workers_add_up_to_what_was_sent_and_never_go_back(serve: MakeService, key: MakeKey) -> None:
    service = serve(options=("--workers", "2"), metrics_token=TOKEN, metrics_listen="127.0.0.1:0")
    assert service.client.get(f"{service.address}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 404
    headers = {"Authorization": f"Bearer {key('*')}", "Connection": "close"}  # each on a connection of its own, so that both serve

    def send(number: int) -> int:
        if number < WRITES:
            return service.client.post(
                f"{service.address}/api/forums/forums", json={"name": f"Garden {number}"}, headers=headers
            ).status_code
        return service.client.get(f"{service.address}/api/forums/forums", headers=headers).status_code

    wait_until(lambda: read(service).get(("workers", "")) == 2)
    with ThreadPoolExecutor(4) as callers:
        statuses = list(callers.map(send, range(WRITES + READS)))
    assert (statuses.count(201), statuses.count(200)) == (WRITES, READS)
    expected = {("forums.create", "2xx"): WRITES, ("forums.list", "2xx"): READS}

    def is_told(_number: int) -> bool:
        found = read(service)
        return {name: found.get(name) for name in expected} == expected

    with ThreadPoolExecutor(8) as callers:  # by both: each tells the other once a second what it has counted
        wait_until(lambda: all(callers.map(is_told, range(12))))

    os.kill(int(WORKER.findall(service.output)[0]), signal.SIGKILL)
    wait_until(lambda: len(WORKER.findall(service.output)) == 3)
    wait_until(lambda: read(service).get(("workers", "")) == 2)
    assert {name: read(service).get(name) for name in expected} == expected
