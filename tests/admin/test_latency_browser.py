"""An impatient person in a real Chromium over a slow line, or without one: double clicks, aborted drags, leaving a page."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import BrowserContext, CDPSession, Dialog, Locator, Page, Route, expect

from tests.admin.conftest import PASSWORD
from tests.browser import LOOKS, confirm, faults, take_hold, violations
from tests.community import Community
from tests.fixture_types import Clock, Events, Run
from tests.wait import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.usefixtures("community"),
    pytest.mark.parametrize("engine", ["sqlite"], indirect=True),
]

_LATENCIES: Final = (0, 700)  # milliseconds
_DUPLICATES: Final = "[...document.querySelectorAll('[id]')].map(e => e.id).filter((id, at, all) => all.indexOf(id) !== at)"
_REACHES: Final = "fetch('/livez', {cache: 'no-store'}).then(() => true, () => false)"
# Notes what comes into a live region after the page has come, which is what a screen reader reads out.
_LISTEN: Final = """
addEventListener("DOMContentLoaded", () => {
  window.announced = [];
  new MutationObserver((changes) => {
    for (const change of changes) {
      const region = (change.target.nodeType === 1 ? change.target : change.target.parentElement)?.closest("[role=status]");
      if (region && change.addedNodes.length) window.announced.push(region.textContent.trim());
    }
  }).observe(document.body, { childList: true, subtree: true, characterData: true });
});
"""


class Line:
    """The network between the browser and the service."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._is_cut = False
        self._session: CDPSession = page.context.new_cdp_session(page)
        self._session.send("Network.enable")

    def set(self, latency: int = 0, *, offline: bool = False) -> None:
        """Make it slow, or cut it."""
        self._session.send(
            "Network.emulateNetworkConditions",
            {"offline": offline, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1},
        )
        if offline != self._is_cut:  # the browser's process for the network hears of it a little later
            self._is_cut = offline
            wait_until(lambda: self._page.evaluate(_REACHES) != offline)


@pytest.fixture
def window(window: BrowserContext) -> BrowserContext:
    """A window whose pages note what a screen reader reads out."""
    window.add_init_script(_LISTEN)
    return window


@pytest.fixture
def line(page: Page) -> Line:
    """The network of the page."""
    return Line(page)


def _row(page: Page, name: str) -> Locator:
    return page.locator(".node", has=page.locator(":scope > .node-row").get_by_role("link", name=name, exact=True))


def _row_of(page: Page, node: int) -> Locator:
    """Find what `_row` finds, by its number: in a long tree, `_row` asks every node for the names of all links below it."""
    return page.locator(f"#node-{node}")


def _children(page: Page, name: str) -> Locator:
    return _names_under(_row(page, name))


def _names_under(row: Locator) -> Locator:
    return row.locator(":scope > ul > .node > .node-row .node-name")


def _arrow(page: Page, name: str) -> Locator:
    return page.get_by_role("link", name=f"What is under {name}", exact=True)


def _middle(page: Page, name: str) -> tuple[float, float]:
    return _middle_of(_row(page, name))


def _middle_of(row: Locator) -> tuple[float, float]:
    box = row.locator(":scope > .node-row").bounding_box()
    assert box is not None
    return box["x"] + 120, box["y"] + box["height"] / 2


def _wait(page: Page, holds: Callable[[], object]) -> None:
    """Wait for something that the browser tells."""
    wait_until(lambda: bool(page.context.cookies()) and holds())  # asking it lets Playwright hear of the rest


def _message(page: Page) -> Locator:
    return page.locator("[data-message]")


def test_a_double_click_opens_once_whatever_the_line(page: Page, line: Line, community: Community) -> None:
    for latency in _LATENCIES:
        page.goto("/admin/forums")
        line.set(latency)
        _arrow(page, "News").dblclick()
        expect(_children(page, "News")).to_have_text(["Releases", "Interviews"])
        expect(_arrow(page, "News")).to_have_attribute("aria-expanded", "true")
        page.get_by_role("link", name="Move Staff…").dblclick()
        expect(page.get_by_role("dialog")).to_have_count(1)
        assert page.evaluate(_DUPLICATES) == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_role("link", name="Move Staff…")).to_be_focused()
        line.set()
    assert page.url.endswith(f"/forums?open={community.news}")
    line.set(3_000)  # nothing has come before the second click, on a busy machine, too
    page.get_by_role("link", name="Move Staff…").click()
    page.get_by_role("link", name="Delete Staff…").click()  # the last one counts
    expect(page.get_by_role("dialog", name="Delete Staff")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(1)


def test_a_slow_control_says_that_it_is_busy(page: Page, community: Community) -> None:
    held: list[Route] = []
    page.route("**/forums/level?**", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks what it calls
    page.goto("/admin/forums")
    _arrow(page, "News").click()
    expect(_arrow(page, "News")).to_have_attribute("aria-busy", "true")
    assert violations(page) == []
    _wait(page, lambda: held)
    (asked,) = held
    asked.continue_()
    expect(_children(page, "News")).to_have_count(2)
    expect(_arrow(page, "News")).not_to_have_attribute("aria-busy", "true")


def test_more_rows_come_once(page: Page, line: Line, run: Run) -> None:
    names = [f"Forum {number}" for number in range(102)]
    shelf = run("forums.create", name="Shelf")["id"]
    for name in names:
        run("forums.create", name=name, parentId=shelf)
    page.goto(f"/admin/forums?open={shelf}")
    line.set(150)
    page.locator("[data-more]").dblclick()
    expect(_names_under(_row_of(page, shelf)).last).to_have_text("Forum 101")
    assert page.evaluate(_DUPLICATES) == []
    assert _names_under(_row_of(page, shelf)).all_inner_texts() == names


def test_a_drag_opens_nothing_that_the_pointer_has_left(page: Page, community: Community, run: Run) -> None:
    held: list[Route] = []
    page.route("**/forums/level?**", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks what it calls
    page.goto("/admin/forums")
    take_hold(page, "Staff")
    page.mouse.move(*_middle(page, "News"), steps=4)
    _wait(page, lambda: held)  # it has rested there, and the children are asked for
    x, y = _middle(page, "Help")
    page.mouse.move(x, y, steps=4)
    with page.expect_response("**/forums/level?**"):
        held[0].continue_()
    page.mouse.up()
    expect(_message(page)).to_contain_text("“Staff” is under “Help”, alone now.")
    expect(_arrow(page, "News")).to_have_attribute("aria-expanded", "false")
    assert [one["name"] for one in run("forums.list", parentId=community.help)["results"]] == ["Staff"]


def test_a_drag_drops_where_the_pointer_is_after_a_branch_has_opened_below_it(page: Page, community: Community, run: Run) -> None:
    page.goto("/admin/forums")
    take_hold(page, "Staff")
    page.mouse.move(*_middle(page, "News"), steps=4)
    expect(_children(page, "News")).to_have_count(2)
    page.mouse.move(*_middle(page, "Releases"), steps=2)
    page.mouse.up()
    expect(_message(page)).to_contain_text("“Staff” is under “Releases”")
    assert {one["name"] for one in run("forums.list", parentId=community.releases)["results"]} == {"Betas", "Staff"}


def test_what_a_drag_has_opened_stays_open_when_the_page_is_brought_up_to_date(page: Page, community: Community, run: Run) -> None:
    page.goto("/admin/forums")
    take_hold(page, "Staff")
    page.mouse.move(*_middle(page, "Help"), steps=4)
    page.mouse.up()
    expect(_message(page)).to_contain_text("“Staff” is under “Help”")
    expect(_children(page, "Help")).to_have_text(["Staff"])
    run("forums.update", community.news, name="Bulletin")
    expect(_row(page, "Bulletin")).to_be_visible()
    expect(_children(page, "Help")).to_have_text(["Staff"])
    page.reload()
    expect(_children(page, "Help")).to_have_text(["Staff"])


def test_an_aborted_drag_leaves_everything(page: Page, community: Community, events: Events) -> None:
    before = events()
    page.goto("/admin/forums")
    ticked = page.get_by_role("checkbox", name="Choose Help")
    ticked.check()
    x, y = _middle(page, "News")
    take_hold(page, "Staff")
    page.mouse.move(x, y, steps=4)
    expect(page.locator(".ghost")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".ghost, .dragging, .drop-into, .sorting")).to_have_count(0)
    page.mouse.move(x, y + 1)
    page.mouse.up()
    expect(ticked).to_be_checked()  # only the drag was cancelled
    page.clock.install()
    take_hold(page, "Staff")
    page.mouse.move(x, y, steps=4)
    page.evaluate("document.querySelector('.handle:active, .dragging .handle').dispatchEvent(new PointerEvent('pointercancel'))")
    page.clock.run_for(2000)
    expect(page.locator(".ghost, .dragging, .drop-into")).to_have_count(0)
    expect(_arrow(page, "News")).to_have_attribute("aria-expanded", "false")
    page.mouse.up()
    assert events() == before


def test_the_counts_follow_a_drag(page: Page, line: Line, community: Community) -> None:
    page.goto("/admin/forums")
    lead = page.locator(".head p.quiet")
    expect(lead).to_have_text("7 forums, 4 at the top level")
    line.set(150)
    for name in ("Staff", "Wiki"):
        take_hold(page, name)
        page.mouse.move(*_middle(page, "Help"), steps=4)
        page.mouse.up()
        expect(_message(page)).to_contain_text(f"“{name}” is under “Help”")
    expect(lead).to_have_text("7 forums, 2 at the top level")
    expect(_row(page, "Help").locator(":scope > .node-row .node-count")).to_have_text("2")
    _message(page).get_by_role("button", name="Undo").click()
    expect(lead).to_have_text("7 forums, 3 at the top level")


def test_moves_are_sent_one_after_the_other(page: Page, line: Line, community: Community, run: Run) -> None:
    page.goto("/admin/forums")
    line.set(300)
    for name, onto in (("Staff", "Help"), ("Staff", "News"), ("Wiki", "Help")):  # without waiting for any answer
        take_hold(page, name)
        x, y = _middle(page, onto)
        page.mouse.move(x, y - 12, steps=4)
        page.mouse.up()
    expect(_message(page)).to_contain_text("“Wiki” is under the top level, before “Help” now.")
    assert [one["name"] for one in run("forums.list", parentId="root", sortBy="position")["results"]] == [
        "Staff",
        "News",
        "Wiki",
        "Help",
    ]


def test_a_move_that_fails_goes_back_though_more_rows_have_come_meanwhile(page: Page, community: Community, run: Run) -> None:
    names = [f"Forum {number}" for number in range(102)]
    shelf = run("forums.create", name="Shelf")["id"]
    numbers = [run("forums.create", name=name, parentId=shelf)["id"] for name in names]
    held: list[Route] = []
    page.route("**/forums/*/move", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks what it calls
    page.goto(f"/admin/forums?open={shelf}")
    _row_of(page, numbers[99]).scroll_into_view_if_needed()
    take_hold(page, "Forum 99")
    x, y = _middle_of(_row_of(page, numbers[97]))
    page.mouse.move(x, y - 12, steps=4)
    page.mouse.up()
    _wait(page, lambda: held)
    page.locator("[data-more]").click()
    expect(_names_under(_row_of(page, shelf)).last).to_have_text("Forum 101")
    held.pop().abort()
    expect(_message(page)).to_contain_text("“Forum 99” is shown where it was, but may have moved.")
    assert _names_under(_row_of(page, shelf)).all_inner_texts() == names


def test_without_a_network_plain_words_and_another_try(page: Page, line: Line, community: Community, run: Run) -> None:
    page.goto("/admin/forums")
    line.set(offline=True)
    take_hold(page, "Staff")
    page.mouse.move(*_middle(page, "Help"), steps=4)
    page.mouse.up()
    expect(_message(page)).to_contain_text("“Staff” is back where it was. There is no network connection.")
    assert page.locator(".tree > .node > .node-row .node-name").all_inner_texts() == ["News", "Help", "Wiki", "Staff"]
    line.set()
    _message(page).get_by_role("button", name="Try again").click()
    expect(_message(page)).to_contain_text("“Staff” is under “Help”")
    for control, then in (
        (_arrow(page, "News"), _children(page, "News").first),
        (page.get_by_role("link", name="Delete Wiki…"), page.get_by_role("dialog", name="Delete Wiki")),
    ):
        line.set(offline=True)
        control.click()
        expect(_message(page).get_by_role("status")).to_have_text("There is no network connection.")
        expect(control).to_be_focused()
        assert violations(page) == []
        line.set()
        _message(page).get_by_role("button", name="Try again").click()
        expect(then).to_be_visible()
    line.set(offline=True)
    button = page.get_by_role("dialog").get_by_role("button", name="Delete Wiki")
    button.click()  # an ordinary form
    expect(_message(page).get_by_role("status")).to_have_text("There is no network connection. Nothing was sent.")
    expect(button).to_be_enabled()
    line.set()
    _message(page).get_by_role("button", name="Try again").click()
    expect(page.locator(".flash")).to_contain_text("Wiki was deleted.")
    assert "Wiki" not in {one["name"] for one in run("forums.list", parentId="root")["results"]}


def test_a_picker_and_the_grid_offer_another_try(page: Page, line: Line, community: Community) -> None:
    page.goto(f"/admin/forums/{community.help}")
    page.get_by_text("Same as another forum…").click()
    line.set(offline=True)
    search = page.get_by_label("Same as another forum: search by name")
    search.fill("staff")
    expect(_message(page)).to_contain_text("There is no network connection.")
    expect(search).to_be_focused()
    line.set(150)
    _message(page).get_by_role("button", name="Try again").click()
    page.get_by_role("group", name="Same as another forum").get_by_role("radio", name="Staff").check()
    line.set(offline=True)
    page.get_by_role("button", name="Fill in the grid").click()
    expect(_message(page)).to_contain_text("There is no network connection.")
    line.set()
    _message(page).get_by_role("button", name="Try again").click()
    expect(_message(page)).to_contain_text("The grid is filled in but not saved yet.")
    expect(page.get_by_role("checkbox", name="Every group: view")).not_to_be_checked()


def test_what_is_typed_before_the_scripts_have_come_is_searched_for(page: Page, community: Community) -> None:
    held: list[Route] = []
    page.route("**/nodes.js", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks what it calls
    page.goto(f"/admin/forums/{community.help}", wait_until="commit")
    page.get_by_text("Same as another forum…").click()
    page.get_by_label("Same as another forum: search by name").fill("staff")
    _wait(page, lambda: held)
    for asked in held:
        asked.continue_()
    expect(page.get_by_role("group", name="Same as another forum").get_by_role("status")).to_have_text("1 found.")


def test_an_edited_form_is_not_left_without_a_word(page: Page, community: Community, run: Run) -> None:
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", answer)
    here = f"/admin/forums/{community.help}"
    page.goto(here)
    page.get_by_role("link", name="Calendars").click()  # nothing was typed
    expect(page.get_by_role("heading", name="Calendars")).to_be_visible()
    page.goto(here)
    page.get_by_label("Name", exact=True).fill("Help and advice")
    page.get_by_role("link", name="Calendars").click(no_wait_after=True)
    _wait(page, lambda: asked == ["beforeunload"])
    expect(page.get_by_label("Name", exact=True)).to_have_value("Help and advice")
    page.get_by_label("Name", exact=True).fill("")
    page.get_by_label("Name", exact=True).fill("x" * 300)
    page.get_by_role("button", name="Save", exact=True).click()  # saving asks nothing; it is refused
    expect(page.get_by_role("alert")).to_contain_text("Nothing has been saved yet")
    page.get_by_role("link", name="Calendars").click(no_wait_after=True)
    _wait(page, lambda: len(asked) == 2)
    page.get_by_label("Name", exact=True).fill("Advice")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".flash")).to_contain_text("Saved.")
    _wait(page, lambda: page.evaluate("announced.includes('Saved.')"))
    page.get_by_label("Name", exact=True).fill("Another")
    page.get_by_role("link", name="Cancel").click()  # that is meant
    expect(page.get_by_role("heading", name="Forums")).to_be_visible()
    page.get_by_role("link", name="Move Staff…").click()
    page.get_by_role("dialog").get_by_role("radio", name="First").check()
    page.keyboard.press("Escape")
    _wait(page, lambda: asked[2:] == ["confirm"])
    expect(page.get_by_role("dialog", name="Move Staff")).to_be_visible()
    page.get_by_role("dialog").get_by_role("link", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert asked == ["beforeunload", "beforeunload", "confirm"]
    assert run("forums.get", community.help)["name"] == "Advice"


def test_what_was_typed_is_there_again_after_going_back(page: Page, community: Community) -> None:
    """As it was before the page was left. Browsers leave out what is in a field without autocompletion."""
    page.on("dialog", lambda dialog: dialog.accept())
    for path, label in ((f"/admin/forums/{community.help}", "Name"), (f"/admin/forums/{community.wiki}/delete", "Why")):
        page.goto(path)
        page.get_by_label(label, exact=label == "Name").fill("Typed and not saved")
        page.get_by_role("link", name="Calendars").click()
        page.get_by_role("heading", name="Calendars").wait_for()
        page.go_back()
        expect(page.get_by_label(label, exact=label == "Name")).to_have_value("Typed and not saved")


def test_a_key_that_nobody_has_copied_is_not_left_without_a_word(page: Page, run: Run) -> None:
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", answer)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for copies in (True, False):
        page.goto("/admin/keys/new")
        confirm(page, PASSWORD)
        page.get_by_label("Name", exact=True).fill("Importer")
        page.get_by_role("button", name="Create the key").dblclick()
        expect(page.locator("#new-key")).to_be_visible()
        page.get_by_role("link", name="Calendars").click(no_wait_after=True)
        _wait(page, lambda: asked == ["beforeunload"])
        expect(_message(page)).to_contain_text("This has not been copied yet and cannot be shown again.")
        asked.clear()
        if copies:
            page.locator("button[data-copy=new-key]").click()
            expect(_message(page)).to_contain_text("Copied.")
            page.get_by_role("link", name="Calendars").click()
            expect(page.get_by_role("heading", name="Calendars")).to_be_visible()
        else:
            page.get_by_role("link", name="I have copied it").click()
            expect(page.get_by_role("heading", name="Importer")).to_be_visible()
        assert asked == []
    assert run("keys.list")["totalResults"] == 2  # one of each double click


def test_a_double_click_on_a_form_sends_one_request(page: Page, line: Line, community: Community, events: Events) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    for latency in _LATENCIES:
        sent.clear()
        before = len(events())
        page.goto("/admin/forums/new")
        page.get_by_label("Name", exact=True).fill(f"After {latency} ms")
        line.set(latency)
        page.get_by_role("button", name="Create the forum").last.dblclick(no_wait_after=True)
        expect(page.locator(".flash")).to_contain_text(f"After {latency} ms was created.")
        line.set()
        assert (len(sent), len(events()) - before) == (1, 1)
    page.go_back()  # to the form
    expect(page.get_by_role("button", name="Create the forum").last).to_be_enabled()


def test_a_field_is_asked_for_only_where_it_counts(page: Page, community: Community, run: Run) -> None:
    page.goto(f"/admin/forums/{community.help}")
    address, kind = page.get_by_label("Address it leads to"), page.get_by_label("Kind of forum")
    expect(address).to_be_hidden()
    kind.select_option("redirect")
    expect(address).to_be_visible()
    address.fill("no address")
    kind.select_option("category")
    expect(address).to_be_hidden()
    address.evaluate("field => (field.value = '')")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".flash")).to_contain_text("Saved.")
    assert run("forums.get", community.help)["type"] == "category"
    page.goto(f"/admin/forums/{community.wiki}")
    expect(address).to_have_value("https://wiki.example/")


def test_the_active_entry_does_not_shift_the_menu(page: Page, community: Community) -> None:
    def places() -> list[int]:
        return [round(top) for top in page.eval_on_selector_all(".side li a", "all => all.map(e => e.getBoundingClientRect().top)")]

    page.goto("/admin")
    before = places()
    for name in ("Download categories", "Administrators"):
        page.locator(".side").get_by_role("link", name=name).click()
        expect(page.locator(".side [aria-current]")).to_have_text(name)
        assert places() == before


@pytest.fixture
def old_key(run: Run, clock: Clock) -> None:
    """A key that was made long before the service was started."""
    clock.move(days=-300)
    run("keys.create", name="Importer", grants=["forums.list", "forums.get", "forums.delete"])
    clock.move(days=300)


def test_unused_grants_go_by_choice_and_come_back(old_key: None, page: Page, run: Run) -> None:
    del old_key  # it comes before the page
    page.goto("/admin/keys/new")
    confirm(page, PASSWORD)
    expect(page.get_by_role("heading", name="Create an API key")).to_be_visible()
    page.goto("/admin/keys/1")
    assert faults(page, LOOKS[1:]) == {}  # as what follows: it has nothing that is not on other pages
    page.get_by_role("checkbox", name="forums.list").uncheck()
    page.get_by_role("button", name="Remove the ticked grants").dblclick()
    expect(page.locator(".flash")).to_contain_text("2 unused grants were removed.")
    assert run("keys.get", 1)["grants"] == ["forums.list"]
    page.get_by_role("link", name="Undo…", exact=True).first.click()
    expect(page.get_by_text("will be changed back, and may then be able to do more than now")).to_be_visible()
    assert faults(page, LOOKS[:1]) == {}
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".flash")).to_contain_text("is as it was before event")
    assert run("keys.get", 1)["grants"] == ["forums.delete", "forums.get", "forums.list"]
