"""Giving everything below a node its permissions: a preview, one change set, one undo."""

import re
from typing import Any

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import HtmlForm, find_form
from tests.community import GUESTS, MEMBERS, Community
from tests.fixture_types import Events, Run


def _preview(admin: Visitor, node: int, **changes: str) -> tuple[Any, HtmlForm]:
    form = find_form(admin.get(f"/forums/{node}"), f"/forums/{node}")
    page = admin.post(f"/forums/{node}/below", form.filled(_action="below", **changes))
    return page, find_form(page, "/below")


def test_it_shows_what_would_change_and_changes_it_in_one_change_set(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    before, known = {n: run("forums.get", n) for n in (community.news, community.releases, community.betas)}, events()
    page, form = _preview(admin, community.news, **{"permissions.add": f"{GUESTS},{MEMBERS}", "name": "Newsroom"})
    said = page_text(page)
    assert "4 forums would change" in said
    assert "May add: + Guests, Members \N{MINUS SIGN} Administrators, Moderators" in said
    assert "News → Newsroom" in said
    assert "May read: Every group; was: Patrons" in said  # of Betas
    assert events() == known
    done = admin.post(f"/forums/{community.news}/below", form.filled(_action="do"))
    assert done.status_code == 303
    news = run("forums.get", community.news)
    assert (news["name"], news["permissions"]["add"]) == ("Newsroom", [GUESTS, MEMBERS])
    below = [run("forums.get", n)["permissions"] for n in (community.releases, community.betas, community.interviews)]
    assert below == [news["permissions"]] * 3
    made = events()[len(known) :]
    assert len({one["changeSet"] for one in made}) == 1
    assert len(made) == 4
    again = admin.post(f"/forums/{community.news}/below", form.filled(_action="do"))
    assert again.headers["location"] == done.headers["location"]
    assert events() == [*known, *made]
    back = admin.get(done.headers["location"].removeprefix("/admin"))
    undo = re.search(r'href="/admin(/change-sets/\d+/undo)"', back.text)
    assert undo is not None
    assert admin.post(undo[1], find_form(admin.get(undo[1]), "/undo").filled()).status_code == 303
    assert run("forums.get", community.betas)["permissions"] == before[community.betas]["permissions"]
    assert run("forums.get", community.news)["name"] == "News"


def test_an_id_in_another_system_is_shown_and_saved_with_the_permissions(admin: Visitor, community: Community, run: Run) -> None:
    page, form = _preview(admin, community.news, externalId="news-1")
    assert "Id in another system: – → news-1" in page_text(page)
    admin.post(f"/forums/{community.news}/below", form.filled(_action="do"))
    assert run("forums.get", community.news)["externalId"] == "news-1"
    again, _ = _preview(admin, community.news, externalId="")
    assert "Id in another system: news-1 → –" in page_text(again)


def test_what_is_the_same_already_is_left_as_it_is(admin: Visitor, community: Community, run: Run) -> None:
    assert "Every group" in page_text(_preview(admin, community.releases)[0])  # Betas only
    run("forums.update", community.betas, permissions=run("forums.get", community.releases)["permissions"])
    assert "Everything below it already has these permissions." in page_text(_preview(admin, community.releases)[0])


def test_what_has_changed_since_the_preview_is_shown_again(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    _, form = _preview(admin, community.news, **{"permissions.add": ""})
    run("forums.update", community.interviews, permissions={"read": [GUESTS]})
    known = events()
    page = admin.post(f"/forums/{community.news}/below", form.filled(_action="do"))
    assert page.status_code == 409
    assert "What would be done has changed" in page_text(page)
    run("forums.update", community.news, name="Fresh")
    again = admin.post(f"/forums/{community.news}/below", form.filled(_action="do"))
    assert "has changed since the form was loaded" in page_text(again)
    assert len(events()) == len(known) + 1


def test_a_wrong_group_and_a_password_are_refused_in_words(admin: Visitor, community: Community, events: Events) -> None:
    known = events()
    form = find_form(admin.get(f"/forums/{community.news}"), f"/forums/{community.news}")
    for changes, status, words in [
        ({"permissions.add": "999"}, 400, "999"),
        ({"permissions.add": "abc"}, 400, "abc"),
        ({"password": "open sesame"}, 409, "Save that"),
    ]:
        page = admin.post(f"/forums/{community.news}/below", form.filled(**changes))
        assert page.status_code == status
        assert words in page_text(page)
    assert events() == known
    assert admin.get(f"/forums/{community.news}/below").status_code == 303
    assert admin.post("/forums/999/below", {}).status_code == 404
