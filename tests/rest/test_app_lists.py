"""Lists over REST: paging, filters and sorting, and what is refused."""

import threading
from itertools import product
from typing import Any

import pytest

from tests.api_client import BASE_URL, ApiClient, read_field_errors
from tests.api_fixtures import MakeApiClient
from tests.community import CATALOGUE, Community
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until
from trellis.core.gate import Gate
from trellis.core.nodes.listing import build_query
from trellis.core.version import encode_large

FORUMS = "/forums/forums"


def names(api: ApiClient, query: str, path: str = FORUMS) -> list[str]:
    answer = api.get(f"{path}?{query}")
    assert answer.status_code == 200, answer.text
    page = answer.json()
    assert page["totalResults"] == len(page["results"]), "these lists fit on one page"
    return [record["name"] for record in page["results"]]


def test_an_empty_list_is_one_empty_page(api: ApiClient) -> None:
    answer = api.get("/calendar/calendar")
    assert answer.json() == {"page": 1, "perPage": 25, "totalResults": 0, "totalPages": 1, "results": []}


def test_pages_hold_each_record_once_and_end(api: ApiClient, community: Community) -> None:
    seen: list[int] = []
    for number in (1, 2, 3):
        page = api.get(f"{FORUMS}?perPage=3&page={number}").json()
        assert [page[name] for name in ("page", "perPage", "totalResults", "totalPages")] == [number, 3, 7, 3]
        seen += [record["id"] for record in page["results"]]
    assert seen == sorted(range(1, 8))
    behind = api.get(f"{FORUMS}?perPage=3&page=4")
    assert behind.status_code == 200
    assert behind.json() == {"page": 4, "perPage": 3, "totalResults": 7, "totalPages": 3, "results": []}
    assert api.get(f"{FORUMS}?page=2147483647").json()["results"] == []


@pytest.mark.either_engine
def test_a_page_out_of_range_is_refused_by_name(api: ApiClient) -> None:
    pages = ("0", "-1", "x", "", "1.5", "99999999999999999999", "1e3")
    sizes = ("0", "-1", "1001", "10001", "x", "", "%00")
    for field, text in (*product(["page"], pages), *product(["perPage"], sizes)):
        assert read_field_errors(api.get(f"{FORUMS}?{field}={text}")) == {field: "INVALID_VALUE"}, text


def test_a_page_holds_up_to_a_thousand(api: ApiClient, community: Community) -> None:
    assert api.get(f"{FORUMS}?perPage=1000").json()["perPage"] == 1000
    assert len(api.get(f"{FORUMS}?perPage=1").json()["results"]) == 1


def test_ids_choose_records(api: ApiClient, community: Community) -> None:
    assert names(api, f"ids={community.help},{community.news},999") == ["News", "Help"]
    assert names(api, f"ids[]={community.help}&ids[]={community.news}") == ["News", "Help"]
    assert names(api, f"ids[0]={community.help}") == ["Help"]
    assert names(api, f"ids={community.help}") == ["Help"]
    assert names(api, "ids=") == []
    for wrong in ("ids=0", "ids=-1", "ids=a,b", "ids=1,,x", f"ids={2**64}", "ids=" + ",".join(["1"] * 1001)):
        assert read_field_errors(api.get(f"{FORUMS}?{wrong}")) == {"ids": "INVALID_VALUE"}


def test_a_parent_chooses_its_children_and_root_the_top_level(api: ApiClient, community: Community) -> None:
    for root in ("root", "0", "-1", "", "null"):
        assert names(api, f"parentId={root}") == ["News", "Help", "Wiki", "Staff"]
    assert names(api, f"parentId={community.news}") == names(api, f"parent={community.news}") == ["Releases", "Interviews"]
    assert names(api, "parentId=999") == []
    assert names(api, "parentId=root", "/downloads/category") == ["Skins", "Tools"]
    assert read_field_errors(api.get(f"{FORUMS}?parentId=x")) == {"parentId": "INVALID_PARENT"}
    assert read_field_errors(api.get("/calendar/calendar?parentId=root")) == {"parentId": "UNKNOWN_PARAMETER"}


def test_a_search_finds_parts_of_names_in_capitals_and_small_letters(api: ApiClient, community: Community) -> None:
    assert names(api, "search=eW") == ["News", "Interviews"]
    assert names(api, "search=") == ["News", "Releases", "Betas", "Interviews", "Help", "Wiki", "Staff"]
    for name in ("100% pure_gold", "Ärger\\n", "STRASSE", "ПРИВЕТ"):
        api.post(FORUMS, {"name": name})
    assert names(api, "search=%25") == ["100% pure_gold"]
    assert names(api, "search=_") == ["100% pure_gold"]
    assert names(api, "search=%5C") == ["Ärger\\n"]
    assert names(api, "search=%C3%A4rg") == ["Ärger\\n"]
    assert names(api, "search=stra%C3%9Fe") == ["STRASSE"]
    assert names(api, "search=%D0%BF%D1%80%D0%B8") == ["ПРИВЕТ"]
    assert names(api, "search='%20OR%201=1--") == []
    assert read_field_errors(api.get(f"{FORUMS}?search=%00")) == {"search": "INVALID_VALUE"}


def test_forums_are_chosen_by_type(api: ApiClient, community: Community) -> None:
    assert names(api, "type=questions") == names(api, "type=qa") == ["Help"]
    assert names(api, "type=redirect") == ["Wiki"]
    assert names(api, "type=category") == []
    assert read_field_errors(api.get(f"{FORUMS}?type=chat")) == {"type": "INVALID_TYPE"}
    assert read_field_errors(api.get("/downloads/category?type=redirect")) == {"type": "UNKNOWN_PARAMETER"}


def test_records_are_chosen_by_when_they_were_changed(api: ApiClient, community: Community, clock: Clock) -> None:
    clock.move(hours=1)
    api.post(f"{FORUMS}/{community.help}", {"name": "Helpdesk"})
    assert names(api, f"updatedSince={clock.text}") == ["Helpdesk"]
    assert names(api, "updatedSince=2026-01-31T11:30:00%2B01:00") == ["Helpdesk"]
    assert names(api, "updatedSince=2026-01-31T11:30:00+01:00") == ["Helpdesk"]
    assert len(names(api, "updatedSince=2026-01-31")) == 7
    clock.move(seconds=1)
    assert names(api, f"updatedSince={clock.text}") == []
    for wrong in ("yesterday", "", "2026-13-01", "%00", "0", "9999999999999"):
        assert read_field_errors(api.get(f"{FORUMS}?updatedSince={wrong}")) == {"updatedSince": "INVALID_VALUE"}


def test_filters_are_joined(api: ApiClient, community: Community) -> None:
    assert names(api, f"parentId={community.news}&search=re&type=discussions&ids={community.releases},{community.help}") == [
        "Releases"
    ]


def test_each_order_is_stable_and_its_reverse_keeps_equals_in_order_of_id(api: ApiClient, clock: Clock) -> None:
    for name in ("b", "A", "a", "B"):
        api.post("/calendar/calendar", {"name": name})
        clock.move(seconds=1)
    for number in (2, 4):
        api.post(f"/calendar/calendar/{number}", {"allowReviews": False})
    api.post("/calendar/calendar/4", {"position": 0})
    orders = {
        ("id", "asc"): [1, 2, 3, 4],
        ("id", "desc"): [4, 3, 2, 1],
        ("name", "asc"): [2, 3, 1, 4],
        ("name", "desc"): [1, 4, 2, 3],
        ("position", "asc"): [4, 1, 2, 3],
        ("position", "desc"): [3, 2, 1, 4],
        ("createdAt", "asc"): [1, 2, 3, 4],
        ("createdAt", "desc"): [4, 3, 2, 1],
        ("updatedAt", "asc"): [1, 3, 2, 4],
        ("updatedAt", "desc"): [2, 4, 3, 1],
    }
    for (by, way), expected in orders.items():
        query = f"sortBy={by}&sortDir={way}"
        assert [record["id"] for record in api.get(f"/calendar/calendar?{query}").json()["results"]] == expected, query
        paged = [api.get(f"/calendar/calendar?{query}&perPage=1&page={page}").json()["results"][0]["id"] for page in (1, 2, 3, 4)]
        assert paged == expected, query
    assert [record["id"] for record in api.get("/calendar/calendar").json()["results"]] == [1, 2, 3, 4], (
        "by id unless asked otherwise"
    )


@pytest.mark.either_engine
def test_an_unknown_order_is_refused(api: ApiClient) -> None:
    assert read_field_errors(api.get(f"{FORUMS}?sortBy=colour&sortDir=up")) == {
        "sortBy": "INVALID_VALUE",
        "sortDir": "INVALID_VALUE",
    }
    assert read_field_errors(api.get(f"{FORUMS}?sortBy=created_at")) == {"sortBy": "INVALID_VALUE"}


@pytest.mark.either_engine
def test_an_unknown_parameter_is_refused_with_the_nearest_known_one(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        answer = api.get(f"{FORUMS}?perpage=5&colour=red&sortby=id")
    assert read_field_errors(answer) == dict.fromkeys(("perpage", "colour", "sortby"), "UNKNOWN_PARAMETER")
    assert "Did you mean perPage?" in answer.json()["errors"][0]["message"]


@pytest.mark.either_engine
def test_the_clubs_of_older_clients_are_accepted_and_mean_nothing(api: ApiClient, community: Community) -> None:
    for clubs in ("clubs=1", "clubs=", "clubs=0", "clubs[]=1&clubs[]=2"):
        for path in (FORUMS, "/calendar/calendar", "/downloads/category", "/core/groups"):
            assert api.get(f"{path}?{clubs}").content == api.get(path).content


@pytest.mark.either_engine
def test_a_repeated_parameter_is_refused_whether_its_values_differ_or_not(api: ApiClient) -> None:
    for query in ("page=1&page=2", "page=1&page=1", "parentId=1&parent=1", "ids=1&ids[]=2", "page=1&page[]=2"):
        assert api.get(f"{FORUMS}?{query}").status_code == 400, query


@pytest.mark.parametrize("name", ["under", "%75nder"])
def test_what_may_read_a_whole_tree_is_not_read_on_the_event_loop(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    where: list[str] = []

    def build(*given: Any) -> Any:
        where.append(threading.current_thread().name)
        return build_query(*given)

    monkeypatch.setattr("trellis.core.nodes.crud.build_query", build)
    assert api.get(f"/forums/forums?{name}=1").status_code == 200
    assert where != [threading.main_thread().name]


@pytest.fixture
def long_forums(run: Run) -> str:
    """Make forums whose texts take 800 KB together; return the text of each."""
    text = f"<p>{'wörd ' * 6_000}</p>"
    for number in range(20):
        run("forums.create", name=f"Long {number}", description=text)
    return text


def test_what_turns_out_to_be_long_is_read_again_in_a_thread(
    api: ApiClient, gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch, long_forums: str
) -> None:
    encoded = list[str]()

    def note_thread(value: Any) -> bytes:
        encoded.append(threading.current_thread().name)
        return encode_large(value)

    monkeypatch.setattr("trellis.rest.dialect.translator.encode_large", note_thread)
    for path in (FORUMS, f"{FORUMS}?perPage=1000", f"{FORUMS}?search=long&sortBy=name&sortDir=desc&perPage=200"):
        found = api.get(path).json()["results"]
        assert sorted(one["name"] for one in found) == sorted(f"Long {number}" for number in range(20))
        assert {one["description"] for one in found} == {long_forums}
    assert len(api.get("/core/events?limit=100&operation=forums.create").json()["results"]) == 20
    assert len(encoded) == 4
    if gate.store.reads_inline:
        assert set(encoded) <= {"trellis-long_0", "trellis-long_1"}, "no more at a time: each takes much memory"
    assert threading.main_thread().name not in encoded
    run("core.batch", operations=[{"operation": "calendars.create", "body": {"name": f"Short {n}"}} for n in range(600)])
    assert len(api.get("/calendar/calendar?perPage=1000").json()["results"]) == 600
    assert threading.main_thread().name not in encoded
    assert len(api.get(f"{FORUMS}?perPage=3").json()["results"]) == 3
    assert (encoded[-1] == threading.main_thread().name) is gate.store.reads_inline, "what is short costs no thread"


def test_what_is_read_again_in_a_thread_is_looked_for_in_memory_once(make_api: MakeApiClient, long_forums: str) -> None:
    api = make_api(metrics_token="a token of the monitoring")
    assert long_forums in api.get(FORUMS).text
    counts = api.application.service.counts
    assert counts is not None
    assert (counts.hits, counts.misses) == (0, 1)


def test_what_is_read_again_in_a_thread_is_counted_and_logged_once(
    service: Service, run: Run, key: MakeKey, database: DatabaseState, long_forums: str
) -> None:
    mine = key("forums.list", rateLimit=100)
    left = list[int]()
    for number in range(3):
        answer = service.call("GET", f"{FORUMS}?perPage={50 + number}", mine)
        assert [one["description"] for one in answer.json()["results"]] == [long_forums] * 20
        left.append(int(answer.headers["X-RateLimit-Remaining"]))
    assert left == [99, 98, 97]
    wait_until(lambda: len(database.requests()) == 3)


def test_every_list_in_pages_links_to_the_others(api: ApiClient, community: Community) -> None:
    paged = [one for one in CATALOGUE.values() if one.verb is not None and one.path and "perPage" in {f.name for f in one.fields}]
    assert {"forums.list", "access.keys", "access.view", "proposals.list"} <= {one.name for one in paged}
    needed = {"access.keys": "operation=forums.list&", "access.view": f"group={community.patrons}&"}
    for operation in paged:
        answer = api.get(
            f"{operation.path}{operation.verb.tail if operation.verb else ''}?{needed.get(operation.name, '')}perPage=1"
        )
        last = answer.json()["totalPages"]
        assert ("next" in answer.links, answer.links["last"]["url"].endswith(f"&page={last}")) == (last > 1, True), operation.name


def test_what_a_group_may_do_is_read_to_the_end_by_the_links(api: ApiClient, community: Community) -> None:
    address = f"/core/access/view?group={community.patrons}"
    everything = [node["id"] for node in api.get(address).json()["results"]]
    found: list[int] = []
    address += "&perPage=1"
    while address:
        answer = api.get(address)
        found += [node["id"] for node in answer.json()["results"]]
        address = answer.links.get("next", {}).get("url", "").removeprefix(f"{BASE_URL}/api")
    assert found == everything
    assert len(found) > 1
