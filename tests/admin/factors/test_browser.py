"""Passkeys in a real Chromium with a device of its own; an authenticator app without scripts; and what axe finds on these pages."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyotp
import pytest
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, expect

from tests.admin.conftest import LOGIN, PASSWORD
from tests.browser import LOOKS, faults, list_complaints, opened, sign_in
from tests.fixture_types import Events
from tests.held_port import held_port
from tests.service_process import Service
from trellis.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]

FACTORS = "/admin/account/second-factor"
_LINES = """(codes) => {
  const range = document.createRange();
  range.selectNodeContents(codes);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
}"""


@contextmanager
def _serve(settings: Settings, folder: Path, **changes: object) -> Iterator[tuple[Service, str]]:
    """Run a service under a public address: browsers make passkeys for localhost, and for no address in numbers."""
    with held_port() as port:
        address = f"http://localhost:{port}"
        with Service(replace(settings, public_url=address, **changes), folder, port) as running:  # type: ignore[arg-type]
            yield running, address


def _add_device(page: Page) -> tuple[CDPSession, str]:
    """Give a window a device that keeps passkeys, and whose owner always shows a finger."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("WebAuthn.enable")
    kinds = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options = {**kinds, "isUserVerified": True, "automaticPresenceSimulation": True}
    added = devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return devtools, str(added["authenticatorId"])


def _enter_password(page: Page) -> None:
    page.goto("/admin/sign-in")
    page.get_by_label("Login").fill(LOGIN)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def _sign_out(page: Page) -> None:
    page.get_by_role("button", name="Sign out").first.click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def _save_codes_on_a_phone(page: Page, passkey: str) -> None:
    page.set_viewport_size({"width": 320, "height": 900})
    codes = page.locator("#recovery-codes")
    expect(codes).to_have_text(re.compile(r"([a-z2-9]{4}-){5}[a-z2-9]{4}"))
    assert codes.evaluate(_LINES) == 10, "each in one line"
    page.get_by_role("link", name="I have saved them").click()
    expect(page.get_by_role("rowheader", name=passkey)).to_be_visible()
    assert page.get_by_role("table").evaluate("(table) => table.offsetWidth - table.parentElement.clientWidth") <= 0
    page.set_viewport_size({"width": 1280, "height": 900})


def _watch(context: BrowserContext) -> tuple[Page, list[str]]:
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    return page, said


def test_a_passkey_signs_in_alone_stands_behind_the_password_and_confirms(
    chrome: Browser, settings: Settings, tmp_path: Path, mira: int, events: Events
) -> None:
    with _serve(settings, tmp_path) as (service, address):
        page, said = _watch(opened(chrome, address))
        devtools, device = _add_device(page)
        sign_in(page, LOGIN, PASSWORD)
        page.goto(f"{FACTORS}/passkeys/new")
        page.get_by_label("Name").fill("Blue key")
        page.get_by_role("button", name="Add passkey").click()
        expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
        assert faults(page) == {}
        _save_codes_on_a_phone(page, "Blue key")
        _sign_out(page)

        page.get_by_role("button", name="Sign in with a passkey").click()  # alone
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        assert events()[-1]["after"]["secondFactor"] == "passkey"
        _sign_out(page)

        _enter_password(page)
        expect(page.get_by_role("textbox", name="Code")).to_be_focused()
        assert faults(page) == {}
        page.get_by_role("button", name="Use a passkey").click()  # behind the password
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()

        page.goto("/admin/confirm-password?next=/admin/administrators/new")
        assert faults(page, LOOKS[1:]) == {}  # with little that is not on other pages
        page.get_by_role("button", name="Use a passkey instead").click()  # in place of password and code
        expect(page.get_by_role("heading", name="Invite an administrator")).to_be_visible()
        confirmed = events()[-1]
        assert (confirmed["operation"], confirmed["after"]["secondFactor"]) == ("admins.confirm_password", "passkey")

        devtools.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
        page.goto("/admin/confirm-password?next=/admin/administrators/new")
        page.get_by_role("button", name="Use a passkey instead").click()
        expect(page.locator("[data-message]")).to_contain_text("The browser returned no passkey")
        devtools.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": True})

        page.goto(FACTORS)
        assert faults(page, LOOKS[:1]) == {}  # the same
        page.get_by_role("link", name="Blue key").click()
        assert faults(page) == {}
        page.get_by_label("Name").fill("Old key")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("link", name="Old key").click()
        page.on("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Remove").click()
        expect(page.get_by_role("status").first).to_contain_text("The passkey Old key was removed")
        assert [event["type"] for event in events()[-2:]] == ["admin.renamed_passkey", "admin.removed_passkey"]
        _sign_out(page)
        page.get_by_role("button", name="Sign in with a passkey").click()
        expect(page.get_by_role("alert")).to_contain_text("This passkey is not known here")
        page.context.close()
        assert list_complaints(said) == []
        assert PASSWORD not in service.output


def test_without_scripts_an_app_and_recovery_codes_do_and_one_that_is_required_comes_first(
    chrome: Browser, settings: Settings, tmp_path: Path, mira: int
) -> None:
    with _serve(settings, tmp_path, require_second_factor=True) as (service, address):
        with opened(chrome, address) as context:  # axe is a script
            page = context.new_page()
            _enter_password(page)
            expect(page.get_by_role("heading", name="Second factor")).to_be_visible()
            assert faults(page) == {}
        context = opened(chrome, address, scripts=False)
        page = context.new_page()

        def enter(code: str) -> None:
            _enter_password(page)
            page.get_by_role("textbox", name="Code").fill(code)
            page.get_by_role("button", name="Sign in").click()

        page.goto("/admin/sign-in")
        expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
        _enter_password(page)
        expect(page.get_by_role("heading", name="Second factor")).to_be_visible()
        page.get_by_role("link", name="Set up an authenticator app").click()
        secret = (page.locator("#app-secret").text_content() or "").replace(" ", "")
        secret = re.sub(r"[^A-Z2-7]", "", secret)
        first = pyotp.TOTP(secret).now()
        page.get_by_role("textbox", name="Code").fill(first)
        page.get_by_role("button", name="Set up the app").click()
        codes = re.findall(r"(?:[a-z2-9]{4}-){5}[a-z2-9]{4}", page.locator("#recovery-codes").text_content() or "")
        page.get_by_role("link", name="I have saved them").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        _sign_out(page)
        enter(first)  # which set the app up
        expect(page.get_by_role("alert")).to_contain_text("is incorrect, or the code was already used")
        page.get_by_role("textbox", name="Code").fill(codes[0])
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        page.goto("/admin/confirm-password?next=/admin/administrators/new")
        page.get_by_label("Password of").fill(PASSWORD)
        page.get_by_role("textbox", name="Code").fill(codes[1])
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("heading", name="Invite an administrator")).to_be_visible()
        context.close()
        output = service.output
        assert not any(text in output for text in (secret, *codes, first))
