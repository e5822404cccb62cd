"""Two processes on one database: many clients change the same tree, and afterwards everything is as it should be."""

import os
import random
import threading
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final

import httpx
import pytest

from tests.api_fixtures import MakeService
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until

REQUESTS: Final = int(os.environ.get("TRELLIS_TEST_REQUESTS", "16"))  # of each client
CLIENTS: Final = 6
FORUMS: Final = "/forums/forums"


@dataclass
class Client:
    """One of many: writes at random through either process, and remembers which writes were acknowledged."""

    name: str
    services: tuple[Service, Service]
    key: str
    at_once: bool  # whether the other process knows at once; on PostgreSQL a notification has to come first
    acknowledged: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def live(self) -> None:
        """Create, move, read and delete."""
        with ExitStack() as opened:
            connections = [
                opened.enter_context(httpx.Client(base_url=service.address, timeout=60, trust_env=False))
                for service in self.services
            ]
            try:
                self._write(connections)
            except Exception as error:  # noqa: BLE001  # a thread cannot fail its test by itself
                self.wrong.append(repr(error))

    def _write(self, connections: list[httpx.Client]) -> None:
        dice = random.Random(self.name)  # noqa: S311  # which writes are met is to be repeated, not guessed
        for number in range(1, REQUESTS + 1):
            connection = connections[number % 2]
            request = f"{self.name}-{number}"
            method, path, body = self._wish(dice, connection, request)
            headers = {"Authorization": f"Bearer {self.key}", "X-Request-Id": request}
            answer = connection.request(method, f"/api{path}", headers=headers, json=body)
            self.statuses[answer.status_code] += 1
            if answer.status_code in {200, 201}:
                self.acknowledged.append(request)
                self._see_it_elsewhere(connections[(number + 1) % 2], headers, answer.json(), request)
            elif answer.status_code not in {400, 404}:
                self.wrong.append(f"{answer.status_code}: {answer.text}")

    def _wish(self, dice: random.Random, connection: httpx.Client, request: str) -> tuple[str, str, dict[str, Any]]:
        """Choose what to do next; each write makes a difference, if only by its name."""
        listed = connection.get(f"/api{FORUMS}?perPage=1000", headers={"Authorization": f"Bearer {self.key}"}).json()["results"]
        ids = [forum["id"] for forum in listed] or [1]
        one, other = dice.choice(ids), dice.choice([*ids, None])
        place: dict[str, Any] = dice.choice([{}, {"position": dice.randint(0, 9)}])
        choice = dice.random()
        if len(ids) < 30 or choice < 0.3:
            return "POST", FORUMS, {"name": request, "parentId": other} | place
        if choice < 0.8 and len(ids) < 200:
            return "POST", f"{FORUMS}/{one}", {"name": request, "parentId": other} | place
        return "DELETE", f"{FORUMS}/{one}", {"deleteChildrenOrMove": dice.choice([-1, other or ids[0]])}

    def _see_it_elsewhere(self, connection: httpx.Client, headers: dict[str, str], record: Any, request: str) -> None:
        """See that what one process has acknowledged is there in the other: as written, changed again since, or deleted since."""
        if record is None:
            return

        def seen() -> bool:
            found = connection.get(f"/api{FORUMS}/{record['id']}", headers=headers)
            return found.status_code != 200 or bool(found.json()["updatedAt"] >= record["updatedAt"])

        try:
            wait_until(seen, at_once=self.at_once)
        except AssertionError:
            self.wrong.append(f"{request} was acknowledged and not seen")


@pytest.mark.slow
@pytest.mark.timeout(REQUESTS * 10 + 600)
def test_many_clients_of_two_processes_leave_a_sound_tree_and_one_event_for_each_write(
    serve: MakeService, community: Community, key: MakeKey, run: Run, database: DatabaseState, engine: str
) -> None:
    text = key("*", rateLimit=0)
    services = (serve(), serve())
    before = len(database.events())
    clients = [Client(f"client-{number}", services, text, engine == "sqlite") for number in range(CLIENTS)]
    living = [threading.Thread(target=client.live) for client in clients]
    for thread in living:
        thread.start()
    for thread in living:
        thread.join()
    for service in services:
        assert service.terminate() == 0
    assert [wrong for client in clients for wrong in client.wrong] == []
    statuses = sum((client.statuses for client in clients), Counter())
    assert statuses[200] > 20
    assert statuses[201] > 20
    assert run("check.list")["problems"] == []
    assert_dense(run)
    acknowledged = sorted(request for client in clients for request in client.acknowledged)
    events = all_events(database)[before:]
    assert sorted(event["requestId"] for event in events) == acknowledged, (
        "every 2xx stands in the log exactly once, and nothing else"
    )
    assert [event["seq"] for event in events] == list(range(before + 1, before + 1 + len(events)))


def all_events(database: DatabaseState) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while page := database.events(found[-1]["seq"] if found else 0):
        found += page
    return found


def assert_dense(run: Run) -> None:
    """See that all siblings are numbered from 0 without gaps, that all parents exist, and that nothing stands below itself."""
    page, forums = 1, dict[int, dict[str, Any]]()
    while results := run("forums.list", page=page, perPage=1000)["results"]:
        forums |= {forum["id"]: forum for forum in results}
        page += 1
    rows: dict[Any, list[int]] = {}
    for forum in forums.values():
        rows.setdefault(forum["parentId"], []).append(forum["position"])
        seen: set[int] = set()
        at = forum
        while at["parentId"] is not None:
            assert at["id"] not in seen, "a cycle"
            seen.add(at["id"])
            at = forums[at["parentId"]]
    for parent, positions in rows.items():
        assert sorted(positions) == list(range(len(positions))), f"the children of {parent}"
