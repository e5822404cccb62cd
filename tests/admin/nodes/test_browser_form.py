"""A node's form in a real Chromium: what counts with the kind of forum, and the preview of HTML, also without scripts; and axe."""

import pytest
from playwright.sync_api import Browser, expect

from tests.admin.conftest import LetIn
from tests.browser import faults, list_complaints, opened
from tests.community import Community
from tests.service_process import Service

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]
HTML = '<p onclick="x()">Say <b>hello</b></p><script>alert(1)</script><a href="https://elsewhere.example/">Away</a>'


def test_the_form_shows_what_counts_and_what_html_becomes(
    chrome: Browser, let_in: LetIn, community: Community, service: Service
) -> None:
    said: list[str] = []
    first = opened(chrome, service.address)
    page = first.new_page()
    page.on("console", lambda message: said.append(message.text))
    let_in(page)
    for context in (first, opened(chrome, service.address, scripts=False, state=first.storage_state())):
        page = page if context is first else context.new_page()
        page.goto(f"/admin/forums/{community.help}")
        address, others = page.get_by_label("Address it leads to"), page.get_by_label("Members see each other's topics")
        expect(address).to_be_hidden()
        expect(others).to_be_visible()
        expect(page.get_by_label("Theme id")).to_be_hidden()
        page.get_by_label("Kind of forum").select_option("redirect")
        button = page.get_by_role("button", name="Show the fields of this kind")
        expect(button).to_be_visible(visible=context is not first)
        if context is not first:
            button.click()
        expect(address).to_be_visible()
        expect(others).to_be_hidden()
        page.get_by_label("Description").fill(HTML)
        page.get_by_role("button", name="Preview of Description").click()
        frame = page.frame_locator("iframe[title='Description as it would be saved']")
        expect(frame.get_by_text("Say hello")).to_be_visible()
        expect(frame.locator("script, [onclick]")).to_have_count(0)
        expect(address).to_be_visible()
        page.get_by_text("Advanced settings").click()
        expect(page.get_by_label("Theme id")).to_be_visible()
        if context is first:
            assert faults(page) == {}
    assert [text for text in list_complaints(said) if "postMessage" not in text] == []  # axe asks the frame
    for context in chrome.contexts:
        context.close()


def test_a_preview_that_there_is_none_of_says_why(chrome: Browser, let_in: LetIn, community: Community, service: Service) -> None:
    """As after the session has ended: the button must not do nothing."""
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    page.goto(f"/admin/forums/{community.help}")
    page.get_by_label("Description").fill(HTML)
    context.clear_cookies()
    page.get_by_role("button", name="Preview of Description").click()
    expect(page.locator("[data-message]")).to_contain_text("No preview available. You are signed out.")
    expect(page.get_by_label("Description")).to_have_value(HTML)
    context.close()
