"""Keys with bounds over REST: refusals and their headers, answers that are never crossed in memory, uses over several processes."""

import asyncio
import threading
from functools import partial
from typing import Any

import httpx
import pytest

from tests.api_client import ApiClient
from tests.api_fixtures import MakeApiClient
from tests.fixture_types import Clock, MakeKey, Run
from trellis.compose import compose
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.settings import Settings

GRANTS = ["forums.list", "forums.get", "forums.create", "events.list"]


@pytest.fixture
def forums(run: Run) -> list[int]:
    made: list[int] = []
    for name, parent in (("One", None), ("Two", 0), ("Three", 1), ("Four", None)):
        made.append(run("forums.create", name=name, parentId=None if parent is None else made[parent])["id"])
    return made


def _within(key: MakeKey, *ids: int) -> str:
    return key(
        GRANTS, name="Bot", bounds={"forums.*": {"under": list(ids)}, "events.list": {"under": [f"forums:{i}" for i in ids]}}
    )


def test_answers_in_memory_are_never_crossed(api: ApiClient, key: MakeKey, forums: list[int]) -> None:
    one, two, three, four = forums
    callers = {None: {one, two, three, four}, _within(key, two): {two, three}, _within(key, four): {four}, _within(key, 999): set()}
    same = _within(key, two)
    for _ in range(3):  # from the database, and from memory
        for text, inside in [*callers.items(), (same, {two, three})]:
            asked = {"key": text} if text else {}
            for path in ("/forums/forums", "/forums/forums?perPage=2&sortBy=name", "/core/events", "/forums/forums/tree"):
                told = api.get(path, **asked)
                assert told.status_code == 200
            assert api.get("/forums/forums", **asked).json()["totalResults"] == len(inside)
            for forum in forums:
                assert api.get(f"/forums/forums/{forum}", **asked).status_code == (200 if forum in inside else 404)


def test_a_tag_of_what_is_outside_says_nothing(api: ApiClient, key: MakeKey, forums: list[int]) -> None:
    one, two, *_ = forums
    text = key(["forums.get", "forums.update"], bounds={"forums.*": {"under": [two]}})
    tag = api.get(f"/forums/forums/{one}").headers["etag"]
    for headers in ({"If-None-Match": tag}, {"If-None-Match": "*"}, {"If-None-Match": '"x"'}):
        assert api.get(f"/forums/forums/{one}", key=text, headers=headers).status_code == 404
    for sent in (tag, '"x"', "*"):
        answer = api("POST", f"/forums/forums/{one}", key=text, headers={"If-Match": sent}, json={"name": "New"})
        assert answer.status_code == 404
    read = api.get(f"/forums/forums/{two}").headers["etag"]
    assert api.get(f"/forums/forums/{two}", key=text).headers["etag"] == read  # it is the same record for every key
    changed = api("POST", f"/forums/forums/{two}", key=text, headers={"If-Match": read}, json={"name": "New"})
    assert changed.status_code == 200


@pytest.mark.parametrize("path", ["/forums/forums", "/forums/forums/1"])
def test_each_read_that_is_counted_counts_whatever_is_in_memory(
    api: ApiClient, key: MakeKey, forums: list[int], clock: Clock, path: str
) -> None:
    del forums
    text = key(GRANTS, bounds={"forums.list": {"perDay": 3}, "forums.get": {"perDay": 3}})
    for _ in range(2):
        for _use in range(3):
            assert api.get(path, key=text).status_code == 200
        used_up = api.get(path, key=text)
        assert (used_up.status_code, used_up.json()["errorMessage"]) == (429, "GRANT_USED_UP")
        assert int(used_up.headers["retry-after"]) == used_up.json()["retryAfter"]
        clock.move(days=1)


@pytest.mark.parametrize("counted", ["forums.list", "calendars.list"], ids=["itself", "what it runs"])
def test_reads_that_are_counted_hold_up_no_others(
    api: ApiClient, gate: Gate, key: MakeKey, forums: list[int], counted: str
) -> None:
    """They wait for the writer, which is kept busy until the others are answered: those that take a thread of their own, too."""
    text = key(["forums.list", "calendars.list", "groups.list", "structure.export"], bounds={counted: {"perDay": 100}})
    path = "/forums/forums" if counted == "forums.list" else "/core/structure?sections=calendars"
    goes_on = threading.Event()

    async def ask() -> tuple[list[httpx.Response], list[httpx.Response]]:
        waiting = [asyncio.ensure_future(api.sending("GET", path, key=text)) for _ in range(60)]
        others = [api.sending("GET", other) for other in ("/forums/forums/tree", "/forums/forums", f"/forums/forums/{forums[0]}")]
        answered = await asyncio.gather(*others)
        assert not any(one.done() for one in waiting)
        goes_on.set()
        return await asyncio.gather(*waiting), answered

    assert api.get(path, key=text).status_code == 200
    held = gate.store.write(lambda _: goes_on.wait(60))
    waited, answered = api.do(ask())
    assert held.result(60) is True
    assert {one.status_code for one in (*waited, *answered)} == {200}


def test_uses_are_counted_over_processes_and_restarts(run: Run, settings: Settings, key: MakeKey, clock: Clock) -> None:
    text = key(["forums.create", "forums.list"], bounds={"forums.*": {"perDay": 4}})
    done: list[str] = []
    for number in range(6):
        other = compose(settings, clock=clock)
        actor = other.store.read_single(partial(authenticate, presented=text, now=other.now())).actor
        for operation, raw in (("forums.create", {"name": f"Forum {number}"}), ("forums.list", {})):
            try:
                other.run(Call(operation, actor, raw))
                done.append("")
            except Refused as refused:
                done.append(refused.message)
        other.store.close()
    assert done == [""] * 8 + ["GRANT_USED_UP"] * 4
    assert run("forums.list")["totalResults"] == 4


def test_a_program_is_told_of_its_bounds(api: ApiClient, key: MakeKey, forums: list[int]) -> None:
    bounds = {"forums.create": {"level": "propose", "under": [forums[1]], "until": "7d", "perDay": 5}}
    text = key(GRANTS, bounds=bounds, perDay=1000)
    told: dict[str, Any] = api.get("/core/hello", key=text).json()["key"]
    assert told["bounds"] == {
        "forums.create": {
            "level": "propose",
            "under": [f"forums:{forums[1]}"],
            "until": "2026-02-07T09:30:00.000Z",
            "perDay": 5,
        }
    }
    assert told["perDay"] == 1000


def test_a_change_of_bounds_holds_from_the_next_request_on(
    make_api: MakeApiClient, key: MakeKey, run: Run, forums: list[int]
) -> None:
    one, two, *_ = forums
    api = make_api(key(GRANTS, name="Bot", bounds={"forums.*": {"under": [two]}}))
    assert api.get(f"/forums/forums/{one}").status_code == 404
    run("keys.update", 1, bound={"forums.*": {"under": [one]}})
    assert api.get(f"/forums/forums/{one}").status_code == 200
    run("keys.update", 1, bound={"forums.get": {"until": "1h"}, "forums.list": None})
    assert api.get("/forums/forums").json()["totalResults"] == len(forums)


def test_keys_see_only_their_own_events_also_from_memory(api: ApiClient, key: MakeKey, forums: list[int]) -> None:
    keys = [
        key(["forums.update", "events.list", "forums.restore"], name=name, bounds={"events.list": own, "forums.restore": own})
        for name, own in (("A", {"ownOnly": True}), ("B", {"ownOnly": True}))
    ]
    made = [
        api("POST", f"/forums/forums/{forum}", key=text, json={"name": f"By {forum}"}).headers["event"]
        for forum, text in zip(forums, keys, strict=False)
    ]
    for _ in range(3):
        for text, mine, other in zip(keys, made, reversed(made), strict=True):
            for query in ("", "?actor=key"):
                assert [str(one["seq"]) for one in api.get(f"/core/events{query}", key=text).json()["results"]] == [mine]
            assert api.get("/core/events?actor=admin:1", key=text).json()["results"] == []
            assert api("POST", f"/core/events/{other}/restore", key=text).status_code == 404
    for text, mine in zip(keys, made, strict=True):
        assert api("POST", f"/core/events/{mine}/restore", key=text).status_code == 200
