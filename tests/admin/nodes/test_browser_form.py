"""A node's form in a real Chromium: what counts with the kind of forum, and the preview of HTML, also without scripts; and axe."""

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.admin.conftest import LetIn
from tests.browser import faults, list_complaints, opened, wait_until_drawn
from tests.community import Community
from tests.fixture_types import Run
from tests.service_process import Service
from tests.wait import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]
HTML = '<p onclick="x()">Say <b>hello</b></p><script>alert(1)</script><a href="https://elsewhere.example/">Away</a>'


def test_the_form_shows_what_counts_and_what_html_becomes(
    chrome: Browser, let_in: LetIn, community: Community, service: Service
) -> None:
    said: list[str] = []
    first = opened(chrome, service.address)
    page = first.new_page()
    page.on("console", lambda message: said.append(message.text))
    let_in(page)
    for context in (first, opened(chrome, service.address, scripts=False, state=first.storage_state())):
        page = page if context is first else context.new_page()
        page.goto(f"/admin/forums/{community.help}")
        address, others = page.get_by_label("Address it leads to"), page.get_by_label("Members see each other's topics")
        expect(address).to_be_hidden()
        expect(others).to_be_visible()
        expect(page.get_by_label("Theme id")).to_be_hidden()
        page.get_by_label("Kind of forum").select_option("redirect")
        button = page.get_by_role("button", name="Show the fields of this kind")
        expect(button).to_be_visible(visible=context is not first)
        if context is not first:
            button.click()
        expect(address).to_be_visible()
        expect(others).to_be_hidden()
        page.get_by_label("Description").fill(HTML)
        page.get_by_role("button", name="Preview of Description").click()
        frame = page.frame_locator("iframe[title='Description as it would be saved']")
        expect(frame.get_by_text("Say hello")).to_be_visible()
        expect(frame.locator("script, [onclick]")).to_have_count(0)
        expect(address).to_be_visible()
        page.get_by_text("Advanced settings").click()
        expect(page.get_by_label("Theme id")).to_be_visible()
        if context is first:
            assert faults(page) == {}
    assert [text for text in list_complaints(said) if "postMessage" not in text] == []  # axe asks the frame
    for context in chrome.contexts:
        context.close()


def test_a_preview_that_there_is_none_of_says_why(chrome: Browser, let_in: LetIn, community: Community, service: Service) -> None:
    """As after the session has ended: the button must not do nothing."""
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    page.goto(f"/admin/forums/{community.help}")
    page.get_by_label("Description").fill(HTML)
    context.clear_cookies()
    page.get_by_role("button", name="Preview of Description").click()
    expect(page.locator("[data-message]")).to_contain_text("No preview available. You are signed out.")
    expect(page.get_by_label("Description")).to_have_value(HTML)
    context.close()


def test_the_head_of_the_grid_does_not_cover_the_buttons_at_the_foot(page: Page, community: Community) -> None:
    page.goto(f"/admin/forums/{community.staff}")
    save = page.locator(".bar").get_by_role("button", name="Save")
    page.locator(".may thead th").first.evaluate(
        "(head, bar) => scrollBy(0, head.getBoundingClientRect().bottom - bar.getBoundingClientRect().bottom)",
        page.locator(".bar").element_handle(),
    )
    at_its_middle = (
        "save => { const { x, y, width, height } = save.getBoundingClientRect();"
        " return save.contains(document.elementFromPoint(x + width / 2, y + height / 2)); }"
    )
    assert save.evaluate(at_its_middle)


def test_back_leads_to_a_form_that_was_refused_and_not_to_an_error_of_the_browser(page: Page, run: Run) -> None:
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/admin/forums/new")
    page.get_by_label("Name", exact=True).fill(" ")
    page.get_by_label("Description", exact=True).fill("Typed once")
    page.get_by_role("button", name="Create the forum").last.click()
    page.locator("#form-faults").wait_for()

    def come_back() -> None:
        page.go_back()
        expect(page.get_by_role("heading", name="New forum")).to_be_visible()
        expect(page.get_by_label("Description", exact=True)).to_have_value("Typed once")

    page.get_by_role("link", name="Calendars").first.click()
    page.get_by_role("heading", name="Calendars").wait_for()
    come_back()
    wait_until_drawn(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("calendars")
    page.get_by_role("option", name="Calendars").first.wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Calendars").wait_for()
    come_back()
    assert run("forums.list")["totalResults"] == 0
    page.get_by_label("Name", exact=True).fill("Garden")
    page.get_by_role("button", name="Create the forum").last.click()
    page.get_by_text("Garden was created.").wait_for()
    come_back()
    assert run("forums.list")["totalResults"] == 1


def test_after_the_back_button_a_form_that_created_something_leads_to_that(page: Page, run: Run) -> None:
    page.goto("/admin/forums/new")
    for before in ("the button", "back", "the menu"):
        if before == "back":
            page.go_back()
            expect(page.get_by_label("Name", exact=True)).to_have_value("Garden")
        elif before == "the menu":
            page.get_by_role("link", name="New forum").first.click()
            page.get_by_role("heading", name="New forum").wait_for()
        page.get_by_label("Name", exact=True).fill("Garden")
        page.get_by_role("button", name="Create the forum").last.click()
        page.get_by_text("Garden was created.").wait_for()
        assert run("forums.list")["totalResults"] == (2 if before == "the menu" else 1)


def test_after_the_back_button_it_does_so_too_if_the_scripts_are_late(page: Page, run: Run) -> None:
    """In another language they wait for their texts, and a browser may have shown the page by then."""
    page.set_extra_http_headers({"accept-language": "de"})
    page.goto("/admin/forums/new")
    page.evaluate("async () => { await import(document.querySelector('script[src*=\"/panel.js\"]').src); }")  # it has run
    page.get_by_label("Name", exact=True).fill("Garden")
    token = page.locator("form[data-creates] [name=_submission]")
    sent = token.input_value()
    page.get_by_role("button", name="anlegen").last.click()
    page.get_by_text("Garden wurde angelegt.").wait_for()
    held: list[Route] = []
    page.route("**/texts-de.json", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks what it calls
    page.go_back()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Garden")
    wait_until(lambda: page.evaluate("1") and held)
    held.pop().continue_()
    expect(token).to_have_value(sent)
    page.get_by_role("button", name="anlegen").last.click()
    page.get_by_text("Garden wurde angelegt.").wait_for()
    assert run("forums.list")["totalResults"] == 1


def test_where_the_browser_restores_nothing_after_the_back_button_the_form_is_a_new_one(page: Page, run: Run) -> None:
    """Firefox and Safari do not: pages are not stored."""
    page.goto("/admin/forums/new")
    for number, name in enumerate(("Garden", "Orchard"), 1):
        expect(page.get_by_label("Name", exact=True)).to_have_value("")
        page.get_by_label("Name", exact=True).fill(name)
        page.locator("form[data-creates]").evaluate("form => { form.autocomplete = 'off'; }")
        page.get_by_role("button", name="Create the forum").last.click()
        page.get_by_text(f"{name} was created.").wait_for()
        assert run("forums.list")["totalResults"] == number
        page.go_back()


def test_after_the_back_button_the_form_shows_what_it_sends(
    chrome: Browser, let_in: LetIn, community: Community, service: Service, run: Run
) -> None:
    """The browser restores ticks and choices by itself, after the scripts have run and without a word to them."""
    context = opened(chrome, service.address)
    page = context.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    let_in(page)

    def come_back() -> None:
        page.get_by_role("link", name="Overview").click()
        page.get_by_role("heading", name="Overview").wait_for()
        page.go_back()
        wait_until_drawn(page)

    page.goto(f"/admin/forums/{community.staff}")
    before = run("forums.get", community.staff)["permissions"]
    guests = page.locator(".may input[data-groups='2']:enabled").first
    guests.check()
    page.get_by_label("Kind of forum").select_option("redirect")
    come_back()
    expect(page.get_by_label("Kind of forum")).to_have_value("redirect")
    expect(page.get_by_label("Address it leads to")).to_be_visible()
    expect(guests).not_to_be_checked()
    page.get_by_label("Kind of forum").select_option("discussions")
    page.locator(".bar").get_by_role("button", name="Save").click()
    page.locator(".flash").wait_for()
    assert run("forums.get", community.staff)["permissions"] == before

    page.goto(f"/admin/blogs/{run('blogs.list')['results'][0]['id']}")
    everyone, *others = page.locator("[data-everyone] input[type=checkbox]").all()
    is_everyone = not everyone.is_checked()
    everyone.set_checked(is_everyone)
    come_back()
    expect(everyone).to_be_checked(checked=is_everyone)
    for one in others:
        expect(one).to_be_enabled(enabled=not is_everyone)
    context.close()
