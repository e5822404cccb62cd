"""Giving a group rights in many nodes on the page of what it can see and do."""

from typing import Any

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import HtmlForm, read_forms
from tests.community import Community
from tests.fixture_types import Events, Run


def _ticks(page: Any) -> HtmlForm:
    return next(form for form in read_forms(page) if "_seen" in dict(form.pairs))


def test_ticks_give_and_take_rights_in_many_nodes(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    path = f"/groups/{community.patrons}/access"
    known = events()
    form = _ticks(admin.get(f"{path}?kind=forums&all=1"))
    gone = form.filled(("may.view", f"{community.staff},{community.wiki}"), ("may.add", str(community.staff)), without=["may.read"])
    page = admin.post(path, gone | {"_action": ["plan"]})
    said = page_text(page)
    assert "3 forums would change" in said
    assert "May read: \N{MINUS SIGN} Patrons (nobody is left)" in said  # Betas
    assert "May add: + Patrons" in said
    assert events() == known
    done = admin.post(path, _ticks(page).filled(_action="do"))
    assert done.headers["location"] == f"/admin{path}?kind=forums&all=1"
    assert run("forums.get", community.staff)["permissions"]["view"] == [community.moderators, community.patrons]
    assert run("forums.get", community.staff)["permissions"]["read"] == [community.moderators]
    assert run("forums.get", community.wiki)["permissions"]["view"] == [community.patrons]
    assert run("forums.get", community.betas)["permissions"]["read"] == []
    assert run("forums.get", community.help)["permissions"]["read"] == "*"
    assert "Undo…" in page_text(admin.get(f"{path}?kind=forums&all=1"))
    known = events()
    again = admin.post(path, _ticks(page).filled(_action="do"))
    assert again.headers["location"] == done.headers["location"]
    assert "in 3 forums has changed. Undo…" in page_text(admin.get(f"{path}?kind=forums&all=1"))
    assert events() == known


def test_a_change_by_somebody_else_meanwhile_is_told(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    path = f"/groups/{community.patrons}/access"
    form = _ticks(admin.get(f"{path}?kind=forums&search=e"))
    run("forums.update", community.betas, permissions={"add": [community.patrons]})
    known = events()
    page = admin.post(path, form.filled(_action="do"))
    assert page.status_code == 409
    assert "have changed since the page was loaded" in page_text(page)
    assert events() == known


def test_blogs_are_shown_and_nothing_else_is_taken(admin: Visitor, community: Community, events: Events) -> None:
    known = events()
    path = f"/groups/{community.patrons}/access"
    page = admin.get(f"{path}?kind=blogs")
    assert "Yes, by name" in page_text(page)
    assert "Show what would change" not in page_text(page)
    assert admin.post(path, {"kind": "blogs", "shown": "1"}).status_code == 303
    assert admin.post("/groups/999/access", {}).status_code == 404
    assert events() == known
