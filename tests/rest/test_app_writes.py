"""Creating, changing, placing and moving over REST: what becomes of it, and every refusal of the contract."""

from typing import Any

import pytest

from tests.api_client import ApiClient, Json, read_field_errors, read_refusal
from tests.community import ADMINISTRATORS, MEMBERS, Community
from tests.database_state import DatabaseState

FORUMS = "/forums/forums"


def order(api: ApiClient, parent: int | str = "root", path: str = FORUMS) -> list[str]:
    """Return the names of the children in their order, having seen that they are numbered without gaps."""
    listed = api.get(f"{path}?parentId={parent}&sortBy=position").json()["results"]
    assert [node["position"] for node in listed] == list(range(len(listed)))
    return [node["name"] for node in listed]


def test_what_is_not_sent_stays(api: ApiClient, community: Community) -> None:
    before = api.get(f"{FORUMS}/{community.news}").json()
    after = api.post(f"{FORUMS}/{community.news}", {"minContent": 5, "permissions": {"reply": "*"}}).json()
    assert after == before | {"minContent": 5, "permissions": before["permissions"] | {"reply": "*"}}


def test_what_get_answers_can_be_sent_back_as_another_node(api: ApiClient, community: Community) -> None:
    got = api.get(f"{FORUMS}/{community.help}").json()
    made = api.post(FORUMS, got).json()
    assert made["id"] != got["id"]
    own = {"id", "url", "position", "createdAt", "updatedAt"}
    assert {k: v for k, v in made.items() if k not in own} == {k: v for k, v in got.items() if k not in own}
    assert order(api) == ["News", "Help", "Help", "Wiki", "Staff"]


@pytest.mark.either_engine
def test_booleans_come_in_several_spellings(api: ApiClient, community: Community) -> None:
    path = f"/calendar/calendar/{community.meetups}"
    for sent, kept in (
        (False, False),
        (True, True),
        (0, False),
        (1, True),
        ("false", False),
        ("true", True),
        ("0", False),
        ("1", True),
    ):
        assert api.post(path, {"allowComments": sent}).json()["allowComments"] is kept
    wrong: tuple[Any, ...] = ("yes", "", None, 2, -1, 1.5, [], {}, "TRUE FALSE")
    for value in wrong:
        assert read_field_errors(api.post(path, {"allowComments": value})) == {"allowComments": "INVALID_VALUE"}


@pytest.mark.either_engine
@pytest.mark.parametrize("root", [None, "", 0, -1, "0", "-1"])
def test_the_top_level_has_several_spellings(api: ApiClient, community: Community, root: Any) -> None:
    moved = api.post(f"{FORUMS}/{community.releases}", {"parentId": root}).json()
    assert (moved["parentId"], moved["position"], moved["path"]) == (None, 4, "Releases")
    assert api.get(f"{FORUMS}/{community.betas}").json()["path"] == "Releases > Betas"
    assert api.post(FORUMS, {"name": "Top", "parent": root}).json()["parentId"] is None


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({}, ["News", "Help", "Wiki", "Staff"]),
        ({"position": 0}, ["Staff", "News", "Help", "Wiki"]),
        ({"position": "2"}, ["News", "Help", "Staff", "Wiki"]),
        ({"position": 99}, ["News", "Help", "Wiki", "Staff"]),
        ({"before": "news"}, ["Staff", "News", "Help", "Wiki"]),
        ({"before": "wiki"}, ["News", "Help", "Staff", "Wiki"]),
        ({"after": "news"}, ["News", "Staff", "Help", "Wiki"]),
        ({"after": "wiki"}, ["News", "Help", "Wiki", "Staff"]),
        ({"parentId": "news"}, ["News", "Help", "Wiki"]),
    ],
)
def test_one_call_moves_a_node_to_its_place(
    api: ApiClient, community: Community, database: DatabaseState, place: Json, expected: list[str]
) -> None:
    meant = {name: getattr(community, value) if name != "position" else value for name, value in place.items()}
    with database.new_events() as new_events:
        moved = api.post(f"{FORUMS}/{community.staff}", meant)
    assert moved.status_code == 200, moved.text
    assert order(api) == expected
    assert len(new_events()) == (expected != ["News", "Help", "Wiki", "Staff"])
    if "parentId" in place:
        assert order(api, community.news) == ["Releases", "Interviews", "Staff"]


def test_a_move_under_another_parent_takes_a_place_among_its_children(api: ApiClient, community: Community) -> None:
    moved = api.post(f"{FORUMS}/{community.help}", {"parentId": community.news, "after": community.releases}).json()
    assert (moved["parentId"], moved["position"], moved["path"]) == (community.news, 1, "News > Help")
    assert order(api, community.news) == ["Releases", "Help", "Interviews"]
    assert order(api) == ["News", "Wiki", "Staff"]


def test_a_new_node_may_be_placed_too(api: ApiClient, community: Community) -> None:
    assert api.post(FORUMS, {"name": "First", "before": community.news}).json()["position"] == 0
    assert api.post(FORUMS, {"name": "Third", "parentId": community.news, "position": 2}).json()["position"] == 2
    assert order(api) == ["First", "News", "Help", "Wiki", "Staff"]
    assert order(api, community.news) == ["Releases", "Interviews", "Third"]
    assert api.post("/calendar/calendar", {"name": "Middle", "after": community.meetups}).json()["position"] == 1


def test_a_place_that_is_none_is_refused(api: ApiClient, community: Community, database: DatabaseState) -> None:
    both = {"position": "INVALID_POSITION", "before": "INVALID_POSITION"}
    with database.unchanged():
        for path in (FORUMS, f"{FORUMS}/{community.staff}"):
            for body, at_fault in (
                ({"before": community.releases}, {"before": "INVALID_POSITION"}),
                ({"after": 999}, {"after": "INVALID_POSITION"}),
                ({"parentId": community.news, "before": community.help}, {"before": "INVALID_POSITION"}),
                ({"position": 0, "before": community.news}, both),
                ({"position": -1}, {"position": "INVALID_VALUE"}),
                ({"before": 0}, {"before": "INVALID_VALUE"}),
            ):
                assert read_field_errors(api.post(path, {"name": "Lost"} | body)) == at_fault, body
        assert read_field_errors(api.post(f"{FORUMS}/{community.staff}", {"before": community.staff})) == {
            "before": "INVALID_POSITION"
        }


def test_a_parent_that_cannot_be_one_is_refused(api: ApiClient, community: Community, database: DatabaseState) -> None:
    wrong = {"parentId": "INVALID_PARENT"}
    with database.unchanged():
        for path in (FORUMS, f"{FORUMS}/{community.news}"):
            for parent in (999, community.wiki, "x", 1.5, True, [1], {"id": 1}, -2, 2**63, 2**200):
                assert read_field_errors(api.post(path, {"name": "Lost", "parentId": parent})) == wrong, parent
        for below in (community.news, community.releases, community.betas):
            document = read_refusal(api.post(f"{FORUMS}/{community.news}", {"parentId": below}), 400, "INVALID_PARENT")
            assert document["errorCode"] == "1T101/3"
        assert read_field_errors(api.post("/calendar/calendar", {"name": "Flat", "parentId": 1})) == {
            "parentId": "UNKNOWN_PARAMETER"
        }


def test_a_parent_of_another_kind_is_no_parent(api: ApiClient, community: Community, database: DatabaseState) -> None:
    other = api.post("/downloads/category", {"name": "x"}).json()["id"]
    while other <= community.staff:
        other = api.post("/downloads/category", {"name": "x"}).json()["id"]
    with database.unchanged():
        assert read_field_errors(api.post(FORUMS, {"name": "Lost", "parentId": other})) == {"parentId": "INVALID_PARENT"}
        assert read_field_errors(api.post(f"{FORUMS}/{community.staff}", {"parentId": other})) == {"parentId": "INVALID_PARENT"}
        assert read_field_errors(api.post(f"{FORUMS}/{community.staff}", {"copyPermissionsFrom": other})) == {
            "copyPermissionsFrom": "INVALID_VALUE"
        }


@pytest.mark.either_engine
def test_a_name_is_needed_and_each_resource_says_so_with_its_own_code(api: ApiClient, database: DatabaseState) -> None:
    codes = {"/forums/forums": "1F363/2", "/calendar/calendar": "1L364/2", "/downloads/category": "1D365/2"}
    with database.unchanged():
        for path, code in codes.items():
            for body in ({}, {"name": ""}, {"name": None}, {"name": " \u00a0\t "}, {"title": ""}):
                answer = api.post(path, body)
                document = read_refusal(answer, 400, "NO_TITLE")
                assert document["errorCode"] == code
                assert read_field_errors(answer) == {"name": "NO_TITLE"}
    number = api.post("/calendar/calendar", {"name": "Named"}).json()["id"]
    with database.unchanged():
        assert read_field_errors(api.post(f"/calendar/calendar/{number}", {"name": " "})) == {"name": "NO_TITLE"}


def test_names_have_a_length_and_no_controls(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        for name in ("x" * 256, "a\x00b", "a\nb", "a\x7fb", "a\x85b", "a\u2028b", 7, True, ["x"], {"x": 1}):
            assert read_field_errors(api.post(FORUMS, {"name": name})) == {"name": "INVALID_VALUE"}, repr(name)
        assert read_field_errors(api.post(FORUMS, {"name": None})) == {"name": "NO_TITLE"}
    assert api.post(FORUMS, {"name": f"  {'é' * 255}  "}).json()["name"] == "é" * 255
    assert api.post(FORUMS, {"name": "\U0001f30d <b>\"'&</b>"}).json()["name"] == "\U0001f30d <b>\"'&</b>"


def test_a_redirect_needs_an_address_and_has_no_children(api: ApiClient, community: Community, database: DatabaseState) -> None:
    with database.unchanged():
        answer = api.post(FORUMS, {"name": "Out", "type": "redirect"})
        assert read_refusal(answer, 400, "NO_REDIRECT_URL")["errorCode"] == "1F363/3"
        assert read_field_errors(answer) == {"redirectUrl": "NO_REDIRECT_URL"}
        assert read_field_errors(api.post(f"{FORUMS}/{community.wiki}", {"redirectUrl": None})) == {
            "redirectUrl": "NO_REDIRECT_URL"
        }
        for url in ("javascript:alert(1)", "ftp://x.example/", "//x.example", "https://", "https://a b/", "x" * 3000, 5):
            assert read_field_errors(api.post(f"{FORUMS}/{community.wiki}", {"redirectUrl": url})) == {
                "redirectUrl": "INVALID_VALUE"
            }, url
        to_redirect = {"type": "redirect", "redirectUrl": "https://x.example/"}
        assert read_field_errors(api.post(f"{FORUMS}/{community.news}", to_redirect)) == {"type": "INVALID_VALUE"}
        assert read_field_errors(api.post(FORUMS, {"name": "Under", "parentId": community.wiki})) == {"parentId": "INVALID_PARENT"}
    assert api.post(f"{FORUMS}/{community.staff}", to_redirect).json()["type"] == "redirect"


@pytest.mark.either_engine
def test_types_have_older_names(api: ApiClient, community: Community, database: DatabaseState) -> None:
    for sent, kept in (("qa", "questions"), ("normal", "discussions"), ("category", "category"), ("questions", "questions")):
        assert api.post(f"{FORUMS}/{community.staff}", {"type": sent}).json()["type"] == kept
    with database.unchanged():
        for wrong in ("chat", "", None, 1, "QA "):
            answer = api.post(f"{FORUMS}/{community.staff}", {"type": wrong})
            assert read_refusal(answer, 400, "INVALID_TYPE")["errorCode"] == "1F363/4"


def test_a_password_goes_in_and_never_comes_out(api: ApiClient, community: Community, database: DatabaseState) -> None:
    path = f"{FORUMS}/{community.staff}"
    with database.new_events() as new_events:
        assert api.post(path, {"password": "open sesame"}).json()["passwordProtected"] is True
        assert api.post(path, {"password": "close sesame"}).status_code == 200
        assert api.post(path, {"password": "close sesame"}).status_code == 200
    assert [event["changed"] for event in new_events()] == [["passwordProtected", "password"], ["password"]]
    assert "password" not in api.get(path).json()
    assert "sesame" not in str(database.rows())
    assert api.post(path, {"password": ""}).json()["passwordProtected"] is False


def test_permissions_are_the_same_object_in_and_out(api: ApiClient, community: Community) -> None:
    given = {"view": "*", "read": [community.patrons, MEMBERS, MEMBERS], "add": [], "reply": "3,4", "attachments": [str(MEMBERS)]}
    kept = {
        "view": "*",
        "read": [MEMBERS, community.patrons],
        "add": [],
        "reply": [MEMBERS, ADMINISTRATORS],
        "attachments": [MEMBERS],
    }
    made = api.post(FORUMS, {"name": "Gated", "permissions": given}).json()
    assert made["permissions"] == kept
    assert api.post(f"{FORUMS}/{made['id']}", {"permissions": kept}).json() == made


def test_permissions_left_out_are_nobodys_at_the_top_and_the_parents_below(api: ApiClient, community: Community) -> None:
    top = api.post(FORUMS, {"name": "Top", "permissions": {"view": "*"}}).json()
    assert top["permissions"] == {"view": "*", "read": [], "add": [], "reply": [], "attachments": []}
    below = api.post(FORUMS, {"name": "Below", "parentId": community.news, "permissions": {"view": []}}).json()
    assert below["permissions"] == api.get(f"{FORUMS}/{community.news}").json()["permissions"] | {"view": []}


def test_permissions_can_be_copied_from_a_node_of_the_same_kind(api: ApiClient, community: Community) -> None:
    source = api.get(f"{FORUMS}/{community.help}").json()["permissions"]
    copied = api.post(f"{FORUMS}/{community.staff}", {"copyPermissionsFrom": community.help, "permissions": {"add": []}}).json()
    assert copied["permissions"] == source | {"add": []}
    assert api.post(FORUMS, {"name": "Copy", "copyPermissionsFrom": community.help}).json()["permissions"] == source


def test_permissions_of_groups_that_do_not_exist_are_refused_by_name(
    api: ApiClient, community: Community, database: DatabaseState
) -> None:
    with database.unchanged():
        for path in (FORUMS, f"{FORUMS}/{community.news}"):
            answer = api.post(path, {"name": "Gated", "permissions": {"view": [MEMBERS, 77, 78], "read": "*", "add": [79]}})
            assert read_field_errors(answer) == {"permissions.view": "INVALID_GROUP", "permissions.add": "INVALID_GROUP"}
            assert "77, 78" in answer.json()["errors"][0]["message"]
            for wrong in ({"view": "all"}, {"view": [0]}, {"view": None}, {"view": {"x": 1}}, "*", [1], 5):
                assert set(read_field_errors(api.post(path, {"name": "Gated", "permissions": wrong})).values()) == {
                    "INVALID_VALUE"
                }, wrong
            assert read_field_errors(api.post(path, {"name": "x", "permissions": {"fly": "*"}})) == {
                "permissions": "UNKNOWN_PARAMETER"
            }


def test_every_field_at_fault_is_told_at_once(api: ApiClient, community: Community, database: DatabaseState) -> None:
    body = {
        "nmae": "News",
        "type": "redirect",
        "theme": "dark",
        "sitemapPriority": 10,
        "canSeeOthers": "maybe",
        "parentId": 999,
        "permissions": {"view": [77]},
    }
    with database.unchanged():
        answer = api.post(FORUMS, body)
    assert read_field_errors(answer) == {
        "name": "NO_TITLE",
        "theme": "INVALID_VALUE",
        "sitemapPriority": "INVALID_VALUE",
        "canSeeOthers": "INVALID_VALUE",
        "parentId": "INVALID_PARENT",
        "redirectUrl": "NO_REDIRECT_URL",
        "permissions.view": "INVALID_GROUP",
        "nmae": "UNKNOWN_PARAMETER",
    }
    assert "Did you mean name?" in answer.json()["errors"][-1]["message"]


@pytest.mark.either_engine
def test_html_is_sanitised_on_the_way_in(api: ApiClient) -> None:
    hostile = '<p onclick="x()">Hi <script>alert(1)</script><a href="javascript:x">there</a><img src=x onerror=alert(1)></p>'
    kept = api.post(FORUMS, {"name": "Safe", "description": hostile}).json()["description"]
    assert "<p>Hi " in kept
    for evil in ("script", "onclick", "onerror", "javascript", "alert"):
        assert evil not in kept
