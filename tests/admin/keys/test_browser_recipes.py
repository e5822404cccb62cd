"""The key journey with few key presses, and the sentence that follows the ticks, in a real Chromium."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import violations, wait_until_drawn
from tests.fixture_types import MakeKey, Run

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]


def test_a_key_takes_few_key_presses_from_the_menu(page: Page, run: Run) -> None:
    pressed = 0

    def press(*keys: str) -> None:
        nonlocal pressed
        for one in keys:
            page.keyboard.press(one)
            pressed += 1

    def skip_to_the_content() -> None:
        wait_until_drawn(page)
        press("Tab", "Enter")
        expect(page.locator("main")).to_be_focused()
        wait_until_drawn(page)

    page.goto("/admin")
    page.get_by_role("link", name="API keys").focus()
    press("Enter")
    page.get_by_role("heading", name="API keys").wait_for()
    skip_to_the_content()
    press("Tab")
    expect(
        page.get_by_role("link", name="Create the first key").or_(page.get_by_role("link", name="Create a key")).first
    ).to_be_focused()
    press("Enter")
    page.get_by_role("heading", name="Create an API key").wait_for()
    skip_to_the_content()
    press("Tab", "Tab", "Tab")
    expect(page.get_by_role("link", name="Calendar sync")).to_be_focused()
    press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    press(*"Shop", "Enter")
    expect(page.locator("#new-key")).to_contain_text("trl_")
    assert pressed <= 25
    made = run("keys.get", 1)
    assert (made["name"], "calendars.update" in made["grants"]) == ("Shop", True)

    page.goto("/admin")
    page.locator("main").focus()
    pressed = 0
    press("Control+k")
    expect(page.get_by_role("combobox", name="Search")).to_be_focused()
    press(*"new key mir")
    expect(page.locator("[role=option][aria-selected=true]")).to_contain_text("New key mirror")
    press("Enter")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    press("Enter")
    expect(page.locator("#new-key")).to_contain_text("trl_")
    assert pressed <= 25


def test_the_sentence_follows_the_ticks(page: Page, key: MakeKey) -> None:
    key("forums.list", name="Reader")
    page.goto("/admin/keys/new?recipe=read-only")
    said = page.locator("[data-abilities]")
    expect(said).to_contain_text("It may read groups, forums, blogs, calendars and download categories.")
    page.get_by_role("checkbox", name="Delete a forum").check()
    expect(said).to_contain_text("delete forums")
    page.get_by_role("button", name="Nothing").click()
    expect(said).to_contain_text("The key may not do anything yet.")
    page.get_by_role("button", name="Calendars (tick or clear the row)").click()
    expect(said).to_contain_text("calendars")
    page.get_by_label("Expires").select_option("never")
    expect(said).to_contain_text("until somebody revokes it")
    assert violations(page) == []
    page.get_by_label("Name", exact=True).fill("Other")
    page.on("dialog", lambda dialog: dialog.accept())  # what was ticked is lost
    page.get_by_label("A copy of").select_option("1")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Reader (copy)")
    expect(said).to_contain_text("It may read forums.")
    page.goto("/admin/keys/new")
    page.context.clear_cookies()  # as after the session has ended: the old sentence must not be taken for the new one
    page.get_by_role("checkbox", name="Delete a forum").check()
    expect(page.locator("[data-message]")).to_contain_text("out of date. You are signed out.")
