"""A PostgreSQL that does not answer: nobody waits for it for ever, the log stays short, and all is well when it is back."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.api_client import read_refusal
from tests.api_fixtures import MakeService
from tests.community import Community
from tests.fixture_types import MakeKey
from tests.service_process import Service
from tests.stoppable_database import StoppableDatabase
from tests.wait import wait_until
from trellis.settings import Settings

pytestmark = pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
FORUMS = "/forums/forums"
SHORT: dict[str, Any] = {f"database_{what}_timeout": 1 for what in ("connect", "pool", "read", "write")} | {"busy_timeout": 1}


@pytest.fixture
def server(settings: Settings) -> Iterator[StoppableDatabase]:
    """The server of this test's database, which can be stopped."""
    with StoppableDatabase(settings.database_url) as server:
        yield server


def _health(service: Service) -> int:
    return service.client.get(f"{service.address}/healthz").status_code


@pytest.mark.slow
def test_reads_writes_and_health_are_refused_while_it_is_stopped_and_go_on_afterwards(
    serve: MakeService, server: StoppableDatabase, key: MakeKey, community: Community
) -> None:
    service = serve(database_url=server.url, **SHORT)
    text = key("*")
    assert service.call("GET", FORUMS, text).status_code == 200
    server.stop()
    for number in range(3):
        read_refusal(service.call("GET", f"{FORUMS}?page={number + 2}", text), 503, "BUSY")
        read_refusal(service.call("POST", FORUMS, text, json={"name": f"Too soon {number}"}), 503, "BUSY")
        assert _health(service) == 503
    server.go_on()
    wait_until(lambda: _health(service) == 200)
    wait_until(lambda: service.call("GET", FORUMS, text).status_code == 200)
    wait_until(lambda: service.call("POST", FORUMS, text, json={"name": "Now"}).status_code == 201)
    names = {forum["name"] for forum in service.call("GET", f"{FORUMS}?perPage=1000", text).json()["results"]}
    assert "Now" in names
    assert not any(name.startswith("Too soon") for name in names), "what was refused was not begun"


def test_health_is_told_while_reads_still_wait(serve: MakeService, server: StoppableDatabase, key: MakeKey) -> None:
    service = serve(database_url=server.url, database_read_timeout=3600, database_pool_timeout=600)
    text = key("*")
    assert service.call("GET", FORUMS, text).status_code == 200
    server.stop()
    answers: list[int] = []

    def read(page: int) -> None:
        answers.append(service.call("GET", f"{FORUMS}?page={page}", text).status_code)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(2, 32)]
    for thread in threads:
        thread.start()
    assert _health(service) == 503
    assert _health(service) == 503
    assert answers == []
    server.go_on()
    for thread in threads:
        thread.join(120)
    assert answers == [200] * len(threads)
    wait_until(lambda: _health(service) == 200)


@pytest.mark.slow
def test_an_outage_is_told_once_and_that_it_is_over_once(
    serve: MakeService, server: StoppableDatabase, key: MakeKey, run: Callable[..., object]
) -> None:
    service = serve(database_url=server.url, **SHORT)
    text = key("*")
    run("webhooks.create", url="https://hooks.example/", events=["*"])
    assert service.call("GET", FORUMS, text).status_code == 200
    server.stop()
    with ExitStack() as waiting:
        for number in range(40):
            thread = threading.Thread(target=service.call, args=("GET", f"{FORUMS}?page={number}", text))
            thread.start()
            waiting.callback(thread.join)
        assert [_health(service) for _ in range(3)] == [503] * 3
    for number in range(3):
        assert service.call("POST", FORUMS, text, json={"name": str(number)}).status_code == 503
    server.go_on()
    wait_until(lambda: "can be used again" in service.output)
    told = service.output[service.output.index("Base URL") :].splitlines()
    assert sum("could not be used" in line for line in told) == 1
    assert sum("can be used again" in line for line in told) == 1
    assert not any("Traceback" in line for line in told)
    log = [line for line in told if "WARNING" in line or "ERROR" in line]
    assert len(log) < 12, "\n".join(log)
