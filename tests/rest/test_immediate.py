"""Reads that the server answers at once, without the application: the same responses, judged and counted alike."""

import asyncio
import base64
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote

import pytest

from tests.api_client import CLIENT_ADDRESS, ApiClient, InMemory, find_in_memory
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.fixture_types import Clock, MakeKey, Run
from tests.rest.conftest import StoppedTime
from trellis.core.gate import Gate
from trellis.store import requests
from trellis.store.requests import Request

HOST: Final = "api.example:8000"
_DIFFERS: Final = {"x-request-id", "x-ratelimit-remaining", "x-ratelimit-reset"}

Pairs = Iterable[tuple[str, str]]


def ask(
    api: ApiClient, path: str, headers: Pairs | None = None, address: str = CLIENT_ADDRESS, host: str = HOST, **more: Any
) -> InMemory | None:
    """Ask for the response in memory to a GET with the caller's own key, or with these headers."""
    sent = [("authorization", f"Bearer {api.key}")] if headers is None else list(headers)
    plain, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "http_version": "1.1",
        "scheme": "http",
        "path": unquote(f"/api{plain}"),
        "raw_path": f"/api{plain}".encode(),
        "query_string": query.encode(),
        "headers": [(b"host", host.encode()), *((name.encode(), value.encode()) for name, value in sent)],
        "client": (address, 50_000),
        "server": ("127.0.0.1", 8000),
        **more,
    }

    async def find() -> InMemory | None:
        return find_in_memory(api.application, scope)

    found: InMemory | None = api.do(find())
    return found


def by_application(api: ApiClient, path: str, headers: Pairs | None = None) -> tuple[int, list[tuple[str, str]], bytes]:
    """Ask the application itself, which has to answer a request that says how long its body is."""
    named = {name.title(): value for name, value in headers or [("authorization", f"Bearer {api.key}")]}
    response = api.get(path, key=None, headers={**named, "Content-Length": "0"})
    return response.status_code, [(name, value) for name, value in response.headers.multi_items()], response.content


def comparable(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name.lower(), value) for name, value in headers if name.lower() not in _DIFFERS]


def headers_of(found: InMemory) -> list[tuple[str, str]]:
    return [(name.decode(), value.decode()) for name, value in found.headers]


def the_same(api: ApiClient, path: str, headers: Pairs | None = None) -> InMemory:
    """See that the response in memory is the one that the application gives; return it."""
    status, told, body = by_application(api, path, headers)
    found = ask(api, path, headers)
    assert found is not None, path
    assert (found.status, found.body) == (status, body)
    assert comparable(headers_of(found)) == comparable(told)
    return found


PATHS: Final = (
    "/forums/forums/{news}",
    "/forums/forums/{news}?pretty",
    "/forums/forums",
    "/forums/forums?perPage=2&page=2",
    "/forums/forums?parentId=root&sortBy=position",
    "/forums/forums/tree",
    "/calendar/calendars?perPage=3",
    "/core/groups",
)


@pytest.mark.parametrize("limit", [0, 100])
def test_what_is_in_memory_is_what_the_application_answers(make_api: MakeApiClient, community: Community, limit: int) -> None:
    api = make_api(rate_limit=limit)
    for path in (one.format(news=community.news) for one in PATHS):
        found = the_same(api, path)
        assert ("x-ratelimit-limit", "100") in headers_of(found) or not limit
        etag = dict(headers_of(found))["etag"]
        for wanted in (etag, f'W/{etag}, "other"', "*", '"other"'):
            told = [("authorization", f"Bearer {api.key}"), ("if-none-match", wanted)]
            assert the_same(api, path, told).status == (200 if wanted == '"other"' else 304)


def test_it_does_not_matter_how_the_key_is_sent(api: ApiClient, community: Community) -> None:
    basic = base64.b64encode(f"{api.key}:".encode()).decode()
    for name, value in (("authorization", f"bearer  {api.key}"), ("authorization", f"Basic {basic}"), ("x-api-key", api.key)):
        the_same(api, f"/forums/forums/{community.news}", [(name, value)])


def test_keys_of_a_dialect_and_keys_with_a_part_get_what_is_theirs(
    make_api: MakeApiClient, key: MakeKey, community: Community
) -> None:
    path = f"/forums/forums/{community.news}"
    plain = the_same(make_api(), path).body
    assert the_same(make_api(key("*", dialect="invision")), path).body != plain
    part = make_api(key("forums.*", bounds={"forums.*": {"under": [community.news], "until": "90d"}}))
    assert the_same(part, path).body == plain
    everything = make_api()
    the_same(everything, "/forums/forums")
    assert the_same(part, "/forums/forums").body != the_same(everything, "/forums/forums").body


def test_headers_that_change_cost_nothing_and_an_id_is_taken(api: ApiClient, community: Community) -> None:
    path = f"/forums/forums/{community.news}"
    by_application(api, path)
    told = [("authorization", f"Bearer {api.key}"), ("traceparent", "00-" + "1" * 32 + "-" + "2" * 16 + "-01"), ("accept", "*/*")]
    first, second = ask(api, path, told), ask(api, path, [*told, ("x-request-id", "mine-1")])
    assert first is not None
    assert second is not None
    assert first.body == second.body
    assert dict(headers_of(second))["x-request-id"] == "mine-1"


def test_other_requests_are_the_applications(api: ApiClient, community: Community) -> None:
    path = f"/forums/forums/{community.news}"
    the_same(api, path)
    more: list[dict[str, Any]] = [
        {"method": "HEAD"},
        {"method": "POST"},
        {"http_version": "1.0"},
        {"client": None},
        {"raw_path": b"/mcp"},
        {"raw_path": b"/api/docs"},
        {"raw_path": b"/api/nothing"},
    ]
    assert [ask(api, path, **one) for one in more] == [None] * 7
    for header in (("content-length", "0"), ("transfer-encoding", "chunked"), ("host", "other.example")):
        assert ask(api, path, [("authorization", f"Bearer {api.key}"), header]) is None, header
    the_same(api, path)


def test_an_origin_is_the_applications_where_pages_may_ask(make_api: MakeApiClient, community: Community) -> None:
    told = ("origin", "https://pages.example")
    for origins, is_answered in ((), True), (("https://pages.example",), False):
        api = make_api(cors_origins=origins)
        by_application(api, f"/forums/forums/{community.news}")
        found = ask(api, f"/forums/forums/{community.news}", [("authorization", f"Bearer {api.key}"), told])
        assert (found is not None) is is_answered


def test_another_host_is_another_address_in_the_answer(api: ApiClient, community: Community, gate: Gate) -> None:
    path = f"/forums/forums?perPage=1&parentId={community.news}"
    the_same(api, "/forums/forums?perPage=1")
    the_same(api, path)
    found = ask(api, path, host="other.example")
    assert (found is not None) == gate.store.reads_inline
    assert found is None or ("link", "<http://other.example/api") in [(name, value[:25]) for name, value in headers_of(found)]


def test_a_host_that_is_none_gives_the_address_at_which_the_service_was_reached(api: ApiClient, community: Community) -> None:
    for address in ("127.0.0.1", "127.0.0.2"):
        found = ask(api, "/forums/forums?perPage=2", host="no!host", server=(address, 8000))
        assert found is None or f"<http://{address}:8000/" in dict(headers_of(found))["link"]


def test_an_address_is_put_into_its_plain_form_once(api: ApiClient, community: Community) -> None:
    path = "/index.php/index.php/forums/forums?perPage=1"
    assert api.get("/index.php/forums/forums?perPage=1").status_code == 200
    assert api.get(path).status_code == by_application(api, path)[0] == 404


def test_who_may_not_is_refused_by_the_application(
    make_api: MakeApiClient, run: Run, key: MakeKey, community: Community, clock: Clock
) -> None:
    path = f"/forums/forums/{community.news}"
    the_same(make_api(), path)
    good = key("forums.get", name="Good", expires="1d", addresses=[CLIENT_ADDRESS])
    api = make_api(good)
    the_same(api, path)
    assert ask(api, path, []) is None
    wrong = good[:-1] + ("x" if good[-1] != "x" else "y")
    assert ask(api, path, [("authorization", f"Bearer {wrong}")]) is None
    assert ask(api, path, address="198.51.100.8") is None
    assert ask(make_api(key("forums.list", name="Lists")), path) is None
    the_same(api, path)
    clock.move(days=2)
    assert ask(api, path) is None
    assert api.get(path).status_code == 401


@pytest.mark.parametrize(("change", "status"), [("revoked", 401), ("without the grant", 403), ("for another address", 403)])
def test_a_change_of_a_key_holds_at_once(
    make_api: MakeApiClient, run: Run, key: MakeKey, community: Community, change: str, status: int
) -> None:
    path = f"/forums/forums/{community.news}"
    api = make_api(key("forums.get", name="Changing"))
    the_same(api, path)
    number = next(one["id"] for one in run("keys.list")["results"] if one["name"] == "Changing")
    match change:
        case "revoked":
            run("keys.revoke", number, reason="no longer used")
        case "without the grant":
            run("keys.update", number, grants=["forums.list"])
        case _:
            run("keys.update", number, addresses=["192.0.2.1"])
    assert ask(api, path) is None
    assert api.get(path).status_code == status


def test_what_was_changed_is_not_answered_any_more(api: ApiClient, run: Run, community: Community, gate: Gate) -> None:
    path, tree = f"/forums/forums/{community.news}", "/forums/forums/tree"
    for one in (path, tree):
        the_same(api, one)
    run("forums.update", community.news, name="Renamed")
    assert ask(api, tree) is None
    found = ask(api, path)
    assert (found is not None) == gate.store.reads_inline
    assert found is None or b"Renamed" in found.body
    assert b"Renamed" in the_same(api, path).body
    run("forums.delete", community.news, deleteChildrenOrMove=-1)
    found = ask(api, path)
    assert (found is not None) == gate.store.reads_inline
    assert found is None or found.status == 404
    assert api.get(path).status_code == 404


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_page_whose_total_alone_has_changed_is_answered_with_the_new_one(api: ApiClient, run: Run, community: Community) -> None:
    path = "/forums/forums?perPage=2"
    before = the_same(api, path)
    run("forums.create", name="Later")
    found = ask(api, path)
    assert found is not None
    assert found.body != before.body
    again = the_same(api, path)
    assert (found.body, comparable(headers_of(found))) == (again.body, comparable(headers_of(again)))


# --- what is in no memory and read at once ------------------------------------------------------------------------


NOT_IN_MEMORY: Final = (
    *PATHS,
    "/forums/forums/{news}/",
    "/index.php?/forums/forums/{news}",
    "//forums//forums?page=1?perPage=3",
    "/forums/forums/999999",
    "/forums/forums/x",
    "/forums/forums?perPage=0",
    "/forums/forums?nothing=1&pretty",
    "/forums/forums?search=new",
)


@pytest.mark.parametrize("dialect", ["trellis", "invision"])
def test_what_is_read_at_once_is_what_the_application_answers(
    make_api: MakeApiClient, key: MakeKey, community: Community, gate: Gate, dialect: str
) -> None:
    api = make_api(key("*", dialect=dialect), rate_limit=100, answer_cache=0)
    by_application(api, "/core/hello")  # a window is open, or the application would have to open one
    for path in (one.format(news=community.news) for one in NOT_IN_MEMORY):
        found = ask(api, path)
        if found is None:  # PostgreSQL is always waited for, and what may take long or has to be judged by the application
            assert not gate.store.reads_inline or path in {"/forums/forums/x", "/forums/forums?search=new", "/forums/forums/tree"}
            continue
        status, told, body = by_application(api, path)
        assert (found.status, comparable(headers_of(found))) == (status, comparable(told))
        assert without_request_id(found.body) == without_request_id(body)


def without_request_id(body: bytes) -> bytes:
    return re.sub(rb'"requestId": ?"[^"]*"', b"", body)


@pytest.mark.parametrize("path", ["/forums/forums/{news}", "/forums/forums/999999", "/forums/forums?perPage=1000"])
def test_a_read_is_counted_and_logged_once(
    make_api: MakeApiClient, gate: Gate, run: Run, key: MakeKey, community: Community, path: str
) -> None:
    steps = [{"operation": "forums.create", "body": {"name": f"{number}", "description": "x" * 900}} for number in range(80)]
    run("core.batch", operations=steps)  # more than is sent in one part
    api = make_api(key("forums.*"), rate_limit=100, answer_cache=0)
    api.get(path.format(news=community.news))
    counts = [int(api.get(path.format(news=community.news)).headers["x-ratelimit-remaining"]) for _ in range(3)]
    assert counts == [98, 97, 96]
    asyncio.run(api.application.service.log.flush())
    with gate.store.reading() as tx:
        logged = requests.search(tx, {"path": path.format(news=community.news).partition("?")[0]}, 10).found
    assert len(logged) == 4
    assert {one.request.error for one in logged} == ({"1F363/1"} if "999999" in path else {None})


def test_a_key_in_the_url_beside_another_is_the_applications(api: ApiClient, community: Community) -> None:
    path = f"/forums/forums/{community.news}"
    by_application(api, path)
    assert ask(api, f"{path}?key={api.key}") is None
    assert ask(api, f"{path}?k%65y=x") is None
    assert api.get(f"{path}?key={api.key}").status_code == 403


def test_uses_of_a_counted_grant_are_the_applications(make_api: MakeApiClient, key: MakeKey, community: Community) -> None:
    path = f"/forums/forums/{community.news}"
    the_same(make_api(), path)
    counted = make_api(key("forums.get", bounds={"forums.get": {"perDay": 2}}))
    assert ask(counted, path) is None
    assert [counted.get(path).status_code for _ in range(3)] == [200, 200, 429]


def test_a_grant_that_has_an_end_ends(make_api: MakeApiClient, key: MakeKey, community: Community, clock: Clock) -> None:
    path = f"/forums/forums/{community.news}"
    api = make_api(key("forums.get", bounds={"forums.get": {"until": "1h"}}))
    the_same(api, path)
    clock.move(hours=2)
    assert ask(api, path) is None
    assert api.get(path).status_code == 403


def test_both_ways_count_in_one_window(make_api: MakeApiClient, community: Community, stopped_time: StoppedTime) -> None:
    path = f"/forums/forums/{community.news}"
    api = make_api(rate_limit=4)
    by_application(api, path)
    for left in ("2", "1"):
        found = ask(api, path)
        assert found is not None
        assert dict(headers_of(found))["x-ratelimit-remaining"] == left
    assert dict(by_application(api, path)[1])["x-ratelimit-remaining"] == "0"
    assert ask(api, path) is None
    assert api.get(path).status_code == 429
    stopped_time.now += 61
    assert api.get(path).status_code == 200
    assert ask(api, path) is not None


def test_an_address_that_has_to_wait_does_and_nobody_else(
    make_api: MakeApiClient, community: Community, stopped_time: StoppedTime
) -> None:
    path = f"/forums/forums/{community.news}"
    api = make_api(bad_key_limit=2)
    the_same(api, path)
    for _ in range(3):
        api.get(path, key="trl_wrong", address="192.0.2.66")
    assert ask(api, path, address="192.0.2.66") is None
    assert ask(api, path) is not None
    stopped_time.now += 61
    assert api.get(path, address="192.0.2.66").status_code == 200
    assert ask(api, path, address="192.0.2.66") is not None


def test_it_is_in_the_log_and_the_use_of_the_key_is_recorded(
    make_api: MakeApiClient, gate: Gate, key: MakeKey, run: Run, community: Community
) -> None:
    path = f"/forums/forums/{community.news}"
    api = make_api(key("forums.get", name="Logged"))
    silent = make_api(key("forums.get", name="Silent", logRequests=False))
    the_same(silent, path)
    by_application(api, path)
    for one in (api, silent):
        assert ask(one, path, [("authorization", f"Bearer {one.key}"), ("x-request-id", "from-memory")]) is not None
        asyncio.run(one.application.service.log.flush())
    with gate.store.reading() as tx:
        found = requests.find_all_by_request_id(tx, "from-memory", 10)
    number = next(one["id"] for one in run("keys.list")["results"] if one["name"] == "Logged")
    assert [one.request._replace(duration=0) for one in found] == [
        Request(found[0].request.at, "GET", f"/api{path}", "forums.get", number, CLIENT_ADDRESS, 200, 0, "from-memory", None)
    ]
