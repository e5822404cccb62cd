"""The pages of operations that have a button: here of copying, which has no page of its own."""

import pytest

from tests.admin.conftest import Visitor, words
from tests.admin.drawn import form
from tests.cast import Cast, Events, Run


@pytest.mark.parametrize(
    ("kind", "which", "page"), [("forums", "news", ""), ("calendars", "meetups", ""), ("forums", "help", "?search=he")]
)
def test_the_button_is_on_the_nodes_page_and_in_its_row(admin: Visitor, cast: Cast, kind: str, which: str, page: str) -> None:
    node = getattr(cast, which)
    link = f'href="/admin/{kind}/{node}/copy"'
    assert link in admin.get(f"/{kind}/{node}").text
    assert link in admin.get(f"/{kind}{page}").text


def test_kinds_that_are_not_copied_have_no_button(admin: Visitor, cast: Cast) -> None:
    for path in (f"/groups/{cast.patrons}", "/groups", f"/blogs/{cast.notebook}", "/blogs"):
        assert "/copy" not in admin.get(path).text
    assert admin.get(f"/groups/{cast.patrons}/copy").status_code == 404


def test_a_forum_is_copied_with_what_is_under_it_and_the_notice_offers_to_undo_it(
    admin: Visitor, cast: Cast, run: Run, events: Events
) -> None:
    asked = form(admin.get(f"/forums/{cast.news}/copy"), "/copy")
    assert (asked["name"], asked["parentId"]) == ("News", "")
    response = admin.post(f"/forums/{cast.news}/copy", asked.filled(name="Bulletin", withChildren="1", _do="save"))
    assert response.status_code == 303, words(response)
    event = events()[-1]
    assert (event["operation"], event["after"]["name"], len(event["touched"])) == ("forums.copy", "Bulletin", 3)
    assert event["actor"]["type"] == "admin"
    shown = admin.get(response.headers["location"].removeprefix("/admin"))
    assert "News was copied." in words(shown)
    assert f"/admin/events/{event['seq']}/undo" in shown.text
    assert run("forums.list", parentId=event["resourceId"])["totalResults"] == 2


def test_the_same_form_sent_twice_copies_once(admin: Visitor, cast: Cast, run: Run) -> None:
    sent = form(admin.get(f"/calendars/{cast.meetups}/copy"), "/copy").filled(name="Copied", _do="save")
    for _ in range(2):
        assert admin.post(f"/calendars/{cast.meetups}/copy", sent).status_code == 303
    assert run("calendars.list", search="Copied")["totalResults"] == 1


def test_a_fault_stands_at_its_field_with_what_was_typed(admin: Visitor, cast: Cast, events: Events) -> None:
    before = events()
    sent = form(admin.get(f"/forums/{cast.help}/copy"), "/copy").filled(name="Typed", parentId=str(cast.wiki), _do="save")
    response = admin.post(f"/forums/{cast.help}/copy", sent)
    assert response.status_code == 400
    assert "is a redirect, and a redirect has no children" in words(response)
    assert 'value="Typed"' in response.text
    assert events() == before


def test_looking_for_a_parent_copies_nothing(admin: Visitor, cast: Cast, events: Events) -> None:
    before = events()
    asked = form(admin.get(f"/forums/{cast.help}/copy"), "/copy")
    response = admin.post(f"/forums/{cast.help}/copy", asked.filled(**{"_search.parentId": "sta", "_do": "search"}))
    assert response.status_code == 200
    assert "Staff" in words(response)
    assert events() == before


def test_a_node_that_is_gone_is_told_so(admin: Visitor, cast: Cast, run: Run) -> None:
    asked = form(admin.get(f"/forums/{cast.help}/copy"), "/copy")
    run("forums.delete", cast.help)
    assert admin.get(f"/forums/{cast.help}/copy").status_code == 404
    assert admin.post(f"/forums/{cast.help}/copy", asked.filled(_do="save")).status_code == 404


def test_undo_shows_what_goes_and_deletes_it(admin: Visitor, cast: Cast, run: Run, events: Events) -> None:
    run("forums.copy", cast.news, name="Bulletin", withChildren=True)
    event = events()[-1]
    assert "copied" in words(admin.get(f"/events/{event['seq']}"))
    page = admin.get(f"/events/{event['seq']}/undo")
    assert "Bulletin is deleted again, and with it 3 forums below it" in words(page)
    response = admin.post(f"/events/{event['seq']}/undo", form(page, "/undo").filled(_do="undo"))
    assert response.status_code == 303, words(response)
    after = admin.get(response.headers["location"].removeprefix("/admin"))
    assert "Bulletin and 3 below it are gone again." in words(after)
    undo = events()[-1]
    assert undo["undoes"] == event["seq"]
    back = admin.get(f"/events/{undo['seq']}/undo")
    assert "Bulletin comes back" in words(back)
