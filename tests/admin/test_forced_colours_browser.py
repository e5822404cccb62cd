"""The panel in a contrast theme, where the system decides on the colours: what is chosen looks different from the rest."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import wait_until_drawn

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]


@pytest.mark.usefixtures("community")
def test_the_menu_shows_which_page_is_open_and_the_search_which_result_enter_opens(page: Page) -> None:
    page.emulate_media(forced_colors="active")
    page.goto("/admin/forums")
    menu = page.locator(".side")
    expect(menu.get_by_role("link", name="Forums")).to_have_css("outline-style", "solid")
    expect(menu.get_by_role("link", name="Groups")).to_have_css("outline-style", "none")
    wait_until_drawn(page)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search or type").fill("move")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_have_text("3 results")  # now no answer can replace the options any more
    second = dialog.get_by_role("option").nth(1)
    expect(second).to_have_attribute("aria-selected", "false")
    before = second.screenshot()
    page.keyboard.press("ArrowDown")
    expect(second).to_have_attribute("aria-selected", "true")
    assert second.screenshot() != before
