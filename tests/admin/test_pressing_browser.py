"""A press of the mouse is a click in a real Chromium, whatever comes to the page before the button is released."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.community import Community
from tests.fixture_types import Run

pytestmark = pytest.mark.browser


def _press(page: Page, link: Locator) -> None:
    box = link.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()


def test_a_message_can_be_followed_while_it_is_read_out(page: Page, community: Community) -> None:
    page.clock.install()
    page.goto(f"/admin/forums/{community.wiki}/delete")
    page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
    page.get_by_role("button", name="Delete", exact=False).last.click()
    _press(page, page.locator(".flash").get_by_role("link", name="Undo…"))
    page.clock.run_for(10_000)
    page.mouse.up()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()


def test_a_button_that_copies_is_itself_again_when_it_was_pressed_twice(page: Page, community: Community) -> None:
    page.clock.install()
    page.goto(f"/admin/forums/{community.news}")
    page.clock.pause_at(datetime.now(UTC) + timedelta(hours=1))
    copies = page.locator("button[data-copy]").first
    title = copies.text_content()
    for _ in range(2):
        copies.click()
        expect(copies).to_have_text(re.compile("Copied|Selected"))
        page.clock.run_for(1000)
    page.clock.run_for(10_000)
    assert copies.text_content() == title


def test_rows_that_come_by_themselves_wait_for_the_mouse(page: Page, community: Community, run: Run) -> None:
    run("forums.update", community.wiki, name="Handbook")
    page.goto("/admin/events")
    expect(page.locator("main[data-live-by='stream']")).to_be_visible()
    first = page.locator("tbody [data-row]").first
    link = first.get_by_role("link", name="Undo event")
    leads_to = str(link.get_attribute("href"))
    _press(page, link)
    with page.expect_response(lambda response: "x-panel-background" in response.request.headers):
        run("forums.update", community.help, name="Questions")
    page.mouse.up()
    expect(page).to_have_url(re.compile(re.escape(leads_to) + "$"))
