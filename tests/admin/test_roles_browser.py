"""Each role in a real Chromium: its menu, a page of it, and what axe finds there."""

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.admin.conftest import PASSWORD, LetIn
from tests.browser import bring_axe, confirm, faults
from tests.fixture_types import Run

pytestmark = pytest.mark.browser

MENUS: Final = {  # of the roles that do not see all: what is in the menu beside Overview, what is not, and a page
    "key-manager": ("API keys", "Administrators", "/admin/forums/1"),
    "structure-editor": ("Forums", "API keys", "/admin/forums/1"),
    "approver": ("Proposals", "Webhooks", "/admin/keys/1"),
    "auditor": ("Administrators", "nothing", "/admin/administrators/1"),
}
# Where a role sees what is on none of the pages that tests/admin/test_every_page_browser.py opens.
_OTHERWISE: Final = {("key-manager", "/admin/forums/1"), ("structure-editor", "/admin"), ("auditor", "/admin/administrators/1")}


def test_each_role_sees_its_menu_and_pages_without_a_fault(page: Page, let_in: LetIn, run: Run) -> None:
    bring_axe(page)
    run("forums.create", name="News")
    run("keys.create", name="Plugin")
    for role, (shown, hidden, page_of_it) in MENUS.items():
        made = run("admins.create", name=role, login=role, password=PASSWORD, mustChangePassword=False, role=role)
        let_in(page, int(made["id"]))
        page.goto("/admin")
        menu = page.get_by_role("navigation", name="Panel")
        expect(menu.get_by_role("link", name=shown)).to_be_visible()
        expect(menu.get_by_role("link", name=hidden)).to_have_count(0)
        if (role, "/admin") in _OTHERWISE:
            assert faults(page) == {}, role
        page.goto(page_of_it)
        expect(page.get_by_role("heading", level=1)).not_to_have_text("Your role may not do this")
        if (role, page_of_it) in _OTHERWISE:
            assert faults(page) == {}, (role, page_of_it)


def test_kinds_are_asked_for_only_of_a_structure_editor(page: Page) -> None:
    page.goto("/admin/administrators/new")
    confirm(page, PASSWORD)
    kinds = page.get_by_role("group", name="For these kinds")
    expect(page.get_by_role("group", name="Role")).to_be_visible()
    expect(kinds).to_be_hidden()
    page.get_by_role("radio", name="Structure editor").check()
    expect(kinds).to_be_visible()
    owner = page.get_by_role("radio", name="Owner: Can do everything")
    expect(page.locator("label strong").first).to_have_text("Owner")
    owner.check()
    expect(kinds).to_be_hidden()
