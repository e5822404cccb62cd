"""Single sign-on through the pages: with a provider that does as it should, and with one that does whatever it can."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import parse_qs, quote_plus, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from tests.admin.authenticator_app import add_app
from tests.admin.conftest import LOGIN, PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form, read_forms
from tests.conftest import NewSettings
from tests.fixture_types import Clock, Events, Run
from tests.openid_provider import CLIENT, SECRET, OpenIdProvider, sign_nested, unsigned
from tests.wait import wait_until
from trellis.admin.admins import sign_on as pages
from trellis.admin.admins.checking import CheckResult
from trellis.core.admins import Proven, find_failed_sign_ins
from trellis.core.gate import Gate
from trellis.core.operation import SecondFactorPolicy
from trellis.errors import Refused
from trellis.openid import provider as openid_client
from trellis.openid import transport
from trellis.settings import Settings

ROLES = "trellis-owners=owner; forum-team=structure-editor:forums,calendars; all-staff=auditor"
on_sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


@pytest.fixture
def provider(clock: Clock) -> Iterator[OpenIdProvider]:
    with OpenIdProvider(lambda: clock().timestamp()) as running:
        running.userinfo = {"name": "Ada Quist", "email": "ada@example.com", "groups": ["all-staff", "forum-team"]}
        yield running


@pytest.fixture
def settings(new_settings: NewSettings, provider: OpenIdProvider) -> Settings:
    return replace(
        new_settings(),
        public_url="http://panel.example",
        sso_issuer=provider.issuer,
        sso_client_id=CLIENT,
        sso_client_secret=SECRET,
        sso_name="Lantern ID",
        sso_roles=ROLES,
        sso_new_administrators=True,
    )


class SignOn(Protocol):
    """Somebody goes to the provider and comes back; `query` changes what they bring."""

    def __call__(self, visitor: Visitor, *, start: str = "/sign-on", **query: str) -> Any: ...


@pytest.fixture
def sign_on(provider: OpenIdProvider) -> SignOn:
    def signing_on(visitor: Visitor, *, start: str = "/sign-on", **query: str) -> Any:
        sent = visitor.get(start)
        assert sent.status_code == 303, sent.text
        return come_back(visitor, provider.sign_in(sent.headers["location"], **query))

    return signing_on


def come_back(visitor: Visitor, address: str) -> Any:
    """Follow the address with which the provider sends somebody back."""
    assert address.startswith("http://panel.example/admin/")
    return visitor.get(address.removeprefix("http://panel.example/admin"))


def link(admin: Visitor, provider: OpenIdProvider, **query: str) -> Any:
    """Link the account of somebody who is signed in."""
    admin.get("/keyboard")
    left = admin.post("/account/sign-on")
    assert left.status_code == 200
    address = left.text.split('<a class="button primary" href="')[1].split('"')[0].replace("&amp;", "&")
    assert f"0;url={address}".replace("&", "&amp;") in left.text
    return come_back(admin, provider.sign_in(address, **query))


# --- as it should be ----------------------------------------------------------------------------------------------


def test_somebody_new_joins_with_the_role_of_their_groups_and_is_known_from_then_on(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, run: Run, events: Events
) -> None:
    ada = visitor()
    assert sign_on(ada).headers["location"] == "/admin"
    assert "Ada Quist" in page_text(ada.get("/account"))
    (admin,) = run("admins.list")["results"]
    assert (admin["login"], admin["role"], admin["kinds"]) == ("ada@example.com", "structure-editor", ["forums", "calendars"])
    joined, signed_on = events()[-2:]
    assert (joined["type"], joined["actor"]["type"], signed_on["type"]) == ("admin.joined", "service", "admin.signed_on")
    assert signed_on["after"]["provider"] == "Lantern ID"
    assert [one["name"] for one in run("alarms.view")["results"]] == ["new-browser", "joined-administrator"]
    provider.userinfo |= {"email": "quist@example.com", "name": "Somebody Else"}  # an address may change, and go to others
    assert sign_on(visitor()).status_code == 303
    assert [one["name"] for one in run("admins.list")["results"]] == ["Ada Quist"]
    told = str(events()) + str(run("admins.get", admin["id"]))
    assert "eyJ" not in told  # no token is kept


@on_sqlite
@pytest.mark.parametrize(
    ("told", "name", "login"),
    [
        ({"name": "\u845b\U000e0100\u57ce", "email": "k@example.com"}, "\u845b\u57ce", "k@example.com"),  # as Japanese names are
        ({"name": "\u3164", "email": "k@example.com"}, "k@example.com", "k@example.com"),
        ({"name": "Ada", "email": "\u3164\u034f"}, "Ada", "248289761001"),
        ({"name": "x" * 99 + " y", "email": "a" * 254 + " b"}, "x" * 99, "a" * 254),
    ],
    ids=["variation", "nothing to see", "no login to see", "cut at a blank"],
)
def test_what_nobody_sees_in_a_name_there_keeps_nobody_out(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, run: Run, told: dict[str, str], name: str, login: str
) -> None:
    provider.userinfo |= told
    for _ in range(2):  # to join, and to sign in
        assert sign_on(visitor()).headers.get("location") == "/admin"
    (admin,) = run("admins.list")["results"]
    assert (admin["name"], admin["login"]) == (name, login)


@on_sqlite
@pytest.mark.parametrize("told", ["Mira Holm", "mira HOLM", "The terminal", "Das Terminal"])
def test_a_name_there_that_would_pass_for_somebody_elses_is_told_with_the_login(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, run: Run, told: str
) -> None:
    run("admins.create", name="Mira Holm", login="mira", password=PASSWORD)
    provider.userinfo |= {"name": told}
    assert sign_on(visitor()).headers["location"] == "/admin"
    assert run("admins.list")["results"][1]["name"] == f"{told} (ada@example.com)"


def test_groups_decide_the_role_at_each_sign_in_and_sessions_follow(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, run: Run, events: Events
) -> None:
    ada, elsewhere = visitor(), visitor()
    sign_on(ada)
    sign_on(elsewhere)
    provider.userinfo["groups"] = ["all-staff"]
    sign_on(visitor())
    assert run("admins.list")["results"][0]["role"] == "auditor"
    assert ada.get("/forums/new").status_code == 403
    provider.userinfo["groups"] = ["trellis-owners"]
    sign_on(visitor())
    assert [one["name"] for one in run("alarms.view")["results"]][1] == "widened-role"
    provider.userinfo["groups"] = []
    turned_away = sign_on(visitor())
    assert turned_away.status_code == 403
    assert "None of your groups at Lantern ID has a role here" in page_text(turned_away)
    assert (ada.get("/keyboard").status_code, elsewhere.get("/account").status_code) == (303, 303)
    assert events()[-1]["type"] == "admin.turned_away"


@on_sqlite
def test_a_group_that_the_provider_names_again_and_again_counts_once(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider
) -> None:
    provider.userinfo["groups"] = ["all-staff"] * 300
    assert sign_on(visitor()).headers.get("location") == "/admin"


@on_sqlite
def test_whoever_leaves_in_two_tabs_is_signed_in_by_the_first_and_the_second_is_no_failure(
    visitor: MakeVisitor, provider: OpenIdProvider, gate: Gate, clock: Clock
) -> None:
    panel = visitor()
    left = [provider.sign_in(panel.get("/sign-on").headers["location"]) for _ in range(2)]
    for address in left:
        assert come_back(panel, address).headers["location"] == "/admin"
    assert "came back too late" not in page_text(panel.get(""))
    assert provider.asked["/realm/token"] == 1
    clock.move(minutes=1)
    assert list(find_failed_sign_ins(gate)) == []


@on_sqlite
def test_an_owner_links_their_account_once_they_have_entered_their_password(
    admin: Visitor, mira: int, visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, run: Run, clock: Clock
) -> None:
    provider.userinfo["groups"] = ["trellis-owners"]
    clock.move(minutes=20)
    admin.get("/keyboard")
    assert "Enter your password" in page_text(admin.post("/account/sign-on"))
    admin.post("/confirm-password", {"password": PASSWORD, "next": "/admin/account", "replay": "0"})
    linked = link(admin, provider)
    assert linked.headers["location"] == "/admin/account"
    page = page_text(admin.get("/account"))
    assert "You can now sign in with your account ada@example.com at Lantern ID." in page
    assert "Linked ada@example.com" in page
    alarm = run("alarms.view")["results"][0]
    assert (alarm["name"], "ada@example.com" in alarm["sentence"]) == ("linked-identity", False)  # webhooks get this sentence, too
    there = visitor()
    sign_on(there)
    assert LOGIN in page_text(there.get("/account"))
    assert "single sign-on" in page_text(admin.get("/account"))  # among the sessions
    assert admin.post("/account/sign-on/unlink").status_code == 303
    assert there.get("/keyboard").status_code == 303  # what began there has ended
    assert admin.get("/keyboard").status_code == 200
    assert "The login ada@example.com" not in page_text(sign_on(visitor()))  # who comes back is new


@on_sqlite
def test_an_address_that_is_too_long_for_a_cookie_does_not_lead_back_to_an_earlier_one(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider
) -> None:
    panel = visitor()
    assert panel.get("/sign-on?next=/admin/forums").status_code == 303
    sent = panel.get(f"/sign-on?next=/admin/events?q={'a' * 4000}")
    assert max(map(len, sent.headers.get_list("set-cookie"))) < 4096
    assert come_back(panel, provider.sign_in(sent.headers["location"])).headers["location"] == "/admin"


@on_sqlite
def test_whoever_is_not_let_in_there_still_goes_on_to_their_page_with_a_password(
    visitor: MakeVisitor, mira: int, sign_on: SignOn, provider: OpenIdProvider
) -> None:
    del mira
    start = "/sign-on?next=/admin/keys"
    cancelled = sign_on(browser := visitor(), start=start, error="access_denied")
    form = find_form(cancelled, "/admin/sign-in")
    assert (cancelled.status_code, form["next"]) == (403, "/admin/keys")
    assert browser.post("/sign-in", form.filled(login=LOGIN, password=PASSWORD)).headers["location"] == "/admin/keys"
    provider.metadata = {"issuer": "https://evil.example"}
    unavailable = visitor().get(start)
    assert (unavailable.status_code, find_form(unavailable, "/admin/sign-in")["next"]) == (503, "/admin/keys")


@on_sqlite
def test_nobody_is_linked_by_an_address_or_to_two(
    admin: Visitor, visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, run: Run
) -> None:
    provider.userinfo |= {"email": LOGIN}
    assert f"The login {LOGIN}" in page_text(sign_on(visitor()))
    provider.userinfo |= {"email": "ada@example.com"}
    sign_on(visitor())
    link(admin, provider)
    assert "is linked to another administrator" in page_text(admin.get("/account"))
    provider.claims = {"auth_time": 1}  # as if somebody had been signed in there since long ago
    provider.subject = provider.userinfo["sub"] = "another"
    link(admin, provider)
    assert "did not ask you to sign in again" in page_text(admin.get("/account"))


@on_sqlite
def test_whoever_signs_in_there_alone_shows_there_again_who_they_are(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, run: Run, clock: Clock
) -> None:
    provider.userinfo["groups"] = ["trellis-owners"]
    ada = visitor()
    sign_on(ada)
    factors = page_text(ada.get("/account/second-factor"))
    assert "Anyone with access to your account at Lantern ID can sign in here." in factors
    assert "learns your password" not in factors
    clock.move(minutes=20)
    asked = ada.get("/administrators/new")
    assert asked.headers["location"] == "/admin/confirm-password?next=/admin/administrators/new"
    form = ada.get("/confirm-password?next=/admin/administrators/new")
    assert "Sign in with Lantern ID again" in page_text(form)
    assert "Password of" not in page_text(form)
    start = "/confirm-password/sign-on?next=/admin/administrators/new"
    query = parse_qs(urlsplit(ada.get(start).headers["location"]).query)
    assert (query["prompt"], query["max_age"]) == (["login"], ["0"])
    provider.claims = {"auth_time": None}
    assert "did not ask you to sign in again" in page_text(sign_on(ada, start=start))
    provider.claims = {}
    assert sign_on(ada, start=start).headers["location"] == "/admin/administrators/new"
    assert ada.get("/administrators/new").status_code == 200
    assert "confirmed who they are with single sign-on from 192.0.2.7" in page_text(ada.get("/events"))
    provider.subject = provider.userinfo["sub"] = "another"
    clock.move(minutes=20)
    assert "not the account that is linked to yours" in page_text(sign_on(ada, start=start))


@on_sqlite
def test_a_second_factor_here_is_asked_for_unless_one_was_shown_there(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, gate: Gate, run: Run, clock: Clock
) -> None:
    ada = visitor()
    sign_on(ada)
    (known,) = run("admins.list")["results"]
    app = add_app(run, gate, known["id"], known["login"])
    other = visitor()
    asked = sign_on(other)
    assert "Code" in page_text(asked)
    wrong = other.post("/sign-on/code", find_form(asked, "/sign-on/code").filled(code="000000"))
    assert wrong.status_code == 403
    clock.move(seconds=60)
    form = find_form(wrong, "/sign-on/code").filled(code=app.at(clock.at))
    token = other.csrf
    assert other.post("/sign-on/code", form, csrf="0" * 64).status_code == 409
    right = other.post("/sign-on/code", form, csrf=token)
    assert right.headers["location"] == "/admin"
    provider.claims = {"amr": ["pwd", "otp"]}
    assert sign_on(visitor()).headers["location"] == "/admin"
    assert "second factor at the provider" in page_text(other.get("/account"))


@on_sqlite
@pytest.mark.parametrize("at_once", [False, True])
def test_a_code_that_is_sent_twice_by_one_form_signs_in_once_and_is_not_called_wrong(
    visitor: MakeVisitor,
    sign_on: SignOn,
    gate: Gate,
    run: Run,
    clock: Clock,
    events: Events,
    monkeypatch: pytest.MonkeyPatch,
    *,
    at_once: bool,
) -> None:
    sign_on(visitor())
    (known,) = run("admins.list")["results"]
    app = add_app(run, gate, known["id"], known["login"])
    clock.move(minutes=1)
    ada = visitor()
    form = find_form(sign_on(ada, start="/sign-on?next=/admin/forums"), "/sign-on/code").filled(code=app.at(clock.at))
    clock.move(seconds=5)
    token, before, left = ada.csrf, len(events()), dict(ada.client.cookies)
    if at_once:
        monkeypatch.setattr(pages, "check_factor", _pass_every_factor)
    assert ada.post("/sign-on/code", form, csrf=token).headers["location"] == "/admin/forums"
    signed_in = len(events())
    assert [event["operation"] for event in events()[before:]].count("admins.sign_on") == 1
    late = ada.post("/sign-on/code", form, csrf=token)  # the browser has the cookie of the first already
    assert (late.status_code, late.headers.get("location")) == (303, "/admin")
    assert "came back too late" not in page_text(ada.get(""))
    for name, value in left.items():  # or it has not
        ada.client.cookies.set(name, value)
    ada.client.cookies.delete("trellis_session")
    again = ada.post("/sign-on/code", form, csrf=token)
    assert (again.status_code, again.headers.get("location")) == (303, "/admin/forums")
    assert len(events()) == signed_in


@on_sqlite
def test_a_code_that_confirms_and_is_sent_twice_by_one_form_confirms_once_and_is_not_called_late(
    visitor: MakeVisitor, sign_on: SignOn, gate: Gate, run: Run, clock: Clock, events: Events
) -> None:
    ada = visitor()
    sign_on(ada)
    (known,) = run("admins.list")["results"]
    app = add_app(run, gate, known["id"], known["login"], session=run("admins.sessions", 1)[0]["id"])
    clock.move(minutes=16)
    asked = sign_on(ada, start="/confirm-password/sign-on?next=/admin/administrators/new")
    form, before = find_form(asked, "/sign-on/code").filled(code=app.at(clock.at)), len(events())
    late = ada.post("/sign-on/code", form, csrf="0" * 64)
    assert (late.headers["location"], len(events())) == ("/admin/account", before)
    assert "came back too late" in page_text(ada.get("/account"))
    token = find_form(asked, "/sign-on/code")["csrf"]
    assert ada.post("/sign-on/code", form, csrf=token).headers["location"] == "/admin/administrators/new"
    again = ada.post("/sign-on/code", form, csrf=token)
    assert (again.status_code, again.headers.get("location"), len(events())) == (303, "/admin", before + 1)


async def _pass_every_factor(_: object, admin: int, __: str) -> CheckResult:
    """Check a second factor before the first of two forms has used it."""
    return CheckResult(Proven(admin))


@on_sqlite
def test_groups_of_before_do_not_come_back_with_a_second_factor_that_waited(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, run: Run, clock: Clock, gate: Gate
) -> None:
    provider.userinfo["groups"] = ["trellis-owners"]
    run("admins.create", name="Mira Holm", login=LOGIN, password=PASSWORD)
    sign_on(visitor())
    known = run("admins.list")["results"][-1]
    app = add_app(run, gate, known["id"], known["login"])
    clock.move(minutes=1)
    waits = visitor()
    asked = sign_on(waits)
    clock.move(minutes=1)
    provider.userinfo["groups"] = ["all-staff"]
    provider.claims = {"amr": ["pwd", "otp"]}
    assert sign_on(visitor()).status_code == 303
    assert run("admins.get", known["id"])["role"] == "auditor"
    code = app.at(clock.at)
    late = waits.post("/sign-on/code", find_form(asked, "/sign-on/code").filled(code=code))
    assert "has already been used" in page_text(late)
    assert run("admins.get", known["id"])["role"] == "auditor"


@on_sqlite
def test_whoever_chooses_a_password_has_still_shown_a_second_factor_at_the_provider(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    required = replace(gate.environment, second_factors=SecondFactorPolicy(required=True))
    monkeypatch.setattr(gate.calls, "environment", required)
    provider.claims = {"amr": ["pwd", "otp"]}
    ada = visitor()
    sign_on(ada)
    assert ada.get("/keyboard").status_code == 200
    assert ada.post("/account/password", {"password": "another long password"}).headers["location"] == "/admin/account"
    shown = ada.get("/account")
    assert (shown.status_code, "single sign-on, second factor at the provider" in page_text(shown)) == (200, True)


@on_sqlite
def test_a_second_factor_at_the_provider_still_counts_after_confirming_with_a_password(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, gate: Gate, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    required = replace(gate.environment, second_factors=SecondFactorPolicy(required=True))
    monkeypatch.setattr(gate.calls, "environment", required)
    provider.claims = {"amr": ["pwd", "otp"]}
    provider.userinfo["groups"] = ["trellis-owners"]
    ada = visitor()
    sign_on(ada)
    ada.get("/keyboard")
    ada.post("/account/password", {"password": "another long password"})
    form = next(one for one in read_forms(ada.get("/keys/new")) if one.action == "").filled(name="Importer")
    clock.move(minutes=20)
    asked = find_form(ada.post("/keys/new", form), "/confirm-password")
    kept = ada.post("/confirm-password", asked.filled(password="another long password"))
    made = ada.post("/keys/new", find_form(kept, "/keys/new").filled())
    assert (made.status_code, "shown only once" in page_text(made)) == (200, True)
    assert "password, second factor at the provider" in page_text(ada.get("/account"))


@on_sqlite
def test_local_sign_in_can_be_left_to_owners(
    visitor: MakeVisitor, sign_on: SignOn, gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("admins.create", name="Mira Holm", login=LOGIN, password=PASSWORD, mustChangePassword=False)
    run("admins.create", name="Bo", login="bo", password=PASSWORD, mustChangePassword=False, role="auditor")
    monkeypatch.setattr(
        gate.calls, "environment", replace(gate.environment, sign_on=replace(gate.environment.sign_on, owners_only=True))
    )
    assert visitor().sign_in().status_code == 303
    refused = visitor().sign_in("bo")
    assert refused.status_code == 403
    assert "Sign in with Lantern ID: only owners can use a password." in page_text(refused)
    assert "or, for owners" in page_text(visitor().get("/sign-in"))
    ada = visitor()
    sign_on(ada)
    assert "Only owners can sign in with a password here" in page_text(ada.get("/account"))
    assert ada.post("/account/password", {"password": "seven lanterns over a harbour"}).status_code == 303
    ada.get("/keyboard")
    assert ada.post("/account/sign-on/unlink").status_code == 409  # nothing else would let her in
    assert sign_on(visitor()).headers["location"] == "/admin"


@on_sqlite
def test_signing_out_here_tells_where_to_sign_out_there(visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider) -> None:
    ada = visitor()
    sign_on(ada)
    ada.get("/keyboard")
    assert ada.post("/sign-out").headers["location"] == "/admin/signed-out"
    query = f"client_id={quote_plus(CLIENT)}&amp;post_logout_redirect_uri=http"
    assert f'href="{provider.issuer}/end?{query}' in ada.get("/signed-out").text
    assert ada.get("/keyboard").status_code == 303


@on_sqlite
def test_the_overview_says_if_no_owner_has_a_password(visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider) -> None:
    provider.userinfo["groups"] = ["trellis-owners"]
    ada = visitor()
    sign_on(ada)
    assert "No owner has a password here" in page_text(ada.get(""))
    chosen = ada.post("/account/password", {"password": "seven lanterns over a harbour"})
    assert chosen.status_code == 303
    assert "No owner has a password here" not in page_text(ada.get(""))
    assert visitor().sign_in("ada@example.com", "seven lanterns over a harbour").status_code == 303


@on_sqlite
def test_a_session_ends_after_half_a_day_or_with_the_setting(
    visitor: MakeVisitor, sign_on: SignOn, gate: Gate, clock: Clock, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = visitor()
    sign_on(ada)
    clock.move(hours=7)
    assert ada.get("/keyboard").status_code == 200
    sign_on(ada, start="/confirm-password/sign-on")
    ada.get("/keyboard")
    assert ada.post("/account/password", {"password": "seven lanterns over a harbour"}).status_code == 303  # which prolongs nothing
    clock.move(hours=4)
    assert ada.get("/keyboard").status_code == 200
    clock.move(hours=2)
    assert ada.get("/keyboard").status_code == 303
    sign_on(ada)
    assert len(run("admins.sessions", 1)) == 1
    moved = replace(gate.environment.sign_on, issuer="https://elsewhere.example")
    monkeypatch.setattr(gate.calls, "environment", replace(gate.environment, sign_on=moved))
    assert ada.get("/keyboard").status_code == 303
    assert run("admins.sessions", 1) == []


@on_sqlite
def test_nobody_is_left_without_a_way_in(visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, run: Run) -> None:
    provider.userinfo["groups"] = ["trellis-owners"]
    ada = visitor()
    sign_on(ada)
    ada.get("/keyboard")
    refused = ada.post("/account/sign-on/unlink")
    assert (refused.status_code, "You would no longer be able to sign in" in page_text(refused)) == (403, True)
    (known,) = run("admins.list")["results"]
    with pytest.raises(Refused) as last:
        run("admins.unlink_identity", known["id"])
    assert last.value.message == "LAST_ADMINISTRATOR"
    provider.userinfo["groups"] = ["all-staff"]
    assert "is the only owner who can sign in" in page_text(sign_on(visitor()))
    run("admins.create", name="Mira Holm", login=LOGIN, password=PASSWORD)
    assert run("admins.unlink_identity", known["id"])["unlinked"] == 1
    assert ada.get("/keyboard").status_code == 303
    assert run("admins.get", known["id"])["isInvited"]  # who can be invited to choose a password
    assert "link" in run("admins.renew_invitation", known["id"])


def test_an_owner_who_can_sign_in_only_at_a_provider_of_before_is_not_the_last_one(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.userinfo["groups"] = ["trellis-owners"]
    sign_on(visitor())
    mira = run("admins.create", name="Mira Holm", login=LOGIN, password=PASSWORD, mustChangePassword=False)["id"]
    policy = gate.environment.sign_on
    for issuer in ("", "https://elsewhere.example"):
        monkeypatch.setattr(gate.calls, "environment", replace(gate.environment, sign_on=replace(policy, issuer=issuer)))
        for operation, raw in (("admins.disable", {}), ("admins.set_role", {"role": "auditor"})):
            with pytest.raises(Refused, match=r"^LAST_ADMINISTRATOR"):
                run(operation, mira, **raw)
    monkeypatch.setattr(gate.calls, "environment", replace(gate.environment, sign_on=policy))
    assert run("admins.disable", mira)["disabledAt"]


# --- a provider, or somebody, who is hostile -------------------------------------------------------------------------

HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "another nonce": ({"claims": {"nonce": "x"}}, "nonce is missing or wrong"),
    "no nonce": ({"claims": {"nonce": None}}, "nonce is missing or wrong"),
    "another audience": ({"claims": {"aud": "other"}}, "aud is missing or wrong"),
    "several audiences": ({"claims": {"aud": [CLIENT, "other"]}}, "issued to another client"),
    "another party": ({"claims": {"azp": "other"}}, "issued to another client"),
    "expired": ({"claims": {"exp": 1}}, "exp is missing or wrong"),
    "signed long ago": ({"claims": {"iat": 1}}, "issued too long ago"),
    "another issuer": ({"claims": {"iss": "https://evil.example"}}, "iss is missing or wrong"),
    "nobody": ({"claims": {"sub": ""}}, "sub is missing or wrong"),
    "a subject that is no text": ({"claims": {"sub": 7}}, "sub is missing or wrong"),
    "a subject that would be stored as another": (
        {"claims": {"sub": " 248289761001"}, "userinfo": {"sub": " 248289761001", "groups": ["all-staff"]}},
        "sub is missing or wrong",
    ),
    "unsigned": ({"header": {"alg": "none"}, "signs": unsigned}, "its signing algorithm is not accepted"),
    "signed with what is public": (
        {"header": {"alg": "HS256"}, "signs": lambda header, claims: jwt.encode(header, claims, OctKey.import_key("public" * 8))},
        "its signing algorithm is not accepted",
    ),
    "signed by somebody else": (
        {"signs": lambda header, claims: jwt.encode(header, claims, RSAKey.generate_key(2048))},
        "its signature is wrong",
    ),
    "a key that nobody knows": ({"header": {"kid": "unknown"}}, "a key that it does not list"),
    "no token": ({"signs": lambda *_: "not a token"}, "It sent no ID token."),
    "somebody else's UserInfo": ({"userinfo": {"sub": "another"}}, "about another account"),
    "a huge answer": ({"answers": {"/token": (200, b" " * 300_000)}}, "larger than 256 KiB"),
    "an answer that is no object": ({"answers": {"/token": (200, b"[1]")}}, "did not answer with a JSON object"),
    "an answer that is no JSON": ({"answers": {"/token": (200, b"<html>")}}, "did not answer with a JSON object"),
    "an error": ({"answers": {"/token": (400, {"error": "<script>"})}}, "without an error code"),
    "an error that it describes by no text": (
        {"answers": {"/token": (400, {"error": "invalid_grant", "error_description": 5})}},
        "(invalid_grant)",
    ),
    "a page of a proxy": ({"answers": {"/token": (403, b"<html>")}}, "is currently unavailable"),
    "a redirect": ({"answers": {"/token": (302, b"")}}, "is currently unavailable"),
    "too many requests": ({"answers": {"/token": (429, b"[]")}}, "is currently unavailable"),
    "a time that never comes": ({"answers": {"/token": (200, b'{"expires_in": 1e400}')}}, "did not answer with a JSON object"),
    "an answer that is nested deeply": ({"answers": {"/token": (200, b"[" * 200_000)}}, "did not answer with a JSON object"),
    "a failure": ({"answers": {"/token": (500, b"")}}, "is currently unavailable"),
    "claims that are nested deeply": ({"signs": sign_nested}, "it cannot be read"),
    "no keys": ({"answers": {"/jwks": (200, {"keys": [{"kty": "RSA"}, 7]})}}, "a key that it does not list"),
}


@on_sqlite
@pytest.mark.parametrize("how", HOSTILE)
def test_nothing_that_a_hostile_provider_says_lets_anybody_in(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, run: Run, how: str
) -> None:
    changes, told = HOSTILE[how]
    for name, value in changes.items():
        setattr(provider, name, value)
    someone = visitor()
    refused = sign_on(someone)
    assert refused.status_code in {403, 503}
    assert told in page_text(refused)
    assert "Sign in with Lantern ID" in page_text(refused)
    assert someone.get("/keyboard").status_code == 303
    assert run("admins.list")["results"] == []


@on_sqlite
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"claims": {"aud": "other"}}, "Lantern ID hat nicht bestätigt, wer Sie sind. Sein ID-Token ist ungültig: aud fehlt"),
        ({"metadata": {"jwks_uri": None}}, "Lantern ID kann zurzeit nicht benutzt werden. Sein jwks_uri ist keine Webadresse."),
    ],
)
def test_what_a_provider_did_wrong_is_said_in_the_language_of_the_panel(
    visitor: MakeVisitor, provider: OpenIdProvider, changes: dict[str, Any], told: str
) -> None:
    for name, value in changes.items():
        setattr(provider, name, value)
    someone = visitor()
    someone.client.headers["accept-language"] = "de"
    failed = someone.get("/sign-on")
    if failed.status_code == 303:
        failed = come_back(someone, provider.sign_in(failed.headers["location"]))
    assert told in page_text(failed)


@on_sqlite
@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ({"issuer": "https://evil.example"}, "The issuer in its metadata is not TRELLIS_SSO_ISSUER"),
        ({"token_endpoint": "ftp://x"}, "token_endpoint is not a web address"),
        ({"authorization_endpoint": "https://[::1"}, "authorization_endpoint is not a web address"),
        ({"end_session_endpoint": "https://?"}, "end_session_endpoint is not a web address"),
        ({"jwks_uri": None}, "jwks_uri is not a web address"),
        ({"id_token_signing_alg_values_supported": ["none", "HS256"]}, "none of the algorithms"),
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE with S256"),
        ({"padding": "x" * 300_000}, "larger than 256 KiB"),
    ],
)
def test_a_provider_that_cannot_be_used_is_not_asked_again_at_once(
    visitor: MakeVisitor, provider: OpenIdProvider, metadata: dict[str, Any], told: str
) -> None:
    provider.metadata = metadata
    someone = visitor()
    for _ in range(5):
        failed = someone.get("/sign-on")
        assert failed.status_code == 503
        assert told in page_text(failed)
    assert provider.asked.total() == 1


@on_sqlite
def test_without_certificates_the_provider_cannot_be_asked_until_they_are_there(
    visitor: MakeVisitor, sign_on: SignOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openid_client, "_AFTER_FAILURE", 0.0)
    monkeypatch.setenv("SSL_CERT_FILE", "nothing.pem")
    failed = visitor().get("/sign-on")
    assert (failed.status_code, "SSL_CERT_FILE" in page_text(failed)) == (503, True)
    monkeypatch.delenv("SSL_CERT_FILE")
    assert sign_on(visitor()).headers["location"] == "/admin"


@on_sqlite
def test_what_somebody_brings_back_must_be_theirs_lately_and_once(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, clock: Clock, events: Events, run: Run
) -> None:
    ada, thief = visitor(), visitor()
    address = provider.sign_in(ada.get("/sign-on").headers["location"])
    thief.get("/sign-on")
    assert "came back too late, or in another browser" in page_text(come_back(thief, address))
    assert come_back(ada, address).status_code == 303
    ada.get("/keyboard")
    again = come_back(ada, address)  # with the session that it began: it is not of that
    assert again.headers["location"] == "/admin"
    assert provider.asked["/realm/token"] == 1
    for query, told in (
        ({"iss": "https://evil.example"}, "came from another provider"),
        ({"iss": ""}, "came from another provider"),
        ({"code": ""}, "contains no authorization code"),
        ({"code": "made up"}, "rejected the authorization code (invalid_grant)"),
        ({"error": "access_denied", "error_description": "<b>call 555</b>"}, "You cancelled, or it denied you access"),
        ({"state": "made up"}, "came back too late"),
    ):
        refused = sign_on(visitor(), **query)
        assert refused.status_code == 403
        assert told in page_text(refused)
        assert "call 555" not in refused.text
    late = visitor()
    address = provider.sign_in(late.get("/sign-on").headers["location"])
    clock.move(minutes=16)
    assert "came back too late" in page_text(come_back(late, address))


@on_sqlite
def test_a_state_is_used_up(visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider) -> None:
    """Even with a provider that takes a code twice."""
    sign_on(visitor())
    ada = visitor()
    address = provider.sign_in(ada.get("/sign-on").headers["location"])
    codes = dict(provider._codes)
    cookies = dict(ada.client.cookies)
    assert come_back(ada, address).status_code == 303
    provider._codes.update(codes)
    thief = visitor()
    thief.client.cookies.update(cookies)
    replayed = come_back(thief, address)
    assert replayed.status_code == 403
    assert "This sign-in has already been used" in page_text(replayed)


@on_sqlite
def test_a_clock_that_is_set_back_shuts_nobody_out(visitor: MakeVisitor, sign_on: SignOn, clock: Clock) -> None:
    clock.move(hours=2)  # it is ahead
    assert sign_on(visitor()).status_code == 303
    clock.move(hours=-2)
    assert sign_on(visitor()).status_code == 303


@on_sqlite
def test_keys_that_change_are_asked_for_again_but_not_as_often_as_somebody_likes(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = visitor()
    sign_on(panel)
    provider.rotate()
    assert "a key that it does not list" in page_text(sign_on(panel))  # they were asked for less than a minute ago
    monkeypatch.setattr(openid_client, "_AFTER_UNKNOWN_KEY", 0.0)
    assert sign_on(panel).headers["location"] == "/admin"
    monkeypatch.undo()
    asked = provider.asked["/realm/jwks"]
    provider.header = {"kid": "unknown"}
    for _ in range(5):
        assert sign_on(panel).status_code == 403
    assert provider.asked["/realm/jwks"] == asked


@on_sqlite
def test_a_key_that_changes_without_a_name_is_asked_for_again_but_not_as_often_as_somebody_likes(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.signs = lambda header, claims: jwt.encode({"alg": header["alg"]}, claims, provider.key)
    panel = visitor()
    assert sign_on(panel).headers["location"] == "/admin"
    old = provider.key
    provider.rotate()
    provider.published.remove(old)
    assert "its signature is wrong" in page_text(sign_on(panel))  # they were asked for less than a minute ago
    monkeypatch.setattr(openid_client, "_AFTER_UNKNOWN_KEY", 0.0)
    assert sign_on(panel).headers["location"] == "/admin"
    asked = provider.asked["/realm/jwks"]
    provider.claims = {"aud": "somebody else"}
    assert sign_on(panel).status_code == 403  # well signed: other keys would not help
    assert provider.asked["/realm/jwks"] == asked
    monkeypatch.undo()
    provider.key = old
    for _ in range(5):
        assert "its signature is wrong" in page_text(sign_on(panel))
    assert provider.asked["/realm/jwks"] == asked


@on_sqlite
def test_failures_are_told_and_make_their_address_wait(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, gate: Gate, clock: Clock
) -> None:
    known = visitor()
    sign_on(known)
    known.client.cookies.delete("trellis_session")
    provider.answers = {"/token": (500, {})}
    thief = visitor()
    for _ in range(12):  # nobody's failure
        assert sign_on(thief).status_code == 503
    provider.answers = {}
    for _ in range(10):
        assert sign_on(thief, code="made up").status_code == 403
    waits = sign_on(thief, code="made up")
    assert (waits.status_code, waits.headers["retry-after"]) == (429, "3")
    assert "Wait" in page_text(waits)
    asked = provider.asked["/realm/token"]
    assert sign_on(visitor(address="192.0.2.8")).status_code == 303  # somebody elsewhere
    assert sign_on(known).status_code == 303  # and whoever has signed in before, from the same address
    assert provider.asked["/realm/token"] == asked + 2
    known.client.cookies.delete("trellis_session")
    token = known.client.cookies["trellis_browser"]
    failed = 10
    for failed in range(11, 21):  # what somebody adds to the cookie of a known browser makes it no other one
        known.client.cookies.set("trellis_browser", f"{token}.made-up-{failed}", domain="panel.example", path="/admin")
        assert sign_on(known, code="made up").status_code == 403
    assert sign_on(known, code="made up").status_code == 429
    clock.move(minutes=1)
    (call,) = find_failed_sign_ins(gate)
    assert gate.run(call).value["attempts"] == failed


@on_sqlite
def test_a_provider_that_does_not_answer_holds_nobody_else_up(
    visitor: MakeVisitor, sign_on: SignOn, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    someone = visitor()
    address = provider.sign_in(someone.get("/sign-on").headers["location"])
    provider.slow = {"/realm/token"}
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(come_back(someone, address)))
    waiting.start()
    wait_until(lambda: provider.asked["/realm/token"])
    assert visitor().get("/sign-in").status_code == 200
    assert found == []
    provider.go_on.set()
    waiting.join()
    assert found[0].status_code == 303
    provider.go_on.clear()
    monkeypatch.setattr(transport, "SECONDS", 0.05)
    late = sign_on(someone)  # of the provider everything else is known by now
    provider.go_on.set()
    assert (late.status_code, "no complete answer within 0.05 seconds" in page_text(late)) == (503, True)
