"""The pages of operations that have a button: here of copying, which has no page of its own."""

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form
from tests.community import Community
from tests.fixture_types import Events, Run


@pytest.mark.either_engine
def test_the_button_is_on_the_nodes_page_and_in_its_row(admin: Visitor, community: Community) -> None:
    for node, page in (
        (f"forums/{community.news}", "forums"),
        (f"calendars/{community.meetups}", "calendars"),
        (f"forums/{community.help}", "forums?search=he"),
    ):
        link = f'href="/admin/{node}/copy"'
        assert link in admin.get(f"/{node}").text
        assert link in admin.get(f"/{page}").text


@pytest.mark.either_engine
def test_kinds_that_are_not_copied_have_no_button(admin: Visitor, community: Community) -> None:
    for path in (f"/groups/{community.patrons}", "/groups", f"/blogs/{community.notebook}", "/blogs"):
        assert "/copy" not in admin.get(path).text
    assert admin.get(f"/groups/{community.patrons}/copy").status_code == 404


def test_a_forum_is_copied_with_what_is_under_it_and_the_notice_offers_to_undo_it(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    asked = find_form(admin.get(f"/forums/{community.news}/copy"), "/copy")
    assert (asked["name"], asked["parentId"]) == ("News", "")
    response = admin.post(f"/forums/{community.news}/copy", asked.filled(name="Bulletin", withChildren="1", _action="save"))
    assert response.status_code == 303, page_text(response)
    event = events()[-1]
    assert (event["operation"], event["after"]["name"], len(event["touched"])) == ("forums.copy", "Bulletin", 3)
    assert event["actor"]["type"] == "admin"
    shown = admin.get(response.headers["location"].removeprefix("/admin"))
    assert "News was copied." in page_text(shown)
    assert f"/admin/events/{event['seq']}/undo" in shown.text
    assert run("forums.list", parentId=event["resourceId"])["totalResults"] == 2


def test_a_fault_stands_at_its_field_with_what_was_typed(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    sent = find_form(admin.get(f"/forums/{community.help}/copy"), "/copy").filled(
        name="Typed", parentId=str(community.wiki), _action="save"
    )
    response = admin.post(f"/forums/{community.help}/copy", sent)
    assert response.status_code == 400
    assert "is a redirect, and redirects cannot have children" in page_text(response)
    assert 'value="Typed"' in response.text
    assert events() == before


def test_looking_for_a_parent_copies_nothing(admin: Visitor, community: Community, events: Events) -> None:
    """By the button, by Enter in the search, and by the button again with the same search."""
    before = events()
    asked = find_form(admin.get(f"/forums/{community.help}/copy"), "/copy")
    for typed in ({"_search.parentId": "sta", "_action": "search"}, {"_search.parentId": "sta"}, {"_action": "search"}):
        response = admin.post(f"/forums/{community.help}/copy", asked.filled(**typed))
        assert response.status_code == 200, typed
        assert "Copy Help" in page_text(response)
        assert ("Staff" in page_text(response)) or "_search.parentId" not in typed
    assert events() == before


def test_a_node_that_is_gone_is_told_so(admin: Visitor, community: Community, run: Run) -> None:
    asked = find_form(admin.get(f"/forums/{community.help}/copy"), "/copy")
    run("forums.delete", community.help)
    assert admin.get(f"/forums/{community.help}/copy").status_code == 404
    assert admin.post(f"/forums/{community.help}/copy", asked.filled(_action="save")).status_code == 404


def test_undo_shows_what_goes_and_deletes_it(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    run("forums.copy", community.news, name="Bulletin", withChildren=True)
    event = events()[-1]
    assert "copied" in page_text(admin.get(f"/events/{event['seq']}"))
    page = admin.get(f"/events/{event['seq']}/undo")
    assert "Bulletin will be deleted again, along with 3 forums below it" in page_text(page)
    response = admin.post(f"/events/{event['seq']}/undo", find_form(page, "/undo").filled(_action="undo"))
    assert response.status_code == 303, page_text(response)
    after = admin.get(response.headers["location"].removeprefix("/admin"))
    assert "Bulletin and 3 below it were deleted again." in page_text(after)
    undo = events()[-1]
    assert undo["undoes"] == event["seq"]
    back = admin.get(f"/events/{undo['seq']}/undo")
    assert "Bulletin will be restored" in page_text(back)
