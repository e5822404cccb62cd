"""Nodes that are dragged together: a script sends where each of them goes, and all of them go there, or none."""

from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest

from tests.admin.conftest import Visitor, before_writing
from tests.admin.html_forms import find_form
from tests.community import Community
from tests.fixture_types import Events, Run


def _order(run: Run, kind: str = "forums", **under: Any) -> list[str]:
    return [one["name"] for one in run(f"{kind}.list", sortBy="position", **under)["results"]]


def _seen(admin: Visitor, kind: str, number: int) -> str:
    return find_form(admin.get(f"/{kind}/{number}/move"), "/move")["_version"]


def _rows(admin: Visitor, kind: str, *places: tuple[int, object, object, object]) -> dict[str, str]:
    """Return the form that moves nodes, given as (id, parent, before, after), to their places."""
    columns = zip(*((number, _seen(admin, kind, number), *place) for number, *place in places), strict=True)
    names = ("ids", "_version", "parentId", "before", "after")
    return {name: ",".join(str(value) for value in column) for name, column in zip(names, columns, strict=True)}


def _drag(admin: Visitor, form: dict[str, str], kind: str = "forums", csrf: str | None = None) -> Any:
    return admin.post(f"/{kind}/many/drag", form, csrf=csrf, headers={"accept": "application/json"})


def test_they_move_in_one_change_set(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    before = events()
    help_, staff, news = community.help, community.staff, community.news
    form = _rows(admin, "forums", (staff, news, community.interviews, ""), (help_, news, staff, ""))
    told = _drag(admin, form).json()
    assert told == {"versions": [_seen(admin, "forums", staff), _seen(admin, "forums", help_)], "moved": True, "note": ""}
    assert _order(run, parentId=news) == ["Releases", "Help", "Staff", "Interviews"]
    new = events()[len(before) :]
    assert [(one["operation"], one["resourceId"]) for one in new] == [("forums.update", staff), ("forums.update", help_)]
    assert len({one["changeSet"] for one in new} - {None}) == 1
    assert _drag(admin, form).json()["moved"] is False, "the answer was lost, and it is sent again"
    assert len(events()) == len(before) + 2
    back = _rows(admin, "forums", (help_, "", "", news), (staff, "", "", community.wiki))
    assert _drag(admin, back).json()["moved"] is True
    assert _order(run, parentId="root") == ["News", "Help", "Wiki", "Staff"]


def test_siblings_without_a_tree_are_dragged_too(admin: Visitor, community: Community, run: Run) -> None:
    last = run("calendars.create", name="Last")["id"]
    form = _rows(admin, "calendars", (last, "", community.meetups, ""), (community.holidays, "", last, ""))
    assert _drag(admin, form, "calendars").json()["moved"] is True
    assert _order(run, "calendars") == ["Holidays", "Last", "Meetups"]


@pytest.mark.parametrize(
    ("fault", "status", "told"),
    [
        ("changed", 412, "The terminal has changed Questions since this page was loaded. Nothing was moved."),
        ("changed meanwhile", 412, "Nothing was changed."),
        ("deleted", 404, "Some of these forums have been deleted. Reload the page."),
        ("redirect", 400, "is a redirect, and redirects cannot have children."),
        ("no nodes", 404, "Reload the page."),
        ("without a version", 412, "has changed Help since this page was loaded. Nothing was moved."),
        ("too many", 409, "More than 500 forums would change"),
        ("token", 412, "Nothing was changed. Reload the page and try again."),
    ],
)
def test_all_stay_where_one_cannot_move(admin: Visitor, community: Community, run: Run, fault: str, status: int, told: str) -> None:
    form = _rows(
        admin,
        "forums",
        (community.staff, "", community.news, ""),
        (community.help, community.wiki if fault == "redirect" else "", "", "" if fault == "redirect" else community.staff),
    )
    if fault == "without a version":
        form["_version"] = form["_version"].partition(",")[0]
    elif fault == "too many":
        form["ids"] += "," + ",".join(map(str, range(1000, 1500)))
    change = partial(run, "forums.update", community.help, name="Questions")
    if fault == "deleted":
        run("forums.delete", community.help)
    elif fault == "changed":
        change()
    with before_writing(change) if fault == "changed meanwhile" else nullcontext():
        refused = _drag(admin, {} if fault == "no nodes" else form, csrf="" if fault == "token" else None)
    assert (refused.status_code, told in refused.json()["detail"]) == (status, True), refused.text
    assert [name for name in _order(run, parentId="root") if name not in {"Help", "Questions"}] == ["News", "Wiki", "Staff"]
