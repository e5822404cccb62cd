"""What sessions are called in the panel, and by which browsers somebody is known."""

import threading
from typing import Any, Final

import pytest

from tests.admin.authenticator_app import add_app
from tests.admin.conftest import LOGIN, PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form
from tests.fixture_types import Clock, Events, Run
from trellis.admin.admins import checking
from trellis.admin.admins.sessions import device_name
from trellis.admin.runner import Runner
from trellis.core.admins import Credentials, Proven, check_password
from trellis.core.factors import Evidence, check_second_step
from trellis.core.gate import Gate, Result
from trellis.core.operation import Call
from trellis.errors import Refused

_LIKE: Final = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0"
_WINDOWS: Final = f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_LIKE}"


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (f"{_WINDOWS} Safari/537.36", "Chrome on Windows"),
        (f"{_WINDOWS} Safari/537.36 Edg/141.0.0.0", "Edge on Windows"),
        (f"{_WINDOWS} Safari/537.36 OPR/125.0.0.0", "Opera on Windows"),
        (f"Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) {_LIKE} Safari/537.36", "Chrome on ChromeOS"),
        (f"Mozilla/5.0 (Linux; Android 13; SM-S918B) SamsungBrowser/28.0 {_LIKE} Mobile", "Samsung Internet on Android"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0", "Firefox on Linux"),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
            "Safari on macOS",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) CriOS/141.0.7390.96 Mobile/15E148 Safari/604.1",
            "Chrome on iPhone",
        ),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "Unknown browser"),
    ],
)
def test_a_browser_is_named_in_a_few_words(agent: str, name: str) -> None:
    assert device_name(agent) == name


@pytest.mark.parametrize("has_factor", [False, True])
def test_a_password_that_is_reset_while_it_is_checked_signs_nobody_in(
    visitor: MakeVisitor, mira: int, gate: Gate, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch, has_factor: bool
) -> None:
    def check(gate: Gate, credentials: Credentials) -> Proven | None:
        proven = check_password(gate, credentials)
        run("admins.set_password", mira, password="another long password")
        return proven

    app = add_app(run, gate, mira, LOGIN) if has_factor else None
    clock.move(minutes=5)
    monkeypatch.setattr(checking, "check_password", check)
    somebody = visitor()
    response = somebody.sign_in()
    if app is not None:
        response = somebody.post("/sign-in/code", find_form(response, "/sign-in/code").filled(code=app.at(clock.at)))
    assert (response.status_code, "incorrect" in page_text(response)) == (403, True)
    assert run("admins.sessions", mira) == []


@pytest.mark.parametrize("is_disabled", [False, True], ids=["reset", "disabled"])
def test_a_password_that_is_reset_after_the_code_was_checked_signs_nobody_in(
    visitor: MakeVisitor, mira: int, gate: Gate, run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch, is_disabled: bool
) -> None:
    def check(gate: Gate, login: str, binding: str, pending: str, evidence: Evidence) -> tuple[int, str] | None:
        found = check_second_step(gate, login, binding, pending, evidence)
        run("admins.disable", mira) if is_disabled else run("admins.set_password", mira, password="another long password")
        return found

    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    app = add_app(run, gate, mira, LOGIN)
    clock.move(minutes=5)
    monkeypatch.setattr(checking, "check_second_step", check)
    somebody = visitor()
    form = find_form(somebody.sign_in(), "/sign-in/code")
    response = somebody.post("/sign-in/code", form.filled(code=app.at(clock.at)))
    assert response.headers["location"] == "/admin"
    assert somebody.get("").headers["location"].startswith("/admin/sign-in")
    assert run("admins.sessions", mira) == []


def test_a_password_that_is_reset_right_after_ones_own_change_leaves_no_session(
    admin: Visitor, mira: int, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    perform = Runner.perform

    async def reset_afterwards(self: Runner, call: Call, *, slow: bool = False, size: int = 0) -> Result:
        result = await perform(self, call, slow=slow, size=size)
        if call.operation == "admins.set_password":
            run("admins.set_password", mira, password="a third long password")
        return result

    monkeypatch.setattr(Runner, "perform", reset_afterwards)
    admin.post("/account/password", {"currentPassword": PASSWORD, "password": "another long password"})
    assert run("admins.sessions", mira) == []


@pytest.mark.parametrize("is_renewed", [False, True], ids=["ended", "renewed"])
def test_what_a_session_sent_that_is_ended_meanwhile_is_not_done(
    admin: Visitor, mira: int, gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch, is_renewed: bool
) -> None:
    submit = gate.submit
    (session,) = run("admins.sessions", mira)

    def end_first(call: Call) -> Any:
        if call.operation == "groups.create":
            if is_renewed:
                token = run("admins.confirm_password", mira, session=session["id"])["token"]
                admin.client.cookies.set("trellis_session", token, domain="panel.example", path="/admin")
            else:
                run("admins.sign_out", mira, everywhere=True)
        return submit(call)

    admin.get("/groups/new")
    monkeypatch.setattr(gate, "submit", end_first)
    response = admin.post("/groups/new", {"name": "Typed with care"})
    assert (response.status_code, "Your session has ended" in page_text(response)) == (401, True)
    assert "Typed with care" in response.text
    assert "Typed with care" not in str(run("groups.list"))
    again = admin.post("/sign-in", find_form(response, "/sign-in").filled(login=LOGIN, password=PASSWORD))
    assert "Typed with care" in again.text


def test_a_session_that_is_ended_meanwhile_is_told_to_scripts(
    admin: Visitor, mira: int, gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = gate.submit

    def end_first(call: Call) -> Any:
        if call.operation == "groups.create":
            run("admins.sign_out", mira, everywhere=True)
        return submit(call)

    monkeypatch.setattr(gate, "submit", end_first)
    response = admin.post("/groups/new", {"name": "New"}, headers={"accept": "application/json"})
    assert (response.status_code, response.json()["message"]) == (401, "NO_SESSION")


def test_signing_out_twice_at_once_signs_out(
    admin: Visitor, mira: int, gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = gate.submit

    def end_first(call: Call) -> Any:
        run("admins.sign_out", mira, everywhere=True) if call.actor.type == "admin" else None
        return submit(call)

    monkeypatch.setattr(gate, "submit", end_first)
    assert admin.post("/sign-out").headers["location"] == "/admin/sign-in"


def test_a_page_is_shown_while_another_write_holds_the_writer(
    admin: Visitor, gate: Gate, mira: int, run: Run, clock: Clock
) -> None:
    clock.move(minutes=5)  # so that this use of the session is to be recorded
    go = threading.Event()
    held = gate.store.write(lambda _: go.wait(60), quiet=True)
    assert admin.get("/account").status_code == 200
    assert not held.done(), "nobody has waited for it"
    go.set()
    assert held.result(60)
    assert admin.get("/account").status_code == 200
    assert run("admins.sessions", mira)[0]["lastSeenAt"] == clock.text


def test_a_page_is_shown_while_nothing_can_be_written(
    admin: Visitor, gate: Gate, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Refused("BUSY", "The disk is full.")

    clock.move(minutes=5)
    monkeypatch.setattr(gate.store, "write", refuse)
    assert admin.get("/account").status_code == 200


def _last(events: Events) -> Any:
    return events()[-1]["after"]


def test_a_browser_is_new_until_somebody_has_signed_in_with_it(
    visitor: MakeVisitor, mira: int, run: Run, events: Events, clock: Clock
) -> None:
    browser = visitor()
    browser.sign_in()
    assert _last(events)["newBrowser"] is True
    browser.post("/sign-out")
    browser.sign_in()
    assert "newBrowser" not in _last(events)
    browser.post("/sign-out")
    run("admins.create", name="Ada", login="ada", password=PASSWORD, mustChangePassword=False)
    browser.sign_in("ada", PASSWORD)
    assert _last(events)["newBrowser"] is True, "another's browser is new for her"
    browser.post("/sign-out")
    browser.client.cookies.set("trellis_browser", "x" * 5000, domain="panel.example", path="/admin")
    assert browser.sign_in().status_code == 303
    assert _last(events)["newBrowser"] is True, "a cookie that was made up"
    browser.post("/sign-out")
    clock.move(days=89)
    browser.sign_in()
    assert "newBrowser" not in _last(events)
    browser.post("/sign-out")
    clock.move(days=91)
    browser.sign_in()
    assert _last(events)["newBrowser"] is True


def test_the_account_tells_what_a_session_was_confirmed_with(admin: Visitor, clock: Clock) -> None:
    assert "This one 192.0.2.7 just now just now password" in page_text(admin.get("/account"))
    assert LOGIN in page_text(admin.get("/account"))


def test_ones_own_session_is_not_ended_on_the_page_of_an_administrator(admin: Visitor, mira: int, run: Run) -> None:
    (session,) = run("admins.sessions", mira)
    response = admin.post(f"/administrators/{mira}/sessions/{session['id']}")
    shown = page_text(admin.get(response.headers["location"].removeprefix("/admin")))
    assert "To sign yourself out elsewhere, go to Your account." in shown
    assert "They were already signed out." not in shown
    assert [one["id"] for one in run("admins.sessions", mira)] == [session["id"]]


def test_ones_own_sessions_are_not_ended_by_the_form_that_ends_those_of_others(
    admin: Visitor, mira: int, run: Run, events: Events
) -> None:
    before = events()
    for send in (admin.get, admin.post):
        response = send(f"/administrators/{mira}/sign-out")
        assert response.headers["location"] == f"/admin/administrators/{mira}"
        assert "To sign yourself out elsewhere, go to Your account." in page_text(admin.get(f"/administrators/{mira}"))
    assert len(run("admins.sessions", mira)) == 1
    assert events() == before
