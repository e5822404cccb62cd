"""Where mail goes: one's own address and the alarms mailed there, on the page of one's account."""

from dataclasses import replace

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form, read_forms
from tests.conftest import NewSettings
from tests.fixture_types import Clock, Events, Run
from trellis.core.gate import Gate
from trellis.sentences import say
from trellis.settings import Settings
from trellis.store import mail
from trellis.store.engine import Transaction


@pytest.fixture
def settings(new_settings: NewSettings) -> Settings:
    """Settings with a mail server, to which nobody connects here."""
    return replace(new_settings(), smtp_host="mail.example", smtp_from="a@b.example", public_url="http://testserver")


def test_one_says_where_mail_goes_and_which_alarms(admin: Visitor, mira: int, run: Run, clock: Clock) -> None:
    shown = page_text(admin.get("/account"))
    assert "Alarms by mail" in shown
    assert "A key is created" in shown
    assert "Somebody signs in from a new browser" in shown
    assert "widened key" not in shown
    names = ["new-key", "new-webhook"]
    saved = admin.post("/account/mail", {"email": "mira@lantern.example", "mailedAlarms": names})
    assert saved.status_code == 303, page_text(saved)
    found = run("admins.get", mira)
    assert (found["email"], found["mailedAlarms"]) == ("mira@lantern.example", names)
    wrong = admin.post("/account/mail", {"email": "mira"})
    assert (wrong.status_code, "must be one address" in page_text(wrong)) == (400, True)
    assert run("admins.get", mira)["email"] == "mira@lantern.example"
    assert admin.post("/account/mail", {"email": ""}).status_code == 303
    assert (run("admins.get", mira)["email"], run("admins.get", mira)["mailedAlarms"]) == (None, [])
    clock.move(minutes=16)
    assert admin.post("/account/mail", {"email": "eve@evil.example"}).status_code == 403


def test_an_address_that_was_changed_in_the_meantime_is_not_put_back(admin: Visitor, mira: int, run: Run, events: Events) -> None:
    admin.post("/account/mail", {"email": "mira@lantern.example", "mailedAlarms": ["new-key"]})
    opened = find_form(admin.get("/account"), "/account/mail")
    run("admins.update", mira, email="holm@lantern.example", name="Mira Berg")
    before = len(events())
    conflict = admin.post("/account/mail", opened.filled(("mailedAlarms", "new-webhook")))
    assert (conflict.status_code, len(events())) == (409, before)
    said = page_text(conflict)
    assert "Somebody else changed this administrator in the meantime" in said
    assert "E-mail address holm@lantern.example mira@lantern.example" in said
    assert "Alarms by mail A key is created A key is created, A webhook is created" in said
    again = find_form(conflict, "/account/mail")
    assert admin.post("/account/mail", again.filled(email="holm@lantern.example")).status_code == 303
    found = run("admins.get", mira)
    assert (found["email"], found["mailedAlarms"]) == ("holm@lantern.example", ["new-key", "new-webhook"])


def test_an_invitation_with_an_address_is_mailed_and_shows_no_link(admin: Visitor, run: Run) -> None:
    page = admin.post(
        "/administrators/new", {"name": "Ada Berg", "login": "ada", "role": "auditor", "email": "ada@lantern.example"}
    )
    assert "on its way to ada@lantern.example" in page_text(page)
    assert "/admin/invitation/" not in page.text
    assert "Being mailed" in page_text(admin.get("/administrators/2"))
    assert "/admin/invitation/" in admin.post("/administrators/2/invitation", {"show": "1"}).text


def test_a_new_link_is_mailed_once_by_a_form_that_is_sent_twice(admin: Visitor, events: Events) -> None:
    given = {"name": "Ada Berg", "login": "ada", "role": "auditor", "email": "ada@lantern.example"}
    admin.post("/administrators/new", given)
    page = admin.get("/administrators/2")
    mailed, shown = [form for form in read_forms(page) if form.action.endswith("/administrators/2/invitation")]
    before = len(events())
    for _ in range(2):
        assert "on its way to ada@lantern.example" in page_text(admin.post("/administrators/2/invitation", mailed.filled()))
    assert len(events()) == before + 1
    for is_shown in (True, False):
        assert ("/admin/invitation/" in admin.post("/administrators/2/invitation", shown.filled()).text) == is_shown
    again = find_form(admin.get("/administrators/2"), "/invitation")
    assert admin.post("/administrators/2/invitation", again.filled()).status_code == 200
    assert len(events()) == before + 3


@pytest.mark.either_engine
def test_why_a_mail_was_not_sent_is_told_in_the_language_of_the_page(admin: Visitor, gate: Gate) -> None:
    given = {"name": "Ada Berg", "login": "ada", "role": "auditor", "email": "ada@lantern.example"}
    admin.post("/administrators/new", given)
    why = say("The server refused the address: {code} {error}", code=550, error="No such user")

    def settle(tx: Transaction) -> None:
        sent = mail.find_last(tx, 2)
        assert sent is not None
        mail.settle(tx, sent, "failed", why)

    gate.store.write(settle).result(30)
    shown = page_text(admin.get("/administrators/2", headers={"accept-language": "de"}))
    assert "Der Server lehnt die Adresse ab: 550 No such user" in shown
    assert why in page_text(admin.get("/administrators/2"))
