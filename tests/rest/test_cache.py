"""Answers kept in memory: never stale, never another's, never more than there is room for."""

import asyncio
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tests.api_client import ApiClient
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from tests.wait import wait_until
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call
from trellis.http.api.cache import CachedResponse, Name, ResponseCache
from trellis.settings import Settings


def named(path: str) -> Name:
    return path, b"", "http://api.example", "trellis"


def kept(size: int) -> CachedResponse:
    return CachedResponse(b"x" * size, b"tag")


def keep(capacity: int) -> ResponseCache:
    """Make a cache for which every version is another state of everything."""
    return ResponseCache(capacity, lambda _shown, _since, **_: True)


def test_an_answer_is_found_again_under_the_same_version_only() -> None:
    answers = keep(1_000_000)
    assert answers.find(1, named("a")) is None
    answers.add(1, named("a"), kept(10))
    assert answers.find(1, named("a")) == kept(10)
    assert answers.find(2, named("a")) is None
    assert answers.find(1, named("a")) is None


def test_an_answer_that_was_made_under_a_version_that_has_passed_is_not_kept() -> None:
    answers = keep(1_000_000)
    answers.find(2, named("a"))
    answers.add(1, named("a"), kept(10))
    assert answers.find(2, named("a")) is None


def test_the_least_recently_used_is_forgotten_when_the_room_is_used_up() -> None:
    answers = keep(20_000)
    answers.find(1, named(""))
    for name in "abcdefgh":
        answers.add(1, named(name), kept(1_000))
        answers.find(1, named("a"))
    for name in "ijklmnop":
        answers.add(1, named(name), kept(1_000))
        answers.find(1, named("a"))
    assert answers.find(1, named("a")) is not None
    assert answers.find(1, named("b")) is None
    assert answers.find(1, named("p")) is not None


def test_an_answer_that_would_fill_the_room_alone_is_not_kept() -> None:
    answers = keep(20_000)
    answers.find(1, named(""))
    answers.add(1, named("a"), kept(19_000))
    assert answers.find(1, named("a")) is None


def test_an_answer_that_is_too_large_to_be_kept_is_the_same_for_all_while_somebody_reads_it() -> None:
    answers = keep(20_000)
    answers.find(1, named(""))
    first = answers.add(1, named("a"), kept(19_000))
    assert answers.find(1, named("a")) is first
    assert answers.add(1, named("a"), kept(19_000)) is first
    assert answers.find(2, named("a")) is None, "something has changed"
    again = answers.add(2, named("a"), kept(19_001))
    assert again is not first
    del again
    assert answers.find(2, named("a")) is None


@pytest.mark.parametrize(("queries", "length", "links"), [(500, 15_000, 4), (6_000, 20, 0), (600, 3_000, 4)])
def test_the_bound_is_one_on_memory_whatever_the_answers_consist_of(queries: int, length: int, links: int) -> None:
    """The names of answers and their headers hold what was asked, which can be much longer than the answer."""
    capacity = 2_000_000
    tracemalloc.start()
    answers = keep(capacity)
    answers.find(1, named(""))
    before = tracemalloc.get_traced_memory()[0]
    for number in range(queries):
        query = b"clubs=%*d" % (length, number)
        name = (f"/forums/forums/{number}", query, f"http://forum{number}.example", "trellis")
        headers = ((b"link", bytes(query * links)),)
        answers.add(1, name, CachedResponse(b"%200d" % number, b"%024d" % number, headers))
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 0.5 * capacity < used < 1.05 * capacity
    answers.find(2, named(""))


def test_what_is_kept_is_not_given_to_a_key_without_the_grant(make_api: MakeApiClient, key: MakeKey) -> None:
    api = make_api()
    assert api.get("/forums/forums").status_code == 200
    assert api.get("/forums/forums", key=key("calendars.list")).status_code == 403


def test_an_answer_that_was_overtaken_by_a_write_is_not_kept(
    make_api: MakeApiClient, gate: Gate, run: Run, community: Community
) -> None:
    """The data are read, then changed, and only then answered: who asks next must not be told the same."""
    api, honest = make_api(), gate.run
    path = f"/forums/forums/{community.news}"

    def overtaken(call: Call) -> Result:
        answer = honest(call)
        gate.run = honest  # type: ignore[method-assign]
        run("forums.update", community.news, name="Renamed")
        return answer

    gate.run = overtaken  # type: ignore[method-assign]
    assert [api.get(path).json()["name"] for _ in range(3)] == ["News", "Renamed", "Renamed"]


def test_a_key_that_was_revoked_while_it_was_proved_is_not_remembered(
    make_api: MakeApiClient, gate: Gate, run: Run, key: MakeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, text, honest = make_api(), key("*"), gate.store.read_single

    def overtaken(work: Any) -> Any:
        proof = honest(work)
        monkeypatch.undo()
        run("keys.revoke", 2)
        return proof

    monkeypatch.setattr(gate.store, "read_single", overtaken)
    assert [api.get("/nowhere", key=text).status_code for _ in range(3)] == [404, 401, 401]


def test_keys_and_answers_in_memory_need_no_thread(
    make_api: MakeApiClient, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = make_api()
    path = f"/forums/forums/{community.news}"

    def refuse(*_: object) -> None:
        raise AssertionError("the database was asked")

    def from_memory() -> bool:
        expected = api.get(path).content
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "to_thread", refuse)
            patch.setattr(api.application.gate, "run", refuse)
            return [api.get(path).content for _ in range(3)] == [expected] * 3

    wait_until(from_memory)  # not at once where the machine is so busy that there is no data version


def test_the_setting_turns_it_off(settings: Settings) -> None:
    assert settings.answer_cache > 0
    assert Settings.load({"TRELLIS_ANSWER_CACHE": "0"}, None).answer_cache == 0


PAGE = "/forums/forums?perPage=2&page=2"


def told(api: ApiClient, page: str = PAGE) -> tuple[bytes, str, str]:
    """Return what a page by id tells: its body, its version, and where its neighbours are."""
    answer = api.get(page)
    return answer.content, answer.headers["etag"], answer.headers["link"]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_page_by_id_is_read_again_only_where_more_than_its_total_has_changed(
    make_api: MakeApiClient, settings: Settings, run: Run, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, forgetful = make_api(), make_api(answer_cache=0)
    whole = api.application.gate.run
    asked: list[str] = []

    def count(call: Call) -> Result:
        asked.append(call.operation)
        return whole(call)

    changes: list[tuple[Callable[[], Any], int]] = [
        (lambda: run("forums.create", name="Later"), 0),
        (lambda: run("calendars.create", name="Elsewhere"), 0),
        (lambda: run("forums.update", community.betas, name="Previews"), 1),
        (lambda: run("forums.delete", run("forums.create", name="Soon gone")["id"]), 0),
        (lambda: run("forums.delete", community.interviews), 1),
        (lambda: run("forums.restore", event_of(run, "forum.deleted")), 1),
    ]
    assert told(api) == told(forgetful)
    for number, (change, reads) in enumerate(changes):
        change()
        with monkeypatch.context() as patch:
            patch.setattr(api.application.gate, "run", count)
            found = told(api)
        assert found == told(forgetful), number
        assert len(asked) == reads, number
        asked.clear()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_page_by_id_moves_up_when_something_before_it_goes(make_api: MakeApiClient, run: Run, community: Community) -> None:
    api, forgetful = make_api(), make_api(answer_cache=0)
    page = "/forums/forums?perPage=2&page=3"  # of records that neither name nor stand beside what goes
    first = told(api, page)
    run("forums.delete", community.betas)
    assert told(api, page) == told(forgetful, page) != first
    run("forums.restore", event_of(run, "forum.deleted"))
    assert told(api, page) == told(forgetful, page)


def test_an_edit_leaves_what_is_below_in_memory_and_a_new_name_or_parent_does_not(
    api: ApiClient, run: Run, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    read = api.application.rest._run_read

    def counted(*given: Any, **more: Any) -> Any:
        nonlocal reads
        reads += 1
        return read(*given, **more)

    monkeypatch.setattr(api.application.rest, "_run_read", counted)
    path = f"/forums/forums/{community.betas}"  # below releases, which is below news
    first = api.get(path).json()
    for change, read_again, shown in (
        ({"description": "<p>Edited.</p>"}, 0, first["path"]),
        ({"name": "Renamed"}, 1, first["path"].replace("News", "Renamed")),
    ):
        run("forums.update", community.news, **change)
        before = reads
        assert api.get(path).json()["path"] == shown
        assert reads - before == read_again, change
    run("forums.update", community.releases, parentId=None)
    assert api.get(path).json()["path"] == "Releases > Betas"


def event_of(run: Run, type: str) -> int:
    """Return the number of the newest event of a type."""
    return int(run("events.list", type=type, order="newest", limit=1)["results"][0]["seq"])


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_page_and_its_total_are_of_one_moment(
    make_api: MakeApiClient, run: Run, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = make_api()
    told(api)
    run("forums.create", name="Later")
    answers = api.application.service.responses
    honest = answers.find_renewable

    def overtaken(name: Name) -> CachedResponse | None:
        found = honest(name)
        run("forums.update", community.betas, name="Renamed")
        return found

    monkeypatch.setattr(answers, "find_renewable", overtaken)
    assert api.get(PAGE).json()["results"][0]["name"] == "Renamed"


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_page_stays_in_memory_though_others_write_while_it_is_asked_for(
    make_api: MakeApiClient, run: Run, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, forgetful = make_api(), make_api(answer_cache=0)
    told(api)
    run("forums.create", name="Later")
    renew = api.application.service.renew

    def late(name: Name) -> CachedResponse | None:
        run("forums.create", name="Later still")
        return renew(name)

    def read(*_: Any, **__: Any) -> Any:
        pytest.fail("the page was read again")

    with monkeypatch.context() as patch:
        patch.setattr(api.application.service, "renew", late)
        patch.setattr(api.application.rest, "_run_read", read)
        found = told(api)
    assert found == told(forgetful)
