"""Dragging in a real Chromium where something goes wrong: no answer, a page that is left, a session that has ended."""

from typing import Final

import pytest
from playwright.sync_api import Dialog, Locator, Page, Route, expect

from tests.admin.conftest import LetIn
from tests.browser import take_hold, wait_until_drawn
from tests.community import Community
from tests.fixture_types import Events, Run
from tests.node_rows import order
from tests.wait import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.usefixtures("community"),
    pytest.mark.parametrize("engine", ["sqlite"], indirect=True),
]

_MOVE: Final = "**/forums/*/move"
_DRAG: Final = "**/forums/many/drag"


def _drag(page: Page, name: str, onto: str, part: float = 0.1) -> None:
    """Drag a node onto a part of another one's row: before it, or into it."""
    take_hold(page, name)
    row = page.locator(".node-row", has=page.get_by_role("link", name=onto, exact=True)).bounding_box()
    assert row is not None
    page.mouse.move(row["x"] + 120, row["y"] + row["height"] * part, steps=4)
    page.mouse.up()


def _tree(page: Page) -> list[str]:
    return page.locator(".tree > .node > .node-row .node-name").all_inner_texts()


def _message(page: Page) -> Locator:
    return page.locator("[data-message]")


def _lose_answer(route: Route) -> None:
    route.fetch()
    route.abort()


def test_a_move_whose_answer_is_lost_is_not_said_to_be_undone(page: Page, run: Run) -> None:
    page.goto("/admin/forums")
    page.route(_MOVE, _lose_answer)
    _drag(page, "Staff", "Help")
    expect(_message(page)).to_contain_text("“Staff” is shown where it was, but may have moved. The service cannot be reached.")
    assert order(run) == ["News", "Staff", "Help", "Wiki"]
    page.unroute(_MOVE)
    expect(page.locator(".tree > .node > .node-row .node-name").nth(1)).to_have_text("Staff")  # the page has found out
    _message(page).get_by_role("button", name="Try again").click()
    expect(_message(page)).to_contain_text("“Staff” is under the top level, before “Help” now.")
    assert _tree(page) == order(run) == ["News", "Staff", "Help", "Wiki"]


def test_nor_is_a_group_whose_answer_is_lost(page: Page, run: Run, events: Events) -> None:
    page.route("**/admin/news*", lambda route: route.abort())  # which would tell the page of it
    page.goto("/admin/forums")
    known = len(events())
    for name in ("Wiki", "Staff"):
        page.get_by_label(f"Choose {name}", exact=True).check()
    page.route(_DRAG, _lose_answer)
    _drag(page, "Staff", "News")
    expect(_message(page)).to_contain_text("They are shown where they were, but may have moved. The service cannot be reached.")
    assert _tree(page) == ["News", "Help", "Wiki", "Staff"]
    page.unroute(_DRAG)
    _message(page).get_by_role("button", name="Try again").click()
    expect(_message(page)).to_contain_text("“Wiki” and one more are under the top level, before “News” now.")
    assert _tree(page) == order(run) == ["Wiki", "Staff", "News", "Help"]
    assert len(events()) == known + 2
    _message(page).get_by_role("button", name="Undo").click()
    expect(_message(page)).to_contain_text("They are back where they were.")
    assert _tree(page) == order(run) == ["News", "Help", "Wiki", "Staff"]


def test_nor_is_one_whose_network_goes_before_the_answer(page: Page, run: Run) -> None:
    def lose_network(route: Route) -> None:
        route.fetch()
        page.context.set_offline(True)
        route.abort()

    page.goto("/admin/forums")
    page.route(_MOVE, lose_network)
    _drag(page, "Staff", "Help")
    expect(_message(page)).to_contain_text("“Staff” is shown where it was, but may have moved. There is no network connection.")
    assert order(run) == ["News", "Staff", "Help", "Wiki"]


def test_an_only_child_that_was_dragged_away_can_be_put_back_after_an_update(page: Page, community: Community, run: Run) -> None:
    page.goto(f"/admin/forums?open={community.news},{community.releases}")
    _drag(page, "Betas", "Staff")
    expect(page.locator(f"#node-{community.releases} > ul")).to_have_count(0)
    _message(page).get_by_role("button", name="Undo").click()
    expect(_message(page)).to_contain_text("“Betas” is back under “Releases”, alone.")
    assert order(run) == ["News", "Help", "Wiki", "Staff"]
    assert order(run, community.releases) == ["Betas"]


def test_so_can_one_whose_level_was_closed(page: Page, community: Community, run: Run) -> None:
    page.goto(f"/admin/forums?open={community.news}")
    _drag(page, "Releases", "Staff")
    expect(_message(page)).to_contain_text("“Releases” is")
    page.get_by_role("link", name="What is under News").click()
    run("forums.create", name="Last")
    expect(page.locator(f"#node-{community.news} > ul")).to_have_count(0)
    _message(page).get_by_role("button", name="Undo").click()
    expect(_message(page)).to_contain_text("“Releases” is back under “News”, before “Interviews”.")
    assert order(run, community.news) == ["Releases", "Interviews"]


def test_so_can_one_that_was_dragged_beyond_the_rows_that_a_page_has(page: Page, community: Community, run: Run) -> None:
    for n in range(101):
        run("forums.create", name=f"No. {n}", parentId=community.help)
    page.goto(f"/admin/forums?open={community.news}")
    _drag(page, "Releases", "Help", 0.5)
    expect(page.locator(f"#node-{community.releases}")).to_have_count(0)
    _message(page).get_by_role("button", name="Undo").click()
    expect(_message(page)).to_contain_text("“Releases” is back under “News”, before “Interviews”.")
    assert order(run, community.news) == ["Releases", "Interviews"]


def test_who_leaves_while_moves_wait_is_asked(page: Page, run: Run) -> None:
    held: list[Route] = []
    page.route(_MOVE, lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks what it calls
    page.goto("/admin/forums")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    _drag(page, "Staff", "News")
    _drag(page, "Wiki", "News")
    page.get_by_role("link", name="Overview", exact=True).click()
    assert asked == ["beforeunload"]
    held[0].continue_()
    expect(_message(page)).to_contain_text("“Staff” is under the top level, before")
    held[1].continue_()
    expect(_message(page)).to_contain_text("“Wiki” is under the top level, before “News” now.")
    assert order(run) == ["Staff", "Wiki", "News", "Help"]
    page.get_by_role("link", name="Overview", exact=True).click()
    page.get_by_role("heading", name="Overview").wait_for()
    assert asked == ["beforeunload"]


def test_the_page_scrolls_while_a_node_is_held_still_at_its_edge(page: Page, run: Run) -> None:
    for number in range(8):
        run("forums.create", name=f"Forum {number}")
    page.set_viewport_size({"width": 1280, "height": 400})
    page.goto("/admin/forums")
    wait_until_drawn(page)
    take_hold(page, "News")

    def hold(y: int, end: str) -> None:
        page.mouse.move(600, y, steps=4)
        wait_until(lambda: bool(page.evaluate(end)))
        expect(page.locator(".ghost")).to_be_visible()

    hold(395, "scrollY > 200 && scrollY === document.documentElement.scrollHeight - innerHeight")
    hold(5, "scrollY === 0")
    page.keyboard.press("Escape")
    expect(page.locator(".ghost")).to_have_count(0)
    page.mouse.up()


def test_after_signing_in_again_elsewhere_it_says_to_reload(page: Page, run: Run, let_in: LetIn) -> None:
    page.route("**/admin/news*", lambda route: route.abort())  # which would tell the page of it
    page.goto("/admin/forums")
    page.context.clear_cookies()
    _drag(page, "Staff", "News")
    expect(_message(page)).to_contain_text("“Staff” is back where it was. You are signed out. Sign in again in another tab.")
    tab = page.context.new_page()
    let_in(tab)
    tab.goto("/admin")
    _message(page).get_by_role("button", name="Try again").click()
    expect(_message(page)).to_contain_text(
        "This page belongs to an earlier session. Nothing was changed. Reload the page and try again."
    )
    assert order(run) == _tree(page) == ["News", "Help", "Wiki", "Staff"]
