"""The reference in a real browser: it opens without a complaint, and an operation can be tried from it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser import chromium, faults, list_complaints, overflow, sign_in
from tests.community import Community, create_community
from tests.conftest import runner, settings_for
from tests.fixture_types import MakeKey, Run
from tests.service_process import Service
from tests.wait import wait_until
from trellis.compose import compose
from trellis.settings import Settings

pytestmark = pytest.mark.browser
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def shared_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings for a database that all these tests share: starting a service takes longer than most of them."""
    return settings_for(f"sqlite:///{tmp_path_factory.mktemp('reference') / 'trellis.db'}")


@pytest.fixture(scope="module")
def service(shared_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service in a process of its own."""
    with Service(shared_settings, tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture(scope="module")
def run(shared_settings: Settings, service: Service) -> Iterator[Run]:
    """Run an operation as the terminal, in the service's database."""
    gate = compose(shared_settings)
    yield runner(gate)
    gate.store.close()


@pytest.fixture(scope="module")
def community(run: Run) -> Community:
    """The sample community."""
    return create_community(run)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    with chromium() as browser:
        yield browser


@dataclass
class Visit:
    """A page for the reference, and what the browser complained of and asked for meanwhile."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def operation(self, name: str) -> Locator:
        """Open 'Try it' of an operation, on the page of its resource."""
        page = f"{self.address}/api/docs/{name.partition('.')[0]}"
        if self.page.url.partition("#")[0] != page:
            self.page.goto(page)
        entry = self.page.locator(f'[id="{name}"]')
        entry.locator(".try > summary").click()
        return entry

    def sent(self, entry: Locator) -> str:
        """Send, and give what came back: not what an earlier request has left there."""
        entry.locator(".outcome .status").evaluate_all("earlier => earlier.forEach(status => status.remove())")
        entry.locator(".send").click()
        entry.locator(".outcome .status").wait_for()
        return entry.locator(".outcome").inner_text()


@pytest.fixture
def visit(browser: Browser, service: Service) -> Iterator[Visit]:
    """A window of 1280 pixels, before it opens the reference of a running service."""
    page = browser.new_page(viewport={"width": 1280, "height": 900}, base_url=service.address)
    yield Visit(page, service.address)
    page.context.close()


def test_it_opens_without_a_complaint_and_asks_nobody_else(visit: Visit, service: Service) -> None:
    visit.page.goto("/api/docs")
    visit.page.wait_for_load_state("networkidle")
    assert list_complaints(visit.complaints) == []
    assert len(visit.asked) >= 4
    visit.operation("forums.list")
    visit.page.wait_for_load_state("networkidle")
    assert list_complaints(visit.complaints) == []
    assert [url for url in visit.asked if not url.startswith(f"{service.address}/api/docs")] == []


def test_a_list_is_tried_with_a_real_key(visit: Visit, key: MakeKey, community: Community) -> None:
    entry = visit.operation("forums.list")
    entry.get_by_label("Your key").fill(key("forums.list"))
    entry.get_by_label("search").fill("news")
    told = visit.sent(entry)
    assert "200" in told
    assert '"name": "News"' in told
    assert "x-ratelimit-remaining" in told
    assert "search=news" in told
    assert "$API_KEY" in told
    assert "trl_" not in told
    assert list_complaints(visit.complaints) == []


def test_the_key_is_kept_for_the_other_operations_and_in_this_tab_only(visit: Visit, key: MakeKey) -> None:
    mine = key("*")
    visit.operation("forums.list").get_by_label("Your key").fill(mine)
    assert visit.operation("groups.get").get_by_label("Your key").input_value() == mine
    visit.page.reload()
    assert visit.operation("forums.get").get_by_label("Your key").input_value() == mine
    assert visit.page.evaluate("localStorage.length") == 0
    assert visit.page.context.cookies() == []


def test_a_create_is_tried_from_the_form_and_as_json(visit: Visit, key: MakeKey, run: Run) -> None:
    entry = visit.operation("forums.create")
    entry.get_by_label("Your key").fill(key("*"))
    entry.get_by_role("button", name="Fill in the example").click()
    entry.get_by_label("name required").fill("From the form")
    entry.get_by_label("canSeeOthers").select_option("false")
    entry.get_by_label("read", exact=True).fill("2, 3")
    assert "201" in visit.sent(entry)
    made = run("forums.list", search="From the form")["results"][0]
    assert (made["canSeeOthers"], made["permissions"]["view"], made["permissions"]["read"]) == (False, "*", [2, 3])
    entry.get_by_role("button", name="Edit as JSON").click()
    entry.get_by_label("Body, as JSON").fill('{"name": "As JSON", "theme": null}')
    assert "201" in visit.sent(entry)
    assert run("forums.list", search="As JSON")["totalResults"] == 1


@pytest.mark.parametrize("name", ["core.batch", "structure.plan"])
def test_an_example_with_objects_is_filled_in(visit: Visit, key: MakeKey, name: str) -> None:
    entry = visit.operation(name)
    entry.get_by_label("Your key").fill(key("*"))
    entry.get_by_role("button", name="Fill in the example").click()
    entry.get_by_role("checkbox", name="Dry run").check()
    assert visit.sent(entry).startswith("200")


def test_the_command_that_is_shown_has_the_method_that_was_sent(visit: Visit, key: MakeKey) -> None:
    entry = visit.operation("calendars.put_external")
    entry.get_by_label("Your key").fill(key("*"))
    entry.get_by_label("externalId required").fill("shown")
    entry.get_by_label("name", exact=True).fill("Shown")
    told = visit.sent(entry)
    assert "201" in told
    assert "curl -X PUT 'http" in told


def test_headers_may_be_in_any_script(visit: Visit, key: MakeKey, run: Run) -> None:
    entry = visit.operation("calendars.create")
    entry.get_by_label("Your key").fill("Schlüssel – 鍵")
    entry.get_by_label("name required").fill("By reason")
    assert "INVALID_API_KEY" in visit.sent(entry)
    entry.get_by_label("Your key").fill(key("*"))
    entry.locator(".try details.more > summary").click()
    entry.get_by_label("X-Audit-Log-Reason").fill("Räumt auf – ✓")
    assert "201" in visit.sent(entry)
    assert run("events.list", order="newest", limit=1)["results"][0]["reason"] == "Räumt auf – ✓"


def test_a_delete_is_a_dry_run_unless_one_says_otherwise(visit: Visit, key: MakeKey, run: Run, community: Community) -> None:
    entry = visit.operation("forums.delete")
    entry.get_by_label("Your key").fill(key("*"))
    entry.locator(".send").click()
    assert entry.get_by_label("id required").evaluate("input => input === document.activeElement")
    entry.get_by_label("id required").fill(str(community.help))
    told = visit.sent(entry)
    assert '"dryRun": true' in told
    assert "nothing was changed" in told
    assert run("forums.get", community.help)["name"] == "Help"
    entry.get_by_role("checkbox", name="Dry run").uncheck()
    assert entry.locator(".send").inner_text() == "Delete for good"
    entry.locator(".send").click()
    wait_until(lambda: run("forums.list", search="Help")["totalResults"] == 0)  # the plan on the page says "null" too


def test_a_refusal_is_shown_with_what_it_says(visit: Visit, key: MakeKey) -> None:
    entry = visit.operation("forums.get")
    entry.get_by_label("Your key").fill(key("forums.list"))
    entry.get_by_label("id required").fill("1")
    assert "NO_PERMISSION" in visit.sent(entry)


def test_an_administrator_tries_an_operation_with_a_key_made_for_it(visit: Visit, run: Run, service: Service) -> None:
    page = visit.page
    entry = visit.operation("forums.list")
    entry.get_by_role("button", name="Make a key for this").click()
    expect(entry.locator(".made")).to_contain_text("Sign in to the administration panel first")
    run("admins.create", login="kim", name="Kim", password=PASSWORD, mustChangePassword=False)
    sign_in(page, "kim", PASSWORD)
    page.get_by_role("link", name="API reference").click()
    page.wait_for_url("**/api/docs")
    entry = visit.operation("forums.list")
    entry.get_by_role("button", name="Make a key for this").click()
    expect(entry.locator(".made")).to_contain_text("Try it: forums.list, until")
    assert "200" in visit.sent(entry)
    expect(visit.operation("forums.get").get_by_label("Your key")).to_have_value("")
    entry.get_by_label("Your key").press("End")
    page.keyboard.press("Backspace")
    expect(visit.operation("forums.get").get_by_label("Your key")).to_have_value("")
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    assert [url for url in visit.asked if "trl_" in url] == []
    (made,) = run("keys.list", search="Try it")["results"]
    assert (made["grants"], made["owner"]) == (["forums.list"], "Kim")
    page.get_by_role("link", name="Administration panel").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_copying_and_one_language_for_all(visit: Visit, service: Service) -> None:
    page = visit.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{service.address}/api/docs/forums")
    page.locator('[id="forums.create"] .tabs').get_by_text("Python").click()
    expect(page.locator('[id="forums.list"] input[value="python"]')).to_be_checked()
    page.locator('[id="forums.create"] .tabs .copy').click()
    page.locator('[id="forums.create"] .tabs .copy', has_text="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("import os")
    page.goto(f"{service.address}/api/docs/calendars")
    expect(page.locator('[id="calendars.list"] input[value="python"]')).to_be_checked()


def test_an_operation_is_found_by_a_few_letters_from_any_page(visit: Visit, service: Service) -> None:
    page = visit.page
    page.goto(f"{service.address}/api/docs/guide/errors")
    page.locator("h1").click()
    page.keyboard.press("/")
    expect(page.locator("#find")).to_be_focused()
    page.keyboard.type("calendars.upd")
    expect(page.locator(".index li:visible")).to_have_count(1)
    expect(page.locator("#found")).to_have_text("1 entry")
    page.keyboard.press("Enter")
    page.wait_for_url("**/api/docs/calendars#calendars.update")
    expect(page.locator('[id="calendars.update"]')).to_be_in_viewport()


def test_an_address_of_the_one_page_leads_on(visit: Visit, service: Service) -> None:
    for old, new in (("forums.create", "forums#forums.create"), ("NO_TITLE", "guide/errors#NO_TITLE"), ("limits", "guide/limits")):
        visit.page.goto(f"{service.address}/api/docs/core")
        visit.page.goto(f"{service.address}/api/docs#{old}")
        visit.page.wait_for_url(f"{service.address}/api/docs/{new}")
    assert list_complaints(visit.complaints) == []


def test_axe_finds_nothing_and_it_fits_every_width_in_both_themes(visit: Visit, service: Service) -> None:
    page = visit.page
    for path in ("/docs", "/docs/changesets", "/docs/guide/requests", "/docs/calendars"):
        page.goto(f"{service.address}/api{path}")
        page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true; })")
        if path != "/docs/calendars":  # ten operations are of the same shape as one, and take axe long
            assert faults(page) == {}, path
        for width in (320, 768, 1440):
            page.set_viewport_size({"width": width, "height": 800})
            assert overflow(page) <= 0, (path, width)


def test_on_a_narrow_page_the_menu_opens_and_closes(visit: Visit, service: Service) -> None:
    page = visit.page
    page.set_viewport_size({"width": 360, "height": 780})
    page.goto(f"{service.address}/api/docs/calendars")
    menu = page.get_by_role("navigation", name="Reference")
    expect(menu).not_to_be_visible()
    page.locator(".burger summary").click()
    menu.get_by_role("link", name="Create a calendar").click()
    expect(menu).not_to_be_visible()
    page.wait_for_url("**#calendars.create")


def test_it_can_be_read_without_scripts(browser: Browser, service: Service) -> None:
    context = browser.new_context(java_script_enabled=False, base_url=service.address)
    page = context.new_page()
    page.goto("/api/docs#forums.create")
    page.locator('[id="forums.create"] a').click()
    page.wait_for_url("**/api/docs/forums#forums.create")
    entry = page.locator('[id="forums.create"]')
    expect(entry.locator(".panel").first).to_be_visible()
    expect(page.locator(".try").first).not_to_be_visible()
    expect(page.locator(".copy").first).not_to_be_visible()
    entry.locator(".tabs label", has_text="JavaScript").click()
    expect(entry.locator(".panel").last).to_be_visible()
    context.close()
