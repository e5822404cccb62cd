"""The first run: a one-time link, the first administrator, and nobody else by it."""

from typing import Any

import pytest

from tests.admin.conftest import LOGIN, PASSWORD, MakeVisitor, page_text
from tests.fixture_types import Clock, Events, Run
from trellis.admin import first_run_link
from trellis.admin.admins import first_run
from trellis.admin.admins.sign_in import start_session
from trellis.core.admins import create_demo_administrator
from trellis.core.gate import Gate

_TYPED = {"name": "Mira Holm", "login": LOGIN, "password": PASSWORD}


@pytest.fixture
def link(gate: Gate) -> str:
    made = first_run_link(gate, "http://panel.example/")
    assert made is not None
    return made.removeprefix("http://panel.example/admin")


def test_the_link_makes_the_first_administrator_and_signs_them_in(visitor: MakeVisitor, link: str, events: Events) -> None:
    somebody = visitor()
    assert "first administrator" in page_text(somebody.get(link))
    token = somebody.csrf
    assert "This form was open for too long." in page_text(somebody.post(link, _TYPED, csrf="0" * 64))
    assert events() == []
    assert somebody.post(link, _TYPED, csrf=token).headers["location"] == "/admin"
    assert "Welcome, Mira Holm" in page_text(somebody.get(""))
    event, signed_in = events()
    assert (event["operation"], event["actor"]["name"]) == ("admins.begin", "one-time link")
    assert (signed_in["operation"], signed_in["actor"]["name"]) == ("admins.sign_in", "Mira Holm")
    assert "password" not in event["after"]


def test_a_password_that_is_reset_before_the_session_begins_signs_nobody_in(
    visitor: MakeVisitor, link: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start_late(*given: Any) -> None:
        run("admins.set_password", 1, password="chosen at the terminal")
        await start_session(*given)

    monkeypatch.setattr(first_run, "start_session", start_late)
    somebody = visitor()
    somebody.get(link)
    refused = somebody.post(link, _TYPED)
    assert refused.status_code == 403
    assert "The password was changed meanwhile" in page_text(refused)
    assert run("admins.sessions", 1) == []


def test_the_link_is_good_once(visitor: MakeVisitor, link: str, events: Events) -> None:
    first, second = visitor(), visitor()
    first.get(link)
    second.get(link)
    first.post(link, _TYPED)
    spent = second.post(link, _TYPED | {"login": "other"})
    assert (spent.status_code, "If you have just used it yourself" in page_text(spent)) == (409, True)  # as after a double click
    assert second.get(link).status_code == 404
    assert [event["operation"] for event in events()] == ["admins.begin", "admins.sign_in"]


def test_the_link_is_good_for_an_hour(visitor: MakeVisitor, link: str, clock: Clock, events: Events) -> None:
    somebody = visitor()
    somebody.get(link)
    clock.move(hours=1)
    assert somebody.post(link, _TYPED).status_code == 409
    assert somebody.get(link).status_code == 404
    assert events() == []


def test_faults_stand_at_their_fields_and_the_link_stays_good(visitor: MakeVisitor, link: str) -> None:
    somebody = visitor()
    somebody.get(link)
    response = somebody.post(link, {"name": "", "login": LOGIN, "password": "short"})
    assert response.status_code == 400
    assert f'value="{LOGIN}"' in response.text
    assert "short" not in response.text
    assert 'href="#field-name"' in response.text
    assert "Password must have 12 to 255 characters" in page_text(response)
    assert somebody.post(link, _TYPED).status_code == 303


def test_a_made_up_link_is_refused(visitor: MakeVisitor) -> None:
    assert visitor().get("/first-run/guess").status_code == 404


def test_without_an_administrator_signing_in_says_how_to_begin(visitor: MakeVisitor) -> None:
    assert "trellis admins create" in page_text(visitor().get("/sign-in"))


def test_there_is_no_link_once_there_is_somebody(gate: Gate, mira: int) -> None:
    assert first_run_link(gate, "http://panel.example") is None
    assert create_demo_administrator(gate) is None


def test_a_demonstration_makes_up_a_password(gate: Gate, visitor: MakeVisitor) -> None:
    made = create_demo_administrator(gate)
    assert made is not None
    assert visitor().sign_in(*made).status_code == 303
