"""Random edits of a community through every interface, and the answers of several processes beside those of the database."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import cycle
from random import Random
from typing import Any, Final

import httpx

from tests.fixture_types import Run
from tests.service_process import Service
from tests.wait import GIVE_UP, wait_until
from trellis.asgi import Application
from trellis.errors import Refused

FORUMS: Final = "/forums/forums"
CALENDARS: Final = "/calendar/calendar"
CATEGORIES: Final = "/downloads/category"
NEWEST: Final = "/core/events?order=newest&limit=1"  # changes with every event
LISTS: Final = (
    FORUMS,
    f"{FORUMS}?perPage=3",
    f"{FORUMS}?perPage=3&page=2",
    f"{FORUMS}?perPage=4&sortDir=desc",
    f"{FORUMS}?parentId=root&sortBy=position",
    f"{FORUMS}?parentId=1&sortBy=position&sortDir=desc",
    f"{FORUMS}?parentId=1&sortBy=name",
    f"{FORUMS}?parentId=2&perPage=2",
    f"{FORUMS}?parentExternalId=outside-1",
    f"{FORUMS}?externalIds=outside-1,outside-2",
    f"{FORUMS}?ids=1,3,9,40",
    f"{FORUMS}?include=childCount",
    f"{FORUMS}?search=e",
    f"{FORUMS}?type=redirect",
    f"{FORUMS}?under=1",
    f"{FORUMS}?sortBy=updatedAt&sortDir=desc&perPage=5",
    f"{FORUMS}/tree",
    f"{FORUMS}/tree?root=1",
    f"{FORUMS}/tree?depth=1",
    f"{FORUMS}/external/outside-1",
    f"{FORUMS}/external/outside-2",
    CALENDARS,
    f"{CALENDARS}?sortBy=position",
    CATEGORIES,
    f"{CATEGORIES}/tree",
    f"{CATEGORIES}?parentId=root&sortBy=position&perPage=2",
    "/core/groups",
    "/blog/blogs",
    "/core/webhooks",
    NEWEST,
)
Answer = tuple[int, bytes, bytes, bytes]  # status, body, ETag, Link


class Connection:
    """A connection to a service, over which many requests are sent at once, and their answers read in order."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=GIVE_UP)
        self._file = self._socket.makefile("rb")

    def ask(self, key: str, paths: Sequence[str]) -> list[Answer]:
        """Read these paths."""
        head = f"HTTP/1.1\r\nHost: api.example\r\nAuthorization: Bearer {key}\r\n\r\n"
        self._socket.sendall("".join(f"GET /api{path} {head}" for path in paths).encode())
        return [self._read() for _ in paths]

    def _read(self) -> Answer:
        status = int(self._file.readline().split()[1])
        told: dict[bytes, bytes] = {}
        while line := self._file.readline().strip():
            name, _, value = line.partition(b": ")
            told[name.lower()] = value
        body = self._file.read(int(told.get(b"content-length", b"0")))
        return status, b"" if status >= 400 else body, told.get(b"etag", b""), told.get(b"link", b"")

    def close(self) -> None:
        """Close it."""
        self._file.close()
        self._socket.close()


class Truth:
    """What the database answers: a service in this process that keeps nothing in memory."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._runner = asyncio.Runner()

    def ask(self, key: str, paths: Sequence[str]) -> list[Answer]:
        """Read these paths."""

        async def read() -> list[Answer]:
            return [await self._read(key, path) for path in paths]

        return self._runner.run(read())

    async def _read(self, key: str, path: str) -> Answer:
        sent: list[dict[str, Any]] = []
        plain, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"/api{plain}",
            "raw_path": f"/api{plain}".encode(),
            "query_string": query.encode(),
            "headers": [(b"host", b"api.example"), (b"authorization", f"Bearer {key}".encode())],
            "client": ("127.0.0.1", 1),
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b""}

        async def send(message: Any) -> None:
            sent.append(message)

        await self._application(scope, receive, send)
        told = dict(sent[0]["headers"])
        body = b"".join(message.get("body", b"") for message in sent[1:])
        status = sent[0]["status"]
        return status, b"" if status >= 400 else body, told.get(b"etag", b""), told.get(b"link", b"")

    def close(self) -> None:
        """End its event loop."""
        self._runner.close()


@dataclass
class Readers:
    """Threads that read the same paths all the time, so that answers are made while commits are under way.

    They rest where nothing is committed and every process knows of all: there they would only be in the way.
    """

    keys: Sequence[str]
    seed: int
    awake: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, service: Service) -> None:
        """Read from a service until it ends, or the readers do."""
        thread = threading.Thread(target=self._read, args=(service.port, Random(self.seed + len(self.threads))))  # noqa: S311  # no secret
        self.threads.append(thread)
        thread.start()

    def _read(self, port: int, dice: Random) -> None:
        with suppress(OSError, IndexError, ValueError), closing(Connection(port)) as connection:  # until the service is killed
            while self.awake.wait(GIVE_UP) and not self.ended.wait(0.002):
                paths = [*dice.sample(LISTS, 3), *(f"{FORUMS}/{dice.randint(1, 40)}" for _ in range(6))]
                connection.ask(dice.choice(self.keys), paths)

    def end(self) -> None:
        """Stop reading."""
        self.ended.set()
        self.awake.set()
        for thread in self.threads:
            thread.join(GIVE_UP)


@dataclass
class Editor:
    """Edits at random, through one service or by the terminal, which is a process for itself as far as the services know."""

    dice: Random
    key: str
    run: Run
    done: int = 0
    refused: int = 0
    newest: tuple[int, ...] = ()  # of the forums that there are, before the last edit

    def edit(self, service: Service) -> Service | None:
        """Edit something; return the service that has acknowledged it, None if it was the terminal."""
        listed = self.run("forums.list", sortBy="id", sortDir="desc", perPage=40)["results"]
        self.newest = tuple(one["id"] for one in listed)
        if self.dice.random() < 0.2:
            self._count(self._on_the_terminal())
            return None
        method, path, body = self.dice.choice(self._requests())()
        self._count(service.call(method, path, self.key, json=body).status_code < 300)
        return service

    def _count(self, done: bool) -> None:  # whether it was
        self.done += done
        self.refused += not done

    def _forum(self) -> int:
        return int(self.dice.choice((1, 2, 3, *range(1, 41), *self.newest)))

    def _words(self) -> str:
        return f"{self.dice.choice(('Tea', 'Elder', 'Moss', 'Peat'))} {self.dice.randrange(1000)}"

    def _place(self) -> dict[str, Any]:
        choice = self.dice.randrange(5)
        if choice == 0:
            return {"position": self.dice.randrange(4)}
        if choice == 1:
            return {"parentId": self._forum(), "position": self.dice.randrange(4)}
        if choice == 2:
            return {"parentId": self.dice.choice((None, 1, 2)), "after": self._forum()}
        return {"parentId": self.dice.choice((None, 1, 2, self._forum()))}

    def _requests(self) -> "tuple[Callable[[], tuple[str, str, Any]], ...]":
        one = self._forum()
        return (
            lambda: ("POST", FORUMS, {"name": self._words(), **self._place()}),
            lambda: ("POST", FORUMS, {"name": self._words(), "parentId": self.dice.choice((None, 1, 2))}),
            lambda: ("POST", f"{FORUMS}/{one}", {"name": self._words()}),
            lambda: ("POST", f"{FORUMS}/{one}", {"description": f"<p>{self._words()}</p>"}),
            lambda: ("POST", f"{FORUMS}/{one}", {"permissions": {"read": self.dice.choice(("*", [3], []))}}),
            lambda: ("POST", f"{FORUMS}/{one}", {"externalId": f"outside-{self.dice.randint(1, 3)}"}),
            lambda: ("POST", f"{FORUMS}/{one}", {"type": "redirect", "redirectUrl": "https://example.com/"}),
            lambda: ("POST", f"{FORUMS}/{one}", self._place()),
            lambda: ("POST", f"{FORUMS}/{one}", self._place()),
            lambda: ("POST", f"{FORUMS}/{one}/copy", {"withChildren": True}),
            lambda: ("DELETE", f"{FORUMS}/{one}?deleteChildrenOrMove={self.dice.choice((-1, self._forum()))}", None),
            lambda: ("DELETE", f"{FORUMS}/{one}", None),
            lambda: ("PUT", f"{FORUMS}/external/outside-{self.dice.randint(1, 3)}", {"name": self._words(), **self._place()}),
            lambda: ("DELETE", f"{FORUMS}/external/outside-{self.dice.randint(1, 3)}", None),
            lambda: ("POST", f"{FORUMS}/order", {"parentId": None, "ids": self._shuffled(None)}),
            lambda: ("POST", f"{FORUMS}/order", {"parentId": 1, "ids": self._shuffled(1)}),
            lambda: ("POST", "/core/batch", {"operations": self._steps()}),
            lambda: ("POST", CALENDARS, {"name": self._words(), "position": self.dice.randrange(3)}),
            lambda: ("POST", f"{CALENDARS}/{self.dice.randint(1, 4)}", {"position": self.dice.randrange(3)}),
            lambda: ("DELETE", f"{CALENDARS}/{self.dice.randint(1, 20)}", None),
            lambda: ("POST", CATEGORIES, {"name": self._words(), "parentId": self.dice.choice((None, 1))}),
            lambda: (
                "POST",
                f"{CATEGORIES}/{self.dice.randint(1, 6)}",
                {"name": self._words(), "parentId": self.dice.choice((None, 1, 3))},
            ),
            lambda: ("POST", f"/core/events/{self._newest() - self.dice.randrange(6)}/restore", {}),
            lambda: ("DELETE", f"/core/groups/{self.dice.randint(5, 12)}", None),
            lambda: ("POST", "/core/webhooks", {"url": "https://hooks.example/a", "events": ["*"], "enabled": False}),
            lambda: ("DELETE", f"/core/webhooks/{self.dice.randint(1, 9)}", None),
        )

    def _steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = [
            {"operation": "forums.create", "body": {"name": self._words(), **self._place()}},
            {"operation": "forums.update", "id": self._forum(), "body": {"name": self._words()}},
            {"operation": "forums.update", "id": self._forum(), "body": self._place()},
            {"operation": "calendars.create", "body": {"name": self._words()}},
        ]
        return steps[: self.dice.randint(1, 4)]

    def _shuffled(self, parent: int | None) -> list[int]:
        ids = [one["id"] for one in self.run("forums.list", parentId=parent, sortBy="position", perPage=1000)["results"]]
        self.dice.shuffle(ids)
        return ids

    def _newest(self) -> int:
        return int(self.run("events.list", order="newest", limit=1)["results"][0]["seq"])

    def _on_the_terminal(self) -> bool:
        forum = self._forum()
        acts: tuple[tuple[str, int | None, dict[str, Any]], ...] = (
            ("forums.update", forum, {"name": self._words()}),
            ("forums.delete", forum, {"deleteChildrenOrMove": -1}),
            ("groups.create", None, {"name": self._words()}),
            ("groups.update", self.dice.randint(4, 9), {"name": self._words()}),
            ("groups.delete", self.dice.randint(5, 12), {}),
            ("blogs.create", None, {"name": self._words()}),
            ("keys.update", 3, {"name": self._words()}),
            ("forums.create", None, {"name": self._words(), "permissions": {"read": [3, 4]}, **self._place()}),
        )
        operation, target, raw = self.dice.choice(acts)
        with suppress(Refused):
            self.run(operation, target, **raw)
            return True
        return False


@dataclass
class Comparison:
    """The answers of services beside those of the database."""

    truth: Truth
    keys: Sequence[str]
    at_once: bool  # whether a process knows of others' commits when it is asked, as on SQLite
    answers: int = 0
    stale: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._turns = cycle(self.keys)

    def wait(self, services: Iterable[Service]) -> None:
        """Wait until services know of every commit, where that takes a moment."""
        newest = [] if self.at_once else self.truth.ask(self.keys[0], [NEWEST])
        for service in () if self.at_once else services:
            with closing(Connection(service.port)) as connection:  # a process that knows of the newest event knows of all before it
                wait_until(lambda connection=connection: connection.ask(self.keys[0], [NEWEST]) == newest)  # type: ignore[misc]

    def compare(self, services: Iterable[Service], paths: Sequence[str]) -> None:
        """Ask services and the database for the same, each time with the next key; nothing is written meanwhile."""
        key = next(self._turns)
        expected = self.truth.ask(key, paths)
        for service in services:
            with closing(Connection(service.port)) as connection:
                answers = connection.ask(key, paths)
            for path, found, wanted in zip(paths, answers, expected, strict=True):
                self.answers += 1
                if found != wanted:
                    self.stale.append(f"{path}: {found!r} instead of {wanted!r}")


def kill_during_edit(service: Service, editor: Editor) -> None:
    """Kill a service while it carries out an edit."""

    def edit() -> None:
        with suppress(httpx.HTTPError):
            method, path, body = editor.dice.choice(editor._requests())()  # its own
            service.call(method, path, editor.key, json=body)

    thread = threading.Thread(target=edit)
    thread.start()
    thread.join(editor.dice.random() * 0.01)
    service.kill()
    thread.join(GIVE_UP)
