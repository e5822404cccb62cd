"""Agents in a real Chromium: a key made with the preset, what it did, taken back, and all of them paused; and axe on each page."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import PASSWORD, LetIn
from tests.browser import LOOKS, confirm, faults, opened
from tests.fixture_types import Run
from tests.service_process import Service
from tests.wait import wait_until
from trellis.core.keys import PRESETS

pytestmark = pytest.mark.browser
ACTIVITY = "/admin/keys/1/activity"


def _make_agent(page: Page) -> str:
    page.goto("/admin/keys")
    page.get_by_role("link", name="Create the first key").click()
    confirm(page, PASSWORD)
    page.get_by_role("link", name="An agent").click()
    expect(page.get_by_text(PRESETS["agent"].summary)).to_be_visible()
    expect(page.get_by_role("checkbox", name="Create a forum")).to_be_checked()
    page.get_by_label("Name").fill("Gardener")
    page.get_by_role("button", name="Create the key").last.click()
    return page.locator("#new-key").inner_text()


def _see_refusal(page: Page, run: Run) -> None:
    """Open what the key did when a refusal is in the log: it is written a second after it was answered."""
    wait_until(lambda: any(request["operation"] == "blogs.delete" for request in run("requests.list", key=1)["results"]))
    page.goto(ACTIVITY)
    expect(page.get_by_text("blogs.delete").first).to_be_visible()


def test_an_agent_from_its_making_to_the_switch(chrome: Browser, let_in: LetIn, service: Service, run: Run) -> None:
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    text = _make_agent(page)
    run("keys.update", 1, bound={"forums.create": None})
    for name in ("Olds", "x" * 200):
        assert service.call("POST", "/forums/forums", text, json={"name": name}).status_code == 201
    assert service.call("DELETE", "/blog/blogs/999", text).status_code == 404
    _see_refusal(page, run)
    expect(page.locator(".acts li", has_text="Gardener created forum Olds")).to_be_visible()
    assert faults(page, LOOKS[1:]) == {}  # as what follows: with little that is not on other pages
    page.get_by_role("link", name="Undo the last hour").click()
    page.get_by_role("button", name="Undo 2 events").click()
    expect(page.get_by_text("2 events were undone.")).to_be_visible()
    assert run("forums.list", name="Olds")["totalResults"] == 0
    page.goto("/admin/keys")
    page.get_by_role("link", name="Pause all agents").click()
    page.get_by_label("Why").fill("Too much at once")
    assert faults(page, LOOKS[:1]) == {}
    page.get_by_role("button", name="Pause this key").click()
    expect(page.get_by_text("1 key is paused. Its requests are refused from now on.")).to_be_visible()
    assert service.call("GET", "/forums/forums", text).status_code == 401
    page.goto("/admin/keys/1")
    assert faults(page, LOOKS[1:]) == {}
    page.get_by_role("link", name="Resume").click()
    page.get_by_role("button", name="Resume the key").click()
    expect(page.get_by_text("The key may be used again.")).to_be_visible()
    assert service.call("GET", "/forums/forums", text).status_code == 200
    context.close()
