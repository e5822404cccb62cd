"""Deleting: the dry run that comes first, what becomes of children, and everything that may have happened meanwhile."""

import pytest

from tests.admin.conftest import Visitor, before_writing, page_text
from tests.admin.html_forms import find_form
from tests.community import ADMINISTRATORS, Community
from tests.fixture_types import Events, Run


def test_the_dry_run_shows_what_goes_and_what_moves_and_keeps_nothing(
    admin: Visitor, community: Community, run: Run, events: Events
) -> None:
    before = events()
    said = page_text(admin.get(f"/forums/{community.news}/delete"))
    assert "What happens to its 2 children?" in said
    assert "Delete them too: 4 forums in all" in said
    assert "Releases > Betas" in said
    assert events() == before
    assert run("forums.list")["totalResults"] == 7


def test_children_must_be_decided_on(admin: Visitor, community: Community, events: Events) -> None:
    path, before = f"/forums/{community.news}/delete", events()
    drawn = find_form(admin.get(path), "/delete")
    undecided = admin.post(path, drawn.filled(_action="delete"))
    assert (undecided.status_code, "Choose what happens to its children" in page_text(undecided)) == (400, True)
    nowhere = admin.post(path, drawn.filled(children="move", _action="delete"))
    assert "Choose the forum to move the children to" in page_text(nowhere)
    for target, said in (
        (community.betas, "below the one being deleted"),
        (community.wiki, "is a redirect"),
        (999, "no forum 999"),
        ("x", "id"),
    ):
        refused = admin.post(path, drawn.filled(children="move", to=str(target), _action="delete"))
        assert refused.status_code == 400
        assert said in page_text(refused)
    assert events() == before


def test_it_goes_with_all_below_it(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    path, count = f"/forums/{community.news}/delete", len(events())
    response = admin.post(path, find_form(admin.get(path), "/delete").filled(children="delete", _action="delete"))
    assert (response.status_code, response.headers["location"]) == (303, "/admin/forums")
    assert "News and 3 below it were deleted." in page_text(admin.get("/forums"))
    assert [event["operation"] for event in events()[count:]] == ["forums.delete"]
    assert [one["name"] for one in run("forums.list", sortBy="position")["results"]] == ["Help", "Wiki", "Staff"]


def test_its_children_move_to_one_that_a_search_has_found(admin: Visitor, community: Community, run: Run) -> None:
    path = f"/forums/{community.news}/delete"
    drawn = find_form(admin.get(path), "/delete")
    found = admin.post(path, drawn.filled(**{"_search.to": "hel", "_action": "search", "children": "move"}))
    assert ("to", str(community.help)) in find_form(found, "/delete").offered
    response = admin.post(path, find_form(found, "/delete").filled(to=str(community.help), _action="delete"))
    assert response.status_code == 303
    assert run("forums.get", community.betas)["path"] == "Help > Releases > Betas"


def test_enter_in_the_search_searches_and_elsewhere_deletes(admin: Visitor, community: Community, run: Run) -> None:
    """Without scripts, Enter sends the form with no button."""
    path = f"/forums/{community.news}/delete"
    drawn = find_form(admin.get(path), "/delete")
    found = admin.post(path, drawn.filled(**{"_search.to": "hel", "children": "delete"}))
    assert found.status_code == 200
    assert ("to", str(community.help)) in find_form(found, "/delete").offered
    assert run("forums.list")["totalResults"] == 7
    response = admin.post(path, find_form(found, "/delete").filled())
    assert response.status_code == 303
    assert run("forums.list")["totalResults"] == 3


def test_after_one_below_another_the_tree_is_open_there(admin: Visitor, community: Community) -> None:
    path = f"/forums/{community.betas}/delete"
    response = admin.post(path, find_form(admin.get(path), "/delete").filled(_action="delete"))
    assert response.headers["location"] == f"/admin/forums?open={community.news}#node-{community.releases}"


def test_what_came_meanwhile_is_shown_before_it_goes(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    path = f"/forums/{community.news}/delete"
    drawn = find_form(admin.get(path), "/delete")
    run("forums.create", name="Brand new", parentId=community.betas)
    before = events()
    response = admin.post(path, drawn.filled(children="delete", _action="delete"))
    assert response.status_code == 409
    assert "Releases > Betas > Brand new" in page_text(response)
    assert events() == before
    assert admin.post(path, find_form(response, "/delete").filled(children="delete", _action="delete")).status_code == 303


def test_twice_and_back_break_nothing(admin: Visitor, community: Community, events: Events) -> None:
    path = f"/forums/{community.help}"
    drawn = find_form(admin.get(f"{path}/delete"), "/delete").filled(_action="delete")
    assert admin.post(f"{path}/delete", drawn).status_code == 303
    count = len(events())
    for method, told in (("POST", "Help was deleted."), ("GET", "This forum has already been deleted.")):
        response = admin.post(f"{path}/delete", drawn) if method == "POST" else admin.get(f"{path}/delete")
        assert (response.status_code, response.headers["location"]) == (303, "/admin/forums")
        landed = admin.get("/forums")
        assert told in page_text(landed)
        assert (f'href="/admin/events/{events()[-1]["seq"]}/undo"' in landed.text) == (method == "POST")
    assert "Deleted by Mira Holm" in page_text(admin.get(path))
    assert admin.get(f"{path}/move").status_code == 404
    assert admin.post(f"{path}/move", {"place": "last"}).status_code == 404
    assert len(events()) == count


def test_what_somebody_else_has_deleted_is_not_told_as_done(admin: Visitor, run: Run, community: Community) -> None:
    for number, changes in ((community.help, {}), (community.betas, {"name": "Alphas"})):
        path = f"/forums/{number}/delete"
        drawn = find_form(admin.get(path), "/delete").filled(_action="delete")
        if changes:
            form = find_form(admin.get(f"/forums/{number}"), f"/forums/{number}")
            assert admin.post(f"/forums/{number}", form.filled(**changes, _action="save")).status_code == 303
            run("forums.delete", community.news, deleteChildrenOrMove=-1)
        else:
            run("forums.delete", number)
        assert admin.post(path, drawn).status_code == 303
        assert "This forum has already been deleted." in page_text(admin.get("/forums"))


@pytest.mark.either_engine
def test_strange_fields_and_tokens_delete_nothing(admin: Visitor, community: Community, events: Events) -> None:
    path, before = f"/forums/{community.help}/delete", events()
    drawn = find_form(admin.get(path), "/delete")
    assert admin.post(path, drawn.filled(deleteChildrenOrMove="-1")).status_code == 400
    assert admin.post(path, {"_action": "delete"}).status_code == 409  # without having seen what goes
    assert admin.post(path, drawn.filled(_action="delete"), csrf="0" * 64).status_code == 409
    assert events() == before


def test_a_group_leaves_every_grid(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    path, count = f"/groups/{community.patrons}/delete", len(events())
    said = page_text(admin.get(path))
    assert "removed from the permissions of 4 nodes" in said
    assert "Forum News > Releases > Betas" in said
    assert "Patrons" in admin.get(f"/forums/{community.betas}").text
    assert admin.post(path, find_form(admin.get(path), "/delete").filled(_action="delete")).status_code == 303
    assert len(events()) == count + 1
    assert "It was removed from the permissions of 4 nodes." in page_text(admin.get("/groups"))
    assert "Patrons" not in admin.get(f"/forums/{community.betas}").text
    assert run("forums.get", community.betas)["permissions"]["read"] == []
    assert run("blogs.get", community.notebook)["groups"] == [3]


@pytest.mark.either_engine
def test_built_in_groups_are_not_offered_to_be_deleted(admin: Visitor, community: Community, events: Events) -> None:
    before = events()
    page = admin.get(f"/groups/{ADMINISTRATORS}")
    assert "not deleted" in page_text(page)
    assert f"/groups/{ADMINISTRATORS}/delete" not in page.text
    assert f"/groups/{ADMINISTRATORS}/delete" not in admin.get("/groups").text
    assert "cannot be deleted" in page_text(admin.get(f"/groups/{ADMINISTRATORS}/delete"))
    assert admin.post(f"/groups/{ADMINISTRATORS}/delete", {"_action": "delete"}).status_code == 403
    assert events() == before


@pytest.mark.parametrize("children", ["delete", "move"])
def test_one_that_is_created_below_it_at_the_last_moment_is_seen_first(
    admin: Visitor, community: Community, run: Run, children: str
) -> None:
    path = f"/forums/{community.news}/delete"
    drawn = find_form(admin.get(path), "/delete").filled(children=children, to=str(community.help), _action="delete")
    with before_writing(lambda: run("forums.create", name="Late", parentId=community.news)):
        page = admin.post(path, drawn)
    assert (page.status_code, "What would be deleted has changed" in page_text(page)) == (409, True)
    assert "Late" in page_text(page)
    assert run("forums.list", search="late")["totalResults"] == 1
    assert run("forums.get", community.news)["name"] == "News"
