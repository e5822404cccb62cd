"""The process is killed amid batches, applied documents and undos of change sets: each was done wholly or not at all."""

import os
import threading
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import httpx
import pytest

from tests.api_fixtures import MakeService
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.processes.test_crash import all_events
from tests.service_process import Service
from tests.wait import wait_until

TIMES: Final = int(os.environ.get("TRELLIS_CRASHES", "3"))
CLIENTS: Final = 3
CREATED: Final = 40
APPLIED: Final = 30  # calendars in a document
TOP: Final = {"$ref": "top.id"}
STEPS: Final = [
    {"operation": "forums.create", "as": "top", "body": {"name": "Top"}},
    *({"operation": "forums.create", "as": f"f{n}", "body": {"name": f"{n}", "parentId": TOP}} for n in range(CREATED)),
    *({"operation": "forums.update", "id": {"$ref": f"f{n}.id"}, "body": {"position": 0}} for n in (3, 5)),
    {"operation": "forums.delete", "id": {"$ref": "f7.id"}},
]


@dataclass
class Journal:
    """What was sent, by request id: how many events each is to leave, and which were acknowledged."""

    events: dict[str, int] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)


def work_until_it_dies(service: Service, key: str, name: str, journal: Journal) -> None:
    """Run batches one after another; undo two of three, and the undo of every other of these; then apply a document."""
    with httpx.Client(base_url=service.address, timeout=60, trust_env=False, headers={"Authorization": f"Bearer {key}"}) as client:

        def send(request: str, path: str, events: int, **body: Any) -> str | None:
            """Return the id of the change set that the request made; None if the service has died."""
            journal.events[request] = events
            try:
                answer = client.post(f"/api{path}", headers={"X-Request-Id": request}, **body)
            except httpx.TransportError:
                return None
            if answer.status_code != 200:
                journal.refused.append(answer.text)
                return None
            journal.acknowledged.add(request)
            return answer.headers["Change-Set-Id"]

        for number in count():
            made = send(f"{name}-{number}-batch", "/core/batch", len(STEPS), json={"operations": STEPS})
            if made is not None and number % 3:
                made = send(f"{name}-{number}-undo", f"/core/changesets/{made}/restore", len(STEPS))
                if made is not None and number % 2:
                    made = send(f"{name}-{number}-redo", f"/core/changesets/{made}/restore", len(STEPS))
            if made is not None:
                calendars = [{"externalId": f"{name}-{number}-{entry}", "name": "C"} for entry in range(APPLIED)]
                document = {"format": "trellis/1", "name": "site", "calendars": calendars}
                made = send(f"{name}-{number}-apply", "/core/structure/apply", APPLIED, json={"document": document})
            if made is None:
                return


@pytest.mark.slow
@pytest.mark.timeout(TIMES * 60 + 600)
def test_a_batch_an_apply_or_an_undo_is_done_wholly_or_not_at_all(
    serve: MakeService, key: MakeKey, run: Run, database: DatabaseState
) -> None:
    text = key("*", rateLimit=0)
    journal = Journal()
    for crash in range(TIMES):
        service = serve(busy_timeout=60)  # behind the batches of others
        before = len(journal.acknowledged)
        clients = [
            threading.Thread(target=work_until_it_dies, args=(service, text, f"{crash}-{client}", journal))
            for client in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        enough = before + 1 + crash % 7
        wait_until(lambda enough=enough: len(journal.acknowledged) >= enough or journal.refused)  # type: ignore[misc]
        service.kill()
        for client in clients:
            client.join()
        assert journal.refused == []
    log = all_events(database)
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    left = Counter(event["requestId"] for event in log if event["requestId"] is not None)
    assert {request: left[request] for request in journal.acknowledged} == {
        request: journal.events[request] for request in journal.acknowledged
    }
    assert {request: number for request, number in left.items() if number != journal.events[request]} == {}
    assert len(left) <= len(journal.acknowledged) + TIMES * CLIENTS, "at most one request of each client was under way"
    assert len(left) < len(journal.events), "some were killed before their commit"
    done = Counter(request.rpartition("-")[2] for request in left)
    kept = 1 + CREATED - 1
    assert run("forums.list")["totalResults"] == kept * (done["batch"] - done["undo"] + done["redo"])
    assert run("calendars.list")["totalResults"] == APPLIED * done["apply"]
    assert run("check.list")["problems"] == []
