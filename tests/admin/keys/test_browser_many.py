"""Many keys at once in a real Chromium: by mouse, Shift and keyboard; and axe on each page."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import LetIn
from tests.browser import LOOKS, faults, list_complaints, opened
from tests.fixture_types import Run
from tests.service_process import Service

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]


def _look(page: Page) -> None:
    assert faults(page) == {}


def test_keys_are_chosen_given_a_grant_and_revoked(chrome: Browser, let_in: LetIn, service: Service, run: Run) -> None:
    for name in ("Mirror", "Feed", "Finder", "Bridge"):  # the newest is the first
        run("keys.create", name=name, grants=["forums.list"])
    context = opened(chrome, service.address)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    let_in(page)
    page.goto("/admin/keys")
    bar = page.locator("[data-many]")
    expect(bar).to_be_hidden()
    page.get_by_role("checkbox", name="Choose Bridge").check()
    page.get_by_role("checkbox", name="Choose Feed").click(modifiers=["Shift"])
    expect(bar).to_contain_text("3 keys chosen")
    _look(page)
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    page.get_by_role("link", name="Finder", exact=True).focus()
    page.keyboard.press("x")
    expect(bar).to_contain_text("1 key chosen")
    page.keyboard.press("Shift+ArrowDown")
    expect(page.get_by_role("link", name="Feed", exact=True)).to_be_focused()
    expect(bar).to_contain_text("2 keys chosen")
    bar.get_by_role("button", name="Add or remove grants…").click()
    expect(page.get_by_role("heading", name="Add or remove grants of 2 keys")).to_be_visible()
    page.get_by_role("button", name="Forums (tick or clear the row)").click()
    page.get_by_role("button", name="Nothing").click()
    page.get_by_role("checkbox", name="Create a forum").check()
    page.get_by_role("button", name="Show what would change").last.click()
    expect(page.get_by_text("2 keys would change")).to_be_visible()
    assert faults(page, LOOKS[1:]) == {}  # the page of a new key has the grants in both looks
    page.get_by_role("button", name="Change the grants of 2 keys").click()
    expect(page.locator(".flash")).to_contain_text("The grants of 2 keys were changed.")
    assert run("keys.get", 3)["grants"] == ["forums.create", "forums.list"]
    page.get_by_role("link", name="Undo…").click()
    page.get_by_role("button", name="Undo 2 events").click()
    expect(page.locator(".flash")).to_contain_text("2 events were undone.")
    assert run("keys.get", 3)["grants"] == ["forums.list"]
    page.goto("/admin/keys")
    for name in ("Mirror", "Bridge"):
        page.get_by_role("checkbox", name=f"Choose {name}").check()
    bar.get_by_role("button", name="Revoke…").click()
    expect(page.get_by_text("2 keys would be revoked")).to_be_visible()
    _look(page)
    context.close()
    assert list_complaints(said) == []
