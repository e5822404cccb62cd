"""Streams of news: how many there may be, what they are told, what they cost while there is nothing, and when they end."""

import asyncio
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import orjson
import pytest
from starlette.testclient import TestClient

from tests.admin.conftest import MakeVisitor, Visitor
from tests.api_fixtures import listen
from tests.community import Community
from tests.fixture_types import Clock, MakeKey, Run
from tests.wait import wait_in_loop_until
from trellis.admin.app import Panel
from trellis.admin.live import watcher
from trellis.core.admins import find_live_sessions
from trellis.core.gate import Gate

_AT_LEAST: Final = 8  # looks of the watcher that a test waits for


@dataclass
class Tab:
    """A page in a browser that is told of news: what it got, and whether the stream has ended."""

    panel: Panel
    cookie: str
    since: str = ""
    last_id: str = ""
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    got: bytes = b""
    has_gone: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        headers = [(b"accept", b"text/event-stream"), (b"cookie", self.cookie.encode()), (b"host", b"panel.example")]
        headers += [(b"last-event-id", self.last_id.encode())] if self.last_id else []
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/admin/news",
            "raw_path": b"/admin/news",
            "root_path": "",
            "query_string": f"since={self.since}".encode(),
            "headers": headers,
            "client": ("192.0.2.7", 50000),
            "server": ("panel.example", 80),
        }
        await self.panel(scope, self._receive, self._send)

    async def _receive(self) -> MutableMapping[str, Any]:
        await self.has_gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            self.got += message["body"]

    @property
    def has_ended(self) -> bool:
        """Whether the response is over."""
        return self._task is not None and self._task.done()

    @property
    def news(self) -> list[list[str]]:
        """The topics of each piece of news."""
        lines = self.got.decode().splitlines()
        return [orjson.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: [")]

    @property
    def position(self) -> str:
        """The id of the newest event."""
        return self.got.decode().rpartition("id: ")[2].partition("\n")[0]

    async def opened(self) -> "Tab":
        """Wait for the first event."""
        await wait_in_loop_until(lambda: self.news or self.has_ended)
        return self


def _cookie(admin: Visitor) -> str:
    return "; ".join(f"{name}={value}" for name, value in admin.client.cookies.items())


@pytest.fixture
def panel(gate: Gate, admin: Visitor) -> Panel:
    """The panel in which Mira is signed in."""
    listen(gate)
    found: Any = admin.client.app
    assert isinstance(found, Panel)
    return found


async def _looks(monkeypatch: pytest.MonkeyPatch, gate: Gate) -> None:
    """Wait until the watcher has looked several times."""
    count, last_commit = 0, gate.store.last_commit

    def look() -> int | None:
        nonlocal count
        count += 1
        return last_commit()

    monkeypatch.setattr(gate.store, "last_commit", look)
    await wait_in_loop_until(lambda: count >= _AT_LEAST)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(watcher, "_READ_EVERY", 0.02)


def test_a_page_is_told_of_what_and_goes_on_from_where_it_was(panel: Panel, admin: Visitor, run: Run, community: Community) -> None:
    async def go() -> None:
        first = await Tab(panel, _cookie(admin)).opened()
        assert (first.status, first.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert first.headers["cache-control"] == "no-store, no-transform"
        assert (first.headers["x-accel-buffering"], first.news) == ("no", [[]])
        number = run("forums.create", name="News")["id"]
        await wait_in_loop_until(lambda: len(first.news) > 1)
        assert first.news[1] == ["events", "events/forums", f"events/forums/{number}"]
        first.has_gone.set()
        await wait_in_loop_until(lambda: first.has_ended)
        run("calendars.update", community.meetups, name="Meetings")
        told = ["events", "events/calendars", f"events/calendars/{community.meetups}"]
        for since, last_id in ((first.position, ""), ("1.0.0.0", first.position)):
            again = await Tab(panel, _cookie(admin), since=since, last_id=last_id).opened()
            assert again.news[0] == told
            again.has_gone.set()
        for lost in ("999999999.0.0.0", "0.0.00.0"):
            assert (await Tab(panel, _cookie(admin), since=lost).opened()).news[0][0] in {"*", "events"}
        panel.end()

    asyncio.run(go())


def test_a_hundred_pages_of_one_administrator_get_four_streams(panel: Panel, admin: Visitor) -> None:
    async def go() -> None:
        tabs = [Tab(panel, _cookie(admin)) for _ in range(100)]
        for tab in tabs:
            await tab.opened()
        assert sorted(tab.status for tab in tabs) == [200] * 4 + [429] * 96
        assert panel.watcher.count == 4
        for tab in tabs:
            tab.has_gone.set()
        await wait_in_loop_until(lambda: all(tab.has_ended for tab in tabs) and panel.watcher.count == 0)
        again = await Tab(panel, _cookie(admin)).opened()
        assert again.status == 200
        panel.end()
        await wait_in_loop_until(lambda: again.has_ended)
        assert (await Tab(panel, _cookie(admin)).opened()).status == 503

    asyncio.run(go())


def test_nothing_new_costs_no_query_of_a_page(panel: Panel, admin: Visitor, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        tabs = [await Tab(panel, _cookie(admin)).opened() for _ in range(4)]
        asked: list[str] = []
        read = type(panel.runner).read

        async def note(runner: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
            asked.append(function.__name__)
            return await read(runner, function, *args, **kwargs)

        await _looks(monkeypatch, gate)  # the first look reads
        monkeypatch.setattr(type(panel.runner), "read", note)
        await _looks(monkeypatch, gate)
        assert [tab.news for tab in tabs] == [[[]]] * 4
        if gate.store.reads_inline:
            assert asked == []
        else:  # the log of requests tells nobody: it is looked at once for all
            assert set(asked) <= {"read_news"}
            assert len(asked) <= 2 * _AT_LEAST
        panel.end()

    asyncio.run(go())


@pytest.mark.parametrize("how", ["signed out", "disabled", "idle"])
def test_a_stream_ends_with_its_session(
    panel: Panel, admin: Visitor, mira: int, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(watcher, "_JUDGE_EVERY", 0.02 if how == "idle" else 3600.0)

    async def go() -> None:
        tab = await Tab(panel, _cookie(admin)).opened()
        if how == "signed out":
            found = run("admins.sessions", mira)
            run("admins.sign_out", mira, sessions=[one["id"] for one in found])
        elif how == "disabled":
            run("admins.create", name="Ada", login="ada@example.com", password="another long one", mustChangePassword=False)
            run("admins.disable", mira)
        else:
            clock.move(hours=9)
        await wait_in_loop_until(lambda: tab.has_ended)
        assert (await Tab(panel, _cookie(admin)).opened()).status == 401

    asyncio.run(go())


def test_a_stream_that_is_opened_while_the_sessions_of_others_are_checked_stays_open(
    panel: Panel, admin: Visitor, visitor: MakeVisitor, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    telephone = visitor()
    telephone.sign_in()

    async def go() -> None:
        await Tab(panel, _cookie(admin)).opened()
        read, opened = panel.runner.read, list[Tab]()

        async def read_while_another_opens(function: Any, *args: Any) -> Any:
            found = await read(function, *args)
            if function is find_live_sessions and not opened:
                opened.append(Tab(panel, _cookie(telephone)))
                await opened[0].opened()
            return found

        monkeypatch.setattr(panel.runner, "read", read_while_another_opens)
        monkeypatch.setattr(panel.watcher, "_judge_at", 0.0)
        await wait_in_loop_until(lambda: opened and opened[0].news)
        await _looks(monkeypatch, gate)
        assert not opened[0].has_ended

    asyncio.run(go())


def test_a_page_is_told_of_what_its_role_may_read_and_a_demotion_ends_its_stream(
    panel: Panel, admin: Visitor, mira: int, run: Run, key: MakeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "_JUDGE_EVERY", 3600.0)
    run("admins.create", name="Ada", login="ada@example.com", password="another long one")

    async def go() -> None:
        before = await Tab(panel, _cookie(admin)).opened()
        run("admins.set_role", mira, role="structure-editor", kinds=["forums"])
        key(["forums.list"], name="Importer")
        await wait_in_loop_until(lambda: before.has_ended)
        assert before.news == [[]]
        tab = await Tab(panel, _cookie(admin), last_id=before.position).opened()
        run("keys.create", name="Mirror", grants=["forums.list"])
        run("calendars.create", name="Meetings")
        run("webhooks.create", url="https://hooks.example/in", events=["*"])
        run("forums.create", name="News")
        await wait_in_loop_until(lambda: len(tab.news) > 1)
        assert tab.news == [[], ["events", "events/forums", "events/forums/1"]]
        panel.end()

    asyncio.run(go())
    begun, asks = "0.7.7.7", {"accept": "application/json"}
    told = admin.get(f"/news?since={begun}", headers=asks).json()
    assert told["topics"] == ["events", "events/forums", "events/forums/1"]
    assert told["position"].endswith(".0.0.0")  # how long the logs of requests and deliveries are is not told
    assert f'data-since="{told["position"]}"' in admin.get("").text


def _has_moved(tab: Tab, count: int) -> bool:
    return len(tab.news) > count or tab.has_ended


def test_a_stream_ends_before_it_fills_the_buffers(
    panel: Panel, admin: Visitor, run: Run, key: MakeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis.admin.live.stream._MOST_BYTES", 500)

    async def go() -> None:
        tab = await Tab(panel, _cookie(admin)).opened()
        while not tab.has_ended:
            count = len(tab.news)
            run("forums.create", name="News")
            await wait_in_loop_until(partial(_has_moved, tab, count))
        assert 500 <= len(tab.got) < 1000
        assert panel.watcher.count == 0

    asyncio.run(go())


def test_a_page_that_asks_is_told_the_same_and_is_no_use_of_the_session(admin: Visitor, run: Run, mira: int, clock: Clock) -> None:
    asks = {"accept": "application/json"}
    begun = admin.get("/news", headers=asks).json()
    assert begun["topics"] == []
    run("forums.create", name="News")
    told = admin.get(f"/news?since={begun['position']}", headers=asks).json()
    assert told["topics"][:2] == ["events", "events/forums"]
    assert admin.get(f"/news?since={told['position']}", headers=asks).json() == told | {"topics": []}
    seen = run("admins.sessions", mira)[0]["lastSeenAt"]
    clock.move(minutes=10)
    admin.get("/news", headers=asks)
    assert "News" in admin.get("/forums", headers={"x-panel-background": "1"}).text
    assert run("admins.sessions", mira)[0]["lastSeenAt"] == seen
    admin.get("/forums")
    assert run("admins.sessions", mira)[0]["lastSeenAt"] == clock.text
    stranger = TestClient(admin.client.app, "http://panel.example")
    assert stranger.get("/admin/news", headers=asks, follow_redirects=False).status_code == 401


def test_a_page_names_what_it_shows_unless_it_is_an_older_part_of_a_list(admin: Visitor, run: Run, key: MakeKey) -> None:
    key(["forums.list"], name="Importer")
    number = run("keys.list")["results"][0]["id"]
    for path, topics in (
        ("", "events requests"),
        (f"/keys/{number}", f"requests/{number} events/keys/{number}"),
        ("/forums", "events/forums"),
        ("/groups", "events/groups"),
        ("/deliveries", "deliveries"),
    ):
        assert f'data-live="{topics}"' in admin.get(path).text
    assert "data-live=" not in admin.get("/events?before=3").text
    assert "data-live=" not in admin.get("/forums/new").text
