"""The pages of administrators: disabling one, and what goes off with them."""

import re
from typing import Any

import pytest

from tests.admin.conftest import PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import HtmlForm, read_forms
from tests.fixture_types import Clock, Events, Run
from trellis.admin.admins import administrators
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call


@pytest.fixture
def ada(run: Run) -> int:
    """Another administrator."""
    return int(run("admins.create", name="Ada Berg", login="ada", password=PASSWORD)["id"])


@pytest.fixture
def webhook(gate: Gate, ada: int) -> int:
    """A webhook that she has made."""
    raw = {"url": "https://hooks.example/in", "events": ["*"], "description": "Search index"}
    return int(gate.run(Call("webhooks.create", Actor("admin", ada, "Ada Berg"), raw)).value["id"])


def test_the_page_that_disables_tells_which_webhooks_go_off(
    admin: Visitor, ada: int, webhook: int, run: Run, events: Events
) -> None:
    assert f'href="/admin/administrators/{ada}/disable"' in admin.get(f"/administrators/{ada}").text
    page = admin.get(f"/administrators/{ada}/disable")
    told = "1 webhook created by Ada Berg is switched off too and stays off, even if you enable the account again: Search index"
    assert told in page_text(page)
    assert f'href="/admin/webhooks/{webhook}"' in page.text
    response = admin.post(f"/administrators/{ada}/disable")
    assert response.headers["location"] == f"/admin/administrators/{ada}"
    assert "Ada Berg was signed out and can no longer sign in." in page_text(admin.get(f"/administrators/{ada}"))
    assert events()[-1]["touched"] == [{"resource": "webhooks", "id": webhook, "how": "switched off"}]
    assert "The administrator who made it, Ada Berg, was disabled." in page_text(admin.get(f"/webhooks/{webhook}"))
    admin.post(f"/administrators/{ada}/enable")
    assert run("webhooks.get", webhook)["enabled"] is False


def test_all_administrators_are_listed_a_page_at_a_time(
    admin: Visitor, mira: int, ada: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Page 1 of" not in page_text(admin.get("/administrators"))
    monkeypatch.setattr(administrators, "_ROWS", 1)
    first = admin.get("/administrators")
    assert "Page 1 of 2" in page_text(first)
    assert (f'href="/admin/administrators/{mira}"' in first.text, f'href="/admin/administrators/{ada}"' in first.text) == (
        True,
        False,
    )
    assert 'rel="next" href="?page=2"' in first.text
    assert f'href="/admin/administrators/{ada}"' in admin.get("/administrators?page=2").text
    assert admin.get("/administrators?page=9").headers["location"] == "/admin/administrators?page=2"
    assert admin.get("/administrators?page=x").status_code == 400


def find_own_form(page: Any) -> HtmlForm:
    """Return the form of an administrator's page with the name, login and address."""
    return next(one for one in read_forms(page) if one.action == "")


def test_what_was_changed_in_the_meantime_is_not_put_back(admin: Visitor, ada: int, run: Run, events: Events) -> None:
    path = f"/administrators/{ada}"
    typed = find_own_form(admin.get(path)).filled(name="Ada Berger")
    run("admins.update", ada, login="ada.berg", email="ada@lantern.example")
    before = len(events())
    conflict = admin.post(path, typed)
    assert (conflict.status_code, len(events())) == (409, before)
    said = page_text(conflict)
    assert "Somebody else changed this administrator in the meantime" in said
    for difference in ("Name Ada Berg Ada Berger", "Login ada.berg ada", "E-mail address ada@lantern.example none"):
        assert difference in said
    assert admin.post(path, find_own_form(conflict).filled(login="ada.berg")).status_code == 303
    changed = run("admins.get", ada)
    assert (changed["name"], changed["login"], changed["email"]) == ("Ada Berger", "ada.berg", None)


def test_a_form_that_was_refused_still_notices_what_changed_before(admin: Visitor, ada: int, run: Run) -> None:
    path = f"/administrators/{ada}"
    typed = find_own_form(admin.get(path)).filled(name="")
    run("admins.update", ada, login="ada.berg")
    refused = admin.post(path, typed)
    assert refused.status_code == 400
    assert admin.post(path, find_own_form(refused).filled(name="Ada Berger")).status_code == 409
    assert run("admins.get", ada)["login"] == "ada.berg"


def test_they_can_be_kept(admin: Visitor, ada: int, webhook: int, run: Run) -> None:
    assert 'name="keepWebhooks"' in admin.get(f"/administrators/{ada}/disable").text
    assert admin.post(f"/administrators/{ada}/disable", {"keepWebhooks": "1"}).status_code == 303
    assert run("admins.get", ada)["disabledAt"] is not None
    assert run("webhooks.get", webhook)["enabled"] is True


def test_without_webhooks_nothing_is_said_of_them(admin: Visitor, ada: int) -> None:
    page = admin.get(f"/administrators/{ada}/disable")
    assert "switched off" not in page_text(page)
    assert "keepWebhooks" not in page.text


def test_who_is_disabled_cannot_be_disabled_again_nor_can_oneself(admin: Visitor, mira: int, ada: int, run: Run) -> None:
    own = admin.post(f"/administrators/{mira}/disable")
    assert (own.status_code, "You cannot disable yourself." in page_text(own)) == (403, True)
    run("admins.disable", ada)
    assert admin.get(f"/administrators/{ada}/disable").headers["location"] == f"/admin/administrators/{ada}"
    assert run("admins.get", mira)["disabledAt"] is None


def test_an_owner_ends_the_sessions_of_another_administrator(
    admin: Visitor, visitor: MakeVisitor, run: Run, events: Events, clock: Clock
) -> None:
    ada = run("admins.create", name="Ada Berg", login="ada", password=PASSWORD, mustChangePassword=False)["id"]
    telephone, laptop = visitor(address="192.0.2.8"), visitor(address="192.0.2.9")
    telephone.client.headers["user-agent"] = "Mozilla/5.0 (Android 15; Mobile; rv:144.0) Gecko/144.0 Firefox/144.0"
    for browser in (telephone, laptop):
        assert browser.sign_in("ada", PASSWORD).status_code == 303
    page = admin.get(f"/administrators/{ada}")
    assert "Firefox on Android 192.0.2.8 just now just now password Sign out" in page_text(page)
    path = next(path for path in re.findall(rf'action="/admin(/administrators/{ada}/sessions/[0-9a-f]+)"', page.text))
    assert admin.post(path).headers["location"] == f"/admin/administrators/{ada}"
    assert sorted(one.get("").status_code for one in (telephone, laptop)) == [200, 303]
    asked = page_text(admin.get(f"/administrators/{ada}/sign-out"))
    assert "Sign Ada Berg out everywhere" in asked
    assert sorted(one.get("").status_code for one in (telephone, laptop)) == [200, 303], "asking signs nobody out"
    assert admin.post(f"/administrators/{ada}/sign-out").status_code == 303
    assert {one.get("").status_code for one in (telephone, laptop)} == {303}
    assert [event["actor"]["name"] for event in events()[-2:]] == ["Mira Holm", "Mira Holm"]
    assert "Where Ada Berg is signed in. Not signed in anywhere." in page_text(admin.get(f"/administrators/{ada}"))
    assert "already signed out" in page_text((admin.post(path), admin.get(f"/administrators/{ada}"))[1])
    clock.move(minutes=16)
    assert admin.post(path).status_code == 403


@pytest.mark.either_engine
def test_the_page_asks_for_the_password_first(admin: Visitor, ada: int, clock: Clock) -> None:
    clock.move(minutes=16)
    asked = admin.get(f"/administrators/{ada}/disable")
    assert asked.headers["location"] == f"/admin/confirm-password?next=/admin/administrators/{ada}/disable"
