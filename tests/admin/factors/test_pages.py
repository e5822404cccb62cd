"""Second factors in the panel without scripts: setting one up, signing in with it, the password again, and guesses."""

import re
import threading
from typing import Any

import pyotp
import pytest

from tests.admin.conftest import LOGIN, PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form
from tests.fixture_types import Clock, Events, Run
from tests.passkey_device import PasskeyDevice
from trellis.core.admins import passwords
from trellis.core.factors import Owner, options_of_new_passkey, proof, set_up_app
from trellis.core.gate import Gate
from trellis.core.operation import SecondFactorPolicy
from trellis.core.passwords.digests import Cost

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

FACTORS = "/account/second-factor"


def code_of(secret: str, clock: Clock) -> str:
    return pyotp.TOTP(secret).at(int(clock.at.timestamp()))


@pytest.fixture
def app(gate: Gate, run: Run, clock: Clock, mira: int) -> str:
    """An authenticator app of Mira's, set up a while ago; gives its secret."""
    setup = set_up_app(gate, mira, LOGIN)
    run("admins.set_authenticator", mira, salt=setup.salt, code=code_of(setup.secret, clock))
    clock.move(minutes=5)
    return setup.secret


@pytest.fixture
def required(gate: Gate) -> None:
    """Every administrator must have one."""
    object.__setattr__(gate.environment, "second_factors", SecondFactorPolicy(required=True))


def second_step(somebody: Visitor, code: str, login: str = LOGIN, password: str = PASSWORD) -> Any:
    asked = somebody.sign_in(login, password)
    assert (asked.status_code, "authenticator app" in page_text(asked)) == (200, True)
    return somebody.post("/sign-in/code", find_form(asked, "/sign-in/code").filled(code=code))


def test_an_app_is_set_up_and_then_asked_for(admin: Visitor, visitor: MakeVisitor, clock: Clock, events: Events) -> None:
    assert "Anyone who learns your password can sign in." in page_text(admin.get("/account"))
    page = admin.get(f"{FACTORS}/app")
    assert "<svg" in page.text
    secret = re.sub(r"\W", "", re.search(r'id="app-secret"[^>]*>([^<]*)<', page.text)[1])  # type: ignore[index]
    wrong = admin.post(f"{FACTORS}/app", find_form(page, "/app").filled(code="000000"))
    assert (wrong.status_code, secret[:4] in wrong.text) == (400, True)  # the same secret: it is in the app already
    done = admin.post(f"{FACTORS}/app", find_form(wrong, "/app").filled(code=code_of(secret, clock)))
    codes = re.findall(r"(?:[a-z2-9]{4}-){5}[a-z2-9]{4}", done.text)
    assert len(set(codes)) == 10
    assert not any(code in admin.get(FACTORS).text for code in codes)
    assert events()[-1]["type"] == "admin.set_authenticator"
    shown = page_text(admin.get("/events"))
    assert "Mira Holm set up an authenticator app" in shown
    assert "app" in page_text(admin.get("/administrators"))
    somebody = visitor()
    clock.move(minutes=1)
    assert second_step(somebody, code_of(secret, clock)).headers["location"] == "/admin"
    assert somebody.get("/keys").status_code == 200
    assert second_step(visitor(), codes[3]).headers["location"] == "/admin"
    assert second_step(visitor(), codes[3]).status_code == 403
    assert "9 codes left" in page_text(somebody.get(FACTORS))


def test_nobody_is_signed_in_before_the_second_step_and_no_code_holds_twice(
    visitor: MakeVisitor, app: str, clock: Clock, mira: int
) -> None:
    somebody, code = visitor(), code_of(app, clock)
    asked = somebody.sign_in()
    assert not any("session" in cookie for cookie in somebody.client.cookies)
    assert somebody.get("/keyboard").headers["location"].startswith("/admin/sign-in")
    form = find_form(asked, "/sign-in/code").filled(code=code)
    thief = visitor()
    thief.get("/sign-in")
    assert thief.post("/sign-in/code", form).status_code == 403  # the note of the first step is for one browser
    somebody.csrf = re.search(r'name="csrf" value="([0-9a-f]{64})"', asked.text)[1]  # type: ignore[index]
    alone = somebody.post("/sign-in/passkey", {"login": LOGIN, "code": code})
    assert (alone.status_code, somebody.client.cookies.get("trellis_session")) == (403, None)
    late = somebody.post("/sign-in/code", form, csrf="0" * 64)
    assert (late.status_code, somebody.client.cookies.get("trellis_session")) == (409, None)
    assert somebody.post("/sign-in/code", form).headers["location"] == "/admin"
    again = second_step(visitor(), code)
    assert (again.status_code, "is incorrect, or the code was already used" in page_text(again)) == (403, True)


def test_a_form_for_signing_in_that_is_sent_twice_signs_in_once_and_goes_on(
    visitor: MakeVisitor, mira: int, events: Events
) -> None:
    somebody = visitor()
    somebody.get("/sign-in")
    form = find_form(somebody.get("/sign-in?next=/admin/keys"), "/sign-in").filled(login=LOGIN, password=PASSWORD)
    for _ in range(2):
        done = somebody.post("/sign-in", form)
        assert (done.status_code, done.headers["location"]) == (303, "/admin/keys")
    assert [event["operation"] for event in events()].count("admins.sign_in") == 1
    assert somebody.get("/keys").status_code == 200


def test_a_code_that_is_sent_twice_by_one_form_is_not_called_wrong(
    visitor: MakeVisitor, app: str, clock: Clock, events: Events, mira: int
) -> None:
    somebody, code = visitor(), code_of(app, clock)
    form = find_form(somebody.sign_in(), "/sign-in/code").filled(code=code)
    clock.move(seconds=5)
    assert somebody.post("/sign-in/code", form).headers["location"] == "/admin"
    assert somebody.post("/sign-in/code", form).headers["location"] == "/admin"  # the browser has the cookie of the first already
    assert [event["operation"] for event in events()].count("admins.sign_in") == 1
    somebody.client.cookies.delete("trellis_session")  # or it has not, and sees what comes first
    again = somebody.post("/sign-in/code", form)
    assert (again.status_code, again.headers["location"], "set-cookie" in again.headers) == (303, "/admin", False)
    assert somebody.get("").headers["location"].startswith("/admin/sign-in")
    clock.move(minutes=2)
    assert somebody.post("/sign-in/code", form).status_code == 403


def test_what_was_typed_into_another_form_is_not_lost_if_a_code_is_sent_twice(visitor: MakeVisitor, app: str, clock: Clock) -> None:
    somebody, code = visitor(), code_of(app, clock)
    form = find_form(somebody.sign_in(), "/sign-in/code").filled(code=code)
    typed = {"next": "/admin/groups/new", "replay": "1", "carried-name": "name", "carried-value": "Typed with care"}
    token = somebody.csrf
    clock.move(seconds=5)
    assert "Typed with care" in somebody.post("/sign-in/code", {**form, **typed}).text
    somebody.client.cookies.delete("trellis_session")
    again = somebody.post("/sign-in/code", {**form, **typed}, csrf=token)
    assert (again.status_code, "Typed with care" in again.text) == (403, True)


def test_a_stale_form_for_signing_in_that_is_another_ones_leads_nowhere(admin: Visitor) -> None:
    for path in ("/sign-in", "/sign-in/code", "/sign-in/passkey"):
        assert admin.post(path, {"login": LOGIN, "password": PASSWORD}, csrf="0" * 64).status_code == 409


def test_the_first_step_is_forgotten_after_a_while_and_with_a_new_password(
    visitor: MakeVisitor, app: str, run: Run, clock: Clock, mira: int
) -> None:
    somebody = visitor()
    form = find_form(somebody.sign_in(), "/sign-in/code")
    clock.move(minutes=6)
    late = somebody.post("/sign-in/code", form.filled(code=code_of(app, clock)))
    assert (late.status_code, "open for too long" in page_text(late)) == (409, True)
    form = find_form(somebody.sign_in(), "/sign-in/code")
    run("admins.set_password", mira, password="another long password")
    assert somebody.post("/sign-in/code", form.filled(code=code_of(app, clock))).status_code == 403


def test_whoever_has_a_second_factor_signs_in_where_digests_are_made_otherwise_than_before(
    visitor: MakeVisitor, app: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "SIGN_IN", Cost(passes=2, memory=16, threads=1))
    assert second_step(visitor(), code_of(app, clock)).status_code == 303


def test_a_wrong_password_and_a_wrong_code_look_the_same(
    visitor: MakeVisitor, app: str, clock: Clock, required: None, mira: int
) -> None:
    def told(password: str, code: str, login: str = LOGIN) -> tuple[int, str, str]:
        somebody = visitor(address=f"192.0.2.{hash((password, code)) % 200}")
        first = somebody.sign_in(login, password)
        second = somebody.post("/sign-in/code", find_form(first, "/sign-in/code").filled(code=code))
        shape = re.sub(r'value="[^"]*"', "", first.text)
        return second.status_code, shape, page_text(second)

    wrong_code = told(PASSWORD, "000000")
    assert told("wrong horse battery", code_of(app, clock)) == wrong_code
    assert told("wrong horse battery", "000000") == wrong_code
    assert told("wrong horse battery", "000000", "nobody") == wrong_code  # nor does it tell which logins there are
    assert second_step(visitor(address="198.51.100.1"), code_of(app, clock)).status_code == 303  # the code was not used up


def test_a_code_is_looked_at_after_a_wrong_password_too(
    visitor: MakeVisitor, app: str, clock: Clock, mira: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the time that it takes would tell whether the password was right."""
    looked_at: list[Any] = []
    find = proof.find_proof

    def recording(*about: Any) -> Any:
        looked_at.append(about[3])
        return find(*about)

    monkeypatch.setattr(proof, "find_proof", recording)
    for number, password in enumerate(("wrong horse battery", PASSWORD)):
        wrong = second_step(visitor(address=f"192.0.2.{number}"), "000000", password=password)
        assert (wrong.status_code, looked_at) == (403, [mira] * (number + 1))


def test_whoever_is_shut_out_by_a_reset_does_not_choose_the_new_password(
    visitor: MakeVisitor, gate: Gate, run: Run, mira: int
) -> None:
    public = "https://panel.example"
    object.__setattr__(gate.environment, "public_url", public)
    device = PasskeyDevice(public, "panel.example")
    made = device.create(options_of_new_passkey(gate, Owner(mira, "Mira Holm", LOGIN), "here"))
    run("admins.add_passkey", mira, name="Key", passkey=made, binding="here")
    somebody = visitor(https=True, public_url=public)

    def use(path: str, values: dict[str, Any]) -> Any:
        return somebody.post(path, values | {"passkey": device.use(somebody.get("/sign-in/passkey/options").text)})

    run("admins.set_password", mira, password="another long password")
    somebody.get("/sign-in")
    alone = use("/sign-in/passkey", {})
    assert (alone.status_code, "Somebody else set this password" in page_text(alone)) == (403, True)
    assert somebody.get("/new-password").headers["location"].startswith("/admin/sign-in")
    asked = somebody.sign_in(LOGIN, "another long password")
    both = use("/sign-in/code", find_form(asked, "/sign-in/code").filled())
    assert (both.status_code, somebody.get("/keys").headers["location"]) == (303, "/admin/new-password")


def test_whoever_has_chosen_a_password_for_somebody_adds_no_second_factor_of_their_own(
    visitor: MakeVisitor, gate: Gate, run: Run, mira: int
) -> None:
    """The factor would sign them in later, or keep the administrator out."""
    object.__setattr__(gate.environment, "public_url", "https://panel.example")
    run("admins.set_password", mira, password="chosen by an owner")
    owner = visitor()
    owner.sign_in(password="chosen by an owner")
    owner.get("/new-password")
    device = PasskeyDevice("https://panel.example", "panel.example")
    asked = owner.get(f"{FACTORS}/passkeys/options", headers={"accept": "application/json"})
    assert (asked.status_code, "Choose your own password first." in asked.text) == (403, True)
    made = device.create(options_of_new_passkey(gate, Owner(mira, "Mira Holm", LOGIN), owner.csrf))
    for path in (FACTORS, f"{FACTORS}/app", f"{FACTORS}/passkeys/new"):
        assert owner.get(path).headers["location"] == "/admin/new-password"
    added = owner.post(f"{FACTORS}/passkeys/new", {"name": "Key", "passkey": made})
    assert added.headers["location"] == "/admin/new-password"
    assert run("admins.factors", mira)["passkeys"] == []


def test_removing_a_passkey_by_a_form_that_is_sent_twice_removes_it_once(
    admin: Visitor, gate: Gate, run: Run, mira: int, events: Events
) -> None:
    object.__setattr__(gate.environment, "public_url", "https://panel.example")
    device = PasskeyDevice("https://panel.example", "panel.example")
    made = device.create(options_of_new_passkey(gate, Owner(mira, "Mira Holm", LOGIN), "here"))
    (session,) = run("admins.sessions", mira)
    run("admins.add_passkey", mira, name="Key", passkey=made, binding="here", session=session["id"])
    before = len(events())
    for told in ("The passkey Key was removed", "That passkey was already removed."):
        assert admin.post(f"{FACTORS}/passkeys/1/remove").headers["location"] == f"/admin{FACTORS}"
        assert told in page_text(admin.get(FACTORS))
    assert len(events()) == before + 1


def test_a_reset_names_the_factors_that_stay(admin: Visitor, gate: Gate, run: Run, clock: Clock) -> None:
    ada = run("admins.create", name="Ada Berg", login="ada", password=PASSWORD)["id"]
    page = admin.get(f"/administrators/{ada}")
    assert "stay as they are" not in page_text(page)
    setup = set_up_app(gate, ada, "ada")
    run("admins.set_authenticator", ada, salt=setup.salt, code=code_of(setup.secret, clock))
    page = admin.get(f"/administrators/{ada}")
    assert "Second factors (app) stay as they are" in page_text(page)
    admin.post(f"/administrators/{ada}/password", {"password": "another long password"})
    assert "Their second factors (app) stay" in page_text(admin.get(f"/administrators/{ada}"))
    admin.post(f"/administrators/{ada}/password", {"password": "yet a longer password"}, headers={"accept-language": "de"})
    assert "Die zweiten Faktoren bleiben (App)" in page_text(admin.get(f"/administrators/{ada}"))


def test_guesses_at_codes_are_slowed_like_those_at_passwords(visitor: MakeVisitor, app: str, clock: Clock) -> None:
    somebody, statuses = visitor(), []
    for _ in range(7):
        asked = somebody.sign_in()  # with the right password, which clears nothing
        if asked.status_code == 200:
            asked = somebody.post("/sign-in/code", find_form(asked, "/sign-in/code").filled(code="000000"))
        statuses.append(asked.status_code)
    assert statuses == [403] * 5 + [429] * 2
    clock.move(minutes=15)
    assert second_step(somebody, code_of(app, clock)).status_code == 303
    somebody.post("/sign-out")
    assert [second_step(somebody, "000000").status_code for _ in range(3)] == [403] * 3  # all was forgotten


def test_guesses_at_a_password_do_not_keep_its_owner_from_using_a_passkey(
    visitor: MakeVisitor, gate: Gate, run: Run, mira: int
) -> None:
    object.__setattr__(gate.environment, "public_url", "https://panel.example")
    device = PasskeyDevice("https://panel.example", "panel.example")
    made = device.create(options_of_new_passkey(gate, Owner(mira, "Mira Holm", LOGIN), "here"))
    run("admins.add_passkey", mira, name="Key", passkey=made, binding="here")
    for number in range(5):
        stranger = visitor(address=f"198.51.100.{number}")
        asked = stranger.sign_in(password="a wrong password")
        stranger.post("/sign-in/code", find_form(asked, "/sign-in/code").filled(code="000000"))
    somebody = visitor()
    assert somebody.sign_in().status_code == 429
    answer = device.use(somebody.get("/sign-in/passkey/options").text)
    assert somebody.post("/sign-in/passkey", {"passkey": answer}).status_code == 303


def test_passwords_of_strangers_do_not_keep_a_passkey_waiting(
    visitor: MakeVisitor, gate: Gate, run: Run, mira: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both threads are busy, and as many passwords of browsers that are not known wait as may."""
    object.__setattr__(gate.environment, "public_url", "https://panel.example")
    device = PasskeyDevice("https://panel.example", "panel.example")
    made = device.create(options_of_new_passkey(gate, Owner(mira, "Mira Holm", LOGIN), "here"))
    run("admins.add_passkey", mira, name="Key", passkey=made, binding="here")
    somebody = visitor()
    somebody.get("/sign-in")
    answer = device.use(somebody.get("/sign-in/passkey/options").text)
    go, begun = threading.Event(), threading.Barrier(3)

    def hold() -> bool:
        begun.wait(60)
        return go.wait(60)

    waiting = [gate.lanes.submit(f"keys/{number}", hold) for number in range(2)]
    begun.wait(60)
    waiting += [gate.lanes.submit(f"strangers/192.0.2.{number}", lambda: True) for number in range(128)]
    submit = gate.lanes.submit

    def submit_and_go(*arguments: Any) -> Any:
        try:
            return submit(*arguments)
        finally:
            go.set()

    monkeypatch.setattr(gate.lanes, "submit", submit_and_go)
    assert somebody.post("/sign-in/passkey", {"passkey": answer}).status_code == 303
    for future in waiting:
        future.result(60)


def test_the_password_again_takes_the_code_as_well(admin: Visitor, app: str, gate: Gate, clock: Clock, run: Run) -> None:
    assert second_step(admin, code_of(app, clock)).status_code == 303
    admin.get("/account")
    clock.move(minutes=16)
    asked = admin.get("/account/password")
    assert asked.headers["location"] == "/admin/confirm-password?next=/admin/account/password"
    form = find_form(admin.get("/confirm-password?next=/admin/administrators/new"), "/confirm-password")
    for password, code in ((PASSWORD, ""), (PASSWORD, "000000"), ("wrong", code_of(app, clock))):
        wrong = admin.post("/confirm-password", form.filled(password=password, code=code))
        assert (wrong.status_code, "Password or code is incorrect" in page_text(wrong)) == (403, True)
    right = admin.post("/confirm-password", form.filled(password=PASSWORD, code=code_of(app, clock)))
    assert right.headers["location"] == "/admin/administrators/new"
    assert admin.get("/administrators/new").status_code == 200
    clock.move(minutes=16)
    changed = admin.post("/account/password", {"currentPassword": PASSWORD, "password": "another long password"})
    assert (changed.status_code, "Enter your password" in page_text(changed)) == (403, True)


def test_where_one_is_required_it_comes_before_anything_else(
    required: None, visitor: MakeVisitor, mira: int, clock: Clock, events: Events
) -> None:
    somebody = visitor()
    somebody.get("/sign-in")
    assert somebody.post("/sign-in", {"login": LOGIN, "password": PASSWORD}).headers["location"] == "/admin"
    before = events()
    for path in ("", "/keys", "/account", "/administrators"):
        assert somebody.get(path).headers["location"] == f"/admin{FACTORS}"
    page = somebody.get(FACTORS)
    assert "Every administrator here needs a second factor" in page_text(page)
    assert somebody.post("/keys/new", {"name": "Mine"}).headers["location"] == f"/admin{FACTORS}"
    assert somebody.get("/account", headers={"accept": "application/json"}).json()["detail"] == "Set up a second factor first."
    assert events() == before
    page = somebody.get(f"{FACTORS}/app")
    secret = re.sub(r"\W", "", re.search(r'id="app-secret"[^>]*>([^<]*)<', page.text)[1])  # type: ignore[index]
    done = somebody.post(f"{FACTORS}/app", find_form(page, "/app").filled(code=code_of(secret, clock)))
    assert "Recovery codes" in page_text(done)
    assert somebody.get("/keys").status_code == 200


def test_without_a_public_address_there_are_no_passkeys_and_the_page_says_why(admin: Visitor, visitor: MakeVisitor) -> None:
    page = page_text(admin.get(FACTORS))
    assert "Passkeys cannot be added here." in page
    assert "TRELLIS_PUBLIC_URL" in page
    assert "Set up an app" in page
    assert "passkey" not in visitor().get("/sign-in").text
    assert admin.get(f"{FACTORS}/passkeys/options", headers={"accept": "application/json"}).status_code == 403


def test_an_app_that_is_set_up_twice_by_one_form_is_set_up_and_no_code_is_wrong(
    admin: Visitor, clock: Clock, events: Events
) -> None:
    page = admin.get(f"{FACTORS}/app")
    secret = re.sub(r"\W", "", re.search(r'id="app-secret"[^>]*>([^<]*)<', page.text)[1])  # type: ignore[index]
    sent = find_form(page, "/app").filled(code=code_of(secret, clock))
    before = len(events())
    first, second = admin.post(f"{FACTORS}/app", sent), admin.post(f"{FACTORS}/app", sent)
    assert (first.status_code, second.status_code) == (200, 303)
    assert len(events()) == before + 1
    assert "if you have not seen your recovery codes, generate new ones" in page_text(admin.get(FACTORS))


def test_a_passkey_that_is_added_twice_by_one_form_is_added_and_not_called_known(
    admin: Visitor, gate: Gate, mira: int, events: Events
) -> None:
    object.__setattr__(gate.environment, "public_url", "https://panel.example")
    admin.get(f"{FACTORS}/passkeys/new")
    device = PasskeyDevice("https://panel.example", "panel.example")
    made = device.create(options_of_new_passkey(gate, Owner(mira, "Mira Holm", LOGIN), admin.csrf))
    before = len(events())
    first, second = (admin.post(f"{FACTORS}/passkeys/new", {"name": "Key", "passkey": made}) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 303)
    assert len(events()) == before + 1
    told = page_text(admin.get(FACTORS))
    assert "Key was added. The form was sent twice: if you have not seen your recovery codes, generate new ones." in told.replace(
        "\u2068", ""
    ).replace("\u2069", "")
