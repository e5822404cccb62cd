"""The search of everything in a real Chromium: by keyboard alone, on a slow line, with a pasted key, and without scripts."""

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.admin.conftest import LetIn
from tests.browser import faults, opened, violations, wait_until_drawn
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service

MOST_LOOKS = 1500

pytestmark = [
    pytest.mark.browser,
    pytest.mark.usefixtures("community"),
    pytest.mark.parametrize("engine", ["sqlite"], indirect=True),
]


def _field(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Search or type a command")


def _active(page: Page) -> Locator:
    """Return the option that Enter chooses."""
    return page.locator("[role=option][aria-selected=true]")


def _open(page: Page, how: str = "Control+k") -> None:
    wait_until_drawn(page)
    page.keyboard.press(how)
    expect(_field(page)).to_be_focused()


def test_a_long_name_leaves_room_for_its_path(page: Page, run: Run) -> None:
    above = run("forums.create", name="Community gardens")["id"]
    run("forums.create", name="Allotments and everything that grows there in one year " * 3, parentId=above)
    page.goto("/admin")
    _open(page)
    page.keyboard.type("allotments and")
    note = _active(page).locator(".hit-note")
    expect(note).to_have_text("in Community gardens")
    box, line = note.bounding_box(), float(note.evaluate("one => parseFloat(getComputedStyle(one).lineHeight)"))
    assert box is not None
    assert box["height"] < 2 * line  # in one line


def test_everything_is_reached_from_the_keyboard(page: Page, community: Community) -> None:
    page.goto("/admin")
    requests = page.get_by_role("link", name="Requests", exact=True)
    requests.focus()
    _open(page)
    expect(_active(page)).to_contain_text("Overview")
    assert faults(page) == {}
    page.keyboard.type("betas")
    expect(_active(page)).to_contain_text("Betas")
    expect(_active(page)).to_contain_text("News > Releases")
    expect(_field(page)).to_have_attribute("aria-activedescendant", "palette-option-1")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(requests).to_be_focused()
    _open(page, "/")
    page.keyboard.type("new forum under ne")
    expect(_active(page)).to_contain_text("New forum under")
    expect(_active(page)).to_contain_text("News")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New forum")).to_be_visible()
    expect(page.get_by_role("radio", name="News")).to_be_checked()
    name = page.get_by_label("Name", exact=True)
    name.focus()
    page.keyboard.type("/?")  # where one types, they are letters
    expect(name).to_have_value("/?")
    name.fill("")
    page.goto("/admin/keys")
    page.locator("main").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    assert violations(page) == []
    dialog.get_by_role("checkbox").uncheck()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.locator("main").focus()
    page.keyboard.press("/")  # had it opened the search, the field would have had the next letter, and this key its dialog
    page.keyboard.press("z")
    assert page.get_by_role("dialog").count() == 0
    _open(page)
    expect(_field(page)).to_have_value("")
    page.goto("/admin/forums")
    row = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="Staff", exact=True))
    row.get_by_role("link", name="Staff", exact=True).focus()
    for key in ("x", "m", "Control+a"):  # the last one, which does something, tells that the others are over
        page.keyboard.press(key)
        if key != "Control+a":
            assert page.locator("input[name=ids]:checked, .taken").count() == 0
    expect(row.get_by_role("checkbox", name="Choose Staff")).to_be_checked()
    expect(page.locator(".taken")).to_have_count(0)


def test_a_pasted_key_is_found_and_its_secret_goes_nowhere(page: Page, key: MakeKey) -> None:
    whole = key("forums.list", name="Calendar sync")
    sent: list[str] = []
    page.goto("/admin")
    page.on("request", lambda request: sent.append(request.url + (request.post_data or "")))
    _open(page)
    paste = "(field, text) => { field.value = text; field.dispatchEvent(new InputEvent('input', {bubbles: true})); }"
    _field(page).evaluate(paste, f"Bearer {whole}")
    expect(_field(page)).to_have_value(f"Bearer {whole[:12]}")
    expect(_active(page)).to_contain_text("Calendar sync")
    expect(page.get_by_role("dialog").locator("[data-message]")).to_contain_text("secret part of the key was removed")
    _field(page).fill("revoke k")
    expect(_active(page)).to_contain_text("Revoke key")
    page.keyboard.press("Enter")
    expect(_field(page)).to_have_value("revoke key ")
    expect(_active(page)).to_contain_text("Calendar sync")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Revoke")).to_be_visible()
    page.goto("/admin/keys")
    page.get_by_label("Name, owner or key").evaluate(paste, whole)
    page.get_by_role("button", name="Filter").click()
    expect(page).to_have_url(re.compile(f"search={whole[:12]}(&|$)"))
    expect(page.get_by_role("rowheader", name="Calendar sync")).to_be_visible()
    assert not [one for one in sent if whole[13:30] in one]


def held_back(page: Page, held: dict[str, Route], text: str) -> None:
    """Wait until the question for a text is held back."""
    for _ in range(MOST_LOOKS):
        if text in held:
            return
        page.wait_for_timeout(20)  # lets Playwright handle what the browser asks
    raise AssertionError(f"nobody asked for {text}")


def test_it_says_that_it_is_searching_and_late_answers_do_not_replace_newer_ones(
    page: Page, community: Community, service: Service
) -> None:
    page.goto("/admin")
    _open(page)
    field, active = _field(page), _active(page)
    expect(active).to_contain_text("Overview")
    held: dict[str, Route] = {}
    page.route("**/search/hits?**", lambda route: held.update({route.request.url.partition("text=")[2]: route}))
    field.fill("news")
    held_back(page, held, "news")
    field.fill("staff")
    held_back(page, held, "staff")
    status = page.get_by_role("dialog").get_by_role("status")
    expect(status).to_have_text("Searching…")
    page.keyboard.press("Enter")  # before there is an answer: it counts for what was typed
    expect(active).to_contain_text("Overview")
    held["news"].fulfill(body='<section data-hits="Late"><ul><li><a href="/admin/late"><span>Late</span></a></li></ul></section>')
    held["staff"].continue_()
    expect(page).to_have_url(f"{service.address}/admin/forums/{community.staff}")
    wait_until_drawn(page)  # requests still on their way may be lost once none are held back any more

    page.unroute("**/search/hits?**")
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    conditions = {"offline": False, "downloadThroughput": -1, "uploadThroughput": -1}
    for latency in (150, 700):
        session.send("Network.emulateNetworkConditions", conditions | {"latency": latency})
        _open(page)
        page.keyboard.type("interv", delay=20)
        expect(active).to_contain_text("Interviews")
        expect(page.locator("#palette-list [role=option]")).to_have_count(1)
        expect(status).to_have_text("1 result")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_search_works_without_scripts(
    chrome: Browser, let_in: LetIn, community: Community, service: Service, key: MakeKey
) -> None:
    whole = key("forums.list", name="Calendar sync")
    context = opened(chrome, service.address, scripts=False)
    page = context.new_page()
    asked: list[str] = []
    let_in(page)
    page.goto("/admin")
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("link", name="Search").click()
    page.get_by_label("Search", exact=True).fill(whole)
    page.get_by_role("button", name="Search").click()  # the browser finds fault with it, and sends nothing
    page.get_by_label("Search", exact=True).fill("new forum under")
    page.get_by_role("button", name="Search").click()
    page.locator(f'a[href="/admin/forums/new?parentId={community.news}"]').click()
    expect(page.get_by_role("radio", name="News")).to_be_checked()
    assert not [one for one in asked if whole[13:30] in one]
    context.close()
