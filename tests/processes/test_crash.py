"""The process is killed in the middle of writes: what was acknowledged is there afterwards, and everything is sound."""

import os
import threading
from typing import Final

import httpx
import pytest

from tests.api_fixtures import MakeService
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.processes.test_crash_batches import all_events
from tests.service_process import Service
from tests.wait import wait_until

TIMES: Final = int(os.environ.get("TRELLIS_CRASHES", "6"))
CLIENTS: Final = 4
CALENDARS: Final = "/calendar/calendar"


def write_until_it_dies(service: Service, key: str, name: str, acknowledged: list[tuple[str, int]]) -> None:
    """Create and rename calendars one after another, and remember what was acknowledged."""
    with httpx.Client(base_url=service.address, timeout=60, trust_env=False, headers={"Authorization": f"Bearer {key}"}) as client:
        number = 0
        while True:
            number += 1
            wanted = f"{name}-{number}"
            try:
                body = {"name": wanted} | ({"position": 0} if number % 5 == 0 else {})  # every fifth moves all others
                answer = client.post(f"/api{CALENDARS}", json=body, headers={"X-Request-Id": wanted})
            except httpx.TransportError:
                return
            if answer.status_code != 201:
                acknowledged.append((answer.text, -1))
                return
            acknowledged.append((wanted, answer.json()["id"]))


@pytest.mark.slow
@pytest.mark.timeout(TIMES * 60 + 600)
def test_what_was_acknowledged_survives_a_kill(serve: MakeService, key: MakeKey, run: Run, database: DatabaseState) -> None:
    text = key("*", rateLimit=0)
    acknowledged: list[tuple[str, int]] = []
    for crash in range(TIMES):
        service = serve()
        before = len(acknowledged)
        writing = [
            threading.Thread(target=write_until_it_dies, args=(service, text, f"crash-{crash}-{client}", acknowledged))
            for client in range(CLIENTS)
        ]
        for thread in writing:
            thread.start()
        enough = before + 5 + crash % 10 * 3
        wait_until(lambda enough=enough: len(acknowledged) >= enough)  # type: ignore[misc]  # of each turn its own
        service.kill()
        service.client.close()
        for thread in writing:
            thread.join()
    again, kept, page = serve(), dict[int, str](), 1
    while results := again.call("GET", f"{CALENDARS}?perPage=1000&page={page}", text).json()["results"]:
        kept |= {calendar["id"]: calendar["name"] for calendar in results}
        page += 1
    assert len(acknowledged) >= TIMES * 5
    assert {number: name for name, number in acknowledged}.items() <= kept.items()
    assert len(kept) <= len(acknowledged) + TIMES * CLIENTS, "at most one write of each client was under way"
    assert run("check.list")["problems"] == []
    logged = [event["requestId"] for event in all_events(database) if event["operation"] == "calendars.create"]
    assert sorted(logged) == sorted(kept.values()), "what is there is in the log, and what is in the log is there"
