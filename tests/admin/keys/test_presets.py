"""Presets in the panel: a form that begins with one, its sentence, and pausing keys, one or all of a preset."""

import re
from typing import Any

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import HtmlForm, read_forms
from tests.fixture_types import Clock, Events, Run
from trellis.core.keys import PRESETS

SENTENCE = PRESETS["agent"].summary


def _find_form(page: Any) -> HtmlForm:
    return next(form for form in read_forms(page) if not form.action)


def _send(admin: Visitor, page: Any, path: str, *more: tuple[str, str], **changes: str) -> Any:
    return admin.post(path, _find_form(page).filled(*more, without=[name for name, _ in more], **changes))


def test_a_key_begins_with_the_preset_and_says_what_it_will_be_able_to_do(admin: Visitor, run: Run) -> None:
    empty = admin.get("/keys/new")
    assert 'href="/admin/keys/new?preset=agent"' in empty.text
    assert SENTENCE not in page_text(empty)
    page = admin.get("/keys/new?preset=agent")
    assert SENTENCE in page_text(page)
    made = _send(admin, page, "/keys/new", name="Gardener")
    assert "the new key" in page_text(made)
    by_hand = run("keys.create", name="By hand", preset="agent")
    key = run("keys.get", 1)
    assert {name: key[name] for name in ("preset", "grants", "bounds", "perDay", "expiresAt")} == {
        name: by_hand[name] for name in ("preset", "grants", "bounds", "perDay", "expiresAt")
    }


def test_what_is_changed_in_the_form_comes_before_the_preset(admin: Visitor, run: Run) -> None:
    page = admin.get("/keys/new?preset=agent")
    grants = [("grants", name) for name in ("forums.get", "forums.create", "forums.update", "forums.restore")]
    changes = {
        "name": "Gardener",
        "bounds.forums.create.level": "allow",
        "bounds.forums.update.under": "forums:12",
        "bounds.forums.restore.ownOnly": "0",
        "expires": "30d",
        "perDay": "",
    }
    _send(admin, page, "/keys/new", *grants, **changes)
    key = run("keys.get", 1)
    assert (key["preset"], key["perDay"], key["expiresAt"]) == ("agent", None, "2026-03-02T09:30:00.000Z")
    assert key["grants"] == ["forums.create", "forums.get", "forums.restore", "forums.update"]
    assert key["bounds"] == {"forums.update": {"level": "propose", "under": ["forums:12"]}}


def test_a_preset_that_there_is_not_is_an_empty_form(admin: Visitor, run: Run) -> None:
    page = admin.get("/keys/new?preset=angel")
    assert page.status_code == 200
    _send(admin, page, "/keys/new", name="Plugin", preset="angel")
    assert run("keys.get", 1)["preset"] is None


@pytest.mark.either_engine
def test_a_button_of_the_grid_leaves_the_preset(admin: Visitor) -> None:
    page = admin.get("/keys/new?preset=agent")
    again = admin.post("/keys/new", _find_form(page).filled(name="Gardener") | {"_tick": ["read"]})
    assert SENTENCE in page_text(again)
    assert 'name="preset" value="agent"' in again.text


def test_what_a_key_itself_did_can_be_chosen_for_a_grant(admin: Visitor, run: Run) -> None:
    run("keys.create", name="Plugin", grants=["forums.restore", "forums.get"])
    page = admin.get("/keys/1/edit")
    assert "bounds.forums.get.ownOnly" not in page.text
    _send(admin, page, "/keys/1/edit", **{"bounds.forums.restore.ownOnly": "1"})
    assert run("keys.get", 1)["bounds"] == {"forums.restore": {"level": "allow", "ownOnly": True}}


def test_all_agents_are_paused_at_once(admin: Visitor, run: Run, events: Events) -> None:
    run("keys.create", name="Plugin", grants=["forums.list"])
    assert "Pause all agents" not in page_text(admin.get("/keys"))
    for name in ("Gardener", "Porter"):
        run("keys.create", name=name, preset="agent")
    assert 'href="/admin/keys/presets/agent/pause"' in admin.get("/keys").text
    page = admin.get("/keys/presets/agent/pause")
    said = page_text(page)
    assert "2 keys were created with this preset" in said
    assert "Gardener" in said
    assert "Plugin" not in said.replace("Plugin</", "")
    before = events()
    answer = _send(admin, page, "/keys/presets/agent/pause", reason="Too much at once")
    assert answer.status_code == 303
    new = events()[len(before) :]
    assert [(one["operation"], one["resourceId"], one["reason"]) for one in new] == [
        ("keys.pause", 2, "Too much at once"),
        ("keys.pause", 3, "Too much at once"),
    ]
    listed = admin.get("/keys?state=paused")
    assert re.findall(r'href="/admin/keys/\d+">(\w+)</a></th>', listed.text) == ["Porter", "Gardener"]
    assert "Too much at once" in page_text(listed)
    assert "Pause all agents" not in page_text(listed)
    assert "There are no keys of this preset left to pause" in page_text(admin.get("/keys/presets/agent/pause"))


@pytest.mark.either_engine
def test_there_is_no_page_of_another_preset(admin: Visitor) -> None:
    assert admin.get("/keys/presets/angel/pause").status_code == 404


def test_a_key_is_paused_and_resumed_on_its_page(admin: Visitor, run: Run, clock: Clock) -> None:
    run("keys.create", name="Plugin", grants=["forums.list"])
    page = admin.get("/keys/1/pause")
    _send(admin, page, "/keys/1/pause", reason="Odd requests")
    shown = page_text(admin.get("/keys/1"))
    assert "Its requests are refused until you resume it." in shown
    assert "Odd requests" in shown
    clock.move(minutes=20)
    assert admin.get("/keys/1/resume").headers["location"].startswith("/admin/confirm-password"), "it may do more again"
    admin.sign_in()
    page = admin.get("/keys/1/resume")
    assert "Odd requests" in page_text(page)
    _send(admin, page, "/keys/1/resume")
    assert run("keys.get", 1)["state"] == "active"
    assert "Resume" not in page_text(admin.get("/keys/1"))


def test_the_page_of_a_key_that_is_paused_and_expired_says_what_makes_it_work_again(admin: Visitor, run: Run, clock: Clock) -> None:
    run("keys.create", name="Plugin", grants=["forums.list"], expires="1h")
    run("keys.pause", 1)
    clock.move(hours=1)
    shown = page_text(admin.get("/keys/1"))
    assert "Set a later date to make it work again." in shown
    assert "until you resume it" not in shown
