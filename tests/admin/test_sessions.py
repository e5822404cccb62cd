"""Who is signed in, for how long, and how guesses are slowed."""

import re

import pytest

from tests.admin.conftest import LOGIN, PASSWORD, MakeVisitor, Visitor, page_text
from tests.fixture_types import Clock, Events, Run


def test_signing_in_leads_to_the_overview(visitor: MakeVisitor, mira: int) -> None:
    somebody = visitor()
    response = somebody.sign_in()
    assert (response.status_code, response.headers["location"]) == (303, "/admin")
    assert "Mira Holm" in page_text(somebody.get(""))


def test_capitals_in_the_login_do_not_matter(visitor: MakeVisitor, mira: int) -> None:
    assert visitor().sign_in(LOGIN.upper()).status_code == 303


@pytest.mark.parametrize(
    ("login", "password"), [(LOGIN, "wrong horse battery"), ("nobody", PASSWORD), ("", ""), (LOGIN, "x" * 9999)]
)
def test_a_wrong_login_or_password_is_not_told_apart(visitor: MakeVisitor, mira: int, login: str, password: str) -> None:
    response = visitor().sign_in(login, password)
    assert response.status_code == 403
    assert "do not belong together" in page_text(response)


def test_the_cookie_is_kept_from_scripts_and_other_sites(visitor: MakeVisitor, mira: int) -> None:
    cookie = next(c for c in visitor().sign_in().headers.get_list("set-cookie") if c.startswith("trellis_session="))
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie


def test_under_https_the_cookie_is_secure_and_bound_to_the_host(visitor: MakeVisitor, mira: int) -> None:
    cookie = next(c for c in visitor(https=True).sign_in().headers.get_list("set-cookie") if "trellis_session=" in c)
    assert cookie.startswith("__Host-trellis_session=")
    assert "Secure" in cookie
    assert "Path=/;" in cookie


def test_signing_out_ends_the_session_for_good(admin: Visitor) -> None:
    stolen = dict(admin.client.cookies)
    assert admin.post("/sign-out").status_code == 303
    admin.client.cookies.update(stolen)
    assert admin.get("/account").headers["location"].startswith("/admin/sign-in")


def test_a_session_ends_after_eight_hours_without_use(admin: Visitor, clock: Clock) -> None:
    clock.move(hours=7, minutes=59)
    assert admin.get("/account").status_code == 200
    clock.move(hours=8, minutes=1)
    assert admin.get("/account").status_code == 303


def test_a_session_ends_after_seven_days_of_use(admin: Visitor, clock: Clock) -> None:
    for _ in range(23):
        clock.move(hours=7)
        assert admin.get("/account").status_code == 200
    clock.move(hours=7)
    assert admin.get("/account").status_code == 303


def test_disabling_ends_sessions_at_once(admin: Visitor, mira: int, run: Run) -> None:
    run("admins.create", name="Ada", login="ada", password=PASSWORD)
    run("admins.disable", mira)
    assert admin.get("/account").status_code == 303
    assert admin.sign_in().status_code == 403


def test_a_new_password_ends_sessions_at_once(admin: Visitor, mira: int, run: Run, events: Events) -> None:
    run("admins.set_password", mira, password="another long password")
    assert admin.get("/account").status_code == 303
    assert admin.sign_in(LOGIN, "another long password").status_code == 303
    assert "argon2" not in str(events())
    assert "another long" not in str(events())


def test_guesses_at_an_account_are_slowed_and_the_wait_expires(visitor: MakeVisitor, mira: int, clock: Clock) -> None:
    statuses = [visitor(address=f"192.0.2.{number}").sign_in(LOGIN, "wrong password").status_code for number in range(7)]
    assert statuses == [403] * 6 + [429]
    slowed = visitor(address="198.51.100.1").sign_in()
    assert slowed.status_code == 429
    assert 1 <= int(slowed.headers["retry-after"]) <= 3
    clock.move(seconds=int(slowed.headers["retry-after"]))
    assert visitor(address="198.51.100.1").sign_in().status_code == 303


def test_guesses_from_an_address_are_slowed(visitor: MakeVisitor, mira: int) -> None:
    somebody = visitor(address="2001:db8::1")
    assert [somebody.sign_in(f"login{number}").status_code for number in range(12)] == [403] * 11 + [429]
    assert visitor(address="2001:db8::2").sign_in().status_code == 429  # the same network
    assert visitor(address="2001:db8:0:1::1").sign_in().status_code == 303


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
    for number in range(8):
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
    assert sorted(visit.get("/account").status_code for visit in (other, third)) == [200, 303]
    admin.post("/account/sessions/others")
    assert [visit.get("/account").status_code for visit in (admin, other, third)] == [200, 303, 303]
