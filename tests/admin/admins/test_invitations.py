"""Invitations: a link that holds once and for three days, by which somebody chooses their own password."""

import re
from typing import Any, Final

import pytest

from tests.admin.conftest import MakeVisitor, Visitor, page_text
from tests.fixture_types import Clock, Events, Run
from trellis.admin.admins import invitations
from trellis.admin.admins.sign_in import start_session
from trellis.core.admins import find_invited
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.passwords import digests as core_passwords
from trellis.errors import Refused

OWN: Final = "kept in a tin box"
_TYPED: Final = {"name": "Ada Berg", "login": "ada", "role": "approver", "kinds": ""}
_SPENT: Final = "This invitation cannot be used"


def read_link(response: Any) -> str:
    """Return the path of the link on a page, without /admin."""
    found = re.search(r"http://panel\.example/admin(/invitation/[\w-]{43})", response.text)
    assert found is not None
    return found[1]


@pytest.fixture
def link(admin: Visitor) -> str:
    """The link of an invitation for Ada."""
    admin.get("/administrators/new")
    return read_link(admin.post("/administrators/new", _TYPED))


def test_whoever_is_invited_chooses_their_own_password_once(
    admin: Visitor, visitor: MakeVisitor, link: str, run: Run, events: Events
) -> None:
    ada = run("admins.list")["results"][-1]
    assert (ada["isInvited"], ada["role"]) == (True, "approver")
    assert "Invited" in page_text(admin.get("/administrators"))
    assert link.rpartition("/")[2] not in str(events()) + admin.get(f"/administrators/{ada['id']}").text
    browser = visitor()
    assert "you are invited to" in page_text(browser.get(link))
    for weak in ("ada berg 1234", "short"):
        assert browser.post(link, {"password": weak}).status_code == 400
    assert "Has not signed in yet" in page_text(admin.get(f"/administrators/{ada['id']}"))
    assert browser.post(link, {"password": OWN}).headers["location"] == "/admin"
    assert "Welcome, Ada Berg. Nobody else knows your password." in page_text(browser.get("/forums"))
    accepted = [(one["operation"], one["actor"]["name"]) for one in events()][-2:]
    assert accepted == [("admins.accept_invitation", "Ada Berg"), ("admins.sign_in", "Ada Berg")]
    assert OWN not in str(events())
    told = page_text(admin.get(f"/administrators/{ada['id']}"))
    assert "Ada Berg signed in from 192.0.2.7 , with a new browser" in told
    assert "Ada Berg accepted an invitation and chose a password" in told
    assert visitor().post(link, {"password": "another tin box"}).status_code == 409, "no page has been opened"
    other = visitor()
    assert other.get(link).status_code == 404
    spent = other.post(link, {"password": "another tin box"})
    assert (spent.status_code, "If you have just used it yourself" in page_text(spent)) == (404, True)  # as after a double click
    assert other.sign_in("ada", OWN).status_code == 303
    assert run("admins.get", ada["id"])["isInvited"] is False


def test_without_the_link_nobody_signs_in_as_whoever_is_invited(visitor: MakeVisitor, link: str, mira: int, run: Run) -> None:
    run("admins.set_role", 2, role="owner")
    for password in ("", OWN):
        assert visitor().sign_in("ada", password).status_code == 403
    with pytest.raises(Refused, match="the only owner who can sign in"):
        run("admins.disable", mira)


def test_a_password_that_is_reset_before_the_session_begins_signs_nobody_in(
    visitor: MakeVisitor, link: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = run("admins.list")["results"][-1]["id"]

    async def start_late(*given: Any) -> None:
        run("admins.set_password", ada, password="chosen by an owner")
        await start_session(*given)

    monkeypatch.setattr(invitations, "start_session", start_late)
    browser = visitor()
    browser.get(link)
    refused = browser.post(link, {"password": OWN})
    assert refused.status_code == 403
    assert "The password was changed meanwhile" in page_text(refused)
    assert browser.get("/forums").status_code == 303
    assert run("admins.sessions", ada) == []


@pytest.mark.parametrize("end", ["withdrawn", "renewed", "expired", "disabled", "password set"])
def test_a_link_that_has_ended_is_answered_like_a_wrong_one(  # fixtures
    admin: Visitor, visitor: MakeVisitor, link: str, end: str, clock: Clock, run: Run
) -> None:
    newer = ""
    if end == "withdrawn":
        assert "Withdraw the invitation of" in page_text(admin.get("/administrators/2/withdraw-invitation"))
        assert admin.post("/administrators/2/withdraw-invitation").headers["location"] == "/admin/administrators/2"
        assert "There is no valid link." in page_text(admin.get("/administrators/2"))
    elif end == "renewed":
        newer = read_link(admin.post("/administrators/2/invitation"))
    elif end == "expired":
        clock.move(days=3, seconds=1)
    elif end == "disabled":
        run("admins.disable", 2)
    else:
        run("admins.set_password", 2, password="chosen by somebody")
    somebody = visitor()
    answers = {(somebody.get(path).status_code, page_text(somebody.get(path))) for path in (link, "/invitation/made-up")}
    assert len(answers) == 1
    status, text = answers.pop()
    assert (status, _SPENT in text) == (404, True)
    if newer:
        assert somebody.get(newer).status_code == 200


def test_wrong_links_cost_no_digest_and_then_a_wait_but_never_a_right_one(
    visitor: MakeVisitor, link: str, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    digests: list[str] = []
    monkeypatch.setattr(core_passwords, "hash_password", lambda password, _: digests.append(password))
    somebody = visitor(address="198.51.100.9")
    somebody.get("/sign-in")
    statuses = [somebody.post(f"/invitation/{'x' * number}", {"password": OWN}).status_code for number in range(1, 14)]
    assert (statuses[0], statuses[-1], digests) == (404, 429, [])
    waiting = somebody.get("/invitation/x")
    assert 1 <= int(waiting.headers["retry-after"]) <= 4
    assert "Wait" in page_text(waiting)
    assert somebody.get(link).status_code == 200
    clock.move(seconds=5)
    assert somebody.get("/invitation/x").status_code == 404


def test_a_link_that_two_use_at_the_same_moment_lets_one_in(gate: Gate, link: str, visitor: MakeVisitor) -> None:
    invited = find_invited(gate, link.rpartition("/")[2])
    assert invited is not None
    passwords = [f"correct horse battery {number}" for number in range(2)]
    raw = {"link": link.rpartition("/")[2]}
    calls = [Call("admins.accept_invitation", invited.actor, {**raw, "password": one}, invited.id) for one in passwords]
    failed = [future.exception(60) for future in [gate.submit(call) for call in calls]]
    (refused,) = (one for one in failed if one is not None)
    assert isinstance(refused, Refused)
    assert refused.message == "LINK_SPENT"
    kept = passwords[failed.index(None)]
    assert [visitor().sign_in("ada", one).status_code == 303 for one in passwords] == [one == kept for one in passwords]


def test_inviting_and_making_links_ask_for_the_password(admin: Visitor, link: str, clock: Clock, events: Events) -> None:
    clock.move(minutes=16)
    before = len(events())
    assert admin.get("/administrators/new").headers["location"].startswith("/admin/confirm-password")
    for path in ("/administrators/2/invitation", "/administrators/2/withdraw-invitation"):
        assert admin.post(path).status_code == 403
    assert len(events()) == before


def test_who_has_a_password_needs_no_invitation(admin: Visitor, mira: int) -> None:
    assert admin.post(f"/administrators/{mira}/invitation").status_code == 409
    assert "Create a new link" not in admin.get(f"/administrators/{mira}").text
