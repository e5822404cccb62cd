"""What is done with the keys that were ticked: always what would happen first, then all of it or nothing."""

import re
from typing import Any

import pytest

from tests.admin.conftest import PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import HtmlForm, find_form
from tests.fixture_types import Clock, Events, Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call


def _make(run: Run, name: str, *grants: str) -> int:
    return int(run("keys.create", name=name, grants=list(grants))["id"])


def _start(admin: Visitor, action: str, *ids: int) -> tuple[Any, HtmlForm]:
    admin.get("/keys?state=active")
    page = admin.post(f"/keys/many/{action}", {"ids": [str(one) for one in ids], "_from": "/admin/keys?state=active"})
    return page, find_form(page, f"/many/{action}")


def test_grants_are_given_to_several_and_taken_back_at_once(admin: Visitor, run: Run, events: Events, clock: Clock) -> None:
    mirror, feed, full = _make(run, "Mirror", "forums.list"), _make(run, "Feed"), _make(run, "Full", "forums.get")
    known = events()
    page, form = _start(admin, "grants", mirror, feed, full)
    assert "Add or remove grants of 3 keys" in page_text(page)
    assert "data-typed" not in page.text
    page = admin.post("/keys/many/grants", form.filled(_action="plan"))
    assert "data-typed" in page.text
    assert (page.status_code, "Tick at least one operation." in page_text(page)) == (400, True)
    page = admin.post("/keys/many/grants", form.filled(grants="forums.get", _action="plan"))
    said = page_text(page)
    assert "2 keys would change" in said
    assert said.count("May do more") == 2
    assert events() == known
    clock.move(minutes=20)
    asked = admin.post("/keys/many/grants", find_form(page, "/many/grants").filled(_action="do"))
    assert "enter your password again" in page_text(asked)
    assert events() == known
    kept = admin.post("/confirm-password", find_form(asked, "/confirm-password").filled(password=PASSWORD))
    for _ in range(2):  # the second time nothing happens
        done = admin.post("/keys/many/grants", find_form(kept, "/many/grants").filled())
        assert done.headers["location"] == "/admin/keys?state=active"
    assert [run("keys.get", number)["grants"] for number in (mirror, feed)] == [["forums.get", "forums.list"], ["forums.get"]]
    assert len(events()) == len(known) + 3  # two changes, and the password
    undo = re.search(r'href="/admin(/change-sets/\d+/undo)"', admin.get("/keys?state=active").text)
    assert undo is not None
    assert admin.post(undo[1], find_form(admin.get(undo[1]), "/undo").filled()).status_code == 303
    assert [run("keys.get", number)["grants"] for number in (mirror, feed)] == [["forums.list"], []]


def test_taking_grants_asks_for_no_password_and_what_nobody_has_changes_nothing(admin: Visitor, run: Run, clock: Clock) -> None:
    mirror, feed = _make(run, "Mirror", "forums.list", "forums.get"), _make(run, "Feed", "forums.get")
    _, form = _start(admin, "grants", mirror, feed)
    page = admin.post("/keys/many/grants", form.filled(how="take", grants="groups.get", _action="plan"))
    assert "Nothing would change" in page_text(page)
    clock.move(minutes=20)
    page = admin.post("/keys/many/grants", form.filled(how="take", grants="forums.list", _action="plan"))
    assert ("1 key would change" in page_text(page), "May do more" in page_text(page)) == (True, False)
    assert admin.post("/keys/many/grants", find_form(page, "/many/grants").filled(_action="do")).status_code == 303
    assert run("keys.get", mirror)["grants"] == ["forums.get"]


@pytest.mark.either_engine
def test_the_buttons_of_the_grid_tick_without_scripts(admin: Visitor, run: Run) -> None:
    _, form = _start(admin, "grants", _make(run, "Mirror"))
    page = admin.post("/keys/many/grants", form.filled(_tick="row:forums"))
    assert "forums.create" in find_form(page, "/many/grants").all("grants")
    assert "would change" not in page_text(page).replace("Show what would change", "")


def test_several_are_revoked_after_the_page_said_what_stops(admin: Visitor, gate: Gate, run: Run, events: Events) -> None:
    mirror, feed, gone = _make(run, "Mirror", "forums.list"), _make(run, "Feed"), _make(run, "Gone")
    run("keys.revoke", gone)
    raw = {"url": "https://hooks.example/x", "events": ["*"], "description": "Search index"}
    webhook = gate.run(Call("webhooks.create", Actor("key", feed, "Feed", frozenset({"webhooks.create"})), raw)).value["id"]
    known = events()
    page, form = _start(admin, "revoke", mirror, feed, gone)
    said = page_text(page)
    assert "Switched off: Search index https://hooks.example/x" in said
    assert said.count("Switched off") == 1
    assert "2 keys would be revoked" in said
    assert "This cannot be undone." in said
    assert "Gone is already revoked" in said
    assert events() == known
    done = admin.post("/keys/many/revoke", form.filled(reason="The partner left", keepWebhooks="1", _action="do"))
    assert run("webhooks.get", webhook)["enabled"] is True
    assert done.status_code == 303
    listed = admin.get("/keys?state=active")
    assert "2 keys are revoked permanently" in page_text(listed)
    assert "/change-sets/" not in listed.text
    assert [run("keys.get", number)["revokedBecause"] for number in (mirror, feed)] == ["The partner left"] * 2
    assert {event["reason"] for event in events()[len(known) :]} == {"The partner left"}


def test_what_has_changed_meanwhile_is_shown_again(admin: Visitor, run: Run, events: Events) -> None:
    mirror, feed = _make(run, "Mirror", "forums.list"), _make(run, "Feed")
    _, form = _start(admin, "revoke", mirror, feed)
    run("keys.revoke", feed)
    known = events()
    page = admin.post("/keys/many/revoke", form.filled(_action="do"))
    assert (page.status_code, "has changed since this page was loaded" in page_text(page)) == (409, True)
    assert events() == known


def test_nothing_is_done_with_no_key_or_revoked_ones(admin: Visitor, run: Run) -> None:
    gone = _make(run, "Gone")
    run("keys.revoke", gone)
    for ids, why in (([], "Tick at least one key"), ([gone], "Revoked keys stay"), (range(1, 300), "At most 200 keys")):
        admin.get("/keys")
        assert admin.post("/keys/many/revoke", {"ids": ",".join(map(str, ids))}).headers["location"] == "/admin/keys"
        assert why in page_text(admin.get("/keys"))


def test_a_key_manager_undoes_what_they_did_and_an_approver_has_no_boxes(visitor: MakeVisitor, mira: int, run: Run) -> None:
    mirror = _make(run, "Mirror")
    for role, boxes in (("key-manager", True), ("approver", False)):
        run("admins.create", name=role, login=role, password=PASSWORD, mustChangePassword=False, role=role)
        somebody = visitor()
        somebody.sign_in(role)
        assert ('form="many"' in somebody.get("/keys").text) == boxes
        done = somebody.post("/keys/many/grants", {"ids": str(mirror), "grants": "forums.get", "_action": "plan"})
        assert done.status_code == (200 if boxes else 403)
        if boxes:
            assert somebody.post("/keys/many/grants", find_form(done, "/many/grants").filled(_action="do")).status_code == 303
            undo = re.search(r'href="/admin(/change-sets/\d+/undo)"', somebody.get("/keys").text)
            assert undo is not None
            assert somebody.post(undo[1], find_form(somebody.get(undo[1]), "/undo").filled()).status_code == 303
    assert run("keys.get", mirror)["grants"] == []
