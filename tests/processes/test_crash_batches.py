"""The process is killed amid single writes, batches, applied documents and undos, while webhooks are delivered.

Each request was carried out wholly or not at all, what was acknowledged is there, and every event is delivered in order.
TRELLIS_CRASHES says how often; with `-s` the figures are printed.
"""

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Any, Final

import httpx
import pytest

from tests.api_fixtures import MakeService
from tests.conftest import NewSettings
from tests.database_state import DatabaseState, Event
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until
from tests.webhook_receiver import Receiver
from trellis.settings import Settings

TIMES: Final = int(os.environ.get("TRELLIS_CRASHES", "3"))
TOGETHER: Final = 20  # kills before what they left is compared and deleted, so that the community stays small
BATCHING: Final = 3  # clients that send batches, undos and documents
WRITING: Final = 2  # clients that send single writes
CREATED: Final = 40
APPLIED: Final = 30  # calendars in a document
TOP: Final = {"$ref": "top.id"}
STEPS: Final = [
    {"operation": "forums.create", "as": "top", "body": {"name": "Top"}},
    *({"operation": "forums.create", "as": f"f{n}", "body": {"name": f"{n}", "parentId": TOP}} for n in range(CREATED)),
    *({"operation": "forums.update", "id": {"$ref": f"f{n}.id"}, "body": {"position": 0}} for n in (3, 5)),
    {"operation": "forums.delete", "id": {"$ref": "f7.id"}},
    {"operation": "categories.create", "body": {"name": "Of a batch"}},
]


@pytest.fixture
def settings(new_settings: NewSettings) -> Settings:
    """Settings that let webhooks go to this machine."""
    return replace(new_settings(), webhook_allow=("127.0.0.1/32",))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that answers 200."""
    with Receiver() as receiver:
        yield receiver


@dataclass
class Journal:
    """What was sent, by request id: how many events each is to leave, and which were acknowledged."""

    events: dict[str, int] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)


class Client:
    """Sends requests until the service dies; a request that it refuses, or does not answer, gives None."""

    def __init__(self, service: Service, key: str, name: str, journal: Journal) -> None:
        self.name = name
        self._journal = journal
        headers = {"Authorization": f"Bearer {key}"}
        self._client = httpx.Client(base_url=service.address, timeout=60, trust_env=False, headers=headers)

    def send(self, request: str, path: str, events: int = 1, method: str = "POST", **body: Any) -> httpx.Response | None:
        """Send a request whose id is this behind the client's name, and which is to leave so many events."""
        wanted = f"{self.name}-{request}"
        self._journal.events[wanted] = events
        try:
            answer = self._client.request(method, f"/api{path}", headers={"X-Request-Id": wanted}, **body)
        except httpx.TransportError:
            return None
        if not answer.is_success:
            self._journal.refused.append(answer.text)
            return None
        self._journal.acknowledged.add(wanted)
        return answer

    def work(self, turn: Callable[["Client", int], bool]) -> None:
        """Take one turn after another, until one says that the service has died."""
        with self._client:
            for number in count():
                if not turn(self, number):
                    return


def batches_and_documents(client: Client, number: int) -> bool:
    """Send a batch; undo two of three, and the undo of every other of these; apply a document, and undo every other."""
    made = client.send(f"{number}-batch", "/core/batch", len(STEPS), json={"operations": STEPS})
    if made is not None and number % 3:
        made = client.send(f"{number}-undo", _undo(made), len(STEPS))
        if made is not None and number % 2:
            made = client.send(f"{number}-redo", _undo(made), len(STEPS))
    if made is not None:
        calendars = [{"externalId": f"{client.name}-{number}-{entry}", "name": "C"} for entry in range(APPLIED)]
        document = {"format": "trellis/1", "name": "site", "calendars": calendars}
        made = client.send(f"{number}-apply", "/core/structure/apply", APPLIED, json={"document": document})
        if made is not None and number % 2:
            made = client.send(f"{number}-unapply", _undo(made), APPLIED)
    return made is not None


def _undo(made: httpx.Response) -> str:
    return f"/core/changesets/{made.headers['Change-Set-Id']}/restore"


def single_writes(client: Client, number: int) -> bool:
    """Create a category, every other one before all others, and rename it; delete two of three, and undo every other deletion."""
    place = {"position": 0} if number % 2 else {}
    made = client.send(f"{number}-create", "/downloads/category", json={"name": f"{client.name}-{number}"} | place)
    if made is None:
        return False
    path = f"/downloads/category/{made.json()['id']}"
    made = client.send(f"{number}-update", path, json={"name": f"{client.name}-{number} again"})
    if made is not None and number % 3:
        made = client.send(f"{number}-delete", path, method="DELETE")
        if made is not None and number % 2:
            made = client.send(f"{number}-restore", f"/core/events/{made.headers['Event']}/restore")
    return made is not None


class Left:
    """What was left by all kills so far, compared with what had been sent each time that `compare` is called."""

    def __init__(self, run: Run, database: DatabaseState, receiver: Receiver) -> None:
        self._run, self._database, self._receiver = run, database, receiver
        self.last = len(all_events(database))  # the sequence number up to which the log has been compared
        self.requests = 0  # that left something
        self.told: list[int] = []  # sequence numbers of the events that the webhook is for
        self._categories: dict[int, str] = {}  # their names by id, as the log tells them

    def compare(self, journal: Journal) -> None:
        """Compare the log with what was sent since the last time, the records with the log, and what was delivered with both."""
        log = self._follow()
        left = Counter(event["requestId"] for event in log)
        assert {request: left[request] for request in journal.acknowledged} == {
            request: journal.events[request] for request in journal.acknowledged
        }
        assert {request: number for request, number in left.items() if number != journal.events[request]} == {}
        self.requests += len(left)
        done = Counter(request.rpartition("-")[2] for request in left)
        kept = 1 + CREATED - 1
        assert self._run("forums.list")["totalResults"] == kept * (done["batch"] - done["undo"] + done["redo"])
        assert self._run("calendars.list")["totalResults"] == APPLIED * (done["apply"] - done["unapply"])
        assert {category["id"]: category["name"] for category in self._all("categories")} == self._categories
        assert self._run("check.list")["problems"] == []

    def _follow(self) -> list[Event]:
        """Return the events since the last time, and note what they did to categories."""
        log = all_events(self._database, self.last)
        assert [event["seq"] for event in log] == list(range(self.last + 1, self.last + len(log) + 1))
        self.last += len(log)
        for event in log:
            if event["resource"] == "categories":
                self.told.append(event["seq"])
                if event["after"] is None:
                    self._categories.pop(event["resourceId"])
                else:
                    self._categories[event["resourceId"]] = event["after"]["name"]
        return log

    def clear(self) -> None:
        """Delete all that was left."""
        steps = [
            *({"operation": "forums.delete", "id": one["id"], "body": {"deleteChildrenOrMove": -1}} for one in self._all("forums")),
            *({"operation": "calendars.delete", "id": one["id"]} for one in self._all("calendars")),
            *({"operation": "categories.delete", "id": one["id"]} for one in self._all("categories")),
        ]
        for begin in range(0, len(steps), 200):  # a batch changes 10,000 records at most, and 40 go with each forum
            self._run("core.batch", operations=steps[begin : begin + 200])
        self._follow()
        assert self._categories == {}

    def _all(self, kind: str) -> list[dict[str, Any]]:
        """Return all records of a kind; of forums those at the top."""
        place = {"parentId": "root"} if kind == "forums" else {}
        found: list[dict[str, Any]] = []
        for page in count(1):
            listed = self._run(f"{kind}.list", perPage=1000, page=page, **place)
            found += listed["results"]
            if page >= listed["totalPages"]:
                break
        return found

    def deliver(self, service: Service) -> None:
        """Let a service deliver what no other has, and end it."""
        wait_until(lambda: len(self._receiver.distinct) >= len(self.told))
        assert service.terminate() == 0


@pytest.mark.slow
@pytest.mark.timeout(TIMES * 60 + 600)
def test_each_request_is_done_wholly_or_not_at_all_and_every_event_is_delivered(
    serve: MakeService, key: MakeKey, run: Run, database: DatabaseState, receiver: Receiver, engine: str
) -> None:
    text = key("*", rateLimit=0)
    secret = run("webhooks.create", url=receiver.url, events=["category.*"])["secret"]
    random, began = Random(0), time.monotonic()  # noqa: S311  # when to kill is nobody's secret
    left, sent, acknowledged = Left(run, database, receiver), 0, 0
    for first in range(0, TIMES, TOGETHER):
        journal = Journal()
        for crash in range(first, min(first + TOGETHER, TIMES)):
            service = serve(busy_timeout=60)  # behind the batches of others
            work_and_kill(service, text, crash, journal, random.uniform(0, 0.1))
        left.compare(journal)
        left.clear()
        service = serve()
        left.deliver(service)
        service.client.close()
        sent, acknowledged = sent + len(journal.events), acknowledged + len(journal.acknowledged)
    assert left.requests <= acknowledged + TIMES * (BATCHING + WRITING), "at most one request of each client was under way"
    assert left.requests < sent, "some were killed before their commit"
    seqs = [json.loads(one.body)["data"]["seq"] for one in receiver.received]
    assert list(dict.fromkeys(seqs)) == left.told, "every event is told, in order"
    assert len(receiver.distinct) == len(left.told), "one id for each event"
    assert receiver.most_at_once == 1
    for one in receiver.received[-20:]:
        one.verified(secret)
    unheard, undone = left.requests - acknowledged, sent - left.requests
    figures = (
        f"{engine}: {TIMES:,} kills in {time.monotonic() - began:.0f} s. Of {sent:,} requests {acknowledged:,} were acknowledged, "
        f"none of them lost; {unheard:,} were done and not acknowledged, {undone:,} not done. "
        f"{left.last:,} events, {len(left.told):,} told to the webhook, {len(seqs) - len(left.told):,} of them again."
    )
    print(f"\n{figures}")  # noqa: T201  # what a release has to report; see CONTRIBUTING.md


def work_and_kill(service: Service, key: str, crash: int, journal: Journal, delay: float) -> None:
    """Have all clients send to a service, and kill it some time after it has acknowledged a few of their requests."""
    before = len(journal.acknowledged)
    turns = [batches_and_documents] * BATCHING + [single_writes] * WRITING
    clients = [
        threading.Thread(target=Client(service, key, f"{crash}-{number}", journal).work, args=[turn])
        for number, turn in enumerate(turns)
    ]
    for client in clients:
        client.start()
    enough = before + 1 + crash % 7
    wait_until(lambda: len(journal.acknowledged) >= enough or journal.refused)
    time.sleep(delay)  # it is killed at any moment of a commit, not only right after one
    service.kill()
    service.client.close()
    for client in clients:
        client.join()
    assert journal.refused == []


def all_events(database: DatabaseState, after: int = 0) -> list[Event]:
    """Return the log behind a sequence number, the oldest event first."""
    found: list[Event] = []
    while page := database.events(found[-1]["seq"] if found else after):
        found += page
    return found
