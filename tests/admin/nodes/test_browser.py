"""The pages of nodes in a real Chromium: the journeys of an administrator, with scripts and without, and axe on each page."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import LetIn
from tests.browser import LOOKS, bring_axe, faults, list_complaints, opened, search_picker
from tests.community import Community
from tests.fixture_types import Run
from tests.node_rows import order
from tests.service_process import Service

pytestmark = pytest.mark.browser

# As in Firefox and Safari: a dialog gives the focus to its first control, and passes over what only a script can give it to.
_FIRST_CONTROL: Final = """
    const show = HTMLDialogElement.prototype.showModal;
    HTMLDialogElement.prototype.showModal = function () {
        show.call(this);
        this.querySelector("input:not([type=hidden]), button").focus();
    };
"""


@pytest.fixture
def page(chrome: Browser, let_in: LetIn, community: Community, service: Service) -> Iterator[Page]:
    """A page of a window in which Mira is signed in; at the end nothing may have been said on the console."""
    context = opened(chrome, service.address)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    let_in(page)
    yield page
    context.close()
    assert list_complaints(said) == []


def _tree(page: Page) -> list[str]:
    """Return the names that are seen in the tree, from top to bottom."""
    return [name for name in page.locator(".node-name").all_inner_texts() if name]


def _drag(page: Page, name: str, onto: str, part: float) -> None:
    """Drag a node by its handle to a part of another one's row: 0 is its upper edge, 1 the lower."""
    start = page.get_by_role("button", name=f"Move {name}:").bounding_box()
    end = page.locator(".node-row", has=page.get_by_role("link", name=onto, exact=True)).bounding_box()
    assert start is not None
    assert end is not None
    page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + 120, end["y"] + end["height"] * part, steps=8)
    page.mouse.up()


def test_a_forum_is_dragged_before_after_and_into_another(page: Page, community: Community, run: Run) -> None:
    page.goto("/admin/forums")
    _drag(page, "Staff", "Help", 0.1)
    expect(page.get_by_role("status")).to_contain_text("“Staff” is under the top level, before “Help” now.")
    assert _tree(page) == ["News", "Staff", "Help", "Wiki"]
    assert order(run) == ["News", "Staff", "Help", "Wiki"]
    _drag(page, "News", "Wiki", 0.9)
    expect(page.get_by_role("status")).to_contain_text("after “Wiki”")
    assert order(run) == ["Staff", "Help", "Wiki", "News"]
    _drag(page, "Help", "News", 0.5)
    expect(page.get_by_role("status")).to_contain_text("“Help” is under “News”, after “Interviews”")
    assert order(run, community.news) == ["Releases", "Interviews", "Help"]
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("status")).to_contain_text("is back")
    assert order(run) == ["Staff", "Help", "Wiki", "News"]
    page.reload()
    assert _tree(page) == ["Staff", "Help", "Wiki", "News", "Releases", "Interviews"]


def test_ticked_forums_are_dragged_together(page: Page, community: Community, run: Run) -> None:
    page.goto("/admin/forums?open=" + str(community.news))
    for name in ("News", "Releases", "Wiki", "Staff"):  # Releases goes along with News
        page.get_by_label(f"Choose {name}", exact=True).check()
    _drag(page, "Wiki", "Help", 0.5)
    expect(page.locator("[data-message]")).to_contain_text("“News” and 2 more are under “Help”, alone now.")
    assert (order(run), order(run, community.help)) == (["Help"], ["News", "Wiki", "Staff"])
    assert order(run, community.news) == ["Releases", "Interviews"]
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("[data-message]")).to_contain_text("They are back where they were.")
    assert order(run) == ["News", "Help", "Wiki", "Staff"]
    _drag(page, "Help", "News", 0.1)  # it is not ticked
    expect(page.locator("[data-message]")).to_contain_text("“Help” is under the top level, before “News” now.")
    assert order(run) == ["Help", "News", "Wiki", "Staff"]


def test_a_dragged_group_of_which_one_was_changed_goes_back_as_a_whole(page: Page, run: Run, community: Community) -> None:
    page.route("**/admin/news*", lambda route: route.abort())  # which would tell the page of it
    page.goto("/admin/forums")
    for name in ("News", "Help"):
        page.get_by_label(f"Choose {name}", exact=True).check()
    run("forums.update", community.news, name="Press")
    _drag(page, "Help", "Staff", 0.5)
    told = "They are back where they were. The terminal has changed Press since this page was loaded. Nothing was moved."
    expect(page.locator("[data-message]")).to_contain_text(told)
    assert _tree(page) == ["News", "Help", "Wiki", "Staff"]
    assert order(run) == ["Press", "Help", "Wiki", "Staff"]


def test_a_drag_that_somebody_else_has_overtaken_goes_back(page: Page, community: Community, run: Run) -> None:
    page.route("**/admin/news*", lambda route: route.abort())  # which would tell the page of it
    page.goto("/admin/forums")
    run("forums.update", community.staff, name="Crew")
    _drag(page, "Staff", "News", 0.1)
    expect(page.locator("[data-message]")).to_contain_text("The terminal has changed Crew since this page was loaded")
    assert _tree(page) == ["News", "Help", "Wiki", "Staff"]
    assert order(run) == ["News", "Help", "Wiki", "Crew"]


def test_a_forum_is_moved_by_the_keyboard_and_its_undo_leaves_the_focus_on_it(page: Page, community: Community, run: Run) -> None:
    page.goto("/admin/forums")
    page.get_by_role("link", name="Help", exact=True).focus()
    page.keyboard.press("m")
    expect(page.get_by_role("status")).to_contain_text("You are moving “Help”")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("status")).to_contain_text("under “News”, after “Interviews”")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("status")).to_contain_text("before “Interviews”")
    assert order(run) == ["News", "Help", "Wiki", "Staff"]  # not before it is put down
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("is under “News”, before “Interviews” now")
    assert order(run, community.news) == ["Releases", "Help", "Interviews"]
    page.get_by_role("button", name="Move Staff:").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("status")).to_contain_text("before “Wiki”")
    page.keyboard.press("Escape")
    expect(page.get_by_role("status")).to_contain_text("The node is back where it was")
    assert order(run) == ["News", "Wiki", "Staff"]
    link = page.get_by_role("link", name="Staff", exact=True)
    link.focus()
    for key in ("m", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("status")).to_contain_text("“Staff” is under the top level, before “Wiki” now")
    page.locator("[data-message]").get_by_role("button", name="Undo").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("“Staff” is back")
    expect(link).to_be_focused()
    assert order(run) == ["News", "Wiki", "Staff"]


def test_the_arrows_go_through_the_tree(page: Page, community: Community) -> None:
    page.goto("/admin/forums")
    page.get_by_role("link", name="News", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("link", name="Releases", exact=True)).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="Releases", exact=True)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("link", name="News", exact=True)).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("link", name="Staff", exact=True)).to_be_focused()
    assert page.url.endswith(f"?open={community.news}")


def test_the_dialog_moves_and_deletes(page: Page, community: Community, run: Run) -> None:
    page.goto("/admin/forums")
    page.get_by_role("link", name="Move Staff…").click()
    dialog = page.get_by_role("dialog", name="Move Staff")
    search_picker(page, "Under", "relea")
    dialog.get_by_role("radio", name="Releases").check()
    expect(dialog.get_by_role("group", name="Where among 1 forum")).to_be_visible()
    dialog.get_by_label("Before or after which").select_option("Betas")
    dialog.get_by_role("button", name="Move", exact=True).click()
    expect(page.locator(".flash")).to_contain_text("Staff has moved.")
    assert order(run, community.releases) == ["Staff", "Betas"]
    page.get_by_role("link", name="Delete Staff…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete Staff").click()
    expect(page.locator(".flash")).to_contain_text("Staff was deleted.")
    assert order(run, community.releases) == ["Betas"]


def test_a_dialog_begins_with_its_heading_so_that_a_second_enter_deletes_nothing(
    page: Page, community: Community, run: Run
) -> None:
    page.add_init_script(_FIRST_CONTROL)
    page.goto("/admin/forums")
    for verb in ("Delete", "Move", "Copy"):
        page.get_by_role("link", name=f"{verb} Staff…").press("Enter")
        expect(page.get_by_role("dialog").get_by_role("heading", name=f"{verb} Staff")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
    assert [one["id"] for one in run("forums.list", search="Staff")["results"]] == [community.staff]


def test_enter_in_the_reason_deletes_as_the_button_does(page: Page, community: Community, run: Run) -> None:
    """Without children that was always so; with them, Enter pressed the hidden button of the search, and nothing was said."""
    page.goto("/admin/forums")
    page.locator(f"#node-{community.news} > .node-row").get_by_role("link", name="Delete News").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Why").fill("Too quiet")
    dialog.get_by_label("Why").press("Enter")
    expect(page.locator(".notice.bad")).to_contain_text("Choose what happens to its children.")
    assert run("forums.list", parentId="root")["totalResults"] == 4
    page.get_by_role("radio", name="Delete them too").check()
    page.get_by_label("Why").press("Enter")
    expect(page.locator(".flash")).to_contain_text("News and 3 below it were deleted.")
    assert run("events.list", order="newest", limit=1)["results"][0]["reason"] == "Too quiet"


def test_the_grid_ticks_rows_columns_and_everybody(page: Page, community: Community, run: Run) -> None:
    page.goto(f"/admin/forums/{community.wiki}")
    page.get_by_role("button", name="All options: Guests").click()
    page.get_by_role("button", name="All groups individually: Reply").click()
    page.get_by_role("checkbox", name="Every group: view").check()
    expect(page.get_by_role("checkbox", name="Guests: view")).to_be_disabled()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".flash")).to_contain_text("Saved.")
    kept = run("forums.get", community.wiki)["permissions"]
    assert kept == {
        "view": "*",
        "read": [2],
        "add": [2],
        "reply": [2, 3, 4, community.moderators, community.patrons],
        "attachments": [2],
    }
    page.get_by_text("Same as another forum…").click()
    search_picker(page, "Same as another forum", "staff")
    page.get_by_role("radio", name="Staff").check()
    page.get_by_role("button", name="Fill in the grid").click()
    expect(page.get_by_role("checkbox", name="Every group: view")).not_to_be_checked()
    with page.expect_navigation():  # the page still says of the first time that it was saved
        page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".flash")).to_contain_text("Saved.")
    assert run("forums.get", community.wiki)["permissions"]["view"] == [community.moderators]


def test_a_forum_is_made_changed_moved_and_deleted_without_scripts(
    chrome: Browser, let_in: LetIn, community: Community, service: Service, run: Run
) -> None:
    context = opened(chrome, service.address, scripts=False)
    page = context.new_page()
    let_in(page)
    page.goto("/admin/forums")
    page.get_by_role("link", name="New forum", exact=True).click()
    page.get_by_label("Name", exact=True).fill("Lounge")
    page.get_by_label("Kind of forum").select_option("redirect")
    page.get_by_role("button", name="Create the forum").last.click()
    expect(page.get_by_role("alert")).to_contain_text("One field needs another look")
    page.get_by_label("Kind of forum").select_option("discussions")
    page.get_by_role("checkbox", name="Every group: view").check()
    page.get_by_role("button", name="Create the forum").last.click()
    expect(page.get_by_role("status").first).to_contain_text("Lounge was created")
    page.get_by_role("link", name="New forum under Lounge").click()
    page.get_by_label("Name", exact=True).fill("Corner")
    page.get_by_role("button", name="Create the forum").last.click()
    page.get_by_role("link", name="Corner", exact=True).click()
    page.get_by_label("Name", exact=True).fill("Nook")
    page.get_by_role("button", name="Save").last.click()
    expect(page.get_by_role("heading", name="Nook")).to_be_visible()
    number = int(page.url.rpartition("/")[2])
    page.goto(f"/admin/forums/{number}/move")
    page.get_by_label("Under: search by name").fill("news")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("radio", name="News").check()
    page.get_by_role("button", name="Show its children").click()
    page.get_by_role("radio", name="First").check()
    page.get_by_role("button", name="Move", exact=True).last.click()
    expect(page.get_by_role("status").first).to_contain_text("Nook has moved.")
    assert order(run, community.news) == ["Nook", "Releases", "Interviews"]
    page.goto(f"/admin/forums/{community.news}/delete")
    page.get_by_role("radio", name="Delete them too: 5 forums in all").check()
    page.get_by_role("button", name="Delete News").click()
    expect(page.get_by_role("status").first).to_contain_text("News and 4 below it were deleted.")
    assert "News" not in order(run)
    page.go_back()  # to the form that deleted it
    expect(page.get_by_role("status").first).to_contain_text("already been deleted")
    page.goto(f"/admin/groups/{community.patrons}/delete")
    page.get_by_role("button", name="Delete Patrons").click()
    expect(page.get_by_role("status").first).to_contain_text("Patrons was deleted.")
    page.goto("/admin/forums/new")
    assert page.get_by_role("checkbox", name="Patrons: view").count() == 0
    assert page.get_by_role("checkbox", name="Moderators: view").count() == 1
    context.close()


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_axe_finds_nothing(chrome: Browser, let_in: LetIn, community: Community, service: Service, run: Run) -> None:
    context = opened(chrome, service.address)
    page = context.new_page()
    bring_axe(page)
    let_in(page)
    paths = [  # that tests/admin/test_every_page_browser.py does not open
        f"/forums?open={community.news},{community.releases}",
        f"/forums?under={community.betas}",
        f"/groups/{community.patrons}/access?kind=calendars&option=add",
        "/groups/4",
    ]
    found: dict[str, object] = {}
    page.goto(f"/admin/forums/{community.help}")
    run("forums.update", community.help, name="Help and advice")
    page.get_by_label("Name", exact=True).fill("Mine")
    page.get_by_role("button", name="Save").last.click()
    expect(page.get_by_role("alert")).to_contain_text("changed this forum while you were editing it")
    for look in LOOKS:
        wrong: object = faults(page, [look])
        hidden = page.locator(".versions").evaluate("one => one.scrollWidth - one.parentElement.clientWidth")
        if wrong or hidden > 0:
            found[f"conflict {look}"] = wrong or f"{hidden} px hidden"
    for path in paths:
        page.goto(f"/admin{path}")
        if faulty := faults(page, LOOKS[1:]):  # where it is narrow: they have nothing that is not on other pages
            found[path] = faulty
    context.close()
    assert found == {}
