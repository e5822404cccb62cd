"""Moving a node: by the form, by what a script sends, and what is noticed when somebody else was quicker."""

from typing import Any

import pytest

from tests.admin.conftest import Visitor, words
from tests.admin.drawn import form
from tests.cast import Cast, Events, Run

_JSON = {"accept": "application/json"}


def _order(run: Run, kind: str = "forums", **under: Any) -> list[str]:
    return [one["name"] for one in run(f"{kind}.list", sortBy="position", **under)["results"]]


def _move(admin: Visitor, path: str, *more: tuple[str, str], **changes: str) -> Any:
    return admin.post(f"{path}/move", form(admin.get(f"{path}/move"), "/move").filled(*more, **changes))


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        ({"place": "first"}, ["Staff", "News", "Help", "Wiki"]),
        ({"place": "last"}, ["News", "Help", "Wiki", "Staff"]),
        ({"place": "before", "sibling": "help"}, ["News", "Staff", "Help", "Wiki"]),
        ({"place": "after", "sibling": "news"}, ["News", "Staff", "Help", "Wiki"]),
        ({"place": "at", "position": "2"}, ["News", "Help", "Staff", "Wiki"]),
    ],
    ids=lambda value: value.get("place") if isinstance(value, dict) else "",
)
def test_the_form_puts_it_anywhere_among_its_siblings(
    admin: Visitor, cast: Cast, run: Run, place: dict[str, str], wanted: list[str]
) -> None:
    sibling = {"sibling": str(getattr(cast, place["sibling"]))} if "sibling" in place else {}
    response = _move(admin, f"/forums/{cast.staff}", **place | sibling)
    assert response.status_code == 303
    assert response.headers["location"].endswith(f"#node-{cast.staff}")
    assert _order(run, parentId="root") == wanted


def test_the_form_puts_it_under_another_one_that_a_search_has_found(admin: Visitor, cast: Cast, run: Run, events: Events) -> None:
    path, before = f"/forums/{cast.staff}", events()
    drawn = form(admin.get(f"{path}/move"), "/move")
    found = admin.post(f"{path}/move", drawn.filled(**{"_search.parentId": "relea", "_action": "search"}))
    assert found.status_code == 200
    assert ("parentId", str(cast.releases)) in form(found, "/move").offered
    looked = admin.post(f"{path}/move", form(found, "/move").filled(parentId=str(cast.releases), _action="look"))
    assert ("sibling", str(cast.betas)) in form(looked, "/move").offered
    assert events() == before
    last = form(looked, "/move").filled(place="before", sibling=str(cast.betas), _action="save")
    response = admin.post(f"{path}/move", last)
    assert response.headers["location"] == f"/admin/forums?open={cast.news},{cast.releases}#node-{cast.staff}"
    assert _order(run, parentId=cast.releases) == ["Staff", "Betas"]
    assert [event["operation"] for event in events()[len(before) :]] == ["forums.update"]


@pytest.mark.parametrize(
    ("parent", "place", "said"),
    [
        ("staff", {"place": "last"}, "cannot stand under itself"),
        ("wiki", {"place": "last"}, "redirect"),
        ("999", {"place": "last"}, "no forum 999"),
        ("zzz", {"place": "last"}, "must be a parent's id"),
        ("", {"place": "before"}, "Choose the forum to put it before"),
        ("", {"place": "before", "sibling": "3"}, "no other forum 3"),
        ("", {"place": "nowhere"}, "Choose a place"),
        ("", {"place": "at", "position": "many"}, "whole number"),
        ("", {"place": "last", "name": "New"}, "no field 'name'"),
    ],
)
def test_what_cannot_be_is_said(admin: Visitor, cast: Cast, events: Events, parent: str, place: dict[str, str], said: str) -> None:
    before = events()
    where = str(getattr(cast, parent)) if parent in {"staff", "wiki"} else parent
    response = _move(admin, f"/forums/{cast.staff}", parentId=where, **place)
    assert response.status_code == 400
    assert said in words(response)
    assert events() == before


def test_below_itself_is_not_offered_and_refused(admin: Visitor, cast: Cast) -> None:
    path = f"/forums/{cast.news}"
    found = admin.post(
        f"{path}/move", form(admin.get(f"{path}/move"), "/move").filled(**{"_search.parentId": "e", "_action": "search"})
    )
    offered = {value for name, value in form(found, "/move").offered if name == "parentId"}
    assert str(cast.help) in offered
    assert not offered & {str(cast.news), str(cast.releases), str(cast.betas)}
    assert "below it" in words(_move(admin, path, parentId=str(cast.betas), place="last"))


def test_one_that_has_moved_meanwhile_is_noticed(admin: Visitor, cast: Cast, run: Run, events: Events) -> None:
    path = f"/forums/{cast.staff}"
    drawn = form(admin.get(f"{path}/move"), "/move")
    run("forums.update", cast.staff, parentId=cast.news)
    before = events()
    response = admin.post(f"{path}/move", drawn.filled(place="first"))
    assert response.status_code == 409
    assert "News > Staff" in words(response)
    assert events() == before
    assert admin.post(f"{path}/move", form(response, "/move").filled(place="first", parentId="")).status_code == 303


def test_a_shift_among_the_siblings_is_no_conflict(admin: Visitor, cast: Cast, run: Run) -> None:
    path = f"/forums/{cast.staff}"
    drawn = form(admin.get(f"{path}/move"), "/move")
    run("forums.create", name="First", position=0)
    assert admin.post(f"{path}/move", drawn.filled(place="first")).status_code == 303
    assert _order(run, parentId="root")[:2] == ["Staff", "First"]


# --- for scripts --------------------------------------------------------------------------------------------------


def _seen(admin: Visitor, path: str) -> str:
    return form(admin.get(f"{path}/move"), "/move")["_version"]


def test_a_script_moves_and_gets_the_new_version(admin: Visitor, cast: Cast, run: Run, events: Events) -> None:
    path, before = f"/forums/{cast.staff}", events()
    sent = {"_version": _seen(admin, path), "parentId": str(cast.news), "before": str(cast.interviews)}
    told = admin.post(f"{path}/move", sent, headers=_JSON).json()
    assert (told["parentId"], told["position"], told["moved"]) == (cast.news, 1, True)
    assert told["version"] == _seen(admin, path)
    assert _order(run, parentId=cast.news) == ["Releases", "Staff", "Interviews"]
    again = admin.post(f"{path}/move", sent | {"_version": told["version"]}, headers=_JSON).json()
    assert again["moved"] is False
    assert len(events()) == len(before) + 1


def test_a_script_is_told_what_is_wrong(admin: Visitor, cast: Cast, run: Run, events: Events) -> None:
    path = f"/forums/{cast.staff}"
    seen = _seen(admin, path)
    run("forums.update", cast.staff, name="Crew")
    before = events()
    stale = admin.post(f"{path}/move", {"_version": seen, "parentId": ""}, headers=_JSON)
    assert (stale.status_code, stale.json()["message"]) == (409, "PRECONDITION_FAILED")
    assert "Crew was changed by terminal" in stale.json()["detail"]
    wrong = admin.post(f"{path}/move", {"_version": _seen(admin, path), "parentId": str(cast.wiki)}, headers=_JSON)
    assert (wrong.status_code, wrong.json()["message"]) == (400, "INVALID_PARENT")
    token = admin.post(f"{path}/move", {"_version": _seen(admin, path), "parentId": ""}, csrf="", headers=_JSON)
    assert token.status_code == 409
    assert events() == before
    run("forums.delete", cast.staff)
    gone = admin.post(f"{path}/move", {"_version": seen}, headers=_JSON)
    assert (gone.status_code, gone.json()["message"]) == (404, "INVALID_ID")


def test_flat_kinds_are_reordered(admin: Visitor, cast: Cast, run: Run) -> None:
    path = f"/calendars/{cast.holidays}"
    assert _move(admin, path, place="first").status_code == 303
    assert _order(run, "calendars") == ["Holidays", "Meetups"]
    sent = {"_version": _seen(admin, path), "after": str(cast.meetups)}
    assert admin.post(f"{path}/move", sent, headers=_JSON).json()["position"] == 1
    assert admin.get(f"/blogs/{cast.notebook}/move").status_code == 404
