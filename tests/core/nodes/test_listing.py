"""Lists: pages, filters and sorting, the same on both engines."""

from itertools import product
from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Clock, Run
from trellis.errors import Refused


def names(page: dict[str, Any]) -> list[str]:
    return [node["name"] for node in page["results"]]


@pytest.fixture
def alphabet(run: Run, clock: Clock) -> list[str]:
    """Seven calendars whose names do not stand in the order of their ids, a minute apart."""
    made = ["delta", "Alpha", "éclair", "charlie", "Bravo", "alpha", "Zulu"]
    for name in made:
        run("calendars.create", name=name)
        clock.move(minutes=1)
    return made


def test_a_list_says_where_it_is(run: Run, alphabet: list[str]) -> None:
    page = run("calendars.list", page=2, perPage=3)
    assert {name: value for name, value in page.items() if name != "results"} == {
        "page": 2,
        "perPage": 3,
        "totalResults": 7,
        "totalPages": 3,
    }
    assert names(page) == alphabet[3:6]


def test_an_empty_list_is_one_empty_page(run: Run) -> None:
    assert run("calendars.list") == {"page": 1, "perPage": 25, "totalResults": 0, "totalPages": 1, "results": []}


@pytest.mark.parametrize("page", [4, 1000, 2**31 - 1])
def test_past_the_end_is_an_empty_page(run: Run, alphabet: list[str], page: int) -> None:
    found = run("calendars.list", page=page, perPage=3)
    assert (found["page"], found["totalResults"], found["totalPages"], found["results"]) == (page, 7, 3, [])


def test_a_record_is_the_same_in_a_list_and_alone(run: Run, community: Community) -> None:
    listed = run("forums.list")["results"]
    assert len(listed) == 7
    for forum in listed:
        assert forum == run("forums.get", forum["id"])


_WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"page": 0}, "page"),
    ({"page": -1}, "page"),
    ({"page": "two"}, "page"),
    ({"perPage": 0}, "perPage"),
    ({"perPage": 1001}, "perPage"),
    ({"sortBy": "color"}, "sortBy"),
    ({"sortDir": "up"}, "sortDir"),
    ({"updatedSince": "yesterday"}, "updatedSince"),
    ({"ids": "1,two"}, "ids"),
    ({"ids": list(range(1, 1002))}, "ids"),
    ({"search": "a\x00b"}, "search"),
    ({"search": "x" * 256}, "search"),
)


def test_a_parameter_out_of_range_is_refused(run: Run) -> None:
    for wrong, field in _WRONG:
        with pytest.raises(Refused, match=rf"^INVALID_VALUE: {field} ") as refused:
            run("calendars.list", **wrong)
        assert [fault.field for fault in refused.value.faults] == [field]


def test_an_unknown_filter_is_refused(run: Run) -> None:
    with pytest.raises(Refused, match=r"^UNKNOWN_PARAMETER: There is no parameter 'serach'. Did you mean search\?"):
        run("calendars.list", serach="x")
    with pytest.raises(Refused, match=r"^UNKNOWN_PARAMETER: There is no parameter 'type'"):
        run("calendars.list", type="questions")


def test_the_parameter_of_older_clients_means_nothing(run: Run, community: Community) -> None:
    assert run("forums.list", clubs=1) == run("forums.list")


_SORTED: tuple[tuple[dict[str, str], list[str]], ...] = (
    ({}, ["delta", "Alpha", "éclair", "charlie", "Bravo", "alpha", "Zulu"]),
    ({"sortDir": "desc"}, ["Zulu", "alpha", "Bravo", "charlie", "éclair", "Alpha", "delta"]),
    ({"sortBy": "name"}, ["Alpha", "alpha", "Bravo", "charlie", "delta", "Zulu", "éclair"]),
    ({"sortBy": "name", "sortDir": "desc"}, ["éclair", "Zulu", "delta", "charlie", "Bravo", "Alpha", "alpha"]),
    ({"sortBy": "position"}, ["delta", "Alpha", "éclair", "charlie", "Bravo", "alpha", "Zulu"]),
    ({"sortBy": "createdAt", "sortDir": "desc"}, ["Zulu", "alpha", "Bravo", "charlie", "éclair", "Alpha", "delta"]),
    ({"sortBy": "updatedAt"}, ["delta", "Alpha", "éclair", "charlie", "Bravo", "alpha", "Zulu"]),
)


def test_a_list_is_sorted_the_same_on_every_engine(run: Run, alphabet: list[str]) -> None:
    for sort, order in _SORTED:
        assert names(run("calendars.list", **sort)) == order, sort


def test_sorting_by_change_follows_changes(run: Run, alphabet: list[str]) -> None:
    run("calendars.update", 1, color="#000000")
    assert names(run("calendars.list", sortBy="updatedAt"))[-1] == "delta"
    assert names(run("calendars.list", sortBy="createdAt"))[0] == "delta"


def test_what_is_equal_is_sorted_by_id_so_that_pages_neither_repeat_nor_miss(run: Run) -> None:
    parents = [run("categories.create", name="Same")["id"] for _ in range(4)]
    for parent in parents:
        run("categories.create", name="Same", parentId=parent)
    for sort_by, sort_dir in product(("name", "position", "createdAt", "updatedAt"), ("asc", "desc")):
        pages = [run("categories.list", sortBy=sort_by, sortDir=sort_dir, page=page, perPage=3)["results"] for page in (1, 2, 3)]
        ids = [node["id"] for page in pages for node in page]
        assert sorted(ids) == list(range(1, 9))
        if sort_by != "position":
            assert ids == sorted(ids), (sort_by, sort_dir)
        else:
            keys = [(node["position"] * (-1 if sort_dir == "desc" else 1), node["id"]) for page in pages for node in page]
            assert keys == sorted(keys), sort_dir


_FILTERED: tuple[tuple[dict[str, Any], list[str]], ...] = (
    ({"parentId": "root"}, ["News", "Help", "Wiki", "Staff"]),
    ({"parentId": None}, ["News", "Help", "Wiki", "Staff"]),
    ({"parent": 0}, ["News", "Help", "Wiki", "Staff"]),
    ({"parentId": "news"}, ["Releases", "Interviews"]),
    ({"parentId": "betas"}, []),
    ({"parentId": 999}, []),
    ({"type": "questions"}, ["Help"]),
    ({"type": "qa"}, ["Help"]),
    ({"type": "category"}, []),
    ({"search": "EWS"}, ["News", "Interviews"]),
    ({"search": ""}, ["News", "Releases", "Betas", "Interviews", "Help", "Wiki", "Staff"]),
    ({"search": "%"}, []),
    ({"search": "_"}, []),
    ({"ids": ""}, []),
    ({"ids": "999"}, []),
    ({"type": "discussions", "parentId": "root", "search": "s"}, ["News", "Staff"]),
)


def test_a_list_is_filtered(run: Run, community: Community) -> None:
    for filters, found in _FILTERED:
        parent = filters.get("parentId")
        own = {"parentId": getattr(community, parent)} if parent in {"news", "betas"} else {}
        page = run("forums.list", **filters | own)
        assert names(page) == found, filters
        assert page["totalResults"] == len(found), filters


def test_a_list_can_be_of_chosen_ids(run: Run, community: Community) -> None:
    assert names(run("forums.list", ids=f"{community.staff},{community.news},{community.news},999")) == ["News", "Staff"]
    page = run("forums.list", ids=[community.staff, community.news, community.help], perPage=2, page=2)
    assert (names(page), page["totalResults"]) == (["Staff"], 3)


@pytest.mark.parametrize(
    ("search", "found"), [("STRASSE", ["Lange Straße"]), ("ärger", ["ÄRGER"]), ("新", ["新聞"]), ("a' OR '1", [])]
)
def test_a_search_does_not_mind_capitals_in_any_script(run: Run, search: str, found: list[str]) -> None:
    for name in ("Lange Straße", "ÄRGER", "新聞"):
        run("forums.create", name=name)
    assert names(run("forums.list", search=search)) == found


def test_changes_since_a_moment_include_that_moment(run: Run, alphabet: list[str], clock: Clock) -> None:
    clock.move(minutes=-2)
    assert names(run("calendars.list", updatedSince=clock.text)) == ["alpha", "Zulu"]
    run("calendars.update", 1, color="#000000")
    assert names(run("calendars.list", updatedSince=clock.text.replace("Z", "+00:00"))) == ["delta", "alpha", "Zulu"]


def test_counts_stay_right_through_creating_and_deleting(run: Run, community: Community) -> None:
    assert run("forums.list")["totalResults"] == 7
    run("forums.create", name="Polls")
    run("forums.create", name="Dry", dryRun=True)
    run("forums.delete", community.releases, deleteChildrenOrMove=-1)
    page = run("forums.list")
    assert page["totalResults"] == len(page["results"]) == 6
