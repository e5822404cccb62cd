"""Undo in the panel: what it would do is told first, the hard cases are answered, and everything is looked at again."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.admin.conftest import Visitor, words
from tests.admin.drawn import form
from tests.cast import MEMBERS, Cast, Clock, Events, Run
from trellis.core.gate import Gate
from trellis.store import journal, snapshots

Doing = Callable[..., int]


@pytest.fixture
def do(run: Run, events: Events) -> Doing:
    """Run a write and give the number of its event."""

    def doing(operation: str, target: int | None = None, /, **raw: Any) -> int:
        run(operation, target, **raw)
        return int(events()[-1]["seq"])

    return doing


def _undo(admin: Visitor, seq: int, **changes: str) -> Any:
    return admin.post(f"/events/{seq}/undo", form(admin.get(f"/events/{seq}/undo"), "/undo").filled(_do="undo", **changes))


def _order(run: Run, parent: object = "root") -> list[str]:
    return [one["name"] for one in run("forums.list", parentId=parent, sortBy="position")["results"]]


# --- deletes ------------------------------------------------------------------------------------------------------


def test_what_would_come_back_is_told_and_nothing_is_kept(admin: Visitor, run: Run, cast: Cast, do: Doing, events: Events) -> None:
    seq = do("forums.delete", cast.news, deleteChildrenOrMove=-1)
    before = events()
    page = words(admin.get(f"/events/{seq}/undo"))
    assert "News comes back at the top level, as the first, and with it 3 forums below it:" in page
    assert "Releases Interviews Releases > Betas" in page
    assert "bring back 4 forums" in page
    assert events() == before
    assert _order(run) == ["Help", "Wiki", "Staff"]


def test_a_branch_comes_back_and_is_shown_in_the_tree(admin: Visitor, run: Run, cast: Cast, do: Doing, events: Events) -> None:
    known = run("forums.list", sortBy="name")["results"]
    seq = do("forums.delete", cast.news, deleteChildrenOrMove=-1)
    response = _undo(admin, seq)
    assert (response.status_code, response.headers["location"]) == (303, f"/admin/forums?#node-{cast.news}")
    assert "News and 3 below it are back." in words(admin.get("/forums"))
    assert run("forums.list", sortBy="name")["results"] == known
    last = events()[-1]
    assert (last["operation"], last["undoes"], last["actor"]["name"]) == ("forums.restore", seq, "Mira Holm")


def test_where_it_goes_is_told_by_its_neighbour(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.delete", cast.betas)
    assert "Betas comes back under News > Releases, as the first." in words(admin.get(f"/events/{seq}/undo"))
    seq = do("forums.delete", cast.wiki)
    assert "Wiki comes back at the top level, after Help." in words(admin.get(f"/events/{seq}/undo"))
    seq = do("calendars.delete", cast.holidays)
    assert "Holidays comes back after Meetups." in words(admin.get(f"/events/{seq}/undo"))
    seq = do("blogs.delete", cast.notebook)
    assert "Notebook comes back." in words(admin.get(f"/events/{seq}/undo"))
    assert _undo(admin, seq).headers["location"] == f"/admin/blogs/{cast.notebook}"


def test_children_that_had_moved_away_come_back_but_those_that_went_on(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.delete", cast.news, deleteChildrenOrMove=cast.help)
    run("forums.update", cast.interviews, parentId=cast.staff)
    page = words(admin.get(f"/events/{seq}/undo"))
    assert "1 forum that had moved away when it was deleted comes back under it: Help > Releases" in page
    assert "1 record stays as now Staff > Interviews: It was moved elsewhere since." in page
    _undo(admin, seq)
    said = words(admin.get("/forums"))
    assert "News is back. 1 that had moved away stands under it again. 1 stays as changed since." in said
    assert _order(run, cast.news) == ["Releases"]


def test_a_group_stands_in_its_permissions_again(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("groups.delete", cast.patrons)
    run("forums.update", cast.betas, permissions={"read": [MEMBERS]})
    page = words(admin.get(f"/events/{seq}/undo"))
    assert "It stands in the permissions of 3 nodes again:" in page
    assert all(name in page for name in ("Download category Skins > Dark skins", "Blog Notebook"))
    assert "News > Releases > Betas: Changed since: read." in page
    _undo(admin, seq)
    assert "Patrons is back. It stands in the permissions of 3 nodes again. 1 stays" in words(admin.get("/groups"))
    assert run("blogs.get", cast.notebook)["groups"] == [MEMBERS, cast.patrons]


def test_ticks_of_groups_that_are_gone_are_told_to_fall_away(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    branch = do("forums.delete", cast.news, deleteChildrenOrMove=-1)
    blog = do("blogs.delete", cast.notebook)
    run("groups.delete", cast.patrons)
    run("groups.delete", cast.moderators)
    page = words(admin.get(f"/events/{branch}/undo"))
    assert "The group Patrons is gone, so its ticks fall away under Read." in page
    assert "The group Moderators is gone, so its ticks fall away under Add, in 4 forums." in page
    assert "The group Patrons is gone, so its ticks fall away under Groups." in words(admin.get(f"/events/{blog}/undo"))
    assert _undo(admin, branch).status_code == 303
    assert run("forums.get", cast.betas)["permissions"]["read"] == []


# --- a parent that is gone ----------------------------------------------------------------------------------------


def test_a_parent_that_is_gone_is_asked_for(admin: Visitor, run: Run, cast: Cast, do: Doing, events: Events) -> None:
    seq = do("forums.delete", cast.betas)
    above = do("forums.delete", cast.releases)
    page = admin.get(f"/events/{seq}/undo")
    assert page.status_code == 200
    assert "Releases, under which it stood, is gone. Choose another place, or first undo what deleted it ." in words(page)
    assert f'href="/admin/events/{above}/undo"' in page.text
    before = events()
    found = admin.post(f"/events/{seq}/undo", form(page, "/undo").filled(**{"_search.parentId": "hel", "_do": "search"}))
    assert found.status_code == 200
    assert ("parentId", str(cast.help)) in form(found, "/undo").offered
    assert events() == before
    response = admin.post(f"/events/{seq}/undo", form(found, "/undo").filled(parentId=str(cast.help), _do="undo"))
    assert response.headers["location"] == f"/admin/forums?open={cast.help}#node-{cast.betas}"
    assert run("forums.get", cast.betas)["path"] == "Help > Betas"


def test_without_a_choice_it_goes_to_the_top_level(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.delete", cast.betas)
    run("forums.delete", cast.releases)
    assert _undo(admin, seq).status_code == 303
    assert run("forums.get", cast.betas)["parentId"] is None


@pytest.mark.parametrize(
    ("parent", "said"), [("wiki", "a redirect has no children"), ("999", "no forum 999"), ("x", "parent's id")]
)
def test_a_parent_that_cannot_be_is_said(
    admin: Visitor, run: Run, cast: Cast, do: Doing, events: Events, parent: str, said: str
) -> None:
    seq = do("forums.delete", cast.betas)
    run("forums.delete", cast.releases)
    before = events()
    response = _undo(admin, seq, parentId=str(getattr(cast, parent, parent)))
    assert (response.status_code, said in words(response)) == (400, True)
    assert events() == before


def test_the_old_parent_may_be_back_when_the_button_is_pressed(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.delete", cast.betas)
    above = do("forums.delete", cast.releases)
    drawn = form(admin.get(f"/events/{seq}/undo"), "/undo")
    run("events.restore", above)
    response = admin.post(f"/events/{seq}/undo", drawn.filled(parentId=str(cast.help), _do="undo"))
    assert response.status_code == 409
    assert "Look again" in words(response)
    assert "Betas comes back under News > Releases" in words(response)
    assert admin.post(f"/events/{seq}/undo", form(response, "/undo").filled(_do="undo")).status_code == 303


def test_a_move_from_under_one_that_is_gone_asks_too(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.update", cast.betas, parentId=cast.help)
    run("forums.delete", cast.releases)
    page = admin.get(f"/events/{seq}/undo")
    assert "Releases, under which it stood, is gone." in words(page)
    assert str(cast.betas) not in {value for name, value in form(page, "/undo").offered if name == "parentId"}
    assert _undo(admin, seq, parentId=str(cast.news)).status_code == 303
    assert run("forums.get", cast.betas)["path"] == "News > Betas"


# --- changes ------------------------------------------------------------------------------------------------------


def test_a_change_goes_back_field_by_field(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.update", cast.help, name="Aid", permissions={"view": [MEMBERS]}, password="open sesame")
    page = admin.get(f"/events/{seq}/undo")
    said = words(page)
    assert "Aid goes back to what it was:" in said
    assert "Name removed: Aid added: Help" in said
    assert "View removed: Members added: every group" in said
    assert "Password goes back to what it was; it is not shown" in said
    assert "sesame" not in page.text
    response = _undo(admin, seq)
    assert response.headers["location"] == f"/admin/forums/{cast.help}"
    assert f"Help is as it was before event {seq}." in words(admin.get(f"/forums/{cast.help}"))
    assert run("forums.get", cast.help)["permissions"]["view"] == "*"


def test_a_move_goes_back_and_is_shown_in_the_tree(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.update", cast.staff, parentId=cast.news, position=0)
    assert "Path removed: News > Staff added: Staff" in words(admin.get(f"/events/{seq}/undo"))
    assert _undo(admin, seq).headers["location"] == f"/admin/forums?#node-{cast.staff}"
    assert _order(run) == ["News", "Help", "Wiki", "Staff"]


def test_an_undo_is_undone_like_any_change(admin: Visitor, run: Run, cast: Cast, do: Doing, events: Events) -> None:
    _undo(admin, do("forums.update", cast.help, name="Aid"))
    undoing = events()[-1]["seq"]
    assert "Name removed: Help added: Aid" in words(admin.get(f"/events/{undoing}/undo"))
    assert _undo(admin, undoing).status_code == 303
    assert run("forums.get", cast.help)["name"] == "Aid"


def test_what_is_as_it_was_needs_no_undo(admin: Visitor, run: Run, cast: Cast, do: Doing, events: Events) -> None:
    patrons = {"permissions": {"read": [cast.patrons]}}
    seq = do("forums.update", cast.betas, permissions={"read": []})
    run("forums.update", cast.betas, **patrons)
    run("forums.update", cast.betas, permissions={"read": []})
    run("groups.delete", cast.patrons)
    before = events()
    page = admin.get(f"/events/{seq}/undo")
    assert "There is nothing to undo: Betas is as it was before this event." in words(page)
    assert ("_do", "undo") not in form(page, "/undo").buttons
    assert _undo(admin, seq).status_code == 303
    assert events() == before


# --- what stands in the way ---------------------------------------------------------------------------------------


def test_what_was_changed_since_is_shown_with_what_can_be_done(
    admin: Visitor, run: Run, cast: Cast, do: Doing, events: Events
) -> None:
    seq = do("forums.update", cast.help, name="Aid")
    drawn = form(admin.get(f"/events/{seq}/undo"), "/undo")
    run("forums.update", cast.help, name="Succour", permissions={"view": [MEMBERS]}, password="sesame")
    later = do("forums.update", cast.help, parentId=cast.news)
    before = events()
    for response, status in (
        (admin.get(f"/events/{seq}/undo"), 200),
        (admin.post(f"/events/{seq}/undo", drawn.filled(_do="undo")), 409),
    ):
        said = words(response)
        assert response.status_code == status
        assert "It was changed again since Undoing it now would lose what was done since." in said
        assert "Name removed: Aid added: Succour" in said
        assert "View removed: every group added: Members" in said
        assert "Parent id removed: the top level added: News" in said
        assert "Password changed; it is not shown" in said
        assert f'href="/admin/events/{later}/undo"' in response.text
        assert f'href="/admin/forums/{cast.help}"' in response.text
    assert events() == before
    assert _undo(admin, later).status_code == 303
    assert f'href="/admin/events/{later}/undo"' not in admin.get(f"/events/{seq}/undo").text


def test_what_was_deleted_since_leads_to_its_delete(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.update", cast.betas, name="Alphas")
    deleted = do("forums.delete", cast.news, deleteChildrenOrMove=-1)
    page = admin.get(f"/events/{seq}/undo")
    assert f"The forum {cast.betas} was deleted since, by event {deleted}" in words(page)
    assert f'href="/admin/events/{deleted}/undo"' in page.text
    assert _undo(admin, deleted).status_code == 303
    assert "goes back to what it was" in words(admin.get(f"/events/{seq}/undo"))


def test_what_a_delete_elsewhere_has_moved_leads_to_that_delete(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.update", cast.interviews, name="Talks")
    moved = do("forums.delete", cast.news, deleteChildrenOrMove=cast.staff)
    page = admin.get(f"/events/{seq}/undo")
    assert f"Parent id removed: forum {cast.news}, deleted since added: Staff" in words(page)
    assert f'href="/admin/events/{moved}/undo"' in page.text


def test_an_old_parent_that_is_a_redirect_now_is_said(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.delete", cast.betas)
    run("forums.update", cast.releases, type="redirect", redirectUrl="https://releases.example/")
    said = words(admin.get(f"/events/{seq}/undo"))
    assert f"forum {cast.releases} is a redirect, and a redirect has no children now. Choose another place." in said


def test_a_redirect_that_has_children_now_stays(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.update", cast.wiki, type="discussions")
    run("forums.create", name="Page", parentId=cast.wiki)
    said = words(admin.get(f"/events/{seq}/undo"))
    assert "It was a redirect, which has no children, and has 1 now: move or delete them first." in said
    assert "Children removed: 0 added: 1" in said


def test_what_is_no_longer_kept_is_said_to_be_so(admin: Visitor, gate: Gate, cast: Cast, do: Doing, clock: Clock) -> None:
    seq = do("forums.delete", cast.help)
    drawn = form(admin.get(f"/events/{seq}/undo"), "/undo")
    clock.move(days=40)
    admin.sign_in()
    gate.store.write(lambda tx: snapshots.purge(tx, clock.text)).result(30)
    page = admin.get(f"/events/{seq}")
    assert "It can no longer be undone: what that needs is kept for 30 days." in words(page)
    assert f"/events/{seq}/undo" not in page.text
    assert f"/events/{seq}/undo" not in admin.get("/events").text
    assert "It is too long ago" in words(admin.get(f"/events/{seq}/undo"))
    late = admin.post(f"/events/{seq}/undo", drawn.filled(_do="undo"))
    assert (late.status_code, "changes can be undone for 30 days" in words(late)) == (409, True)
    gate.store.write(lambda tx: journal.purge_events(tx, clock.text)).result(30)
    gone = admin.get(f"/events/{seq}/undo")
    assert f"Event {seq} is no longer kept, so it cannot be undone." in words(gone)


def test_what_is_undone_leads_to_what_undid_it(admin: Visitor, cast: Cast, do: Doing, events: Events) -> None:
    seq = do("forums.delete", cast.help)
    drawn = form(admin.get(f"/events/{seq}/undo"), "/undo").filled(_do="undo")
    assert admin.post(f"/events/{seq}/undo", drawn).status_code == 303
    by, count = events()[-1]["seq"], len(events())
    for response, status in ((admin.post(f"/events/{seq}/undo", drawn), 409), (admin.get(f"/events/{seq}/undo"), 200)):
        assert response.status_code == status
        assert f"It was undone already Event {by} took it back." in words(response)
        assert f'href="/admin/events/{by}"' in response.text
    page = admin.get(f"/events/{seq}")
    assert f"Undone by event {by}" in words(page)
    assert f"/events/{seq}/undo" not in page.text
    assert f'href="/admin/events/{by}">Undone' in admin.get("/events").text
    assert len(events()) == count


def test_what_cannot_be_undone_has_no_button_and_says_why(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    key = do("keys.create", name="Importer")
    made = do("forums.create", name="Lounge")
    brought = do("forums.restore", do("forums.delete", cast.help))
    for seq, said in ((key, "only changes of nodes can be undone"), (made, "To undo that, delete it"), (brought, "brought back")):
        assert f"/events/{seq}/undo" not in admin.get(f"/events/{seq}").text
        assert f"/events/{seq}/undo" not in admin.get("/events").text
        page = admin.get(f"/events/{seq}/undo")
        assert (page.status_code, said in words(page)) == (200, True)
        assert admin.post(f"/events/{seq}/undo", {"_do": "undo"}).status_code == 409
    number = run("forums.list", search="Lounge")["results"][0]["id"]
    assert f'href="/admin/forums/{number}/delete"' in admin.get(f"/events/{made}/undo").text
    assert admin.get("/events/999/undo").status_code == 404
    assert admin.post("/events/999/undo").status_code == 404


# --- between looking and pressing ---------------------------------------------------------------------------------


def test_a_plan_that_has_changed_is_shown_again(admin: Visitor, run: Run, cast: Cast, do: Doing, events: Events) -> None:
    seq = do("forums.delete", cast.news, deleteChildrenOrMove=-1)
    drawn = form(admin.get(f"/events/{seq}/undo"), "/undo")
    run("groups.delete", cast.patrons)
    before = events()
    response = admin.post(f"/events/{seq}/undo", drawn.filled(_do="undo"))
    assert response.status_code == 409
    assert "The group Patrons is gone" in words(response)
    assert events() == before
    assert admin.post(f"/events/{seq}/undo", form(response, "/undo").filled(_do="undo")).status_code == 303


def test_a_shift_among_siblings_is_no_other_plan(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    seq = do("forums.delete", cast.help)
    drawn = form(admin.get(f"/events/{seq}/undo"), "/undo")
    run("forums.create", name="New", position=0)
    assert admin.post(f"/events/{seq}/undo", drawn.filled(_do="undo")).status_code == 303
    assert _order(run) == ["New", "News", "Help", "Wiki", "Staff"]


def test_strange_fields_and_tokens_undo_nothing(admin: Visitor, cast: Cast, do: Doing, events: Events) -> None:
    seq = do("forums.delete", cast.help)
    path, before = f"/events/{seq}/undo", events()
    drawn = form(admin.get(path), "/undo")
    assert admin.post(path, drawn.filled(dryRun="0", _do="undo")).status_code == 400
    assert admin.post(path, {"_do": "undo"}).status_code == 409  # without having seen what comes back
    stale = admin.post(path, drawn.filled(_do="undo"), csrf="0" * 64)
    assert (stale.status_code, "open for so long" in words(stale)) == (409, True)
    assert events() == before


def test_hostile_names_never_run(admin: Visitor, run: Run, cast: Cast, do: Doing) -> None:
    hostile = "<script>alert(1)</script>\"'"
    group = run("groups.create", name=hostile)["id"]
    parent = run("forums.create", name=hostile, permissions={"view": [group]})["id"]
    run("forums.create", name=hostile, parentId=parent)
    changed = do("forums.update", cast.help, name=hostile)
    run("forums.update", cast.help, name=hostile + "2")
    seq = do("forums.delete", parent, deleteChildrenOrMove=-1)
    run("groups.delete", group)
    for path in (f"/events/{seq}/undo", f"/events/{changed}/undo"):
        assert "<script>alert" not in admin.get(path).text, path
        assert "&lt;script&gt;alert" in admin.get(path).text, path


# --- the ways to it -----------------------------------------------------------------------------------------------


def test_an_event_its_row_and_what_is_gone_lead_to_undo(admin: Visitor, cast: Cast, do: Doing) -> None:
    seq = do("forums.delete", cast.news, deleteChildrenOrMove=-1)
    there = f'href="/admin/events/{seq}/undo"'
    for path in (f"/events/{seq}", "/events", f"/forums/{cast.news}", f"/forums/{cast.betas}"):
        assert there in admin.get(path).text, path


def test_the_message_after_a_delete_leads_to_undo_once(admin: Visitor, cast: Cast, events: Events) -> None:
    path = f"/forums/{cast.help}/delete"
    assert admin.post(path, form(admin.get(path), "/delete").filled(_do="delete")).status_code == 303
    there = f'href="/admin/events/{events()[-1]["seq"]}/undo"'
    assert there in admin.get("/forums").text
    assert there not in admin.get("/forums").text
