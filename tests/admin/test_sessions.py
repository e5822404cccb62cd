"""Who is signed in, for how long, and how guesses are slowed."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.admin.conftest import LOGIN, PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form
from tests.fixture_types import Clock, Events, Run
from trellis.admin.admins import checking
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.admins import Credentials, count_attempt, find_failed_sign_ins
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.passwords import digests as core_passwords
from trellis.errors import Refused
from trellis.settings import Settings


def test_signing_in_leads_to_the_overview(visitor: MakeVisitor, mira: int) -> None:
    somebody = visitor()
    response = somebody.sign_in()
    assert (response.status_code, response.headers["location"]) == (303, "/admin")
    assert "Mira Holm" in page_text(somebody.get(""))


def test_capitals_in_the_login_do_not_matter(visitor: MakeVisitor, mira: int) -> None:
    assert visitor().sign_in(LOGIN.upper()).status_code == 303


def test_a_wrong_login_or_password_is_not_told_apart(visitor: MakeVisitor, mira: int) -> None:
    somebody = visitor()
    for login, password in (
        (LOGIN, "wrong horse battery"),
        ("nobody", PASSWORD),
        ("", ""),
        (f"{LOGIN}\0", PASSWORD),
        (LOGIN, "x" * 9999),
    ):
        response = somebody.sign_in(login, password)
        assert response.status_code == 403, login
        assert "Login or password is incorrect" in page_text(response), login


@pytest.mark.either_engine
def test_the_cookie_is_kept_from_scripts_and_other_sites(visitor: MakeVisitor, mira: int) -> None:
    cookie = next(c for c in visitor().sign_in().headers.get_list("set-cookie") if c.startswith("trellis_session="))
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie


@pytest.mark.either_engine
def test_under_https_the_cookie_is_secure_and_bound_to_the_host(visitor: MakeVisitor, mira: int) -> None:
    cookie = next(c for c in visitor(https=True).sign_in().headers.get_list("set-cookie") if "trellis_session=" in c)
    assert cookie.startswith("__Host-trellis_session=")
    assert "Secure" in cookie
    assert "Path=/;" in cookie


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # a cookie is made without the database
@pytest.mark.parametrize("public", ["https://panel.example", "https://PANEL.example:443/below", "https://other.example"])
def test_the_scheme_of_the_public_address_makes_cookies_secure_however_the_host_is_spelt(
    visitor: MakeVisitor, mira: int, public: str
) -> None:
    somebody = visitor(public_url=public)
    response = somebody.get("/sign-in")
    cookie = next(c for c in response.headers.get_list("set-cookie") if "trellis_visitor=" in c)
    assert cookie.startswith("__Host-trellis_visitor=")
    assert "Secure" in cookie
    assert response.headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"


@pytest.mark.either_engine
def test_without_https_browsers_are_not_told_to_insist_on_it(visitor: MakeVisitor) -> None:
    assert "strict-transport-security" not in visitor().get("/sign-in").headers
    assert "strict-transport-security" not in visitor(public_url="http://panel.example").get("/sign-in").headers


def test_signing_out_ends_the_session_for_good(admin: Visitor) -> None:
    stolen = dict(admin.client.cookies)
    assert admin.post("/sign-out").status_code == 303
    admin.client.cookies.update(stolen)
    assert admin.get("/keyboard").headers["location"].startswith("/admin/sign-in")


def test_a_session_ends_after_eight_hours_without_use(admin: Visitor, clock: Clock) -> None:
    clock.move(hours=7, minutes=59)
    assert admin.get("/keyboard").status_code == 200
    clock.move(hours=8, minutes=1)
    assert admin.get("/keyboard").status_code == 303


def test_a_session_ends_after_seven_days_of_use(admin: Visitor, clock: Clock) -> None:
    for _ in range(23):
        clock.move(hours=7)
        assert admin.get("/keyboard").status_code == 200
    clock.move(hours=7)
    assert admin.get("/keyboard").status_code == 303


def test_disabling_ends_sessions_at_once(admin: Visitor, mira: int, run: Run) -> None:
    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    run("admins.disable", mira)
    assert admin.get("/keyboard").status_code == 303
    assert admin.sign_in().status_code == 403


def test_a_new_password_ends_sessions_at_once(admin: Visitor, mira: int, run: Run, events: Events) -> None:
    run("admins.set_password", mira, password="another long password")
    assert admin.get("/keyboard").status_code == 303
    assert admin.sign_in(LOGIN, "another long password").status_code == 303
    assert "argon2" not in str(events())
    assert "another long" not in str(events())


def test_guesses_at_an_account_are_slowed_and_the_wait_expires(visitor: MakeVisitor, mira: int, clock: Clock) -> None:
    statuses = [visitor(address=f"192.0.2.{number}").sign_in(LOGIN, "wrong password").status_code for number in range(7)]
    assert statuses == [403] * 5 + [429] * 2
    slowed = visitor(address="198.51.100.1").sign_in()
    assert slowed.status_code == 429
    assert 1 <= int(slowed.headers["retry-after"]) <= 3
    clock.move(seconds=int(slowed.headers["retry-after"]))
    assert visitor(address="198.51.100.1").sign_in().status_code == 303


def test_a_clock_that_is_set_back_does_not_prolong_a_wait(visitor: MakeVisitor, mira: int, clock: Clock) -> None:
    for number in range(5):
        visitor(address=f"192.0.2.{number}").sign_in(LOGIN, "wrong password")
    assert visitor(address="198.51.100.1").sign_in().status_code == 429
    clock.move(hours=-2)
    assert visitor(address="198.51.100.1").sign_in().status_code == 303


def test_guesses_at_an_account_from_an_address_are_slowed_for_its_network(visitor: MakeVisitor, mira: int) -> None:
    somebody = visitor(address="2001:db8::1")
    assert [somebody.sign_in(LOGIN, "wrong").status_code for _ in range(7)] == [403] * 5 + [429] * 2
    assert visitor(address="2001:db8::2").sign_in().status_code == 429  # the same network


def test_behind_one_proxy_wrong_passwords_lock_nobody_else_out(admin: Visitor, visitor: MakeVisitor, run: Run) -> None:
    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    admin.post("/sign-out")
    guesser = visitor()
    for login in (LOGIN, *(f"login{number}" for number in range(12))):
        guesser.sign_in(login, "wrong password")
    for _ in range(4):
        guesser.sign_in(LOGIN, "wrong password")
    assert guesser.sign_in().status_code == 429
    assert admin.sign_in().status_code == 303  # with a browser that is known
    assert visitor().sign_in("ada").status_code == 303


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # how attempts are stored is tested above, and here what follows
def test_the_wait_is_never_longer_than_a_quarter_of_an_hour(visitor: MakeVisitor, mira: int, clock: Clock) -> None:
    somebody = visitor()
    waits = []
    for _ in range(30):
        response = somebody.sign_in(LOGIN, "wrong password")
        if response.status_code == 429:
            waits.append(int(response.headers["retry-after"]))
            clock.move(seconds=waits[-1])
    assert waits == sorted(waits)
    assert waits[-1] <= 901


def test_a_known_browser_is_not_slowed_by_strangers(admin: Visitor, visitor: MakeVisitor) -> None:
    admin.post("/sign-out")
    for number in range(5):
        visitor(address=f"192.0.2.{100 + number}").sign_in(LOGIN, "wrong password")
    assert visitor(address="198.51.100.9").sign_in().status_code == 429
    assert admin.sign_in().status_code == 303


def test_a_password_counts_as_entered_for_a_quarter_of_an_hour(admin: Visitor, clock: Clock) -> None:
    assert admin.get("/administrators/new").status_code == 200
    clock.move(minutes=16)
    asked = admin.get("/administrators/new")
    assert asked.headers["location"] == "/admin/confirm-password?next=/admin/administrators/new"
    admin.get("/confirm-password?next=/admin/administrators/new")
    assert admin.post("/confirm-password", {"password": "wrong", "next": "/admin/administrators/new"}).status_code == 403
    good = admin.post("/confirm-password", {"password": PASSWORD, "next": "/admin/administrators/new"})
    assert good.headers["location"] == "/admin/administrators/new"
    assert admin.get("/administrators/new").status_code == 200


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # an address is read without the database
@pytest.mark.parametrize(
    "to", ["https://evil.example/", "//evil.example/", "/admin//evil", "/\\evil", "/api/docs", "/administrator"]
)
def test_signing_in_leads_nowhere_else(visitor: MakeVisitor, mira: int, to: str) -> None:
    somebody = visitor()
    somebody.get("/sign-in")
    response = somebody.post("/sign-in", {"login": LOGIN, "password": PASSWORD, "next": to})
    assert response.headers["location"] == "/admin"


def test_one_session_and_all_others_can_be_signed_out(admin: Visitor, visitor: MakeVisitor) -> None:
    other, third = visitor(), visitor()
    other.sign_in()
    third.sign_in()
    starts = re.findall(r"/admin/account/sessions/([0-9a-f]{16})", admin.get("/account").text)
    assert len(starts) == 2
    admin.post(f"/account/sessions/{starts[0]}")
    assert sorted(visit.get("/keyboard").status_code for visit in (other, third)) == [200, 303]
    admin.post("/account/sessions/others")
    assert [visit.get("/keyboard").status_code for visit in (admin, other, third)] == [200, 303, 303]


@pytest.mark.parametrize(
    ("operation", "given"), [("admins.disable", {}), ("admins.set_password", {"password": PASSWORD + "!"})], ids=str
)
def test_a_session_that_is_ended_in_one_process_is_ended_in_every_other(
    admin: Visitor, settings: Settings, clock: Clock, mira: int, operation: str, given: dict[str, str]
) -> None:
    elsewhere = compose(settings, clock=clock)
    elsewhere.run(Call("admins.create", TERMINAL, {"name": "Ada", "login": "ada", "password": PASSWORD}))
    assert admin.get("/keyboard").status_code == 200
    elsewhere.run(Call(operation, TERMINAL, given, mira))
    assert admin.get("/keyboard").status_code == 303
    elsewhere.store.close()


# --- the password again -------------------------------------------------------------------------------------------


def _asks(response: Any) -> bool:
    return response.status_code == 403 and "Enter your password" in page_text(response)


def test_ending_sessions_disabling_and_another_login_ask_for_the_password(
    admin: Visitor, visitor: MakeVisitor, mira: int, run: Run, clock: Clock, events: Events
) -> None:
    ada = run("admins.create", name="Ada", login="ada", password=PASSWORD)["id"]
    visitor().sign_in()
    clock.move(minutes=16)
    session = re.findall(r"/admin/account/sessions/([0-9a-f]{16})", admin.get("/account").text)[0]
    before = events()
    assert _asks(admin.post(f"/administrators/{ada}/disable"))
    assert _asks(admin.post(f"/administrators/{ada}/enable"))
    assert _asks(admin.post(f"/administrators/{ada}", {"name": "Ada", "login": "eve"}))
    assert _asks(admin.post(f"/administrators/{mira}", {"name": "Mira Holm", "login": "eve"}))
    assert _asks(admin.post(f"/administrators/{ada}/password", {"password": "quite another password"}))
    assert _asks(admin.post(f"/account/sessions/{session}"))
    assert _asks(admin.post("/account/sessions/others"))
    assert events() == before
    assert admin.post(f"/administrators/{ada}", {"name": "Ada Lovelace", "login": "ada"}).status_code == 303  # only a name


def test_ones_own_password_is_changed_where_the_present_one_is_asked_for(admin: Visitor, mira: int, events: Events) -> None:
    before = events()
    elsewhere = admin.post(f"/administrators/{mira}/password", {"password": "quite another password"})
    assert elsewhere.headers["location"] == "/admin/account"
    wrong = admin.post("/account/password", {"currentPassword": "wrong", "password": "quite another password"})
    assert wrong.status_code == 400
    stale = admin.post("/account/password", {"currentPassword": PASSWORD, "password": "quite another password"}, csrf="0" * 64)
    assert (stale.status_code, "Passwords are not kept" in page_text(stale)) == (409, True)
    assert "still here" not in page_text(stale)
    assert events() == before


def test_confirming_the_password_renews_the_session(admin: Visitor, clock: Clock) -> None:
    stolen = dict(admin.client.cookies)
    clock.move(minutes=16)
    admin.get("/confirm-password")
    admin.post("/confirm-password", {"password": PASSWORD})
    assert admin.client.cookies["trellis_session"] != stolen["trellis_session"]
    assert admin.get("/keyboard").status_code == 200
    admin.client.cookies.clear()
    admin.client.cookies.update(stolen)
    assert admin.get("/keyboard").status_code == 303


def test_a_form_that_waited_for_the_password_can_be_sent_with_the_new_session(
    admin: Visitor, run: Run, clock: Clock, events: Events
) -> None:
    ada = run("admins.create", name="Ada", login="ada", password=PASSWORD)["id"]
    clock.move(minutes=16)
    asked = admin.post(f"/administrators/{ada}/disable")
    form = find_form(asked, "/confirm-password")
    ready = admin.post("/confirm-password", form.filled(password=PASSWORD))
    admin.post(f"/administrators/{ada}/disable", find_form(ready, "/disable").filled())
    assert events()[-1]["operation"] == "admins.disable"


def put_back(somebody: Visitor, cookies: list[Any]) -> None:
    """Give a browser the cookies that it had before."""
    somebody.client.cookies.clear()
    for cookie in cookies:
        somebody.client.cookies.jar.set_cookie(cookie)


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_form_that_is_sent_twice_is_not_refused_after_it_has_renewed_the_session(
    visitor: MakeVisitor, run: Run, clock: Clock, events: Events, *, is_taken: bool
) -> None:
    """The browser has taken the cookie of the first response before it sends the form again, or it has not."""
    run("admins.create", name="Ada", login="ada", password=PASSWORD, role="key-manager", mustChangePassword=True)
    somebody = visitor()
    somebody.sign_in("ada")
    cookies = somebody.client.cookies
    for path, typed, to in (
        ("/new-password", {"password": "kept in a tin box"}, "/admin"),
        ("/confirm-password", {"password": "kept in a tin box", "next": "/admin/keys/new"}, "/admin/keys/new"),
        ("/account/password", {"currentPassword": "kept in a tin box", "password": "camel orbit lantern"}, "/admin/account"),
    ):
        clock.move(minutes=2)
        somebody.get(path.removesuffix("/password"))
        token, old, before = somebody.csrf, list(cookies.jar), len(events())
        first = somebody.post(path, typed, csrf=token)
        assert (first.status_code, first.headers["location"], len(events())) == (303, to, before + 1)
        new = list(cookies.jar)
        if not is_taken:
            put_back(somebody, old)
        second = somebody.post(path, typed, csrf=token)
        assert (second.status_code, len(events())) == (303, before + 1)
        assert is_taken or "trellis_session" not in second.headers.get("set-cookie", "")
        assert is_taken or somebody.get("/account").status_code == 303  # the old cookie opens nothing
        put_back(somebody, new)
        landed = second.headers["location"]
        while (shown := somebody.get(landed.removeprefix("/admin"))).status_code == 303:
            landed = shown.headers["location"]
        assert (shown.status_code, landed) == (200, to)


def test_a_stale_form_that_nothing_was_done_with_is_not_said_to_have_been_carried_out(
    admin: Visitor, visitor: MakeVisitor, run: Run, clock: Clock
) -> None:
    clock.move(minutes=16)
    for path, typed in (
        ("/confirm-password", {"password": PASSWORD}),
        ("/account/password", {"currentPassword": PASSWORD, "password": "camel orbit lantern"}),
    ):
        assert admin.post(path, typed, csrf="0" * 64).status_code == 409
    assert admin.get("/administrators/new").status_code == 303  # nothing was confirmed
    run("admins.create", name="Ada", login="ada", password=PASSWORD, mustChangePassword=True)
    somebody = visitor()
    somebody.sign_in("ada")
    assert somebody.post("/new-password", {"password": "kept in a tin box"}, csrf="0" * 64).status_code == 409
    assert run("admins.get", 2)["mustChangePassword"] is True


def test_what_was_typed_is_not_lost_if_the_password_is_sent_twice(admin: Visitor, run: Run, clock: Clock) -> None:
    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    clock.move(minutes=16)
    admin.get("/administrators/2")
    asked = find_form(admin.post("/administrators/2", {"name": "Typed with care", "login": "adam"}), "/confirm-password")
    token, old = admin.csrf, list(admin.client.cookies.jar)
    for _ in range(2):
        assert "Typed with care" in admin.post("/confirm-password", asked.filled(password=PASSWORD), csrf=token).text
    put_back(admin, old)
    again = admin.post("/confirm-password", asked.filled(password=PASSWORD), csrf=token)
    assert (again.status_code, "Typed with care" in again.text) == (401, True)


# --- a password that somebody else has chosen -----------------------------------------------------------------------


def test_a_password_that_somebody_else_chose_is_changed_before_anything_else(
    visitor: MakeVisitor, mira: int, run: Run, events: Events
) -> None:
    ada = run("admins.create", name="Ada", login="ada", password=PASSWORD)["id"]
    somebody = visitor()
    somebody.sign_in("ada")
    before = events()
    for path in ("", "/keys", "/account", "/administrators"):
        assert somebody.get(path).headers["location"] == "/admin/new-password"
    assert somebody.post("/keys/new", {"name": "Mine"}).headers["location"] == "/admin/new-password"
    assert somebody.get("/account", headers={"accept": "application/json"}).status_code == 403
    assert "Choose your own password" in page_text(somebody.get("/new-password"))
    same = somebody.post("/new-password", {"password": PASSWORD})
    assert (same.status_code, "is the one that you already have" in page_text(same)) == (400, True)
    assert events() == before
    assert somebody.post("/new-password", {"password": "kept in a tin box"}).headers["location"] == "/admin"
    assert somebody.get("/keys").status_code == 200
    assert run("admins.get", ada)["mustChangePassword"] is False


def test_a_password_set_by_another_administrator_must_be_changed(admin: Visitor, visitor: MakeVisitor, run: Run) -> None:
    ada = run("admins.create", name="Ada", login="ada", password=PASSWORD, mustChangePassword=False)["id"]
    assert visitor().sign_in("ada").headers["location"] == "/admin"
    admin.post(f"/administrators/{ada}/password", {"password": "kept in a tin box"})
    somebody = visitor()
    somebody.sign_in("ada", "kept in a tin box")
    assert somebody.get("").headers["location"] == "/admin/new-password"


# --- events -------------------------------------------------------------------------------------------------------


def test_signing_in_and_out_leave_events(admin: Visitor, visitor: MakeVisitor, mira: int, events: Events) -> None:
    admin.post("/sign-out")
    signed_in, signed_out = events()[-2:]
    assert (signed_in["operation"], signed_in["actor"]["name"], signed_in["resourceId"]) == ("admins.sign_in", "Mira Holm", mira)
    assert signed_in["after"]["address"] == "192.0.2.7"
    assert (signed_out["operation"], signed_out["resourceId"]) == ("admins.sign_out", mira)
    admin.sign_in()
    shown = page_text(admin.get("/events"))
    assert "Mira Holm signed in from 192.0.2.7" in shown
    assert "Mira Holm signed out" in shown


def test_the_password_again_leaves_an_event_right_or_wrong(
    admin: Visitor, mira: int, gate: Gate, clock: Clock, events: Events
) -> None:
    before = len(events())
    admin.get("/confirm-password")
    assert admin.post("/confirm-password", {"password": "wrong"}).status_code == 403
    assert admin.post("/confirm-password", {"password": PASSWORD}).status_code == 303
    clock.move(minutes=1)
    for call in find_failed_sign_ins(gate):
        gate.run(call)
    right, wrong = events()[before:]
    assert (right["operation"], right["actor"]["name"], right["resourceId"]) == ("admins.confirm_password", "Mira Holm", mira)
    assert right["after"]["address"] == "192.0.2.7"
    assert (wrong["operation"], wrong["resourceId"], wrong["after"]["attempts"]) == ("admins.refuse_sign_in", mira, 1)
    assert PASSWORD not in str(events())
    shown = page_text(admin.get("/events"))
    assert "Mira Holm entered the password again from 192.0.2.7" in shown
    assert "Sign-in was refused 1 time from 192.0.2.7" in shown


def test_wrong_passwords_are_told_in_the_event_log(admin: Visitor, visitor: MakeVisitor, gate: Gate, clock: Clock) -> None:
    for _ in range(3):
        visitor(address="192.0.2.66").sign_in(LOGIN, "wrong password")
    clock.move(minutes=1)
    for call in find_failed_sign_ins(gate):
        gate.run(call)
    assert "Sign-in was refused 3 times from 192.0.2.66" in page_text(admin.get("/events"))


# --- many at once -------------------------------------------------------------------------------------------------


@pytest.fixture
def full(gate: Gate) -> Iterator[str]:
    """An address whose lane is full: both threads are held, and as many of its passwords wait as may."""
    go, begun = threading.Event(), [threading.Event(), threading.Event()]

    def hold(one: threading.Event) -> Callable[[], bool]:
        def wait() -> bool:
            one.set()
            return go.wait(60)

        return wait

    waiting = [gate.lanes.submit(f"keys/{number}", hold(one)) for number, one in enumerate(begun)]
    assert all(one.wait(60) for one in begun)
    waiting += [gate.lanes.submit("strangers/192.0.2.66", lambda: True) for _ in range(16)]
    yield "192.0.2.66"
    go.set()
    for future in waiting:
        future.result(60)


def test_where_too_many_passwords_wait_a_sign_in_is_refused_and_not_counted(
    visitor: MakeVisitor, mira: int, gate: Gate, full: str
) -> None:
    somebody = visitor(address=full)
    refused = [somebody.sign_in() for _ in range(12)]
    assert {response.status_code for response in refused} == {503}
    assert {response.headers["retry-after"] for response in refused} == {"1"}
    assert count_attempt(gate, Credentials(LOGIN, "", full)).result() == 0


def test_an_attempt_is_not_counted_unless_it_is_checked_even_if_its_lane_fills_meanwhile(
    visitor: MakeVisitor, mira: int, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, begun = threading.Event(), threading.Event()
    waiting: list[Any] = []

    def hold() -> bool:
        begun.set()
        return go.wait(60)

    def fill_and_count(gate: Gate, credentials: Credentials) -> Any:
        waiting.extend(gate.lanes.submit(f"keys/{number}", hold) for number in range(2))
        assert begun.wait(60)
        with suppress(Refused):
            while True:
                waiting.append(gate.lanes.submit(f"strangers/{address}", hold))
        return count_attempt(gate, credentials)

    address = "192.0.2.66"
    monkeypatch.setattr(checking, "count_attempt", fill_and_count)
    response = visitor(address=address).sign_in()
    go.set()
    for future in waiting:
        future.result(60)
    assert response.status_code == 303


@pytest.mark.either_engine
def test_a_first_run_link_that_is_made_up_asks_for_no_digest(visitor: MakeVisitor, monkeypatch: pytest.MonkeyPatch) -> None:
    digests: list[str] = []
    monkeypatch.setattr(core_passwords, "hash_password", lambda password, _: digests.append(password))
    somebody = visitor()
    somebody.get("/first-run/anything")
    typed = {"name": "M", "login": "m", "password": PASSWORD}
    assert {somebody.post("/first-run/anything", typed).status_code for _ in range(30)} == {409}
    assert digests == []
