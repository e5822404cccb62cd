"""`GET /core/events?wait=30`: a feed that waits, and one event per line."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final

import httpx
import orjson
import pytest

from tests.api_client import ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.fixture_types import Clock, MakeKey, Run
from tests.wait import wait_in_loop_until
from trellis.asgi import Application
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.http.api.waiting import WaitingRequests
from trellis.settings import Settings

FEED: Final = "/core/events?wait=30&after={}"
NAMED: Final = {"name": "News"}

Act = Callable[[str, dict[str, Any]], Any]


@pytest.fixture
def elsewhere(settings: Settings, clock: Clock) -> Iterator[Act]:
    """Run an operation as another process does, which shares nothing with this one but the database."""
    gate = compose(settings, clock=clock)
    yield lambda operation, raw: gate.run(Call(operation, TERMINAL, raw, raw.pop("id", None))).value
    gate.store.close()


def find_cursor(api: ApiClient) -> int:
    return int(api.get("/core/events?limit=1000").json()["next"])


def while_waiting(
    api: ApiClient, path: str, act: Callable[[], Awaitable[Any]], number: int = 1, **more: Any
) -> list[httpx.Response]:
    """Send a request so many times, act once all wait, and return the answers, which come before the wait is over."""

    async def run() -> list[httpx.Response]:
        clock = asyncio.get_running_loop().time
        began = clock()
        asked = [asyncio.ensure_future(api.sending("GET", path, **more)) for _ in range(number)]
        await wait_in_loop_until(lambda: api.application.service.waiting.count == number)
        await act()
        answers = await asyncio.gather(*asked)
        assert clock() < began + 30, "it is answered for what has happened, not since the time is over"
        assert api.application.service.waiting.count == 0
        return answers

    return list(api.do(run()))


async def in_thread(act: Act, operation: str, raw: dict[str, Any]) -> None:
    await asyncio.to_thread(act, operation, raw)


def test_it_is_answered_with_the_first_event_of_any_process(api: ApiClient, elsewhere: Act) -> None:
    cursor = find_cursor(api)
    act = partial(api.sending, "POST", "/forums/forums", json=NAMED)
    (own,) = while_waiting(api, FEED.format(cursor), act)
    assert [event["type"] for event in own.json()["results"]] == ["forum.created"]
    assert (own.json()["next"], own.json()["more"]) == (cursor + 1, False)
    others = while_waiting(api, FEED.format(cursor + 1), partial(in_thread, elsewhere, "calendars.create", dict(NAMED)), 3)
    assert [[event["seq"] for event in answer.json()["results"]] for answer in others] == [[cursor + 2]] * 3
    there = api.get(FEED.format(cursor)).json()["results"]
    assert [event["seq"] for event in there] == [cursor + 1, cursor + 2], "what is there is not waited for"


def test_a_search_that_has_to_go_on_is_not_waited_for(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.store.events.scan._CHUNK", 1)
    monkeypatch.setattr("trellis.core.events.feed._LONGEST", 0.0)
    path = FEED.format(0) + "&resource=blogs"
    api.post("/forums/forums", NAMED)
    answer = api.get(path)
    assert (answer.json()["results"], answer.json()["next"], answer.json()["more"]) == ([], 1, True)
    in_lines = api.get(path, headers={"Accept": "application/x-ndjson"})
    assert (in_lines.content, in_lines.headers["next"]) == (b"", "1")
    assert in_lines.links["next"] == answer.links["next"]


def test_what_does_not_pass_the_filter_is_waited_through(api: ApiClient, elsewhere: Act) -> None:
    cursor = find_cursor(api)

    async def act() -> None:
        for number in range(3):
            await in_thread(elsewhere, "calendars.create", dict(NAMED))
            await api.sending("POST", "/downloads/category", json={"name": f"{number}"})
        await in_thread(elsewhere, "forums.create", dict(NAMED))

    (answer,) = while_waiting(api, FEED.format(cursor) + "&type=forum.created", act)
    assert [event["seq"] for event in answer.json()["results"]] == [cursor + 7]


def test_at_the_end_of_the_wait_it_is_empty_with_the_cursor(api: ApiClient, elsewhere: Act) -> None:
    cursor = find_cursor(api)
    answer = api.get(f"/core/events?wait=1&after={cursor}")
    assert (answer.status_code, answer.json()["results"], answer.json()["next"]) == (200, [], cursor)
    elsewhere("calendars.create", dict(NAMED))
    filtered = api.get(f"/core/events?wait=1&resource=forums&after={cursor}").json()
    assert (filtered["results"], filtered["next"]) == ([], cursor + 1), "what the filter has excluded is not looked at again"
    assert api.get("/core/events?wait=0&after=1").status_code == 200
    for wrong in ("31", "-1", "x"):
        read_refusal(api.get(f"/core/events?wait={wrong}"), 400, "INVALID_VALUE")
    read_refusal(api.get("/core/events?wait=30&order=newest"), 400, "INVALID_VALUE")


def test_it_ends_when_the_key_is_revoked_or_loses_the_grant(api: ApiClient, run: Run, elsewhere: Act) -> None:
    for change, status, message in (
        ("keys.revoke", 401, "INVALID_API_KEY"),
        ("keys.update", 403, "NO_PERMISSION"),
    ):
        made = run("keys.create", name="Reader", grants=["events.list"])
        raw = {"id": made["id"]} | ({"ungrant": ["events.list"]} if change == "keys.update" else {})
        path = FEED.format(find_cursor(api))
        (answer,) = while_waiting(api, path, partial(in_thread, elsewhere, change, raw), key=made["key"])
        read_refusal(answer, status, message)


def test_one_that_loses_the_grant_is_not_answered_with_what_another_key_has_just_read(
    api: ApiClient, run: Run, elsewhere: Act
) -> None:
    made = run("keys.create", name="Reader", grants=["events.list"])
    path = FEED.format(find_cursor(api))

    async def act() -> None:
        await in_thread(elsewhere, "keys.update", {"id": made["id"], "ungrant": ["events.list"]})
        assert (await api.sending("GET", path)).json()["results"]

    (answer,) = while_waiting(api, path, act, key=made["key"])
    read_refusal(answer, 403, "NO_PERMISSION")


def test_a_few_of_a_key_may_wait_and_none_once_the_process_is_to_end(make_api: MakeApiClient, key: MakeKey) -> None:
    api = make_api(waiting_per_key=2)
    cursor = find_cursor(api)
    other = key(["events.list"])  # one event more
    path, service = FEED.format(cursor + 1), api.application.service

    async def act() -> None:
        refused = await api.sending("GET", path)
        read_refusal(refused, 429, "TOO_MANY_WAITING")
        assert refused.headers["retry-after"] == "1"
        of_another = asyncio.ensure_future(api.sending("GET", path, key=other))
        await wait_in_loop_until(lambda: service.waiting.count == 3)
        service.waiting.end()
        assert (await of_another).json()["results"] == []

    answers = while_waiting(api, path, act, 2)
    assert [(answer.status_code, answer.json()["results"], answer.json()["next"]) for answer in answers] == [
        (200, [], cursor + 1)
    ] * 2
    assert api.get(path).json()["results"] == [], "no more waits"


def test_one_that_may_not_wait_is_not_counted(make_api: MakeApiClient, key: MakeKey) -> None:
    api = make_api(key(["events.list", "forums.create"], bounds={"events.list": {"perDay": 3}}), waiting_per_key=1)
    path = FEED.format(find_cursor(api))

    async def act() -> None:
        for _ in range(3):
            read_refusal(await api.sending("GET", path), 429, "TOO_MANY_WAITING")
        assert (await api.sending("POST", "/forums/forums", json=NAMED)).status_code == 201

    (answer,) = while_waiting(api, path, act)
    assert len(answer.json()["results"]) == 1
    assert api.get(path).status_code == 200
    read_refusal(api.get(path), 429, "GRANT_USED_UP")


def test_it_ends_when_the_client_goes(api: ApiClient) -> None:
    cursor = find_cursor(api)
    application: Application = api.application

    async def run() -> None:
        gone = asyncio.Event()
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/api/core/events",
            "query_string": f"wait=30&after={cursor}".encode(),
            "headers": [(b"host", b"api.example"), (b"authorization", f"Bearer {api.key}".encode())],
            "http_version": "1.1",
        }
        clock = asyncio.get_running_loop().time
        began = clock()
        asked = asyncio.ensure_future(application(scope, receive, send))
        await wait_in_loop_until(lambda: application.service.waiting.count == 1)
        gone.set()
        await asked
        assert clock() < began + 30
        assert application.service.waiting.count == 0

    api.do(run())


def test_it_ends_when_the_client_goes_during_a_read() -> None:
    async def run() -> None:
        gone, clock = asyncio.Event(), asyncio.get_running_loop().time
        waiting = WaitingRequests(lambda: 2, 1, 1)
        versions = iter((1, 2))

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def read() -> bool:
            gone.set()
            for _ in range(10):
                await asyncio.sleep(0)
            return False

        began = clock()
        await waiting.wait("key", 30, receive, lambda: next(versions), read)
        assert clock() < began + 30
        assert waiting.count == 0

    asyncio.run(run())


def test_a_key_with_bounds_waits_for_what_is_inside_only(api: ApiClient, key: MakeKey, elsewhere: Act) -> None:
    inside, outside = (api.post("/forums/forums", {"name": name}).json()["id"] for name in ("Inside", "Outside"))
    bound = {"events.list": {"under": [f"forums:{inside}"], "perDay": 2}}
    text = key(["events.list"], bounds=bound)
    cursor = find_cursor(api)

    async def act() -> None:
        for parent in (outside, None, inside):
            await in_thread(elsewhere, "forums.create", {"name": "News", "parentId": parent})

    (answer,) = while_waiting(api, FEED.format(cursor), act, key=text)
    assert [event["after"]["parentId"] for event in answer.json()["results"]] == [inside]
    assert api.get("/core/events", key=text).status_code == 200, "however often it was read, it was one use"
    assert api.get("/core/events", key=text).status_code == 429


def test_one_event_per_line(api: ApiClient) -> None:
    api.post("/forums/forums", {"name": "Zeile\u2028eins\n"})
    lines = {"Accept": "application/x-ndjson"}
    whole = api.get("/core/events").json()
    answer = api.get("/core/events", headers=lines)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [orjson.loads(line) for line in answer.content.splitlines()] == whole["results"]
    assert int(answer.headers["next"]) == whole["next"]
    assert "Accept" in answer.headers["vary"]
    assert api.get("/core/events", headers=lines | {"If-None-Match": answer.headers["etag"]}).status_code == 304
    assert api.get("/core/events").headers["content-type"] == "application/json"
    for accept in ("application/json, application/x-ndjson;q=0.5", "*/*", "application/x-ndjson;q=0", "application/x-ndjson;q=x"):
        assert api.get("/core/events", headers={"Accept": accept}).headers["content-type"] == "application/json"
    assert api.get("/forums/forums", headers=lines).headers["content-type"] == "application/json"
    read_refusal(api.get("/core/events?limit=0", headers=lines), 400, "INVALID_VALUE")
    cursor = whole["next"]
    empty = api.get(f"/core/events?wait=1&after={cursor}", headers=lines)
    assert (empty.status_code, empty.content, empty.headers["next"]) == (200, b"", str(cursor))
    act = partial(api.sending, "POST", "/forums/forums", json=NAMED)
    (answer,) = while_waiting(api, FEED.format(cursor), act, headers=lines)
    assert orjson.loads(answer.content)["seq"] == cursor + 1
