"""Alarms in the panel: the list, the overview, the count beside the menu, and marking them as read."""

import re

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form
from tests.fixture_types import Run


def test_alarms_are_shown_until_they_are_marked_as_read(admin: Visitor, mira: int, run: Run) -> None:
    run("keys.create", name="Plugin", grants=["forums.list"])
    overview = page_text(admin.get(""))
    assert "Unread alarms Raised since you last marked alarms as read. New The terminal created the API key" in overview
    assert "Alarms 3 unread" in overview, "she, her browser and the key"
    page = admin.get("/alarms")
    assert "signed in from a new browser. testclient, 192.0.2.7" in page_text(page).replace("\u2068", "").replace("\u2069", "")
    until = find_form(page, "/admin/alarms/read")["until"]
    run("webhooks.create", url="https://hooks.example/in", events=["*"])
    assert admin.post("/alarms/read", {"until": until}).headers["location"] == "/admin/alarms"
    page = admin.get("/alarms")
    assert "Alarms 1 unread" in page_text(page), "what came meanwhile is not read"
    assert page_text(page).count("New ") == 1
    assert admin.post("/alarms/read", {"until": "9" * 400}).status_code == 303
    admin.post("/alarms/read", {"until": find_form(page, "/admin/alarms/read")["until"]})
    assert "unread" not in page_text(admin.get(""))
    assert "Unread alarms" not in page_text(admin.get(""))


def test_the_button_that_marks_them_as_read_is_kept_up_to_date_with_them(admin: Visitor, mira: int) -> None:
    """As alarms come they are shown, without a new page: those are marked then, too."""
    del mira
    button = re.search(
        r'<div class="part" data-part="mark"><form.*?name="until" value="(\d+)".*?</form></div>', admin.get("/alarms").text
    )
    assert button is not None
    admin.post("/alarms/read", {"until": button[1]})
    assert '<div class="part" data-part="mark"></div>' in admin.get("/alarms").text, "the first one brings the button"
