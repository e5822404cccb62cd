"""What stands in the way of an undo in the panel is told with what can be done, and all is looked at again when it is pressed."""

import pytest

from tests.admin.conftest import Visitor, page_text, undo
from tests.admin.html_forms import find_form
from tests.community import MEMBERS, Community
from tests.fixture_types import Clock, Events, Run, RunForEvent
from trellis.core.gate import Gate
from trellis.store import snapshots
from trellis.store.events import log


def test_what_was_changed_since_is_shown_with_what_can_be_done(
    admin: Visitor, run: Run, community: Community, do: RunForEvent, events: Events
) -> None:
    seq = do("forums.update", community.help, name="Aid")
    drawn = find_form(admin.get(f"/events/{seq}/undo"), "/undo")
    run("forums.update", community.help, name="Succour", permissions={"view": [MEMBERS]}, password="sesame")
    later = do("forums.update", community.help, parentId=community.news)
    before = events()
    for response, status in (
        (admin.get(f"/events/{seq}/undo"), 200),
        (admin.post(f"/events/{seq}/undo", drawn.filled(_action="undo")), 409),
    ):
        said = page_text(response)
        assert response.status_code == status
        assert "The record has changed since then Undoing this event now would lose the later changes." in said
        assert "Name removed: Aid added: Succour" in said
        assert "View removed: every group added: Members" in said
        assert "Parent id removed: the top level added: News" in said
        assert "Password changed; value not shown" in said
        assert f'href="/admin/events/{later}/undo"' in response.text
        assert f'href="/admin/forums/{community.help}"' in response.text
    assert events() == before
    assert undo(admin, later).status_code == 303
    assert f'href="/admin/events/{later}/undo"' not in admin.get(f"/events/{seq}/undo").text


def test_what_was_deleted_since_leads_to_its_delete(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("forums.update", community.betas, name="Alphas")
    deleted = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    page = admin.get(f"/events/{seq}/undo")
    assert f"Forum {community.betas} has been deleted since, by event {deleted}" in page_text(page)
    assert f'href="/admin/events/{deleted}/undo"' in page.text
    assert undo(admin, deleted).status_code == 303
    assert "will be changed back" in page_text(admin.get(f"/events/{seq}/undo"))


def test_what_a_delete_elsewhere_has_moved_leads_to_that_delete(
    admin: Visitor, run: Run, community: Community, do: RunForEvent
) -> None:
    seq = do("forums.update", community.interviews, name="Talks")
    moved = do("forums.delete", community.news, deleteChildrenOrMove=community.staff)
    page = admin.get(f"/events/{seq}/undo")
    assert f"Parent id removed: forum {community.news}, deleted since added: Staff" in page_text(page)
    assert f'href="/admin/events/{moved}/undo"' in page.text


def test_an_old_parent_that_is_a_redirect_now_is_said(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("forums.delete", community.betas)
    run("forums.update", community.releases, type="redirect", redirectUrl="https://releases.example/")
    said = page_text(admin.get(f"/events/{seq}/undo"))
    assert f"forum {community.releases} is a redirect, and redirects cannot have children. Choose another place." in said


def test_a_redirect_that_has_children_now_stays(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("forums.update", community.wiki, type="discussions")
    run("forums.create", name="Page", parentId=community.wiki)
    said = page_text(admin.get(f"/events/{seq}/undo"))
    assert "Before the event it was a redirect, which cannot have children, but now it has 1: move or delete them first." in said
    assert "Children removed: 0 added: 1" in said


def test_what_is_no_longer_kept_is_said_to_be_so(
    admin: Visitor, gate: Gate, community: Community, do: RunForEvent, clock: Clock
) -> None:
    seq = do("forums.delete", community.help)
    drawn = find_form(admin.get(f"/events/{seq}/undo"), "/undo")
    clock.move(days=40)
    admin.sign_in()
    gate.store.write(lambda tx: snapshots.purge(tx, clock.text)).result(30)
    page = admin.get(f"/events/{seq}")
    assert "This event is too old to undo: undo data is kept for 30 days." in page_text(page)
    assert f"/events/{seq}/undo" not in page.text
    assert f"/events/{seq}/undo" not in admin.get("/events").text
    assert "This event is too old" in page_text(admin.get(f"/events/{seq}/undo"))
    late = admin.post(f"/events/{seq}/undo", drawn.filled(_action="undo"))
    assert (late.status_code, "changes can be undone for 30 days" in page_text(late)) == (409, True)
    gate.store.write(lambda tx: log.purge(tx, clock.text)).result(30)
    gone = admin.get(f"/events/{seq}/undo")
    assert f"Event {seq} has been purged, so it cannot be undone." in page_text(gone)


def test_what_is_undone_leads_to_what_undid_it(admin: Visitor, community: Community, do: RunForEvent, events: Events) -> None:
    seq = do("forums.delete", community.help)
    drawn = find_form(admin.get(f"/events/{seq}/undo"), "/undo").filled(_action="undo")
    by, count = do("events.restore", seq), len(events())
    for response, status in ((admin.post(f"/events/{seq}/undo", drawn), 409), (admin.get(f"/events/{seq}/undo"), 200)):
        assert response.status_code == status
        assert f"Already undone Undone by event {by}." in page_text(response)
        assert ("data-focus" in response.text) == (status == 409)  # what answers the button has the focus
        assert f'href="/admin/events/{by}"' in response.text
    page = admin.get(f"/events/{seq}")
    assert f"Undone by event {by}" in page_text(page)
    assert f"/events/{seq}/undo" not in page.text
    assert f'href="/admin/events/{by}">Undone' in admin.get("/events").text
    assert len(events()) == count


def test_what_cannot_be_undone_has_no_button_and_says_why(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    key = do("keys.create", name="Importer")
    made = do("forums.create", name="Lounge")
    brought = do("forums.restore", do("forums.delete", community.help))
    for seq, said in (
        (key, "created the key. To undo that, revoke the key."),
        (made, "To undo that, delete it"),
        (brought, "restored forum"),
    ):
        assert f"/events/{seq}/undo" not in admin.get(f"/events/{seq}").text
        assert f"/events/{seq}/undo" not in admin.get("/events").text
        page = admin.get(f"/events/{seq}/undo")
        assert (page.status_code, said in page_text(page)) == (200, True)
        assert "deleteCreated" not in page_text(page)
        assert admin.post(f"/events/{seq}/undo", {"_action": "undo"}).status_code == 409
    number = run("forums.list", search="Lounge")["results"][0]["id"]
    assert f'href="/admin/forums/{number}/delete"' in admin.get(f"/events/{made}/undo").text
    assert admin.get("/events/999/undo").status_code == 404
    assert admin.post("/events/999/undo").status_code == 404


# --- between looking and pressing ---------------------------------------------------------------------------------


def test_a_plan_that_has_changed_is_shown_again(
    admin: Visitor, run: Run, community: Community, do: RunForEvent, events: Events
) -> None:
    seq = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    drawn = find_form(admin.get(f"/events/{seq}/undo"), "/undo")
    run("groups.delete", community.patrons)
    before = events()
    response = admin.post(f"/events/{seq}/undo", drawn.filled(_action="undo"))
    assert response.status_code == 409
    assert "The group Patrons no longer exists" in page_text(response)
    assert events() == before
    assert admin.post(f"/events/{seq}/undo", find_form(response, "/undo").filled(_action="undo")).status_code == 303


def test_a_shift_among_siblings_is_no_other_plan(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    seq = do("forums.delete", community.help)
    drawn = find_form(admin.get(f"/events/{seq}/undo"), "/undo")
    run("forums.create", name="New", position=0)
    assert admin.post(f"/events/{seq}/undo", drawn.filled(_action="undo")).status_code == 303
    assert [one["name"] for one in run("forums.list", parentId="root", sortBy="position")["results"]][:3] == ["New", "News", "Help"]


def test_strange_fields_and_tokens_undo_nothing(admin: Visitor, community: Community, do: RunForEvent, events: Events) -> None:
    seq = do("forums.delete", community.help)
    path, before = f"/events/{seq}/undo", events()
    drawn = find_form(admin.get(path), "/undo")
    assert admin.post(path, drawn.filled(dryRun="0", _action="undo")).status_code == 400
    assert admin.post(path, {"_action": "undo"}).status_code == 409  # without having seen what comes back
    stale = admin.post(path, drawn.filled(_action="undo"), csrf="0" * 64)
    assert (stale.status_code, "signed in since this form was opened" in page_text(stale)) == (409, True)
    assert events() == before


@pytest.mark.either_engine
def test_hostile_names_never_run(admin: Visitor, run: Run, community: Community, do: RunForEvent) -> None:
    hostile = "<script>alert(1)</script>\"'"
    group = run("groups.create", name=hostile)["id"]
    parent = run("forums.create", name=hostile, permissions={"view": [group]})["id"]
    run("forums.create", name=hostile, parentId=parent)
    changed = do("forums.update", community.help, name=hostile)
    run("forums.update", community.help, name=hostile + "2")
    seq = do("forums.delete", parent, deleteChildrenOrMove=-1)
    run("groups.delete", group)
    for path in (f"/events/{seq}/undo", f"/events/{changed}/undo"):
        assert "<script>alert" not in admin.get(path).text, path
        assert "&lt;script&gt;alert" in admin.get(path).text, path


@pytest.mark.either_engine
def test_a_stale_form_that_undoes_a_change_of_a_key_is_refused_in_german(admin: Visitor, run: Run, events: Events) -> None:
    run("keys.create", name="Importer")
    run("keys.update", 1, name="Renamed")
    before = events()
    path = f"/events/{before[-1]['seq']}/undo"
    drawn = find_form(admin.get(path), "/undo")
    stale = admin.post(path, drawn.filled(_action="undo"), csrf="0" * 64, headers={"accept-language": "de"})
    assert stale.status_code == 409
    assert "Mira Holm hat sich angemeldet, nachdem dieses Formular" in page_text(stale)
    assert events() == before
