"""Creating, changing, placing and moving over REST: what becomes of it, and every refusal of the contract."""

from typing import Any

import pytest

from tests.caller import Caller, Json, faults, refusal
from tests.cast import ADMINISTRATORS, MEMBERS, Cast
from tests.witness import Witness

FORUMS = "/forums/forums"


def order(api: Caller, parent: int | str = "root", path: str = FORUMS) -> list[str]:
    """Give the names of the children in their order, having seen that they are numbered without gaps."""
    listed = api.get(f"{path}?parentId={parent}&sortBy=position").json()["results"]
    assert [node["position"] for node in listed] == list(range(len(listed)))
    return [node["name"] for node in listed]


def test_what_is_not_sent_stays(api: Caller, cast: Cast) -> None:
    before = api.get(f"{FORUMS}/{cast.news}").json()
    after = api.post(f"{FORUMS}/{cast.news}", {"minContent": 5, "permissions": {"reply": "*"}}).json()
    assert after == before | {"minContent": 5, "permissions": before["permissions"] | {"reply": "*"}}


def test_what_get_answers_can_be_sent_back_as_another_node(api: Caller, cast: Cast) -> None:
    got = api.get(f"{FORUMS}/{cast.help}").json()
    made = api.post(FORUMS, got).json()
    assert made["id"] != got["id"]
    own = {"id", "url", "position", "createdAt", "updatedAt"}
    assert {k: v for k, v in made.items() if k not in own} == {k: v for k, v in got.items() if k not in own}
    assert order(api) == ["News", "Help", "Help", "Wiki", "Staff"]


def test_booleans_come_in_several_spellings(api: Caller, cast: Cast) -> None:
    path = f"/calendar/calendar/{cast.meetups}"
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
        assert faults(api.post(path, {"allowComments": value})) == {"allowComments": "INVALID_VALUE"}


@pytest.mark.parametrize("root", [None, "", 0, -1, "0", "-1"])
def test_the_top_level_has_several_spellings(api: Caller, cast: Cast, root: Any) -> None:
    moved = api.post(f"{FORUMS}/{cast.releases}", {"parentId": root}).json()
    assert (moved["parentId"], moved["position"], moved["path"]) == (None, 4, "Releases")
    assert api.get(f"{FORUMS}/{cast.betas}").json()["path"] == "Releases > Betas"
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
def test_one_call_moves_a_node_to_its_place(api: Caller, cast: Cast, witness: Witness, place: Json, expected: list[str]) -> None:
    meant = {name: getattr(cast, value) if name != "position" else value for name, value in place.items()}
    with witness.news() as news:
        moved = api.post(f"{FORUMS}/{cast.staff}", meant)
    assert moved.status_code == 200, moved.text
    assert order(api) == expected
    assert len(news()) == (expected != ["News", "Help", "Wiki", "Staff"])
    if "parentId" in place:
        assert order(api, cast.news) == ["Releases", "Interviews", "Staff"]


def test_a_move_under_another_parent_takes_a_place_among_its_children(api: Caller, cast: Cast) -> None:
    moved = api.post(f"{FORUMS}/{cast.help}", {"parentId": cast.news, "after": cast.releases}).json()
    assert (moved["parentId"], moved["position"], moved["path"]) == (cast.news, 1, "News > Help")
    assert order(api, cast.news) == ["Releases", "Help", "Interviews"]
    assert order(api) == ["News", "Wiki", "Staff"]


def test_a_new_node_may_be_placed_too(api: Caller, cast: Cast) -> None:
    assert api.post(FORUMS, {"name": "First", "before": cast.news}).json()["position"] == 0
    assert api.post(FORUMS, {"name": "Third", "parentId": cast.news, "position": 2}).json()["position"] == 2
    assert order(api) == ["First", "News", "Help", "Wiki", "Staff"]
    assert order(api, cast.news) == ["Releases", "Interviews", "Third"]
    assert api.post("/calendar/calendar", {"name": "Middle", "after": cast.meetups}).json()["position"] == 1


def test_a_place_that_is_none_is_refused(api: Caller, cast: Cast, witness: Witness) -> None:
    both = {"position": "INVALID_POSITION", "before": "INVALID_POSITION"}
    with witness.nothing():
        for path in (FORUMS, f"{FORUMS}/{cast.staff}"):
            for body, at_fault in (
                ({"before": cast.releases}, {"before": "INVALID_POSITION"}),
                ({"after": 999}, {"after": "INVALID_POSITION"}),
                ({"parentId": cast.news, "before": cast.help}, {"before": "INVALID_POSITION"}),
                ({"position": 0, "before": cast.news}, both),
                ({"position": -1}, {"position": "INVALID_VALUE"}),
                ({"before": 0}, {"before": "INVALID_VALUE"}),
            ):
                assert faults(api.post(path, {"name": "Lost"} | body)) == at_fault, body
        assert faults(api.post(f"{FORUMS}/{cast.staff}", {"before": cast.staff})) == {"before": "INVALID_POSITION"}


def test_a_parent_that_cannot_be_one_is_refused(api: Caller, cast: Cast, witness: Witness) -> None:
    wrong = {"parentId": "INVALID_PARENT"}
    with witness.nothing():
        for path in (FORUMS, f"{FORUMS}/{cast.news}"):
            for parent in (999, cast.wiki, "x", 1.5, True, [1], {"id": 1}, -2, 2**63, 2**200):
                assert faults(api.post(path, {"name": "Lost", "parentId": parent})) == wrong, parent
        for below in (cast.news, cast.releases, cast.betas):
            document = refusal(api.post(f"{FORUMS}/{cast.news}", {"parentId": below}), 400, "INVALID_PARENT")
            assert document["errorCode"] == "1T101/3"
        assert faults(api.post("/calendar/calendar", {"name": "Flat", "parentId": 1})) == {"parentId": "UNKNOWN_PARAMETER"}


def test_a_parent_of_another_kind_is_no_parent(api: Caller, cast: Cast, witness: Witness) -> None:
    other = api.post("/downloads/category", {"name": "x"}).json()["id"]
    while other <= cast.staff:
        other = api.post("/downloads/category", {"name": "x"}).json()["id"]
    with witness.nothing():
        assert faults(api.post(FORUMS, {"name": "Lost", "parentId": other})) == {"parentId": "INVALID_PARENT"}
        assert faults(api.post(f"{FORUMS}/{cast.staff}", {"parentId": other})) == {"parentId": "INVALID_PARENT"}
        assert faults(api.post(f"{FORUMS}/{cast.staff}", {"copyPermissionsFrom": other})) == {
            "copyPermissionsFrom": "INVALID_VALUE"
        }


def test_a_name_is_needed_and_each_resource_says_so_with_its_own_code(api: Caller, witness: Witness) -> None:
    codes = {"/forums/forums": "1F363/2", "/calendar/calendar": "1L364/2", "/downloads/category": "1D365/2"}
    with witness.nothing():
        for path, code in codes.items():
            for body in ({}, {"name": ""}, {"name": None}, {"name": " \u00a0\t "}, {"title": ""}):
                answer = api.post(path, body)
                document = refusal(answer, 400, "NO_TITLE")
                assert document["errorCode"] == code
                assert faults(answer) == {"name": "NO_TITLE"}
    number = api.post("/calendar/calendar", {"name": "Named"}).json()["id"]
    with witness.nothing():
        assert faults(api.post(f"/calendar/calendar/{number}", {"name": " "})) == {"name": "NO_TITLE"}


def test_names_have_a_length_and_no_controls(api: Caller, witness: Witness) -> None:
    with witness.nothing():
        for name in ("x" * 256, "a\x00b", "a\nb", "a\x7fb", "a\x85b", "a\u2028b", 7, True, ["x"], {"x": 1}):
            assert faults(api.post(FORUMS, {"name": name})) == {"name": "INVALID_VALUE"}, repr(name)
        assert faults(api.post(FORUMS, {"name": None})) == {"name": "NO_TITLE"}
    assert api.post(FORUMS, {"name": f"  {'é' * 255}  "}).json()["name"] == "é" * 255
    assert api.post(FORUMS, {"name": "\U0001f30d <b>\"'&</b>"}).json()["name"] == "\U0001f30d <b>\"'&</b>"


def test_a_redirect_needs_an_address_and_has_no_children(api: Caller, cast: Cast, witness: Witness) -> None:
    with witness.nothing():
        answer = api.post(FORUMS, {"name": "Out", "type": "redirect"})
        assert refusal(answer, 400, "NO_REDIRECT_URL")["errorCode"] == "1F363/3"
        assert faults(answer) == {"redirectUrl": "NO_REDIRECT_URL"}
        assert faults(api.post(f"{FORUMS}/{cast.wiki}", {"redirectUrl": None})) == {"redirectUrl": "NO_REDIRECT_URL"}
        for url in ("javascript:alert(1)", "ftp://x.example/", "//x.example", "https://", "https://a b/", "x" * 3000, 5):
            assert faults(api.post(f"{FORUMS}/{cast.wiki}", {"redirectUrl": url})) == {"redirectUrl": "INVALID_VALUE"}, url
        to_redirect = {"type": "redirect", "redirectUrl": "https://x.example/"}
        assert faults(api.post(f"{FORUMS}/{cast.news}", to_redirect)) == {"type": "INVALID_VALUE"}
        assert faults(api.post(FORUMS, {"name": "Under", "parentId": cast.wiki})) == {"parentId": "INVALID_PARENT"}
    assert api.post(f"{FORUMS}/{cast.staff}", to_redirect).json()["type"] == "redirect"


def test_types_have_older_names(api: Caller, cast: Cast, witness: Witness) -> None:
    for sent, kept in (("qa", "questions"), ("normal", "discussions"), ("category", "category"), ("questions", "questions")):
        assert api.post(f"{FORUMS}/{cast.staff}", {"type": sent}).json()["type"] == kept
    with witness.nothing():
        for wrong in ("chat", "", None, 1, "QA "):
            answer = api.post(f"{FORUMS}/{cast.staff}", {"type": wrong})
            assert refusal(answer, 400, "INVALID_TYPE")["errorCode"] == "1F363/4"


def test_a_password_goes_in_and_never_comes_out(api: Caller, cast: Cast, witness: Witness) -> None:
    path = f"{FORUMS}/{cast.staff}"
    with witness.news() as news:
        assert api.post(path, {"password": "open sesame"}).json()["passwordProtected"] is True
        assert api.post(path, {"password": "close sesame"}).status_code == 200
        assert api.post(path, {"password": "close sesame"}).status_code == 200
    assert [event["changed"] for event in news()] == [["passwordProtected", "password"], ["password"]]
    assert "password" not in api.get(path).json()
    assert "sesame" not in str(witness.rows())
    assert api.post(path, {"password": ""}).json()["passwordProtected"] is False


def test_permissions_are_the_same_object_in_and_out(api: Caller, cast: Cast) -> None:
    given = {"view": "*", "read": [cast.patrons, MEMBERS, MEMBERS], "add": [], "reply": "3,4", "attachments": [str(MEMBERS)]}
    kept = {"view": "*", "read": [MEMBERS, cast.patrons], "add": [], "reply": [MEMBERS, ADMINISTRATORS], "attachments": [MEMBERS]}
    made = api.post(FORUMS, {"name": "Gated", "permissions": given}).json()
    assert made["permissions"] == kept
    assert api.post(f"{FORUMS}/{made['id']}", {"permissions": kept}).json() == made


def test_permissions_left_out_are_nobodys_at_the_top_and_the_parents_below(api: Caller, cast: Cast) -> None:
    top = api.post(FORUMS, {"name": "Top", "permissions": {"view": "*"}}).json()
    assert top["permissions"] == {"view": "*", "read": [], "add": [], "reply": [], "attachments": []}
    below = api.post(FORUMS, {"name": "Below", "parentId": cast.news, "permissions": {"view": []}}).json()
    assert below["permissions"] == api.get(f"{FORUMS}/{cast.news}").json()["permissions"] | {"view": []}


def test_permissions_can_be_copied_from_a_node_of_the_same_kind(api: Caller, cast: Cast) -> None:
    source = api.get(f"{FORUMS}/{cast.help}").json()["permissions"]
    copied = api.post(f"{FORUMS}/{cast.staff}", {"copyPermissionsFrom": cast.help, "permissions": {"add": []}}).json()
    assert copied["permissions"] == source | {"add": []}
    assert api.post(FORUMS, {"name": "Copy", "copyPermissionsFrom": cast.help}).json()["permissions"] == source


def test_permissions_of_groups_that_do_not_exist_are_refused_by_name(api: Caller, cast: Cast, witness: Witness) -> None:
    with witness.nothing():
        for path in (FORUMS, f"{FORUMS}/{cast.news}"):
            answer = api.post(path, {"name": "Gated", "permissions": {"view": [MEMBERS, 77, 78], "read": "*", "add": [79]}})
            assert faults(answer) == {"permissions.view": "INVALID_GROUP", "permissions.add": "INVALID_GROUP"}
            assert "77, 78" in answer.json()["errors"][0]["message"]
            for wrong in ({"view": "all"}, {"view": [0]}, {"view": None}, {"view": {"x": 1}}, "*", [1], 5):
                assert set(faults(api.post(path, {"name": "Gated", "permissions": wrong})).values()) == {"INVALID_VALUE"}, wrong
            assert faults(api.post(path, {"name": "x", "permissions": {"fly": "*"}})) == {"permissions": "UNKNOWN_PARAMETER"}


def test_every_field_at_fault_is_told_at_once(api: Caller, cast: Cast, witness: Witness) -> None:
    body = {
        "nmae": "News",
        "type": "redirect",
        "theme": "dark",
        "sitemapPriority": 10,
        "canSeeOthers": "maybe",
        "parentId": 999,
        "permissions": {"view": [77]},
    }
    with witness.nothing():
        answer = api.post(FORUMS, body)
    assert faults(answer) == {
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


def test_html_is_sanitised_on_the_way_in(api: Caller) -> None:
    hostile = '<p onclick="x()">Hi <script>alert(1)</script><a href="javascript:x">there</a><img src=x onerror=alert(1)></p>'
    kept = api.post(FORUMS, {"name": "Safe", "description": hostile}).json()["description"]
    assert "<p>Hi " in kept
    for evil in ("script", "onclick", "onerror", "javascript", "alert"):
        assert evil not in kept
