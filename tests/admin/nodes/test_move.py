"""Moving a node: by the form, by what a script sends, and what is noticed when somebody else was quicker."""

from typing import Any

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form
from tests.community import Community
from tests.fixture_types import Events, Run
from trellis.admin.nodes import move

_JSON = {"accept": "application/json"}


def _order(run: Run, kind: str = "forums", **under: Any) -> list[str]:
    return [one["name"] for one in run(f"{kind}.list", sortBy="position", **under)["results"]]


def _move(admin: Visitor, path: str, *more: tuple[str, str], **changes: str) -> Any:
    return admin.post(f"{path}/move", find_form(admin.get(f"{path}/move"), "/move").filled(*more, **changes))


def test_the_form_puts_it_anywhere_among_its_siblings(admin: Visitor, community: Community, run: Run) -> None:
    for place, wanted in (
        ({"place": "first"}, ["Staff", "News", "Help", "Wiki"]),
        ({"place": "last"}, ["News", "Help", "Wiki", "Staff"]),
        ({"place": "before", "sibling": str(community.help)}, ["News", "Staff", "Help", "Wiki"]),
        ({"place": "after", "sibling": str(community.news)}, ["News", "Staff", "Help", "Wiki"]),
        ({"place": "at", "position": "2"}, ["News", "Help", "Staff", "Wiki"]),
    ):
        response = _move(admin, f"/forums/{community.staff}", **place)
        assert response.status_code == 303, place
        assert response.headers["location"].endswith(f"#node-{community.staff}")
        assert _order(run, parentId="root") == wanted, place


def test_the_form_puts_it_under_another_one_that_a_search_has_found(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    path, before = f"/forums/{community.staff}", events()
    drawn = find_form(admin.get(f"{path}/move"), "/move")
    found = admin.post(f"{path}/move", drawn.filled(**{"_search.parentId": "relea", "_action": "search"}))
    assert found.status_code == 200
    assert ("parentId", str(community.releases)) in find_form(found, "/move").offered
    looked = admin.post(f"{path}/move", find_form(found, "/move").filled(parentId=str(community.releases), _action="look"))
    assert ("sibling", str(community.betas)) in find_form(looked, "/move").offered
    assert events() == before
    last = find_form(looked, "/move").filled(place="before", sibling=str(community.betas), _action="save")
    response = admin.post(f"{path}/move", last)
    assert response.headers["location"] == f"/admin/forums?open={community.news},{community.releases}#node-{community.staff}"
    assert _order(run, parentId=community.releases) == ["Staff", "Betas"]
    assert [event["operation"] for event in events()[len(before) :]] == ["forums.update"]


def test_what_cannot_be_is_said(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    tried: tuple[tuple[object, dict[str, str], str], ...] = (
        (community.staff, {"place": "last"}, "cannot be moved under itself"),
        (community.wiki, {"place": "last"}, "redirect"),
        ("999", {"place": "last"}, "no forum 999"),
        ("zzz", {"place": "last"}, "must be a parent's id"),
        ("", {"place": "before"}, "Choose the forum to put it before"),
        ("", {"place": "before", "sibling": "3"}, "no other forum 3"),
        ("", {"place": "nowhere"}, "Choose a place"),
        ("", {"place": "at", "position": "many"}, "whole number"),
        ("", {"place": "last", "name": "New"}, "no field 'name'"),
    )
    for parent, place, said in tried:
        response = _move(admin, f"/forums/{community.staff}", parentId=str(parent), **place)
        assert response.status_code == 400, said
        assert said in page_text(response)
    assert events() == before


def test_a_parent_that_was_deleted_meanwhile_is_said_without_what_programs_send(
    admin: Visitor, community: Community, run: Run
) -> None:
    run("forums.delete", community.help)
    gone = {"parentId": str(community.help)}
    script = admin.post(
        f"/forums/{community.staff}/move", {"_version": _seen(admin, f"/forums/{community.staff}"), **gone}, headers=_JSON
    )
    new = find_form(admin.get("/forums/new"), "/forums/new").filled(name="Late", **gone)
    for told in (
        page_text(_move(admin, f"/forums/{community.staff}", place="last", **gone)),
        page_text(admin.post("/forums/new", new)),
        script.json()["detail"],
    ):
        assert f"here is no forum {community.help}; it may have been deleted." in told
        assert "parentId" not in told
        assert "Send " not in told
    beside = _move(admin, f"/forums/{community.staff}", parentId="", place="before", sibling=str(community.help))
    assert "Send " not in page_text(beside)


def test_below_itself_is_not_offered_and_refused(admin: Visitor, community: Community) -> None:
    path = f"/forums/{community.news}"
    found = admin.post(
        f"{path}/move", find_form(admin.get(f"{path}/move"), "/move").filled(**{"_search.parentId": "e", "_action": "search"})
    )
    offered = {value for name, value in find_form(found, "/move").offered if name == "parentId"}
    assert str(community.help) in offered
    assert not offered & {str(community.news), str(community.releases), str(community.betas)}
    assert "below it" in page_text(_move(admin, path, parentId=str(community.betas), place="last"))


def test_one_that_has_moved_meanwhile_is_noticed(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    path = f"/forums/{community.staff}"
    drawn = find_form(admin.get(f"{path}/move"), "/move")
    run("forums.update", community.staff, parentId=community.news)
    before = events()
    response = admin.post(f"{path}/move", drawn.filled(place="first"))
    assert response.status_code == 409
    assert "News > Staff" in page_text(response)
    assert events() == before
    assert admin.post(f"{path}/move", find_form(response, "/move").filled(place="first", parentId="")).status_code == 303


@pytest.mark.parametrize(("headers", "status"), [({}, 409), (_JSON, 412)], ids=["form", "script"])
def test_ones_own_change_in_another_tab_is_not_taken_for_the_move(
    admin: Visitor, community: Community, run: Run, events: Events, headers: dict[str, str], status: int
) -> None:
    path = f"/forums/{community.staff}"
    form = find_form(admin.get(f"{path}/move"), "/move")
    place = {"place": "first", "_action": "save"} if not headers else {"before": str(community.news)}
    sent = form.filled(without=() if not headers else {name for name, _ in form.pairs} - {"_version"}, **place)
    other = find_form(admin.get(path), path).filled(name="Renamed", _action="save")
    assert admin.post(path, other).status_code == 303
    before = events()
    answer = admin.post(f"{path}/move", sent, headers=headers)
    assert answer.status_code == status
    assert "Nothing was moved." in page_text(answer)
    assert events() == before
    assert _order(run, parentId="root") == ["News", "Help", "Wiki", "Renamed"]


@pytest.mark.parametrize("form", ["move", "copy", ""])
def test_only_what_describes_a_whole_node_is_offered_for_another_one_if_the_node_is_gone(
    admin: Visitor, community: Community, run: Run, events: Events, form: str
) -> None:
    path = f"/forums/{community.staff}" + (f"/{form}" if form else "")
    drawn = find_form(admin.get(path), path).filled(_action="save")
    run("forums.delete", community.staff)
    gone = admin.post(path, drawn)
    assert (gone.status_code, "Create a new forum from this" in page_text(gone)) == (404, not form)
    assert f'href="/admin/events/{events()[-1]["seq"]}/undo"' in gone.text


def test_a_shift_among_the_siblings_is_no_conflict(admin: Visitor, community: Community, run: Run) -> None:
    path = f"/forums/{community.staff}"
    drawn = find_form(admin.get(f"{path}/move"), "/move")
    run("forums.create", name="First", position=0)
    assert admin.post(f"{path}/move", drawn.filled(place="first")).status_code == 303
    assert _order(run, parentId="root")[:2] == ["Staff", "First"]


# --- for scripts --------------------------------------------------------------------------------------------------


def _seen(admin: Visitor, path: str) -> str:
    return find_form(admin.get(f"{path}/move"), "/move")["_version"]


def test_a_script_moves_and_gets_the_new_version(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    path, before = f"/forums/{community.staff}", events()
    sent = {"_version": _seen(admin, path), "parentId": str(community.news), "before": str(community.interviews)}
    told = admin.post(f"{path}/move", sent, headers=_JSON).json()
    assert (told["parentId"], told["position"], told["moved"]) == (community.news, 1, True)
    assert told["versions"][0] == _seen(admin, path)
    assert _order(run, parentId=community.news) == ["Releases", "Staff", "Interviews"]
    again = admin.post(f"{path}/move", sent | {"_version": told["versions"][0]}, headers=_JSON).json()
    assert again["moved"] is False
    assert len(events()) == len(before) + 1


def test_a_script_is_told_what_is_wrong(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    path = f"/forums/{community.staff}"
    seen = _seen(admin, path)
    run("forums.update", community.staff, name="Crew")
    before = events()
    stale = admin.post(f"{path}/move", {"_version": seen, "parentId": ""}, headers=_JSON)
    assert (stale.status_code, stale.json()["message"]) == (412, "PRECONDITION_FAILED")
    assert "The terminal has changed Crew" in stale.json()["detail"]
    wrong = admin.post(f"{path}/move", {"_version": _seen(admin, path), "parentId": str(community.wiki)}, headers=_JSON)
    assert (wrong.status_code, wrong.json()["message"]) == (400, "INVALID_PARENT")
    assert wrong.json()["detail"] == f"Forum {community.wiki} is a redirect, and redirects cannot have children."
    token = admin.post(f"{path}/move", {"_version": _seen(admin, path), "parentId": ""}, csrf="", headers=_JSON)
    assert token.status_code == 412
    assert events() == before
    run("forums.delete", community.staff)
    gone = admin.post(f"{path}/move", {"_version": seen}, headers=_JSON)
    assert (gone.status_code, gone.json()["message"]) == (404, "INVALID_ID")
    assert gone.json()["detail"] == "This forum does not exist or has been deleted. Reload the page."


def test_flat_kinds_are_reordered(admin: Visitor, community: Community, run: Run) -> None:
    path = f"/calendars/{community.holidays}"
    assert _move(admin, path, place="first").status_code == 303
    assert _order(run, "calendars") == ["Holidays", "Meetups"]
    sent = {"_version": _seen(admin, path), "after": str(community.meetups)}
    assert admin.post(f"{path}/move", sent, headers=_JSON).json()["position"] == 1
    assert admin.get(f"/blogs/{community.notebook}/move").status_code == 404


def test_siblings_are_counted_without_the_node_however_far_behind_it_is(
    admin: Visitor, community: Community, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(move, "_MAX_SIBLINGS", 2)
    monkeypatch.setattr(move, "_AT_ONCE", 1)
    path = f"/forums/{community.staff}/move"
    assert "Where among 3 forums" in page_text(admin.get(path))
    below = find_form(admin.get(path), "/move").filled(**{"_search.parentId": "news", "_action": "search"})
    chosen = find_form(admin.post(path, below), "/move").filled(parentId=str(community.news), _action="look")
    assert "Where among 2 forums" in page_text(admin.post(path, chosen))
    assert "Where among 1 calendar " in page_text(admin.get(f"/calendars/{community.holidays}/move"))
