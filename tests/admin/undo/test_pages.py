"""Undo in the panel: what it would do is told first, and then it does just that."""

from typing import Any

import pytest

from tests.admin.conftest import Visitor, page_text, undo
from tests.admin.html_forms import find_form
from tests.community import MEMBERS, Community
from tests.fixture_types import Events, Run, RunForEvent
from tests.node_rows import order
from trellis.admin.undo import of_key, pages

# --- deletes ------------------------------------------------------------------------------------------------------


def test_what_would_come_back_is_told_and_nothing_is_kept(
    admin: Visitor, run: Run, community: Community, do: RunForEvent, events: Events
) -> None:
    seq = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    before = events()
    page = page_text(admin.get(f"/events/{seq}/undo"))
    assert "News will be restored at the top level, in first position, along with 3 forums below it:" in page
    assert "Releases Interviews Releases > Betas" in page
    assert "restore 4 forums" in page
    assert events() == before
    assert order(run) == ["Help", "Wiki", "Staff"]


def test_a_branch_comes_back_and_is_shown_in_the_tree(
    admin: Visitor, run: Run, community: Community, do: RunForEvent, events: Events
) -> None:
    known = run("forums.list", sortBy="name")["results"]
    seq = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    response = undo(admin, seq)
    assert (response.status_code, response.headers["location"]) == (303, f"/admin/forums?#node-{community.news}")
    assert "News and 3 below it were restored." in page_text(admin.get("/forums"))
    assert run("forums.list", sortBy="name")["results"] == known
    last = events()[-1]
    assert (last["operation"], last["undoes"], last["actor"]["name"]) == ("forums.restore", seq, "Mira Holm")


def test_where_it_goes_is_told_by_its_neighbour(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("forums.delete", community.betas)
    assert "Betas will be restored under News > Releases, in first position." in page_text(admin.get(f"/events/{seq}/undo"))
    seq = do("forums.delete", community.wiki)
    assert "Wiki will be restored at the top level, after Help." in page_text(admin.get(f"/events/{seq}/undo"))
    seq = do("calendars.delete", community.holidays)
    assert "Holidays will be restored after Meetups." in page_text(admin.get(f"/events/{seq}/undo"))
    seq = do("blogs.delete", community.notebook)
    assert "Notebook will be restored." in page_text(admin.get(f"/events/{seq}/undo"))
    assert undo(admin, seq).headers["location"] == f"/admin/blogs/{community.notebook}"


def test_children_that_had_moved_away_come_back_but_those_that_went_on(
    admin: Visitor, run: Run, community: Community, do: RunForEvent
) -> None:
    seq = do("forums.delete", community.news, deleteChildrenOrMove=community.help)
    run("forums.update", community.interviews, parentId=community.staff)
    shown = admin.get(f"/events/{seq}/undo")
    assert "data-cancel><span>Cancel</span>" in shown.text  # leaves without asking
    page = page_text(shown)
    assert "1 forum that the deletion moved elsewhere will be moved back under it: Help > Releases" in page
    assert "1 record stays as it is Forum Staff > Interviews: It has been moved elsewhere since." in page
    undo(admin, seq)
    said = page_text(admin.get("/forums"))
    assert (
        "News was restored. 1 node that had been moved away was moved back under it. 1 has changed since and was left as it is."
        in said
    )
    assert order(run, community.news) == ["Releases"]


def test_a_group_stands_in_its_permissions_again(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("groups.delete", community.patrons)
    run("forums.update", community.betas, permissions={"read": [MEMBERS]})
    page = page_text(admin.get(f"/events/{seq}/undo"))
    assert "It will be added back to the permissions of 3 nodes" in page
    assert all(name in page for name in ("Download category Skins > Dark skins", "Blog Notebook"))
    assert "Forum News > Releases > Betas: Changed since then: read." in page
    undo(admin, seq)
    assert "Patrons was restored. It was added back to the permissions of 3 nodes. 1 has changed since" in page_text(
        admin.get("/groups")
    )
    assert run("blogs.get", community.notebook)["groups"] == [MEMBERS, community.patrons]


def test_what_stays_is_named_though_it_is_gone(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("groups.delete", community.patrons)
    run("forums.delete", community.betas)
    assert "1 record stays as it is Forum Betas: It has been deleted since." in page_text(admin.get(f"/events/{seq}/undo"))


def test_ticks_of_groups_that_are_gone_are_told_to_fall_away(
    admin: Visitor, run: Run, community: Community, do: RunForEvent
) -> None:
    branch = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    blog = do("blogs.delete", community.notebook)
    run("groups.delete", community.patrons)
    run("groups.delete", community.moderators)
    page = page_text(admin.get(f"/events/{branch}/undo"))
    assert "The group Patrons no longer exists, so it is left out of Read." in page
    assert "The group Moderators no longer exists, so it is left out of Add in 4 forums." in page
    assert "The group Patrons no longer exists, so it is left out of Groups." in page_text(admin.get(f"/events/{blog}/undo"))
    assert undo(admin, branch).status_code == 303
    assert run("forums.get", community.betas)["permissions"]["read"] == []


# --- a parent that is gone ----------------------------------------------------------------------------------------


def test_a_parent_that_is_gone_is_asked_for(
    admin: Visitor, run: Run, community: Community, do: RunForEvent, events: Events
) -> None:
    seq = do("forums.delete", community.betas)
    above = do("forums.delete", community.releases)
    page = admin.get(f"/events/{seq}/undo")
    assert page.status_code == 200
    assert "Its parent, Releases, has been deleted. Choose another place, or undo its deletion first." in page_text(page)
    assert f'href="/admin/events/{above}/undo"' in page.text
    before = events()
    found = admin.post(f"/events/{seq}/undo", find_form(page, "/undo").filled(**{"_search.parentId": "hel", "_action": "search"}))
    assert found.status_code == 200
    assert ("parentId", str(community.help)) in find_form(found, "/undo").offered
    assert events() == before
    response = admin.post(f"/events/{seq}/undo", find_form(found, "/undo").filled(parentId=str(community.help), _action="undo"))
    assert response.headers["location"] == f"/admin/forums?open={community.help}#node-{community.betas}"
    assert run("forums.get", community.betas)["path"] == "Help > Betas"


def test_without_a_choice_it_goes_to_the_top_level(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("forums.delete", community.betas)
    run("forums.delete", community.releases)
    assert undo(admin, seq).status_code == 303
    assert run("forums.get", community.betas)["parentId"] is None


def test_a_parent_that_cannot_be_is_said(admin: Visitor, run: Run, community: Community, do: RunForEvent, events: Events) -> None:
    seq = do("forums.delete", community.betas)
    run("forums.delete", community.releases)
    before = events()
    for parent, said in ((community.wiki, "redirects cannot have children"), (999, "no forum 999"), ("x", "parent's id")):
        response = undo(admin, seq, parentId=str(parent))
        assert (response.status_code, said in page_text(response)) == (400, True), parent
    assert events() == before


def test_the_old_parent_may_be_back_when_the_button_is_pressed(
    admin: Visitor, run: Run, community: Community, do: RunForEvent
) -> None:
    seq = do("forums.delete", community.betas)
    above = do("forums.delete", community.releases)
    drawn = find_form(admin.get(f"/events/{seq}/undo"), "/undo")
    run("events.restore", above)
    response = admin.post(f"/events/{seq}/undo", drawn.filled(parentId=str(community.help), _action="undo"))
    assert response.status_code == 409
    assert "Check the updated preview" in page_text(response)
    assert "Betas will be restored under News > Releases" in page_text(response)
    assert admin.post(f"/events/{seq}/undo", find_form(response, "/undo").filled(_action="undo")).status_code == 303


def test_a_move_from_under_one_that_is_gone_asks_too(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("forums.update", community.betas, parentId=community.help)
    run("forums.delete", community.releases)
    page = admin.get(f"/events/{seq}/undo")
    assert "Its parent, Releases, has been deleted." in page_text(page)
    assert str(community.betas) not in {value for name, value in find_form(page, "/undo").offered if name == "parentId"}
    assert undo(admin, seq, parentId=str(community.news)).status_code == 303
    assert run("forums.get", community.betas)["path"] == "News > Betas"


# --- changes ------------------------------------------------------------------------------------------------------


def test_a_change_goes_back_field_by_field(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("forums.update", community.help, name="Aid", permissions={"view": [MEMBERS]}, password="open sesame")
    page = admin.get(f"/events/{seq}/undo")
    said = page_text(page)
    assert "Aid will be changed back:" in said
    assert "Name removed: Aid added: Help" in said
    assert "View removed: Members added: every group" in said
    assert "Password changed back; value not shown" in said
    assert "sesame" not in page.text
    response = undo(admin, seq)
    assert response.headers["location"] == f"/admin/forums/{community.help}"
    assert f"Help is as it was before event {seq}." in page_text(admin.get(f"/forums/{community.help}"))
    assert run("forums.get", community.help)["permissions"]["view"] == "*"


def test_a_move_goes_back_and_is_shown_in_the_tree(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("forums.update", community.staff, parentId=community.news, position=0)
    assert "Path removed: News > Staff added: Staff" in page_text(admin.get(f"/events/{seq}/undo"))
    assert undo(admin, seq).headers["location"] == f"/admin/forums?#node-{community.staff}"
    assert order(run) == ["News", "Help", "Wiki", "Staff"]


def test_an_undo_is_undone_like_any_change(admin: Visitor, run: Run, community: Community, do: RunForEvent, events: Events) -> None:
    undo(admin, do("forums.update", community.help, name="Aid"))
    undoing = events()[-1]["seq"]
    assert "Name removed: Help added: Aid" in page_text(admin.get(f"/events/{undoing}/undo"))
    assert undo(admin, undoing).status_code == 303
    assert run("forums.get", community.help)["name"] == "Aid"


def test_what_is_as_it_was_needs_noundo(admin: Visitor, run: Run, community: Community, do: RunForEvent, events: Events) -> None:
    patrons = {"permissions": {"read": [community.patrons]}}
    seq = do("forums.update", community.betas, permissions={"read": []})
    run("forums.update", community.betas, **patrons)
    run("forums.update", community.betas, permissions={"read": []})
    run("groups.delete", community.patrons)
    before = events()
    page = admin.get(f"/events/{seq}/undo")
    assert "There is nothing to undo: Betas is already as it was before this event." in page_text(page)
    assert ("_action", "undo") not in find_form(page, "/undo").buttons
    assert undo(admin, seq).status_code == 303
    assert events() == before


# --- the ways to it -----------------------------------------------------------------------------------------------


def test_an_event_its_row_and_what_is_gone_lead_toundo(admin: Visitor, community: Community, do: RunForEvent) -> None:
    seq = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    there = f'href="/admin/events/{seq}/undo"'
    for path in (f"/events/{seq}", "/events", f"/forums/{community.news}", f"/forums/{community.betas}"):
        assert there in admin.get(path).text, path


def test_the_message_after_a_delete_leads_to_undo_once(admin: Visitor, community: Community, events: Events) -> None:
    path = f"/forums/{community.help}/delete"
    assert admin.post(path, find_form(admin.get(path), "/delete").filled(_action="delete")).status_code == 303
    there = f'href="/admin/events/{events()[-1]["seq"]}/undo"'
    assert there in admin.get("/forums").text
    assert there not in admin.get("/forums").text


# --- keys ---------------------------------------------------------------------------------------------------------


def test_a_change_of_the_key_between_the_plan_and_the_undo_is_noticed(
    admin: Visitor, run: Run, do: RunForEvent, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    do("keys.create", name="Plugin", grants=["forums.list"])
    seq = do("keys.update", 1, grant=["forums.get"])
    form = find_form(admin.get(f"/events/{seq}/undo"), "/undo").filled()
    plan = of_key.plan_undo_of_key

    async def slip_in(*args: Any) -> Any:
        planned = await plan(*args)
        if not slipped:
            slipped.append(do("keys.update", 1, grant=["groups.list"], addresses=["192.0.2.0/24"]))
        return planned

    slipped: list[int] = []
    monkeypatch.setattr(pages, "plan_undo_of_key", slip_in)
    response = admin.post(f"/events/{seq}/undo", form)
    assert response.status_code == 409
    assert "What would be undone has changed since this page was loaded." in page_text(response)
    assert events()[-1]["seq"] == slipped[0]
    assert run("keys.get", 1)["grants"] == ["forums.get", "forums.list", "groups.list"]
    assert admin.post(f"/events/{seq}/undo", find_form(response, "/undo").filled()).status_code == 303
    assert run("keys.get", 1)["grants"] == ["forums.list", "groups.list"]
