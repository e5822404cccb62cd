"""Pages that are kept up to date, in a real Chromium: by a stream, by asking where none comes through."""

import re
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.admin.conftest import LOGIN, PASSWORD, LetIn
from tests.browser import LOOKS, confirm, faults, opened, sign_in
from tests.community import Community
from tests.fixture_types import Events, MakeKey, Run
from tests.service_process import Service
from trellis.settings import Settings

pytestmark = pytest.mark.browser

_BY: Final = "main[data-live-by='{}']"
_HIDE: Final = """state => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => state === "hidden" });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def _open(page: Page, path: str, by: str = "stream") -> None:
    page.goto(path)
    expect(page.locator(_BY.format(by))).to_be_visible()


def _make_forums(service: Service, key: str, *names: str) -> None:
    for name in names:
        assert service.call("POST", "/forums/forums", key, json={"name": name}).status_code == 201


@pytest.mark.slow
def test_each_page_shows_what_happens_by_itself(
    page: Page, service: Service, community: Community, key: MakeKey, run: Run, events: Events
) -> None:
    text = key(["forums.create", "forums.delete"], name="Importer", bounds={"forums.delete": {"level": "propose"}})
    number = run("keys.list")["results"][0]["id"]
    webhook = int(run("webhooks.create", url="https://hooks.example/", events=["*"])["id"])

    _open(page, "/admin")
    _make_forums(service, text, "First")
    expect(page.locator(".feed [data-row]").first).to_contain_text("First")
    expect(page.get_by_text("1 request", exact=True)).to_be_visible()

    _open(page, "/admin/forums")
    page.get_by_role("link", name="What is under News").click()
    expect(page.get_by_role("link", name="Releases", exact=True)).to_be_visible()
    page.get_by_role("link", name="News", exact=True).focus()
    run("forums.create", name="Elsewhere", parentId=community.news, position=0)
    _make_forums(service, text, "Second")
    below = page.locator(f"#node-{community.news} > ul > .node > .node-row .node-name")
    expect(below).to_have_text(["Elsewhere", "Releases", "Interviews"])
    expect(page.locator("#tree > .node").last).to_contain_text("Second")
    expect(page.get_by_role("link", name="News", exact=True)).to_be_focused()
    page.get_by_role("link", name="Delete Second…").click()
    expect(page.locator("dialog")).to_be_visible()  # what came by itself can be used as what was there

    _open(page, "/admin/events")
    run("forums.update", community.help, name="Questions")
    expect(page.locator("tbody [data-row]").first).to_contain_text("Questions")

    _open(page, "/admin/requests?operation=forums.create")
    expect(page.locator("tbody [data-row]")).to_have_count(2)  # the log is written a moment after the answer
    _make_forums(service, text, "Third")
    expect(page.locator("tbody [data-row]")).to_have_count(3)

    _open(page, f"/admin/keys/{number}")
    page.locator("summary", has_text="Show as a table").click()
    run("keys.update", number, name="Importer", grant=["forums.list"])
    expect(page.get_by_text("3 of", exact=False).first).to_be_visible()
    _make_forums(service, text, "Fourth")
    expect(page.get_by_role("heading", name="Latest requests").locator("xpath=../..").locator("[data-row]")).to_have_count(4)
    expect(page.locator("details[open] summary", has_text="Show as a table")).to_be_visible()

    _open(page, "/admin/deliveries")
    run("webhooks.test", webhook)
    expect(page.locator("tbody [data-row]").first).to_contain_text("hooks.example")

    _open(page, "/admin/proposals")
    expect(page.get_by_text("Nothing is waiting for a decision")).to_be_visible()
    assert service.call("DELETE", f"/forums/forums/{community.wiki}", text).status_code == 202
    expect(page.locator("tbody [data-row]")).to_have_count(1)
    expect(page.get_by_role("link", name="Proposals 1 open")).to_be_visible()
    page.locator("tbody input[type=checkbox]").check()
    assert service.call("DELETE", f"/forums/forums/{community.help}", text).status_code == 202
    expect(page.locator("tbody [data-row]")).to_have_count(2)
    expect(page.locator("tbody input[type=checkbox]").last).to_be_checked()
    assert faults(page, LOOKS[:1]) == {}  # it has nothing that is not there after loading it


def test_the_page_that_shows_a_new_key_waits_for_its_first_call(page: Page, service: Service) -> None:
    page.goto("/admin/keys/new")
    confirm(page, PASSWORD)
    page.get_by_label("Name").fill("Forum importer")
    page.get_by_role("checkbox", name="Create a forum").check()
    page.get_by_role("button", name="Create the key").last.click()
    text = page.locator("#new-key").inner_text()
    expect(page.get_by_text("Waiting for its first call.")).to_be_visible()
    expect(page.locator(_BY.format("stream"))).to_be_visible()
    _make_forums(service, text, "From afar")
    expect(page.locator("main").get_by_text("First call arrived: 201, forums.create")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="First call arrived: 201, forums.create")).to_have_count(1)
    expect(page.locator("#new-key")).to_have_text(text)  # the key is still there to be copied
    assert faults(page) == {}
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_role("link", name="201, forums.create")).to_be_visible()


def test_who_reads_further_down_is_told_and_not_moved(page: Page, community: Community, run: Run) -> None:
    page.set_viewport_size({"width": 1280, "height": 400})
    _open(page, "/admin/events")
    rows = page.locator("tbody [data-row]")
    before = rows.count()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    at = page.evaluate("scrollY")
    run("forums.update", community.help, name="Questions")
    run("forums.update", community.help, name="More questions")
    button = page.get_by_role("button", name="2 new")
    expect(button).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="new events above")).to_have_count(1)
    assert (rows.count(), page.evaluate("scrollY")) == (before, at)
    button.click()
    expect(rows).to_have_count(before + 2)
    expect(rows.first).to_be_in_viewport()
    expect(rows.first.get_by_role("link").first).to_be_focused()
    expect(button).to_have_count(0)


def test_a_page_goes_on_from_where_it_was_when_the_service_comes_back(
    chrome: Browser, mira: int, community: Community, settings: Settings, tmp_path: Path, run: Run
) -> None:
    with Service(settings, tmp_path) as service:
        page = opened(chrome, service.address).new_page()
        sign_in(page, LOGIN, PASSWORD)
        _open(page, "/admin/events")
        run("forums.update", community.help, name="Questions")
        expect(page.locator("tbody [data-row]").first).to_contain_text("Questions")
        assert service.terminate() == 0
        assert not re.search("Traceback|exceeded", service.output)  # it has waited for nobody
    run("forums.update", community.help, name="While it was away")
    with Service(settings, tmp_path, service.port):
        expect(page.locator("tbody [data-row]").first).to_contain_text("While it was away")
    page.context.close()


def test_a_page_asks_where_no_stream_comes_through_and_its_times_go_on(page: Page, community: Community, run: Run) -> None:
    def hold_back(route: Route) -> None:
        if route.request.headers.get("accept") == "text/event-stream":
            route.fulfill(status=502, body="")
        else:
            route.continue_()

    page.context.clear_cookies()
    sign_in(page, LOGIN, PASSWORD)  # which is an event at the real time
    page.route("**/admin/news**", hold_back)
    page.clock.install()
    _open(page, "/admin", "asking")
    run("forums.update", community.help, name="Questions")
    page.clock.run_for(10_000)
    expect(page.locator(".feed [data-row]").first).to_contain_text("Questions")
    signed_in = page.locator(".feed [data-row]", has_text="signed in")
    expect(signed_in).to_contain_text("just now")
    page.clock.fast_forward("03:05")
    expect(signed_in).to_contain_text("3 minutes ago")


def test_a_page_ends_with_its_session_and_rests_while_nobody_sees_it(page: Page, community: Community, run: Run) -> None:
    _open(page, "/admin/events")
    page.evaluate(_HIDE, "hidden")
    expect(page.locator(_BY.format("nothing"))).to_be_visible()
    run("forums.update", community.help, name="Questions")
    page.evaluate(_HIDE, "visible")
    expect(page.locator(_BY.format("stream"))).to_be_visible()
    expect(page.locator("tbody [data-row]").first).to_contain_text("Questions")
    other = page.context.new_page()
    other.goto("/admin/account")
    other.get_by_role("button", name="Sign out").first.click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    expect(page.get_by_text("Questions")).to_have_count(0)
    told: list[str] = []
    page.on("response", lambda answer: told.append(answer.url))
    run("forums.update", community.help, name="A secret")
    page.evaluate(_HIDE, "hidden")
    page.evaluate(_HIDE, "visible")
    page.wait_for_timeout(1000)  # if it asked now, it would be answered meanwhile
    assert told == []
    expect(page.get_by_text("A secret")).to_have_count(0)
    page.get_by_role("button", name="Sign in").click()  # there is one
    expect(page.get_by_label("Password")).to_be_visible()


def test_nothing_stays_in_other_tabs_when_somebody_signs_out_even_if_the_service_is_out_of_reach(
    page: Page, community: Community
) -> None:
    page.goto(f"/admin/forums/{community.help}")
    page.get_by_label("Name", exact=True).fill("Typed and not saved")
    other = page.context.new_page()
    other.goto("/admin/keys")
    other.route("**/sign-out", lambda route: route.abort())
    other.get_by_role("button", name="Sign out").first.click()
    expect(page.get_by_text("Signing out…")).to_be_visible()
    expect(page.locator("form, table, nav, input")).to_have_count(0)
    assert page.title() == "Signing out…"  # no answer has said so yet
    page.get_by_role("button", name="Reload").wait_for()


def test_nothing_stays_in_any_tab_when_somebody_signs_out_without_a_network(page: Page, community: Community) -> None:
    page.goto(f"/admin/forums/{community.help}")
    other = page.context.new_page()
    other.goto("/admin/keys")
    page.context.set_offline(offline=True)
    other.get_by_role("button", name="Sign out").first.click()
    expect(page.get_by_text("Signing out…")).to_be_visible()
    expect(page.locator("form, table, nav, input")).to_have_count(0)
    expect(other.locator("form, table, nav, input")).to_have_count(0)


def test_signing_out_where_a_new_password_is_asked_for_clears_the_other_tabs(page: Page, community: Community, run: Run) -> None:
    page.goto(f"/admin/forums/{community.help}")
    page.get_by_label("Name", exact=True).fill("Typed and not saved")
    run("admins.create", name="Ada Berg", login="ada", password=PASSWORD)
    other = page.context.new_page()
    page.context.clear_cookies()  # the session has ended by itself
    other.goto("/admin/sign-in")
    other.get_by_label("Login").fill("ada")
    other.get_by_label("Password").fill(PASSWORD)
    other.get_by_role("button", name="Sign in", exact=True).click()
    other.get_by_role("heading", name="Choose your own password").wait_for()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Typed and not saved")
    other.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    expect(page.locator("form, table, nav, input")).to_have_count(0)


def test_what_was_typed_stays_when_the_session_ends_by_itself(page: Page, community: Community, run: Run) -> None:
    page.goto(f"/admin/forums/{community.help}")
    page.get_by_label("Name", exact=True).fill("Typed and not saved")
    reading, live = page.context.new_page(), page.context.new_page()
    reading.goto("/admin/keys/new")
    _open(live, "/admin/events")
    [administrator] = run("admins.list")["results"]
    run("admins.sign_out", administrator["id"], everywhere=True)
    for tab in (reading, live):
        expect(tab.get_by_text("You are signed out.")).to_be_visible()
        expect(tab.locator("form, table, nav, input")).to_have_count(0)
    expect(page.get_by_label("Name", exact=True)).to_have_value("Typed and not saved")


def test_a_page_ends_when_somebody_else_signs_in_in_another_tab(page: Page, community: Community, run: Run, let_in: LetIn) -> None:
    """It would show what they may see under the name of the one who was there before."""
    other = run(
        "admins.create", name="Ada Berg", login="ada", password=PASSWORD, mustChangePassword=False, role="structure-editor"
    )["id"]
    mirror = run("keys.create", name="Mirror")["id"]
    typing, keys = page.context.new_page(), page.context.new_page()
    _open(page, "/admin/forums")
    _open(keys, f"/admin/keys/{mirror}")  # which she may not see
    _open(typing, "/admin/forums")
    typing.get_by_role("link", name="Delete Staff…").click()
    typing.get_by_label("Why").fill("Typed")
    tab = page.context.new_page()
    let_in(tab, other)
    tab.goto("/admin")
    run("forums.create", name="Elsewhere")
    run("keys.update", mirror, note="Elsewhere")
    for tab in (page, keys):
        expect(tab.get_by_text("Ada Berg is signed in here now.")).to_be_visible()
        expect(tab.locator("form, table, nav, input")).to_have_count(0)
    expect(typing.get_by_text("Ada Berg is signed in here now, so this page is no longer updated.")).to_be_visible()
    expect(typing.get_by_label("Why")).to_have_value("Typed")
    expect(typing.get_by_text("Elsewhere")).to_have_count(0)
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("link", name="Elsewhere", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Ada Berg")).to_be_visible()


def test_a_page_goes_on_when_the_same_person_signs_in_again(page: Page, community: Community, run: Run, let_in: LetIn) -> None:
    _open(page, "/admin/forums")
    page.get_by_role("link", name="Delete Staff…").click()
    page.get_by_label("Why").fill("Nobody wrote there")
    tab = page.context.new_page()
    let_in(tab)
    tab.goto("/admin")
    run("forums.create", name="Elsewhere")
    expect(page.locator("#tree > .node").last).to_contain_text("Elsewhere")
    page.get_by_role("dialog").get_by_role("button", name="Delete Staff").click()
    expect(page.locator(".flash")).to_contain_text("Staff was deleted.")


def test_what_is_done_by_hand_while_the_page_is_fetched_stays(page: Page, community: Community, run: Run) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        if "x-panel-background" in route.request.headers and not held:
            held.append(route)
        else:
            route.continue_()

    _open(page, "/admin/forums")
    expect(page.locator("#tree > .node").first).to_be_visible()
    page.route("**/admin/forums*", hold)
    with page.expect_request(lambda request: "x-panel-background" in request.headers):
        run("forums.create", name="Elsewhere")
    page.get_by_role("link", name="What is under News").click()
    expect(page.get_by_role("link", name="Releases", exact=True)).to_be_visible()
    with page.expect_response(lambda answer: "x-panel-background" in answer.request.headers):
        held[0].continue_()  # it was asked for before the node was opened
    expect(page.locator("#tree > .node").last).to_contain_text("Elsewhere")
    expect(page.get_by_role("link", name="Releases", exact=True)).to_be_visible()
    assert faults(page, LOOKS[:1]) == {}
