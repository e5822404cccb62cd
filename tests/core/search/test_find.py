"""One search for everything: names with their paths, numbers, public parts of keys, ids of requests; and never a secret."""

from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Clock, Events, MakeKey, Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.store import requests
from trellis.store.requests import Request


@pytest.fixture
def find(run: Run) -> Any:
    """Search; gives what was found as resource → names or numbers."""

    def finding(text: str, **how: Any) -> dict[str, list[Any]]:
        found = run("search.find", text=text, **how)["results"]
        return {
            one["resource"]: [record.get("name", record.get("id", record.get("seq"))) for record in one["records"]] for one in found
        }

    return finding


def test_names_numbers_and_ids_are_found_wherever_they_are(
    find: Any, run: Run, gate: Gate, clock: Clock, community: Community, key: MakeKey, events: Events
) -> None:
    whole = key("forums.list", name="Calendar sync", owner="Events team")
    run("webhooks.create", url="https://hooks.example/sync", events=["forum.created"], description="Sync the shop")
    one = Request(clock.text, "GET", "/api/forums/forums", "forums.list", 1, "192.0.2.7", 403, 1500, "a1b2c3d4e5f6", "2S291/3")
    gate.store.write(lambda tx: requests.append(tx, [one])).result(30)
    assert find("sync") == {"keys": ["Calendar sync"], "webhooks": [1]}
    assert find("events TEAM") == {"keys": ["Calendar sync"]}
    assert find("NEWS") == {"forums": ["News"]}
    (deep,) = run("search.find", text="beta")["results"]
    assert (deep["total"], deep["records"][0]["path"]) == (1, "News > Releases > Betas")
    assert find(whole[:12]) == find(f"Bearer {whole[:12]}") == {"keys": ["Calendar sync"]}
    assert find("trl_00000000") == {}
    assert find("a1b2c3d4e5f6") == {"requests": [1]}
    assert find("#1") | {"events": [1], "requests": [1]} == find("1")
    assert find("1")["forums"] == ["News"]
    assert find("") == {}
    assert find("", resources=["groups", "keys"], limit=2) == {"groups": ["Administrators", "Guests"], "keys": ["Calendar sync"]}
    assert find("s", resources=["calendars"]) == {"calendars": ["Holidays", "Meetups"]}
    gate.run(Call("forums.create", TERMINAL, {"name": "Asked for"}, request_id="f6e5d4c3b2a1"))
    assert find("f6e5d4c3b2a1") == {"events": [events()[-1]["seq"]]}


def test_a_number_is_found_as_pages_show_it(find: Any, run: Run, gate: Gate, clock: Clock) -> None:
    run("forums.create", name="1.234")
    one = Request(clock.text, "GET", "/api/forums/forums", "forums.list", 1, "192.0.2.7", 200, 1500, "a1b2c3d4e5f6", None)
    gate.store.write(lambda tx: requests.append(tx, [one] * 1_234)).result(30)
    for typed in ("1,234", "#1,234", "1\N{NARROW NO-BREAK SPACE}234"):
        assert find(typed) == {"requests": [1_234]}
    assert find("1.234") == {"forums": ["1.234"], "requests": [1_234]}
    assert find("1,23") == find("1,2345") == {}


def test_what_begins_with_the_text_comes_first(find: Any, run: Run) -> None:
    for name in (*(f"Archive of garden {number:02}" for number in range(20)), "Gardening", "Garden"):
        run("forums.create", name=name)
    assert find("garden", limit=3) == {"forums": ["Garden", "Gardening", "Archive of garden 00"]}
    (found,) = run("search.find", text="garden", limit=3)["results"]
    assert found["total"] == 22


def test_the_total_counts_the_record_with_the_number_and_those_with_the_name(run: Run, key: MakeKey) -> None:
    for name in ("Alone", *(f"Season {number}" for number in range(1, 8))):
        run("forums.create", name=name)
        key("forums.list", name=name)
    for text, limit in (("1", 1), ("1", 3), ("2", 1), ("2", 6)):  # 1 is called Alone, and 2 is called Season 1
        found = run("search.find", text=text, limit=limit, resources=["forums", "keys"])["results"]
        named = [one["id"] for one in run("keys.list")["results"] if text in one["name"] + one["public"]]
        assert [(one["resource"], one["total"], one["records"][0]["id"]) for one in found] == [
            ("forums", 2, int(text)),
            ("keys", len({int(text), *named}), int(text)),
        ]


def test_events_that_somebody_may_see_are_found_behind_those_that_they_may_not(gate: Gate) -> None:
    steps = [{"operation": f"{kind}.create", "body": {"name": "N"}} for kind in ("forums", *["calendars"] * 6)]
    gate.run(Call("core.batch", TERMINAL, {"operations": steps}, request_id="a1b2c3d4e5f6"))
    editor = Actor.administrator(1, "Mira", gate.environment.permits.find("structure-editor", "forums"))
    for limit in (1, 6):
        (found,) = gate.run(Call("search.find", editor, {"text": "a1b2c3d4e5f6", "limit": limit})).value["results"]
        assert [(one["seq"], one["resource"]) for one in found["records"]] == [(1, "forums")]


def test_a_whole_key_is_refused_and_not_repeated(run: Run, key: MakeKey) -> None:
    whole = key("forums.list")
    for text in (whole, f"is {whole} good?", whole[:-7], whole.replace("_", "%5F")):
        with pytest.raises(Refused) as refused:
            run("search.find", text=text)
        (fault,) = refused.value.faults
        assert (fault.field, whole[13:20] in fault.detail) == ("text", False)
    with pytest.raises(Refused, match="'members' cannot be searched"):
        run("search.find", text="x", resources=["members"])


def test_it_says_where_there_may_be_more(run: Run, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [{"operation": "forums.create", "body": {"name": "N"}}] * 3
    gate.run(Call("core.batch", TERMINAL, {"operations": steps}, request_id="a1b2c3d4e5f6"))

    def find(limit: int) -> list[tuple[str, int, bool]]:
        found = run("search.find", text="a1b2c3d4e5f6", limit=limit)["results"]
        return [(one["resource"], one["total"], one["complete"]) for one in found]

    assert find(3) == [("events", 3, True)]
    assert find(2) == [("events", 2, False)]
    run("calendars.create", name="N")
    monkeypatch.setattr("trellis.store.events.scan._CHUNK", 1)
    monkeypatch.setattr("trellis.store.log_search.LONGEST", 0.0)
    assert find(3) == [("events", 0, False)]  # the newest event was of another request, and then the time was over
