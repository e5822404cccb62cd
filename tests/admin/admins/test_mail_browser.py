"""The mail of one's own account in a real Chromium: an address, the alarms that go there, another address, and none."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from tests.browser import faults
from tests.conftest import NewSettings
from tests.fixture_types import Run
from tests.mail_receiver import MailReceiver
from tests.wait import wait_until
from trellis.settings import Settings

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]

OLD, NEW = "mira@lantern.example", "mira@holm.example"


@pytest.fixture
def mailbox() -> Iterator[MailReceiver]:
    """A mail server on this machine."""
    with MailReceiver() as receiver:
        yield receiver


@pytest.fixture
def settings(new_settings: NewSettings, mailbox: MailReceiver) -> Settings:
    """Settings with that mail server."""
    return replace(
        new_settings(),
        public_url="http://panel.example",
        smtp_host="127.0.0.1",
        smtp_port=mailbox.port,
        smtp_tls="off",
        smtp_from="trellis@lantern.example",
    )


@pytest.mark.slow
def test_an_address_is_given_changed_and_taken_away_and_alarms_are_chosen(
    page: Page, mailbox: MailReceiver, run: Run, mira: int
) -> None:
    page.goto("/admin/account")
    card = page.locator("section.card", has=page.get_by_role("heading", name="Mail", exact=True))
    address, save = card.get_by_label("E-mail address"), card.get_by_role("button", name="Save")
    ticks = card.get_by_role("checkbox")

    address.fill("mira")  # the service says what is wrong, and keeps what was typed and ticked
    ticks.first.uncheck()
    page.evaluate("document.querySelector('#mail').noValidate = true")
    save.click()
    expect(card.get_by_role("alert")).to_contain_text("must be one address")
    expect(address).to_have_value("mira")
    expect(ticks.first).not_to_be_checked()
    assert run("admins.get", mira)["email"] is None

    address.fill(OLD)
    for number in range(ticks.count()):
        ticks.nth(number).set_checked(False)
    card.get_by_label("A key is created").check()
    save.click()
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    expect(address).to_have_value(OLD)
    expect(card.get_by_label("A key is created")).to_be_checked()
    expect(card.locator("input:checked")).to_have_count(1)
    found = run("admins.get", mira)
    assert (found["email"], found["mailedAlarms"]) == (OLD, ["new-key"])
    assert faults(page) == {}

    run("webhooks.create", url="https://hooks.example/trellis", events=["*"])  # which was not chosen
    run("keys.create", name="Importer", grants=["forums.list"])
    wait_until(lambda: len(mailbox.received) == 1)
    assert mailbox.recipients == [OLD]
    body = mailbox.received[0].get_content()
    assert "Importer" in body
    assert "hooks.example" not in body

    address.fill(NEW)
    save.click()
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    wait_until(lambda: len(mailbox.received) == 2)
    assert mailbox.recipients == [OLD, OLD]  # whoever reads the old one learns of it
    expect(address).to_have_value(NEW)

    address.fill("")
    save.click()
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    expect(address).to_have_value("")
    assert run("admins.get", mira)["email"] is None
    page.reload()
    expect(address).to_have_value("")
