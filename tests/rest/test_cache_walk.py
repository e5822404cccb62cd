"""Two processes on one database, walked through at random: no answer is stale, and no key is good for longer than it is.

Each door has connections and a memory of its own, as in two processes. Beside them stands a third that keeps nothing: what it
answers is in the database.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

import httpx
import psycopg
import pytest

from tests.api_client import ApiClient
from tests.api_fixtures import listen
from tests.community import Community
from tests.fixture_types import Clock, Run
from tests.wait import wait_until
from trellis.asgi import Application
from trellis.compose import compose
from trellis.core.gate import Gate
from trellis.settings import Settings
from trellis.store import keys
from trellis.store.events import log

STEPS: Final = 150
FORUMS: Final = "/forums/forums"
PATHS: Final = (
    FORUMS,
    f"{FORUMS}?perPage=3&page=2",
    f"{FORUMS}?parentId=root&sortBy=position",
    f"{FORUMS}?search=e",
    "/calendar/calendar",
    "/core/groups",
    "/core/webhooks",
    "/core/events?limit=3",
    "/core/events?order=newest&limit=3",
)
TOLD: Final = ("etag", "link")  # the headers that depend on the data
Seen = tuple[Any, ...]


def seen(answer: httpx.Response) -> Seen:
    """Return what an answer tells of the data; of a refusal, what it is."""
    if answer.status_code != 200:
        return answer.status_code, answer.json()["errorMessage"]
    return (200, answer.content, *(answer.headers.get(name) for name in TOLD))


@dataclass
class Door:
    """The API as one process has it."""

    caller: ApiClient
    gate: Gate
    asked: int = 0  # reads with a good key
    looked_up: int = 0

    def __post_init__(self) -> None:
        run = self.gate.run

        def counted(call: Any) -> Any:
            self.looked_up += 1
            return run(call)

        self.gate.run = counted  # type: ignore[method-assign]  # to tell what came from memory

    def ask(self, path: str, key: str) -> Seen:
        answer = seen(self.caller.get(path, key=key))
        self.asked += answer[0] == 200
        return answer

    def version(self) -> int | None:
        return self.gate.store.data_version()


@dataclass
class Walk:
    """A walk of so many steps, the same for the same dice."""

    doors: tuple[Door, Door]
    truth: ApiClient
    run: Run
    dice: Random
    keys: dict[int, str]
    forums: list[int]
    database: "psycopg.Connection[Any] | None"  # on PostgreSQL
    past: dict[tuple[str, str], set[Seen]] = field(default_factory=dict)
    met: Counter[str] = field(default_factory=Counter)

    def step(self) -> None:
        """Change something and look, or just look."""
        if self.dice.random() < 0.35:
            changes = [self.write, self.write, self.write, self.change_key, self.flush_log, self.purge]
            if self.database is not None:
                changes += [self.lose_connections, self.lose_notification]
            change = self.dice.choice(changes)
            self.met[change.__name__] += 1
            change()
        for door in self.doors:
            self.compare(door)

    def what(self) -> tuple[str, str]:
        path = self.dice.choice((*PATHS, f"{FORUMS}/{self.dice.choice(self.forums)}"))
        return path, self.dice.choice(list(self.keys.values()))

    def compare(self, door: Door) -> None:
        path, key = self.what()
        assert door.ask(path, key) == seen(self.truth.get(path, key=key)), (path, self.met)

    # --- what changes ---------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Write through one door: it knows at once, the other one tells the old or the new until it has heard of it."""
        here, there = self.dice.sample(self.doors, 2)
        path, key = self.what()
        before, version = seen(self.truth.get(path, key=key)), there.version()
        places: list[dict[str, Any]] = [{"position": self.dice.randrange(5)} for _ in range(2)]
        bodies = [*places, {"name": f"Forum {self.dice.random()}"}]
        chosen = zip(self.dice.sample(self.forums, 3), bodies, strict=True)
        steps = [{"operation": "forums.update", "id": forum, "body": body} for forum, body in chosen]
        many = self.dice.random() < 0.5  # two moves, which are worked out together, and a new name
        target, sent = ("core/batch", {"operations": steps}) if many else (f"{FORUMS}/{steps[2]['id']}", bodies[0] | bodies[2])
        assert here.caller.post(target, json=sent).status_code == 200
        after = seen(self.truth.get(path, key=key))
        assert here.ask(path, key) == after
        assert there.ask(path, key) in {before, after}
        self.told(there, version)

    def change_key(self) -> None:
        """Return and take grants by the terminal, which is a process for itself as far as the doors know."""
        number, text = self.dice.choice(list(self.keys.items())[1:])
        versions = [door.version() for door in self.doors]
        self.run("keys.update", number, grants=self.dice.choice([[], ["forums.*"], ["*"]]), name=f"Key {self.dice.random()}")
        for door, version in zip(self.doors, versions, strict=True):
            self.told(door, version)
            assert door.ask(FORUMS, text) == seen(self.truth.get(FORUMS, key=text))

    def flush_log(self) -> None:
        """Write what no answer shows: nobody need hear of it."""
        for door in self.doors:
            door.caller.do(door.caller.application.service.log.flush())
        door.gate.store.write(lambda tx: keys.record_uses(tx, [(1, "2030-01-01T00:00:00.000Z")]), quiet=True).result(60)

    def purge(self) -> None:
        """Take away the oldest events: the feed tells how far back it reaches."""
        versions = [door.version() for door in self.doors]
        oldest = self.run("events.list", limit=5)["results"][self.dice.randrange(3)]["at"]
        if self.doors[0].gate.store.write(lambda tx: log.purge(tx, oldest)).result(60):
            for door, version in zip(self.doors, versions, strict=True):
                self.told(door, version)

    def lose_connections(self) -> None:
        """Lose the connections that notifications come over, and change something before they are back."""
        assert self.database is not None
        listeners = "FROM pg_stat_activity WHERE application_name = 'trellis listener' AND datname = current_database()"
        self.database.execute(f"SELECT pg_terminate_backend(pid) {listeners}")
        for door in self.doors:
            wait_until(lambda door=door: door.version() is None)  # type: ignore[misc]
        self.run("forums.update", self.dice.choice(self.forums), name=f"Unheard {self.dice.random()}")
        for door in self.doors:
            self.compare(door)
            wait_until(lambda door=door: door.version() is not None)  # type: ignore[misc]

    def lose_notification(self) -> None:
        """Change a row and count up without a word: a second later at most everybody knows."""
        assert self.database is not None
        versions = [door.version() for door in self.doors]
        with self.database.transaction():
            forum = {"id": self.dice.choice(self.forums), "name": f"Untold {self.dice.random()}"}
            self.database.execute("UPDATE nodes SET name = %(name)s WHERE kind = 'forums' AND id = %(id)s", forum)
            self.database.execute("UPDATE counters SET last = last + 1 WHERE name = 'data version'")
        for door, version in zip(self.doors, versions, strict=True):
            self.told(door, version)

    def told(self, door: Door, version: int | None) -> None:
        """Wait until a door has heard of a change, which on SQLite it has at once."""
        wait_until(lambda: door.version() not in {version, None}, at_once=self.database is None)


@pytest.fixture
def opened(settings: Settings, clock: Clock, run: Run, community: Community) -> Iterator[Callable[[Random], Walk]]:
    """Open two doors and a third one that keeps nothing."""
    texts = [run("keys.create", name=f"Key {number}", grants=["*"], rateLimit=0)["key"] for number in range(3)]
    run("webhooks.create", url="https://hooks.example/a", events=["*"])
    with ExitStack() as open_:
        gates = [compose(settings, clock=clock) for _ in range(3)]
        callers = []
        for number, gate in enumerate(gates):
            open_.callback(gate.store.close)
            door = ApiClient(Application(settings if number < 2 else replace(settings, answer_cache=0), gate), texts[0])
            open_.callback(door.close)
            callers.append(door)
        doors = tuple(Door(caller, listen(gate)) for caller, gate in zip(callers[:2], gates, strict=False))
        postgresql = not settings.database_url.startswith("sqlite")
        database = open_.enter_context(psycopg.connect(settings.database_url, autocommit=True)) if postgresql else None
        forums = [community.news, community.releases, community.interviews, community.help, community.staff]
        numbered = dict(enumerate(texts, 1))
        yield lambda dice: Walk((doors[0], doors[1]), callers[2], run, dice, numbered, forums, database)


@pytest.mark.slow
def test_no_answer_is_stale_whoever_writes(opened: Callable[[Random], Walk]) -> None:
    walk = opened(Random(3))  # noqa: S311  # the same walk every time
    for _ in range(STEPS):
        walk.step()
    assert min(walk.met.values()) > 3, walk.met
    for door in walk.doors:
        assert door.looked_up < door.asked * 0.9, "too little came from memory for this to show anything"
