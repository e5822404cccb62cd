"""What has the focus is in view: in the menu of a low window, and above what is at its foot: buttons of a form, and messages."""

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.community import Community

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]

# In the next frame: whether the middle of what has the focus is in the window, and what lies over it.
_SEEN: Final = """async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const focused = document.activeElement, box = focused.getBoundingClientRect();
  const top = document.elementFromPoint(box.left + box.width / 2, box.top + Math.min(box.height / 2, 20));
  const isItself = top && (focused.contains(top) || top.contains(focused) || top.closest("label")?.control === focused);
  return isItself ? "" : `${focused.name || focused.textContent.trim()} under ${top?.className ?? "the edge of the window"}`;
}"""


def test_the_foot_of_the_menu_is_in_reach_in_a_low_window(page: Page, community: Community) -> None:
    page.set_viewport_size({"width": 1366, "height": 620})
    page.goto(f"/admin/forums/{community.help}")
    out = page.get_by_role("button", name="Sign out")
    out.focus()
    expect(out).to_be_in_viewport(ratio=0.95)
    page.evaluate("scrollTo(0, 400)")
    page.get_by_role("link", name="Change the time zone").focus()
    expect(page.get_by_role("link", name="Change the time zone")).to_be_in_viewport(ratio=0.95)


def test_nothing_that_has_the_focus_is_below_the_buttons_at_the_foot(page: Page, community: Community) -> None:
    page.goto(f"/admin/forums/{community.help}")
    for width, height in ((1280, 700), (320, 640)):
        page.set_viewport_size({"width": width, "height": height})
        page.get_by_label("Name", exact=True).focus()
        assert _walk(page, "Tab") == []


def test_nothing_that_has_the_focus_is_below_what_is_said_or_the_head_of_the_grid(page: Page, community: Community) -> None:
    page.set_viewport_size({"width": 320, "height": 256})  # what a window of 1280 by 1024 has at a zoom of 400 %
    page.goto(f"/admin/forums/{community.staff}")
    page.get_by_label("Name", exact=True).fill("Team")
    page.context.set_offline(True)
    page.get_by_label("Name", exact=True).press("Enter")
    expect(page.locator("[data-message]")).to_contain_text("There is no network connection.")
    assert page.evaluate(_SEEN) == ""
    page.locator(".bar").get_by_role("link", name="Cancel").focus()
    assert _walk(page, "Shift+Tab") == []


def _walk(page: Page, key: str) -> list[str]:
    """Go through the form by a key, and return what has the focus out of sight."""
    hidden, seen = [], 0
    while page.evaluate("document.activeElement.form?.id === 'node-form' || document.activeElement.closest('#node-form') !== null"):
        hidden.append(page.evaluate(_SEEN))
        seen += 1
        page.keyboard.press(key)
    assert seen > 20
    return [one for one in hidden if one]
