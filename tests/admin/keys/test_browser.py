"""Keys, requests and events in a real Chromium: the key journey without scripts, and by keyboard alone; and axe."""

import re
from itertools import cycle
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, expect

from tests.admin.conftest import LOGIN, PASSWORD, LetIn
from tests.browser import LOOKS, bring_axe, confirm, faults, list_complaints, opened, violations
from tests.community import CATALOGUE, GRANTABLE, Community
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until
from trellis.admin.keys.grants import GrantGrid

GRID = GrantGrid(CATALOGUE)

pytestmark = pytest.mark.browser


def _new_key(page: Page) -> str:
    text = page.locator("#new-key").inner_text()
    assert re.fullmatch(r"trl_\w{8}_\w{38}", text)
    return text


def _see_request(page: Page, run: Run, path: str) -> None:
    """Open the log when a request is in it: it is written a second after it was answered."""
    wait_until(lambda: any(request["path"] == path for request in run("requests.list")["results"]))
    page.goto("/admin/requests")
    expect(page.locator("td.what", has_text=path).first).to_be_visible()


def _see_refusal(page: Page, run: Run) -> None:
    """Open the key's page anew when a refusal is counted: the day's counts are written after the log."""
    wait_until(lambda: any(use["refused"] for use in run("requests.summary", key=1)["operations"]))
    page.reload()
    expect(page.get_by_text("Requested, but not granted")).to_be_visible()


def test_a_key_from_the_grid_to_its_end_without_scripts(chrome: Browser, let_in: LetIn, service: Service, run: Run) -> None:
    context = opened(chrome, service.address, scripts=False)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    let_in(page)
    page.goto("/admin")
    page.get_by_role("link", name="API keys").click()
    page.get_by_role("link", name="Create the first key").click()
    confirm(page, PASSWORD)
    page.get_by_label("Name").fill("Forum importer")
    page.get_by_role("button", name="Calendars (tick or clear the row)").click()
    expect(page.get_by_role("checkbox", name="Create a calendar")).to_be_checked()
    expect(page.get_by_text(f"{len(GRID.ticks['row:calendars'])} of {GRANTABLE} operations ticked")).to_be_visible()
    page.get_by_role("button", name="Nothing").click()
    expect(page.get_by_role("checkbox", name="Create a calendar")).not_to_be_checked()
    page.get_by_role("checkbox", name="Create a forum").check()
    expect(page.get_by_label("Name")).to_have_value("Forum importer")
    page.get_by_role("button", name="Create the key").last.click()
    text = _new_key(page)
    assert f"{service.address}/api/core/hello" in page.locator("#curl").inner_text()
    made = service.call("POST", "/forums/forums", text, json={"name": "From afar"})
    assert made.status_code == 201
    assert service.call("GET", "/forums/forums", text).status_code == 403
    _see_request(page, run, "/api/forums/forums")
    page.goto("/admin/requests?status=201")
    page.locator("td.when a").click()
    page.get_by_role("link", name="What this request changed").click()
    expect(page.get_by_role("heading", name="What was created")).to_be_visible()
    page.get_by_role("link", name="The request it came from").click()
    page.get_by_role("link", name="Forum importer").click()
    _see_refusal(page, run)
    page.get_by_role("link", name="Revoke").click()
    page.get_by_label("Why").fill("The test is over")
    page.get_by_role("button", name="Revoke the key").click()
    expect(page.get_by_role("status")).to_contain_text("The key is revoked")
    assert service.call("POST", "/forums/forums", text, json={"name": "Too late"}).status_code == 401
    context.close()
    assert list_complaints(said) == []


def test_a_shown_key_is_not_shown_again(chrome: Browser, let_in: LetIn, service: Service, run: Run) -> None:
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    page.goto("/admin/keys/new")
    page.get_by_label("Name").fill("Once")
    page.get_by_role("button", name="Create the key").last.click()
    text = _new_key(page)
    page.reload()
    expect(page.get_by_role("heading", name="the key has already been shown")).to_be_visible()
    assert text not in page.content()
    page.goto("/admin/keys")
    with pytest.raises(Error, match="ERR_CACHE_MISS"):  # the browser asks whether to send the form again
        page.go_back()
    expect(page.locator("body")).not_to_contain_text(text)
    context.close()
    assert run("keys.list")["totalResults"] == 1


def _tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until something has the focus, and see that it can be seen."""
    handle = wanted.element_handle()
    for _ in range(120):
        page.keyboard.press("Tab")
        if handle.evaluate("element => element === document.activeElement"):
            assert handle.is_visible()
            return
    raise AssertionError(f"Tab does not lead to {wanted}")


def test_the_key_journey_by_keyboard_alone(chrome: Browser, mira: int, service: Service) -> None:
    context = opened(chrome, service.address)
    page = context.new_page()
    page.goto("/admin/sign-in")
    expect(page.get_by_label("Login")).to_be_focused()
    page.keyboard.type(LOGIN)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Overview").wait_for()
    _tab_to(page, page.get_by_role("link", name="API keys"))
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Create the first key").wait_for()
    _tab_to(page, page.get_by_role("link", name="Create the first key"))
    page.keyboard.press("Enter")
    page.get_by_label("Name").wait_for()
    _tab_to(page, page.get_by_label("Name"))
    page.keyboard.type("By keyboard")
    _tab_to(page, page.get_by_role("button", name="Read-only"))
    page.keyboard.press("Enter")
    _tab_to(page, page.get_by_role("checkbox", name="Create a forum"))
    page.keyboard.press("Space")
    expect(page.get_by_text(f"{len(GRID.reading) + 1} of {GRANTABLE} operations ticked")).to_be_visible()
    _tab_to(page, page.get_by_label("Expires"))
    page.keyboard.type("30")
    _tab_to(page, page.get_by_role("button", name="Create the key").last)
    page.keyboard.press("Enter")
    page.locator("#new-key").wait_for()
    text = _new_key(page)
    _tab_to(page, page.get_by_role("button", name="Copy").first)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name=re.compile("Copied|Selected"))).to_be_visible()
    assert service.call("POST", "/forums/forums", text, json={"name": "News"}).status_code == 201
    _tab_to(page, page.get_by_role("link", name="I have copied it"))
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Revoke").wait_for()
    _tab_to(page, page.get_by_role("link", name="Revoke"))
    page.keyboard.press("Enter")
    page.get_by_role("dialog", name="Revoke By keyboard").wait_for()
    if not page.get_by_label("Why").evaluate("element => element === document.activeElement"):
        _tab_to(page, page.get_by_label("Why"))
    page.keyboard.type("Done")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("The key is revoked")
    assert service.call("GET", "/forums/forums", text).status_code == 401
    context.close()


def test_leaving_a_dialog_gives_the_focus_back(chrome: Browser, let_in: LetIn, service: Service, run: Run) -> None:
    run("keys.create", name="Plugin")
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    page.goto("/admin/events")
    link = page.locator("td.when a").first
    link.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="What was created")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("link", name="Close").click()
    expect(dialog).to_have_count(0)
    expect(link).to_be_focused()
    link.click()
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(link).to_be_focused()
    context.close()


_PAGES = (  # that tests/admin/test_every_page_browser.py does not open, or not in such a state
    *("/requests", "/requests/2", "/events/{deleted}", "/events/{last}"),
)
_ALIKE = ("/keys", "/keys/2", "/requests/1")  # with little that is not on those or on other pages


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_axe_finds_nothing(chrome: Browser, let_in: LetIn, service: Service, run: Run, community: Community, events: Any) -> None:
    text = run("keys.create", name="Importer", grants=["forums.*"], expires="30d", addresses=["127.0.0.1"])["key"]
    run("keys.create", name="Spent")
    run("keys.revoke", 2, reason="Leaked")
    for method, path in (("POST", "/forums/forums"), ("GET", "/calendar/calendar"), ("GET", "/forums/forums")):
        service.call(method, path, text, json={"name": "Olds"} if method == "POST" else None)
    run("forums.update", community.help, permissions={"view": [3]}, name="Aid", description="<p>Ask here.</p>")
    run("forums.delete", community.news, deleteChildrenOrMove=-1)
    deleted = events()[-1]["seq"]
    first = opened(chrome, service.address)
    page = first.new_page()
    let_in(page)
    _see_request(page, run, "/api/forums/forums")
    found: dict[str, object] = {}
    page.goto("/admin/keys/new")
    page.get_by_role("button", name="Create the key").last.click(no_wait_after=True)
    page.get_by_label("Name").fill("x" * 101)
    page.get_by_role("button", name="Create the key").last.click()
    page.get_by_role("alert").wait_for()
    if faulty := faults(page, LOOKS[:1]):  # in the other one there is nothing that is not on other pages
        found["faults"] = faulty
    page.get_by_label("Name").fill("Long " + "x" * 90)
    page.get_by_role("button", name="Create the key").last.click()
    page.locator("#new-key").wait_for()
    last = events()[-1]["seq"]
    page = first.new_page()
    bring_axe(page)
    for path in _PAGES:
        page.goto("/admin" + path.format(deleted=deleted, last=last))
        if faulty := faults(page):
            found[path] = faulty
    for path, look in zip(_ALIKE, cycle(LOOKS), strict=False):
        page.goto("/admin" + path)
        if faulty := faults(page, [look]):
            found[path] = faulty
    first.close()
    assert found == {}, "\n".join(f"{where}: {what}" for where, what in found.items())


def test_what_was_refused_is_granted_in_a_few_presses_and_taken_back(
    chrome: Browser, let_in: LetIn, run: Run, service: Service, key: MakeKey
) -> None:
    text = key("groups.list", name="Importer")
    assert service.call("GET", "/forums/forums", text).status_code == 403
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    page.goto("/admin/keys/1?operation=forums.list")
    answered = page.locator("#may-panel").get_by_role("link", name="Grant forums.list…")
    expect(answered).to_be_visible()
    _see_refusal(page, run)
    expect(page.locator(".held").get_by_role("link", name="Grant forums.list…")).to_be_visible()
    assert faults(page) == {}
    _see_request(page, run, "/api/forums/forums")
    page.locator("td.when a").first.click()
    page.get_by_role("link", name="Grant forums.list…").click()
    box = page.locator("input[value='forums.list']")
    expect(box).to_be_checked()
    expect(box).to_be_focused()
    expect(page.get_by_text("forums.list is ticked below. Nothing is saved yet.")).to_be_visible()
    page.get_by_role("button", name="Save").last.click()
    confirm(page, PASSWORD)
    if (again := page.get_by_role("button", name="Send it again")).count():
        again.click()
    if page.get_by_role("button", name="Save").count():
        page.get_by_role("button", name="Save").last.click()
    expect(page.locator(".flash")).to_contain_text("Saved.")
    assert service.call("GET", "/forums/forums", text).status_code == 200
    page.get_by_role("link", name="Undo…", exact=True).first.click()
    expect(page.get_by_text("will be changed back")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".flash")).to_contain_text("Importer is as it was before event")
    assert service.call("GET", "/forums/forums", text).status_code == 403
    context.close()
