"""Single sign-on in Chromium, at a real provider on another site than the panel: 127.0.0.1 is none of localhost's."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import LOGIN, PASSWORD
from tests.browser import LOOKS, faults, opened, sign_in
from tests.fixture_types import Run
from tests.held_port import held_port
from tests.identity_provider import CLIENT, SECRET, IdentityProvider, sign_in_there
from tests.service_process import Service
from trellis.core.admins.tokens import hash_token
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.settings import Settings
from trellis.store.admins import invitations
from trellis.store.tables import sessions

pytestmark = pytest.mark.browser
OWNERS = {"groups": ["trellis-owners"]}


@pytest.fixture
def panel(settings: Settings, tmp_path: Path) -> Iterator[tuple[str, IdentityProvider]]:
    """The address of a panel with single sign-on, and its provider."""
    with held_port() as port:
        address = f"http://localhost:{port}"
        with IdentityProvider(address, tmp_path) as provider:
            told = replace(
                settings,
                public_url=address,
                sso_issuer=provider.issuer,
                sso_client_id=CLIENT,
                sso_client_secret=SECRET,
                sso_scopes="openid profile email groups",
                sso_name="Lantern ID",
                sso_roles="trellis-owners=owner; all-staff=auditor",
                sso_new_administrators=True,
            )
            with Service(told, tmp_path, port):
                yield address, provider


def _sign_on(page: Page, name: str) -> None:
    page.get_by_role("link", name="Sign in with Lantern ID").click()
    sign_in_there(page, name)


def _forget_confirmations(gate: Gate) -> None:
    """Have the quarter of an hour be over for which a password counts as recent."""
    gate.store.write(lambda tx: tx.connection.execute(sa.update(sessions).values(confirmed_until=None)), quiet=True).result()


@pytest.mark.slow
def test_somebody_signs_in_confirms_and_signs_out_and_another_links_without_scripts_at_a_real_provider(
    chrome: Browser, panel: tuple[str, IdentityProvider], run: Run, gate: Gate
) -> None:
    address, provider = panel
    run("admins.create", name="Mira Holm", login=LOGIN, password=PASSWORD, mustChangePassword=False)
    provider.tell({"ada": {"name": "Ada Quist", **OWNERS}, "mira": OWNERS})
    window = opened(chrome, address)
    page = window.new_page()
    page.goto("/admin/keys")
    assert faults(page) == {}
    _sign_on(page, "ada")
    expect(page).to_have_url(f"{address}/admin/keys")  # where she was going
    page.goto("/admin/account")
    expect(page.get_by_text("Ada Quist, signed in as ada@example.com")).to_be_visible()
    assert faults(page, LOOKS[:1]) == {}

    _forget_confirmations(gate)
    page.goto("/admin/administrators/new")
    expect(page.get_by_role("heading", name="Confirm that it is you")).to_be_visible()
    assert faults(page, LOOKS[:1]) == {}
    page.get_by_role("link", name="Sign in with Lantern ID again").click()
    sign_in_there(page, "ada", consents=False)  # although she is signed in there
    expect(page).to_have_url(f"{address}/admin/administrators/new")
    expect(page.get_by_role("heading", name="Invite an administrator")).to_be_visible()

    provider.tell({"ada": {"name": "Ada Quist", "groups": ["all-staff"]}, "mira": OWNERS})
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign out there too").click()
    page.get_by_role("button", name="Yes, sign me out").click()
    expect(page).to_have_url(f"{address}/admin/sign-in")
    _sign_on(page, "ada")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert [one["role"] for one in run("admins.list")["results"]] == ["owner", "auditor"]
    page.goto("/admin/administrators/new")
    expect(page.get_by_text("Your role may not do this")).to_be_visible()
    window.close()

    window = opened(chrome, address, scripts=False)
    page = window.new_page()
    sign_in(page, LOGIN, PASSWORD)
    page.goto("/admin/account")
    page.get_by_role("button", name="Link your account at Lantern ID").click()
    sign_in_there(page, "mira")
    expect(page.get_by_text("You can now sign in with your account mira@example.com at Lantern ID.")).to_be_visible()
    page.get_by_role("button", name="Sign out").first.click()
    expect(page).to_have_url(f"{address}/admin/sign-in")
    page.get_by_role("link", name="Sign in with Lantern ID").click()  # she is signed in there, and asked for nothing
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.goto("/admin/account")
    expect(page.get_by_text(f"Mira Holm, signed in as {LOGIN}")).to_be_visible()
    window.close()


def test_what_was_typed_before_a_session_ended_is_sent_after_signing_in_in_another_tab(
    chrome: Browser, panel: tuple[str, IdentityProvider], gate: Gate
) -> None:
    address, provider = panel
    provider.tell({"ada": OWNERS})
    window = opened(chrome, address)
    page = window.new_page()
    for _ in range(2):  # the first time she becomes an administrator, and what visitors are known by changes
        window.clear_cookies()
        page.goto("/admin/sign-in")
        _sign_on(page, "ada")
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.goto("/admin/forums/new")
    page.get_by_label("Name", exact=True).fill("Harbour watch")
    gate.store.write(lambda tx: tx.connection.execute(sa.delete(sessions)), quiet=True).result()
    page.get_by_role("button", name="Create the forum").last.click()
    with window.expect_page() as opening:
        page.get_by_role("link", name="Sign in with Lantern ID in a new tab").click()
    expect(opening.value.get_by_text("Close this tab and continue in the one that you came from.")).to_be_visible()
    page.get_by_role("button", name="Continue after signing in").click()
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_role("link", name="Harbour watch").first).to_be_visible()
    window.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_somebody_takes_an_invitation_with_their_account_at_a_real_provider(
    chrome: Browser, panel: tuple[str, IdentityProvider], run: Run, gate: Gate
) -> None:
    address, provider = panel
    invited = run("admins.invite", name="Ada Berg", login="ada", role="auditor")
    digest = hash_token(invited["link"])
    ends = format_timestamp(datetime.now(UTC) + timedelta(days=1))  # by the clock of the service
    gate.store.write(lambda tx: invitations.put(tx, invited["id"], digest, ends)).result()
    provider.tell({"ada": {"name": "Ada Quist", **OWNERS}})
    window = opened(chrome, address)
    page = window.new_page()
    page.goto(f"/admin/invitation/{invited['link']}")
    assert faults(page, LOOKS[:1]) == {}
    page.get_by_role("button", name="Sign in with Lantern ID").click()
    sign_in_there(page, "ada")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    found = run("admins.get", invited["id"])
    assert (found["name"], found["role"], found["hasPassword"], len(found["identities"])) == ("Ada Berg", "owner", False, 1)
    page.goto(f"/admin/invitation/{invited['link']}")
    expect(page.get_by_role("heading", name="This invitation cannot be used")).to_be_visible()
    window.close()
