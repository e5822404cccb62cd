"""What a form shows in a real Chromium while the answer takes long."""

from typing import Final

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser import violations
from tests.community import Community
from tests.fixture_types import Run, RunForEvent
from tests.wait import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.usefixtures("community"),
    pytest.mark.parametrize("engine", ["sqlite"], indirect=True),
]

# Keeps what is shown while the page is being left, where another page can read it: Playwright does not look at this one then.
_RECORD: Final = """
new MutationObserver(() => {
  const shown = document.querySelector(".working");
  const buttons = document.querySelectorAll("form.card button:enabled").length;
  if (shown?.textContent) localStorage.said = `${shown.textContent} Buttons: ${buttons}.`;
}).observe(document.body, { childList: true, subtree: true });
"""


def _stay(page: Page) -> None:
    """Let the forms of the page go nowhere, as if no answer came."""
    page.evaluate("addEventListener('submit', (event) => event.preventDefault())")


def test_a_slow_delete_says_that_it_is_under_way(page: Page, community: Community, run: Run) -> None:
    page.goto(f"/admin/forums/{community.news}/delete")
    page.evaluate(_RECORD)
    beside = page.context.new_page()
    beside.goto("/admin/account")
    held: list[Route] = []
    page.route("**/delete", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks what it calls
    page.get_by_role("radio", name="Delete them too").check()
    page.get_by_role("button", name="Delete News").dblclick(no_wait_after=True)
    wait_until(lambda: beside.evaluate("localStorage.said") and held)
    (sent,) = held
    assert sent.request.method == "POST"
    sent.continue_()
    expect(page.locator(".flash")).to_contain_text("News and 3 below it were deleted.")
    expect(page.locator(".working")).to_have_count(0)
    said = page.evaluate("localStorage.said")
    assert said == "Deleting 4 forums… Others can keep reading meanwhile. Buttons: 0."
    assert held == [sent], "a second click sends nothing"
    assert run("forums.list", parentId="root")["totalResults"] == 3


def test_it_says_so_in_a_live_region_with_a_bar(page: Page, community: Community, do: RunForEvent) -> None:
    seq = do("forums.delete", community.news, deleteChildrenOrMove=-1)
    page.clock.install()
    page.goto(f"/admin/events/{seq}/undo")
    _stay(page)
    button = page.get_by_role("button", name="Undo: restore 4 forums")
    button.click()
    working = page.locator(".working")
    expect(button).to_be_disabled()
    assert working.count() == 0  # a quick answer shows nothing of it
    page.clock.run_for(1000)
    expect(working).to_have_text("Restoring 4 forums… Others can keep reading meanwhile.")
    expect(working).to_have_attribute("role", "status")
    expect(working.get_by_role("progressbar")).to_be_visible()
    assert violations(page) == []


def test_what_gets_no_answer_for_long_can_be_sent_again(page: Page, community: Community) -> None:
    page.clock.install()
    page.goto(f"/admin/forums/{community.help}/move")
    _stay(page)
    button = page.locator("form[data-move] .button.primary")
    button.click()
    expect(button).to_be_disabled()
    page.clock.run_for(29_000)
    expect(button).to_be_disabled()
    page.clock.run_for(2_000)
    expect(button).to_be_enabled()
    expect(page.locator("[data-message]")).to_contain_text("You can go on waiting, or send it again: nothing is done twice.")


def test_coming_back_by_the_back_button_lets_the_buttons_go(page: Page, community: Community) -> None:
    page.goto(f"/admin/forums/{community.help}/move")
    _stay(page)
    button = page.locator("form[data-move] .button.primary")
    button.click()
    expect(page.locator(".working")).to_contain_text("Moving Help…")
    expect(button).to_be_disabled()
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    expect(button).to_be_enabled()
    expect(page.locator(".working")).to_have_count(0)


def test_stopping_the_browser_gives_the_buttons_back(page: Page, community: Community) -> None:
    page.goto(f"/admin/forums/{community.wiki}/delete")
    held: list[Route] = []
    page.route("**/delete", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks what it calls
    button = page.get_by_role("button", name="Delete Wiki")
    page.evaluate("document.querySelector('form.card').addEventListener('submit', () => setTimeout(() => window.stop(), 500))")
    button.click(no_wait_after=True)
    wait_until(lambda: page.evaluate("1") and held)
    expect(button).to_be_enabled()
    expect(page.locator("[aria-busy], .working")).to_have_count(0)


def test_what_is_said_at_the_foot_covers_no_button_there(page: Page, community: Community) -> None:
    page.goto(f"/admin/forums/{community.help}")
    page.get_by_label("Name", exact=True).fill("Questions")
    page.context.set_offline(True)
    page.locator(".bar").get_by_role("button", name="Save").click()
    message = page.locator("[data-message]")
    expect(message).to_contain_text("There is no network connection.")
    said, bar = message.bounding_box(), page.locator(".bar").bounding_box()
    assert said is not None
    assert bar is not None
    assert said["y"] + said["height"] <= bar["y"]
    page.context.set_offline(False)
    message.get_by_role("button", name="Try again").click()
    expect(page.locator(".flash")).to_contain_text("Saved")


def test_a_service_on_this_machine_needs_no_network_and_pressing_twice_while_it_is_looked_for_sends_nothing_twice(
    page: Page, community: Community, run: Run
) -> None:
    """As on a journey: the browser says that it is offline, and yet a form can be sent."""
    page.add_init_script("Object.defineProperty(navigator, 'onLine', { get: () => false })")
    page.goto("/admin/forums/new")
    page.get_by_label("Name", exact=True).fill("Made once")
    looking: list[Route] = []
    page.route("**/panel.js", lambda route: looking.append(route))  # noqa: PLW0108  # Playwright marks what it calls
    page.get_by_role("button", name="Create the forum").last.dblclick()
    expect(page.get_by_role("button", name="Create the forum").last).to_have_attribute("aria-busy", "true")
    (asked,) = looking
    asked.continue_()
    page.get_by_text("was created").wait_for()
    assert [one["name"] for one in run("forums.list", search="Made once")["results"]] == ["Made once"]


def _answer_as_proxy(route: Route) -> None:
    route.fulfill(status=502, body="Bad Gateway")


def _refuse_connection(route: Route) -> None:
    route.abort("connectionrefused")


def test_what_was_typed_stays_while_the_service_is_out_of_reach(page: Page) -> None:
    """As while it is restarted: the browser would show a page of its own, or the proxy's, in place of the form."""
    for answer in (_refuse_connection, _answer_as_proxy):
        page.goto("/admin/forums/new")
        page.get_by_label("Name", exact=True).fill("Kept")
        page.route("**/admin/**", answer)
        button = page.get_by_role("button", name="Create the forum").last
        button.click()
        page.get_by_text("The service cannot be reached. Nothing was sent. What you typed is still here.").wait_for()
        expect(page.get_by_label("Name", exact=True)).to_have_value("Kept")
        expect(button).to_be_enabled()
        page.unroute("**/admin/**")
        page.get_by_role("button", name="Try again").click()
        page.get_by_text("Kept was created.").wait_for()


def test_a_service_that_does_not_answer_is_given_up_and_the_form_stays(page: Page, community: Community) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'onLine', { get: () => false })")
    page.goto("/admin/forums/new")
    page.get_by_label("Name", exact=True).fill("Kept")
    page.route("**/panel.js", lambda _: None)  # it hangs
    page.get_by_role("button", name="Create the forum").last.click()
    page.get_by_text("There is no network connection.").wait_for()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Kept")
    expect(page.get_by_role("button", name="Create the forum").last).to_be_enabled()
