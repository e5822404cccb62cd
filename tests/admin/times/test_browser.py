"""Time zone, theme and saved filters in a real Chromium: what the browser tells, what axe finds, right to left."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import LOGIN, PASSWORD
from tests.browser import faults, sign_in
from tests.fixture_types import Run
from tests.service_process import Service

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]


def test_the_browsers_zone_holds_until_another_is_chosen(chrome: Browser, service: Service, mira: int) -> None:
    window = chrome.new_context(base_url=service.address, timezone_id="Australia/Adelaide", color_scheme="light")
    page = window.new_page()
    sign_in(page, LOGIN, PASSWORD)
    expect(page.get_by_text("Times in Australia/Adelaide")).to_be_visible()
    page.goto("/admin/events")
    at = page.locator("main time").first
    expect(at).to_have_text(re.compile(r" UTC\+(9|10):30$"))
    page.goto("/admin/account")
    page.get_by_label("Time zone").select_option("Europe/Berlin")
    page.get_by_label("Theme").select_option("dark")
    page.locator("#view").get_by_role("button", name="Save").click()
    expect(page.get_by_text("Times in Europe/Berlin")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 19)"  # in a light system
    page.get_by_role("button", name="Show UTC").click()
    expect(page.get_by_role("button", name="Show Europe/Berlin")).to_be_visible()
    expect(page).to_have_url(f"{service.address}/admin/account")
    window.close()


def test_lists_with_saved_filters_hold_in_every_look(page: Page, run: Run) -> None:
    run("keys.create", name="Calendar sync")
    run("filters.create", name="مرشّح", list="events", query="type=key.created", shared=True)
    run("filters.create", name="Refused writes", list="requests", query="status=4xx&from=2026-10-25T01:30:00.000Z", shared=True)
    found = {}
    for path in ("/filters", "/filters/1", "/filters/2"):
        page.goto(f"/admin{path}")
        if wrong := faults(page):
            found[path] = wrong
    assert found == {}
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/admin/filters/1")
    page.evaluate("document.documentElement.dir = 'rtl'")
    menu, main = page.locator(".side").bounding_box(), page.locator("main").bounding_box()
    assert menu is not None
    assert main is not None
    assert menu["x"] > main["x"]  # the menu is where reading begins
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
