"""Requests in the dialect of Invision Community: what its clients send is accepted, in every encoding that they use."""

import json
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from tests.api_client import ApiClient
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import Run
from trellis.core.fields import Field
from trellis.core.gate import Gate

NOBODY: dict[str, Any] = {}
FORUM = ("view", "read", "add", "reply", "attachments")

Encoding = Callable[[dict[str, Any]], tuple[str, dict[str, Any]]]  # the query and the body that hold what is sent
Send = Callable[[str, str, dict[str, Any]], httpx.Response]


def flatten(sent: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Return what a form sends: brackets for what is nested, 1 and 0 for booleans, as PHP's http_build_query writes them."""
    flat: dict[str, str] = {}
    for name, value in sent.items():
        whole = f"{prefix}[{name}]" if prefix else name
        if isinstance(value, dict):
            flat |= flatten(value, whole)
        elif isinstance(value, list):
            flat |= {f"{whole}[{place}]": str(one) for place, one in enumerate(value)}
        else:
            flat[whole] = str(int(value)) if isinstance(value, bool) else "" if value is None else str(value)
    return flat


def as_text(sent: dict[str, Any]) -> dict[str, str]:
    """Return what a form sends that has objects as JSON text, each in one field."""
    return {name: json.dumps(value) if isinstance(value, dict) else flatten({name: value})[name] for name, value in sent.items()}


ENCODINGS: dict[str, Encoding] = {
    "JSON": lambda sent: ("", {"json": sent}),
    "form": lambda sent: ("", {"data": flatten(sent)}),
    "multipart": lambda sent: ("", {"files": {name: (None, value) for name, value in flatten(sent).items()}}),
    "query string": lambda sent: (urlencode(flatten(sent)), {}),
    "objects as text": lambda sent: ("", {"data": as_text(sent)}),
    "objects as text in the query string": lambda sent: (urlencode(as_text(sent)), {}),
    "JSON in one field": lambda sent: ("", {"data": {"json": json.dumps(sent)}}),
}
ADDRESSES: dict[str, str] = {  # the path, and what joins a query to it
    "plain": "{path}?",
    "doubled slashes": "//{path}/?",
    "in the query": "/index.php?{path}&",
    "in the query, with a second mark": "/index.php?{path}?",
    "behind the script": "/index.php{path}?",
}


# Every encoding at one address, and every address with a body and without one.
SENDINGS = [("plain", encoding) for encoding in ENCODINGS] + [
    (address, encoding) for address in ADDRESSES for encoding in ("form", "query string") if address != "plain"
]


@pytest.fixture
def sends(invision: ApiClient) -> list[Send]:
    """Functions that send something to the path of an operation, each in another way."""

    def send(address: str, encoding: str, method: str, path: str, sent: dict[str, Any]) -> httpx.Response:
        query, body = ENCODINGS[encoding](sent)
        return invision(method, ADDRESSES[address].format(path=path) + query, **body)

    return [partial(send, address, encoding) for address, encoding in SENDINGS]


@pytest.mark.either_engine
def test_what_clients_send_is_accepted_in_every_encoding_at_every_address(
    community: Community, run: Run, sends: list[Send]
) -> None:
    forum = {
        "title": "Seeds",
        "description": "<p>Swap them.</p>",
        "type": "qa",
        "parent": community.news,
        "password": "",
        "theme": 0,
        "sitemap_priority": 0,
        "min_content": 3,
        "can_see_others": False,
        "permissions": {"view": "*", "add": [3, community.patrons]},
        "club_id": 7,
    }
    for send in sends:
        created = send("POST", "/forums/forums", forum)
        assert created.status_code == 201, (send, created.text)
        ours = run("forums.get", created.json()["id"])
        assert (ours["name"], ours["type"], ours["parentId"]) == ("Seeds", "questions", community.news)
        assert (ours["theme"], ours["sitemapPriority"], ours["minContent"], ours["canSeeOthers"]) == (None, None, 3, False)
        assert ours["permissions"] == {"view": "*", "read": [], "add": [3, community.patrons], "reply": [], "attachments": []}
        changed = send("POST", f"/forums/forums/{ours['id']}", {"title": "Seed swaps", "parent": -1, "unheard_of": "x"})
        assert changed.status_code == 200, (send, changed.text)
        ours = run("forums.get", ours["id"])
        assert (ours["name"], ours["parentId"], ours["minContent"]) == ("Seed swaps", None, 3)
        deleted = send("DELETE", f"/forums/forums/{ours['id']}", {"deleteChildrenOrMove": -1})
        assert (deleted.status_code, deleted.json()) == (200, None)


@pytest.mark.either_engine
def test_the_root_has_many_names(invision: ApiClient, community: Community, run: Run) -> None:
    path = f"/forums/forums/{community.releases}"
    for parent in (-1, 0, "", None, "null", "-1", "0"):
        assert run("forums.get", community.releases)["parentId"] == community.news
        assert invision.post(path, {"parent": parent}).json()["parentId"] == -1, parent
        assert run("forums.get", community.releases)["parentId"] is None, parent
        run("forums.update", community.releases, parentId=community.news)


@pytest.mark.either_engine
def test_values_mean_what_they_mean_there(invision: ApiClient, run: Run) -> None:
    for sent, member, value in (
        ({"theme": 0}, "theme", None),
        ({"theme": "0"}, "theme", None),
        ({"theme": ""}, "theme", None),
        ({"theme": 7}, "theme", 7),
        ({"sitemap_priority": "0"}, "sitemapPriority", None),
        ({"sitemap_priority": ""}, "sitemapPriority", None),
        ({"min_content": ""}, "minContent", 0),
        ({"min_content": None}, "minContent", 0),
        ({"can_see_others": 0}, "canSeeOthers", False),
        ({"can_see_others": "false"}, "canSeeOthers", False),
        ({"can_see_others": "true"}, "canSeeOthers", True),
        ({"can_see_others": ""}, "canSeeOthers", True),
        ({}, "type", "category"),
        ({"type": ""}, "type", "category"),
        ({"type": None}, "type", "category"),
        ({"type": "normal"}, "type", "discussions"),
        ({"type": "discussions"}, "type", "discussions"),
        ({"type": "qa"}, "type", "questions"),
        ({"type": "category"}, "type", "category"),
        ({"type": "redirect", "redirect_url": "https://wiki.example/?page=1"}, "redirectUrl", "https://wiki.example/?page=1"),
    ):
        created = invision.post("/forums/forums", {"title": "New", **sent})
        assert created.status_code == 201, (sent, created.text)
        assert run("forums.get", created.json()["id"])[member] == value, sent


def test_an_option_that_is_left_out_means_nobody_under_a_parent_too(invision: ApiClient, community: Community, run: Run) -> None:
    cases: list[tuple[Any, dict[str, Any]]] = [
        ({}, NOBODY),
        ([], NOBODY),  # how PHP writes an empty object
        ("", NOBODY),
        (None, NOBODY),
        ({"view": "*"}, {"view": "*"}),
        ({"view": "", "read": None, "add": [], "reply": [""]}, NOBODY),
        ({"view": "3,4", "read": [4, "3"], "add": 3}, {"view": [3, 4], "read": [3, 4], "add": [3]}),
        ({"perm_id": 11, "perm_view": "*", "perm_2": "3,4", "perm_3": None, "perm_7": None}, {"view": "*", "read": [3, 4]}),
        ({"perm_view": "*", "view": [3]}, {"view": [3]}),
        ({"view": "*", "download": "*", "edit": [99_999]}, {"view": "*"}),
        ('{"view": "*"}', {"view": "*"}),
    ]
    for (permissions, held), parent in product(cases, (-1, community.help)):  # where everybody may do everything
        created = invision.post("/forums/forums", {"title": "New", "parent": parent, "permissions": permissions})
        assert created.status_code == 201, (permissions, created.text)
        found = run("forums.get", created.json()["id"])["permissions"]
        assert found == {option: held.get(option, []) for option in FORUM}, permissions


def test_permissions_that_are_not_sent_at_all_mean_nobody_too(invision: ApiClient, community: Community, run: Run) -> None:
    created = invision.post("/forums/forums", data={"title": "New", "parent": community.help}).json()
    assert run("forums.get", created["id"])["permissions"] == {option: [] for option in FORUM}
    copied = {"title": "New", "parent": community.help, "copyPermissionsFrom": community.help}
    created = invision.post("/forums/forums", data=copied).json()
    assert run("forums.get", created["id"])["permissions"] == dict.fromkeys(FORUM, "*")


def test_permissions_are_inherited_where_that_is_asked_for(invision: ApiClient, community: Community, run: Run) -> None:
    inherited = {"title": "New", "parent": community.help, "inheritPermissions": "1"}
    created = invision.post("/forums/forums", data=inherited).json()
    assert run("forums.get", created["id"])["permissions"] == dict.fromkeys(FORUM, "*")
    created = invision.post("/forums/forums", data={**inherited, "permissions[add]": "3", "permissions[reply]": ""}).json()
    assert run("forums.get", created["id"])["permissions"] == dict.fromkeys(FORUM, "*") | {"add": [3], "reply": []}
    created = invision.post("/forums/forums", data={**inherited, "inheritPermissions": "0"}).json()
    assert run("forums.get", created["id"])["permissions"] == {option: [] for option in FORUM}


def test_an_option_that_is_left_out_of_an_update_stays(invision: ApiClient, community: Community, run: Run) -> None:
    invision.post(f"/forums/forums/{community.help}", data={"permissions[read]": "3", "permissions[add]": ""})
    held = run("forums.get", community.help)["permissions"]
    assert held == {"view": "*", "read": [3], "add": [], "reply": "*", "attachments": "*"}
    invision.post(f"/forums/forums/{community.help}", data={"title": "Help!"})
    assert run("forums.get", community.help)["permissions"] == held


def test_calendars_take_their_own_names(invision: ApiClient, community: Community, run: Run) -> None:
    sent = {
        "title": "Tours",
        "color": "#10b981",
        "approve_events": "1",
        "allow_comments": "0",
        "approve_comments": "1",
        "allow_reviews": "0",
        "approve_reviews": "1",
        "permissions[view]": "*",
        "permissions[askrsvp]": "3",
        "permissions[rsvp][0]": "4",
    }
    for path in ("/calendar/calendar", "/calendar/calendars"):
        created = invision.post(path, data=sent)
        assert created.status_code == 201, created.text
        ours = run("calendars.get", created.json()["id"])
        assert [ours[name] for name in ("approveEvents", "allowComments", "approveComments", "allowReviews", "approveReviews")] == [
            *(True, False, True, False, True)
        ]
        assert ours["permissions"] == {option: [] for option in ours["permissions"]} | {"view": "*", "askrsvp": [3], "rsvp": [4]}


@pytest.mark.either_engine
def test_a_colour_may_come_without_its_mark(invision: ApiClient, run: Run) -> None:
    for color in ("10b981", "#10B981", " 10b981 "):
        created = invision.post("/calendar/calendars", data={"title": "Tours", "color": color})
        assert created.status_code == 201, created.text
        assert run("calendars.get", created.json()["id"])["color"] == "#10B981"
        invision.post(f"/calendar/calendars/{created.json()['id']}", json={"color": "f0a"})
        assert run("calendars.get", created.json()["id"])["color"] == "#FF00AA"


def test_what_is_no_colour_is_refused(invision: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        for color in ("green", "10b98", "##10b981", 10981, ["10b981"]):
            assert invision.post("/calendar/calendars", json={"title": "Tours", "color": color}).status_code == 400, color


@pytest.mark.either_engine
def test_everybody_may_be_the_only_element_of_a_list(invision: ApiClient, run: Run, sends: list[Send]) -> None:
    for send in sends:
        created = send("POST", "/forums/forums", {"title": "New", "permissions": {"view": ["*"], "read": [3]}})
        assert created.status_code == 201, (send, created.text)
        found = run("forums.get", created.json()["id"])["permissions"]
        assert found == {option: [] for option in FORUM} | {"view": "*", "read": [3]}, send
    mixed = invision.post("/forums/forums", json={"title": "New", "permissions": {"view": ["*", 3]}})
    assert mixed.status_code == 400


def test_a_category_needs_no_title(invision: ApiClient, community: Community, run: Run) -> None:
    for path, sent in (("/downloads/category", {"allowss": "0"}), ("/downloads/categories", {"allowss": "0", "title": " "})):
        created = invision.post(path, data={**sent, "parent": str(community.skins), "permissions[download]": "3"})
        assert created.status_code == 201, created.text
        ours = run("categories.get", created.json()["id"])
        assert ours["name"].startswith("Untitled category, 20")
        assert (ours["parentId"], ours["allowScreenshots"], ours["permissions"]["download"]) == (community.skins, False, [3])
    assert invision.post(f"/downloads/category/{community.tools}", data={"reqss": "1"}).json()["name"] == "Tools"


def test_what_was_read_can_be_sent_back(invision: ApiClient, community: Community, run: Run) -> None:
    for kind, path, number in (
        ("forums", "/forums/forums", community.news),
        ("forums", "/forums/forums", community.betas),
        ("calendars", "/calendar/calendar", community.meetups),
        ("categories", "/downloads/category", community.dark_skins),
    ):
        before = run(f"{kind}.get", number)
        record = invision.get(f"{path}/{number}").json()
        for answer in (invision.post(f"{path}/{number}", record), invision.post(f"{path}/{number}", data=flatten(record))):
            assert answer.status_code == 200, answer.text
            assert "event" not in answer.headers, "nothing has changed"
        renamed = invision.post(f"{path}/{number}", record | {"title": "Another"}).json()
        assert renamed == record | {"name": "Another", "url": renamed["url"]} | (
            {"path": renamed["path"]} if "path" in record else {}
        )
        assert run(f"{kind}.get", number)["permissions"] == before["permissions"]


@pytest.mark.either_engine
@pytest.mark.usefixtures("community")
def test_paging_is_brought_within_bounds_and_the_unknown_is_passed_over(invision: ApiClient) -> None:
    for query, page, per_page in (
        ("page=0", 1, 25),
        ("page=-3", 1, 25),
        ("page=two", 1, 25),
        ("page=", 1, 25),
        ("page=99999999999999", 2**31 - 1, 25),
        ("page=" + "9" * 30, 2**31 - 1, 25),
        ("perPage=5000", 1, 1000),
        ("perPage=0", 1, 1),
        ("perPage=all", 1, 25),
        ("sortBy=title&sortDir=asc", 1, 25),
        ("sortBy=name&sortDir=up", 1, 25),
        ("clubs=1", 1, 25),
        ("clubs=0&unheard_of[]=1&unheard_of[]=2", 1, 25),
        ("unheard_of=1&unheard_of=2", 1, 25),
        ("unheard_of=1&unheard_of[a]=2", 1, 25),
        ("unheard_of[a][b][c][d][e][f]=1", 1, 25),
    ):
        answer = invision.get(f"/forums/forums?{query}")
        assert answer.status_code == 200, (query, answer.text)
        found = answer.json()
        assert (found["page"], found["perPage"], found["totalResults"]) == (page, per_page, 7), query


def test_a_list_is_sorted_by_what_is_known(invision: ApiClient, community: Community) -> None:
    def names(query: str) -> list[str]:
        return [record["name"] for record in invision.get(f"/forums/forums?{query}").json()["results"]]

    assert names("sortBy=name&sortDir=desc")[:2] == ["Wiki", "Staff"]
    assert names("sortBy=title&sortDir=desc") == names("sortDir=desc")


@pytest.mark.either_engine
def test_the_empty_list_that_php_writes_for_no_parameters_is_an_empty_body(invision: ApiClient, community: Community) -> None:
    json = {"Content-Type": "application/json"}
    assert invision.post("/downloads/category", content="[]", headers=json).status_code == 201
    unchanged = invision.post(f"/forums/forums/{community.news}", content=" [ ]", headers=json)
    assert (unchanged.status_code, "event" in unchanged.headers) == (200, False)
    assert invision.delete(f"/calendar/calendar/{community.meetups}", content="[]", headers=json).status_code == 200
    assert invision.post("/downloads/category", content='["A"]', headers=json).status_code == 400


@pytest.mark.either_engine
def test_unknown_parameters_are_ignored_however_they_are_sent(invision: ApiClient) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for unknown in ("_method=a&_method=b", "_method=a&_method[b]=c", "_method[a][b][c][d][e][f]=g"):
        in_body = invision.post("/forums/forums", content=f"title=A&{unknown}", headers=form)
        in_query = invision.post(f"/forums/forums?title=A&{unknown}")
        assert (in_body.status_code, in_query.status_code) == (201, 201), in_body.text + in_query.text
        assert invision.get(f"/forums/forums/{in_body.json()['id']}?{unknown}").json() == in_body.json()
        deleted = [invision.delete(f"/forums/forums/{one.json()['id']}?{unknown}").status_code for one in (in_body, in_query)]
        assert deleted == [200, 200], unknown


@pytest.mark.either_engine
def test_a_known_parameter_that_is_sent_twice_is_refused(invision: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        for query in ("title=A&title=B", "title=C&permissions[view]=3&permissions[view]=4", "title=C&dryRun=1&dryRun=0"):
            assert invision.post(f"/forums/forums?{query}").status_code == 400, query


@pytest.mark.either_engine
def test_of_several_names_for_a_parameter_the_one_that_counts_has_a_value(invision: ApiClient) -> None:
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("title=Query", {"name": "Body"}, "Query"),
        ("name=Query", {"title": "Body"}, "Body"),
        ("", {"name": "Ours", "title": None}, "Ours"),
        ("", {"title": None, "name": "Ours"}, "Ours"),
        ("", {"name": "Ours", "title": "Theirs"}, "Theirs"),
        ("", {"title": "Theirs", "name": "Ours"}, "Theirs"),
    ]
    for query, body, name in cases:
        made = invision.post(f"/forums/forums?{query}", body)
        assert (made.status_code, made.json().get("name")) == (201, name), (query, body)


def test_a_create_that_is_repeated_is_answered_from_the_first(invision: ApiClient, run: Run) -> None:
    token = {"Idempotency-Key": "once"}
    first = invision.post("/downloads/category", data={"allowss": "1"}, headers=token)
    again = invision.post("/downloads/category", data={"allowss": "1"}, headers=token)
    assert (first.status_code, again.status_code, again.headers["idempotent-replayed"]) == (201, 201, "true")
    assert first.json() == again.json()
    assert run("categories.list")["totalResults"] == 1


PROBES: tuple[Any, ...] = (
    None,
    "",
    0,
    -1,
    1.5,
    10**30,
    True,
    "x",
    "null",
    [],
    [[]],
    [None, ""],
    {},
    {"x": {"y": 1}},
    '{"x":',
    "[1]",
)


def test_whatever_is_sent_is_accepted_or_refused(
    engine: str, invision: ApiClient, community: Community, gate: Gate, database: DatabaseState
) -> None:
    """Each name gets half of the probes on the one engine, and the others on the other one."""
    probed: list[Field] = []  # what kinds share is probed with the first of them
    with database.unchanged():
        for operation, path in (
            ("forums.create", "/forums/forums"),
            ("calendars.create", "/calendar/calendar"),
            ("categories.create", "/downloads/category"),
        ):
            fields = [field for field in gate.catalogue[operation].takes if field not in probed and field.name != "dryRun"]
            probed += fields
            names = [name for field in fields for name in (field.name, *field.also)]
            for at, name in enumerate((*names, "permissions[view]", "permissions[perm_2]", "unheard_of")):
                head, _, option = name.rstrip("]").partition("[")
                for probe in PROBES[(at + (engine == "sqlite")) % 2 :: 2]:
                    sent = {head: {option: probe}} if option else {head: probe}
                    answer = invision.post(f"{path}?dryRun=1", {"title": "Dry", **sent})
                    assert answer.status_code in {200, 400, 409}, (path, name, probe, answer.text)
                    assert answer.status_code == 200 or list(answer.json()) == ["errorCode", "errorMessage"]
            for probe in PROBES:
                if probe not in (0, 1, True):
                    assert invision.post(f"{path}?dryRun=1", {"title": "Dry", "dryRun": probe}).status_code == 400, probe
