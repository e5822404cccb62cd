"""An invitation that is taken with the account at the provider, in place of a password."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.admin.authenticator_app import add_app
from tests.admin.conftest import MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form, read_forms
from tests.conftest import NewSettings
from tests.fixture_types import Clock, Events, Run
from tests.openid_provider import CLIENT, SECRET, OpenIdProvider
from trellis.core.gate import Gate
from trellis.core.operation import GroupRole
from trellis.settings import Settings

PUBLIC = "http://panel.example"


@pytest.fixture
def provider(clock: Clock) -> Iterator[OpenIdProvider]:
    with OpenIdProvider(lambda: clock().timestamp()) as running:
        running.userinfo = {"name": "Ada Quist", "email": "ada@quist.example", "groups": ["all-staff"]}
        yield running


@pytest.fixture
def settings(new_settings: NewSettings, provider: OpenIdProvider) -> Settings:
    return replace(
        new_settings(),
        public_url=PUBLIC,
        sso_issuer=provider.issuer,
        sso_client_id=CLIENT,
        sso_client_secret=SECRET,
        sso_name="Lantern ID",
    )


@pytest.fixture
def path(run: Run) -> str:
    """The path of Ada Berg's invitation."""
    return f"/invitation/{run('admins.invite', name='Ada Berg', login='ada', role='auditor')['link']}"


def leave(somebody: Visitor, path: str) -> str:
    """Choose single sign-on on the page of an invitation; give the address at the provider."""
    left = somebody.post(f"{path}/sign-on", find_form(somebody.get(path), "/sign-on").filled())
    assert left.status_code == 200, page_text(left)
    return str(left.text.split('<a class="button primary" href="')[1].split('"')[0].replace("&amp;", "&"))


def come_back(somebody: Visitor, address: str) -> Any:
    """Follow the address with which the provider sends somebody back."""
    return somebody.get(address.removeprefix(f"{PUBLIC}/admin"))


def test_the_account_at_the_provider_takes_the_place_of_a_password(
    visitor: MakeVisitor, provider: OpenIdProvider, run: Run, events: Events, path: str
) -> None:
    ada = visitor()
    assert "you sign in with your account at Lantern ID" in page_text(ada.get(path))
    address = leave(ada, path)
    assert path.rpartition("/")[2] not in address  # nobody else learns the secret
    brought = provider.sign_in(address)
    accepted = come_back(ada, brought)
    assert accepted.headers["location"] == "/admin/sign-on"
    sent = ada.get("/sign-on")
    assert come_back(ada, provider.sign_in(sent.headers["location"])).headers["location"] == "/admin"
    assert "Ada Berg" in page_text(ada.get("/account"))
    admin = run("admins.get", 1)
    assert (admin["name"], admin["role"], admin["hasPassword"], admin["invitedUntil"]) == ("Ada Berg", "auditor", False, None)
    assert [event["operation"] for event in events()[-3:]] == ["admins.invite", "admins.accept_by_sign_on", "admins.sign_on"]
    told = page_text(ada.get(f"/events/{events()[-2]['seq']}"))
    assert "Ada Berg accepted an invitation and linked an account at the provider" in told

    assert visitor().get(path).status_code == 404  # it was used once
    assert come_back(ada, brought).headers["location"] == "/admin/account"
    assert "You came back too late" in page_text(ada.get("/account"))
    assert len(run("admins.get", admin["id"])["identities"]) == 1
    assert path.rpartition("/")[2] not in str(events())


def test_only_the_browser_that_opened_the_link_can_take_it_and_only_as_long_as_it_holds(
    visitor: MakeVisitor, provider: OpenIdProvider, run: Run, path: str
) -> None:
    ada, thief = visitor(), visitor()
    thief.get("/sign-in")
    brought = provider.sign_in(leave(ada, path))
    assert come_back(thief, brought).status_code == 403
    run("admins.withdraw_invitation", 1)
    late = come_back(ada, brought)
    assert (late.status_code, run("admins.get", 1)["identities"]) == (403, [])
    assert thief.post(f"{path}/sign-on").status_code == 404
    link = run("admins.renew_invitation", 1)["link"]
    somebody = visitor()
    somebody.get(f"/invitation/{link}")
    assert somebody.post(f"/invitation/{link}/sign-on", csrf="0" * 64).status_code == 409
    assert run("admins.get", 1)["identities"] == []


def test_an_account_that_signs_somebody_else_in_is_refused_and_the_link_holds_on(
    visitor: MakeVisitor, provider: OpenIdProvider, run: Run, path: str
) -> None:
    come_back(ada := visitor(), provider.sign_in(leave(ada, path)))
    other = f"/invitation/{run('admins.invite', name='Eve Moor', login='eve', role='auditor')['link']}"
    eve = visitor()
    refused = come_back(eve, provider.sign_in(leave(eve, other)))
    assert (refused.status_code, "is linked to another administrator" in page_text(refused)) == (403, True)
    assert eve.get(other).status_code == 200
    assert run("admins.get", 2)["identities"] == []


@pytest.mark.parametrize("groups", [[], ["all-staff"]])
def test_groups_count_at_once(
    visitor: MakeVisitor, provider: OpenIdProvider, gate: Gate, run: Run, path: str, groups: list[str]
) -> None:
    policy = replace(gate.environment.sign_on, roles=(GroupRole("all-staff", "approver"),))
    object.__setattr__(gate.environment, "sign_on", policy)
    provider.userinfo["groups"] = groups
    ada = visitor()
    taken = come_back(ada, provider.sign_in(leave(ada, path)))
    if not groups:
        assert "None of your groups at Lantern ID has a role here" in page_text(taken)
        assert ada.get(path).status_code == 200
        return
    come_back(ada, provider.sign_in(ada.get("/sign-on").headers["location"]))
    assert run("admins.get", 1)["role"] == "approver"


def test_where_passwords_are_for_owners_nobody_else_is_asked_for_one(
    visitor: MakeVisitor, provider: OpenIdProvider, gate: Gate, run: Run, path: str
) -> None:
    object.__setattr__(gate.environment, "sign_on", replace(gate.environment.sign_on, owners_only=True))
    ada = visitor()
    assert 'type="password"' not in ada.get(path).text
    come_back(ada, provider.sign_in(leave(ada, path)))
    assert len(run("admins.get", 1)["identities"]) == 1
    owner = run("admins.invite", name="Eve Moor", login="eve", role="owner")["link"]
    assert 'type="password"' in visitor().get(f"/invitation/{owner}").text


def test_a_password_that_its_owner_could_not_sign_in_with_is_refused_and_the_link_holds_on(
    visitor: MakeVisitor, provider: OpenIdProvider, gate: Gate, run: Run, path: str
) -> None:
    run("admins.set_role", 1, role="owner")
    ada = visitor()
    form = find_form(ada.get(path), "").filled(password="seven lanterns over a harbour")
    object.__setattr__(gate.environment, "sign_on", replace(gate.environment.sign_on, owners_only=True))
    run("admins.create", name="Mira Holm", login="mira", password="correct horse battery")
    run("admins.set_role", 1, role="auditor")  # while the page was open
    refused = ada.post(path, form)
    assert refused.status_code == 409
    assert "Sign in with Lantern ID: only owners can use a password." in page_text(refused)
    come_back(ada, provider.sign_in(leave(ada, path)))
    come_back(ada, provider.sign_in(ada.get("/sign-on").headers["location"]))
    assert "Ada Berg" in page_text(ada.get("/account"))


def test_whoever_is_invited_anew_and_has_a_second_factor_signs_in_with_both(
    visitor: MakeVisitor, provider: OpenIdProvider, gate: Gate, run: Run, clock: Clock, path: str
) -> None:
    come_back(ada := visitor(), provider.sign_in(leave(ada, path)))
    app = add_app(run, gate, 1, "ada")
    run("admins.unlink_identity", 1)
    again = f"/invitation/{run('admins.renew_invitation', 1)['link']}"
    clock.move(minutes=1)
    chosen = {"password": "seven lanterns over a harbour"}
    accepted = ada.post(again, find_form(ada.get(again), "").filled(**chosen))
    assert (accepted.status_code, "Your password is set" in page_text(accepted)) == (200, True)
    asked = ada.post("/sign-in", find_form(accepted, "/sign-in").filled(login="ada", **chosen))
    signed_in = ada.post("/sign-in/code", find_form(asked, "/sign-in/code").filled(code=app.at(clock.at)))
    assert signed_in.headers["location"] == "/admin"
    assert "Ada Berg" in page_text(ada.get("/account"))


def test_an_owner_is_asked_why_before_they_unlink_the_account_of_somebody_else(
    admin: Visitor, visitor: MakeVisitor, provider: OpenIdProvider, run: Run, events: Events
) -> None:
    invited = run("admins.invite", name="Ada Berg", login="ada", role="auditor")
    ada = visitor()
    come_back(ada, provider.sign_in(leave(ada, f"/invitation/{invited['link']}")))
    here = f"/administrators/{invited['id']}"
    assert f"{here}/unlink" in admin.get(here).text
    page = admin.get(f"{here}/unlink")
    assert "Ada Berg has no password here" in page_text(page)
    form = [*read_forms(page)][-1].filled(_reason="She has left")
    before = len(events())
    assert {admin.post(f"{here}/unlink", form).status_code for _ in range(2)} == {303}  # on a double click, too
    assert (len(events()), events()[-1]["reason"]) == (before + 1, "She has left")
    assert run("admins.get", invited["id"])["identities"] == []
    assert admin.get(f"{here}/unlink").headers["location"] == f"/admin{here}"
