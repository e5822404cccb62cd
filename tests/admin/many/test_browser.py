"""Permissions of many groups, and many nodes at once, in a real Chromium: with scripts and without, and axe on each page."""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import LetIn
from tests.browser import LOOKS, Theme, faults, list_complaints, opened
from tests.community import Community
from tests.fixture_types import Run
from tests.node_rows import order
from tests.service_process import Service
from trellis.admin.nodes.grid import FOLDS_FROM

pytestmark = pytest.mark.browser


class OpenPanel(Protocol):
    """Opens the panel in a window of its own: `panel(scripts=False)`."""

    def __call__(self, *, scripts: bool) -> Page: ...


@pytest.fixture
def panel(chrome: Browser, let_in: LetIn, community: Community, service: Service) -> Iterator[OpenPanel]:
    """Mira in front of the panel, with scripts or without; at the end nothing may have been said on the console."""
    said: list[str] = []
    contexts = []

    def make(*, scripts: bool) -> Page:
        context = opened(chrome, service.address, scripts=scripts)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        let_in(page)
        return page

    yield make
    for context in contexts:
        context.close()
    assert list_complaints(said) == []


def _create_groups(run: Run, many: int = 60) -> list[int]:
    return [int(run("groups.create", name=f"Chapter {number:03}")["id"]) for number in range(many)]


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_sixty_groups_are_folded_found_and_ticked(panel: OpenPanel, community: Community, run: Run, scripts: bool) -> None:
    chapters = _create_groups(run)
    run("forums.update", community.wiki, permissions={"view": [], "read": chapters[:30]})
    page = panel(scripts=scripts)
    page.goto(f"/admin/forums/{community.wiki}")
    expect(page.get_by_text("Nobody may view this forum")).to_be_visible()
    expect(page.get_by_role("checkbox", name="Chapter 000, Chapter 001 and 28 more: read")).to_be_checked()
    rest = page.get_by_role("checkbox", name="Moderators, Patrons and 30 more: read")
    expect(rest).not_to_be_checked()
    page.get_by_role("checkbox", name="Chapter 000, Chapter 001 and 28 more: view").check()
    if scripts:
        expect(page.get_by_text("Nobody may view this forum")).to_be_hidden()
    page.get_by_label("Filter groups by name").fill("chapter 02")
    if not scripts:
        page.get_by_role("button", name="Find", exact=True).first.click()
        expect(page.get_by_text("Nobody may view this forum")).to_be_hidden()
    expect(page.get_by_role("checkbox", name="Guests: view")).to_be_hidden()
    expect(page.get_by_role("checkbox", name="Chapter 022: view")).to_be_checked()
    page.get_by_role("checkbox", name="Chapter 022: view").uncheck()
    page.get_by_label("Filter groups by name").fill("")
    if not scripts:
        page.get_by_role("button", name="Find", exact=True).first.click()
    page.get_by_role("button", name="Unfold Moderators, Patrons and 30 more").click()
    page.get_by_role("checkbox", name="Chapter 059: reply").check()
    with page.expect_request(lambda request: request.method == "POST") as sent:
        page.get_by_role("button", name="Save", exact=True).last.click()
    expect(page.locator(".flash")).to_contain_text("Saved.")
    assert len(parse_qsl(sent.value.post_data or "", keep_blank_values=True)) < (30 if scripts else 200)
    kept = run("forums.get", community.wiki)["permissions"]
    assert kept["view"] == [one for one in chapters[:30] if one != chapters[22]]
    assert (kept["read"], kept["reply"]) == (chapters[:30], [chapters[59]])


def test_permissions_are_applied_to_everything_below_and_undone(panel: OpenPanel, community: Community, run: Run) -> None:
    page = panel(scripts=True)
    page.goto(f"/admin/forums/{community.news}")
    page.get_by_role("checkbox", name="Patrons: reply").check()
    page.get_by_role("button", name="Apply to everything below…").click()
    expect(page.get_by_text("4 forums would change")).to_be_visible()
    page.get_by_role("button", name="Change 4 forums").click()
    expect(page.locator(".flash")).to_contain_text("4 changed")
    wanted = run("forums.get", community.news)["permissions"]
    assert community.patrons in wanted["reply"]
    assert run("forums.get", community.betas)["permissions"] == wanted
    page.get_by_role("link", name="Undo…").click()
    page.get_by_role("button", name="Undo 4 events").click()
    expect(page.locator(".flash")).to_contain_text("4 events were undone.")
    assert run("forums.get", community.betas)["permissions"]["read"] == [community.patrons]


def test_rows_are_chosen_by_mouse_and_keyboard(panel: OpenPanel, community: Community, run: Run) -> None:
    page = panel(scripts=True)
    page.goto("/admin/forums")
    bar = page.locator("[data-many]")
    expect(bar).to_be_hidden()
    expect(page.locator(f"#node-{community.staff} .lock")).to_contain_text("Guests cannot view it")
    page.get_by_role("checkbox", name="Choose News").check()
    page.get_by_role("checkbox", name="Choose Wiki").click(modifiers=["Shift"])
    expect(bar).to_contain_text("3 forums chosen")
    made = run("forums.create", name="Arrived meanwhile")["id"]
    expect(page.locator(f"#node-{made}")).to_be_visible()
    run("forums.delete", made)
    expect(page.locator(f"#node-{made}")).to_have_count(0)
    expect(bar).to_contain_text("3 forums chosen")
    expect(bar).to_have_css("position", "sticky")
    bar.get_by_role("button", name="All on this page").click()
    expect(bar).to_contain_text("4 forums chosen")
    bar.get_by_role("button", name="None").click()
    expect(bar).to_be_hidden()
    page.get_by_role("link", name="Help", exact=True).focus()
    page.keyboard.press("x")
    expect(bar).to_contain_text("1 forum chosen")
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    page.keyboard.press("x")
    expect(bar).to_contain_text("1 forum chosen")
    page.keyboard.press("Shift+ArrowDown")
    expect(page.get_by_role("link", name="Wiki", exact=True)).to_be_focused()
    expect(bar).to_contain_text("2 forums chosen")
    bar.get_by_role("button", name="Move…").click()
    expect(page.get_by_role("heading", name="Move 2 forums")).to_be_visible()
    page.get_by_role("radio", name="News").check()
    page.get_by_role("button", name="Show what would change").last.click()
    expect(page.get_by_text("Help → News > Help")).to_be_visible()
    expect(page.get_by_role("heading", name="2 forums would change")).to_be_focused()
    page.get_by_role("button", name="Move 2 forums").click()
    expect(page.locator(".flash")).to_contain_text("2 forums have moved.")
    assert order(run) == ["News", "Staff"]
    page.get_by_role("link", name="Undo…").click()
    page.get_by_role("button", name="Undo 2 events").click()
    expect(page.locator(".flash")).to_contain_text("2 events were undone.")
    assert order(run) == ["News", "Help", "Wiki", "Staff"]


def test_escape_also_unticks_what_is_below_a_closed_node(page: Page, community: Community) -> None:
    """Otherwise it would be deleted along with what is ticked next."""
    page.goto(f"/admin/forums?open={community.news}")
    page.get_by_role("checkbox", name="Choose Releases").check()
    page.get_by_role("link", name="What is under News").click()
    bar = page.locator("[data-many]")
    expect(bar).to_contain_text("1 forum chosen")
    page.get_by_role("link", name="News", exact=True).press("Escape")
    expect(bar).to_be_hidden()
    assert page.locator("input[name=ids]:checked").count() == 0


def test_what_is_ticked_below_a_closed_node_stays_so_when_the_page_is_updated(page: Page, community: Community, run: Run) -> None:
    page.goto(f"/admin/forums?open={community.news},{community.releases}")
    page.get_by_role("checkbox", name="Choose Betas").check()
    for name in ("Releases", "News"):
        page.get_by_role("link", name=f"What is under {name}").click()
    run("forums.create", name="Elsewhere", parentId=community.releases)
    run("forums.create", name="Last")
    expect(page.locator(".tree > .node").last).to_contain_text("Last")
    expect(page.locator("[data-many]")).to_contain_text("1 forum chosen")
    expect(page.get_by_role("link", name="Releases", exact=True)).to_be_hidden()
    for name in ("News", "Releases"):
        page.get_by_role("link", name=f"What is under {name}").click()
    expect(page.get_by_role("checkbox", name="Choose Betas")).to_be_checked()
    expect(page.get_by_role("link", name="Elsewhere", exact=True)).to_be_visible()


def test_back_leads_to_the_list_and_sends_no_preview_again(panel: OpenPanel, community: Community, run: Run) -> None:
    page = panel(scripts=True)
    page.goto("/admin/forums?perPage=50")
    page.get_by_role("checkbox", name="Choose Wiki").check()
    page.locator("[data-many]").get_by_role("button", name="Move…").click()
    page.get_by_role("radio", name="News").check()
    page.get_by_role("button", name="Show what would change").last.click()
    page.get_by_role("button", name="Move 1 forum").click()
    expect(page.locator(".flash")).to_contain_text("1 forum has moved.")
    for _ in ("what would change", "the choice of where to"):
        page.go_back()
        expect(page).to_have_url(re.compile(r"/admin/forums\?perPage=50$"))
        expect(page.get_by_role("heading", name="Forums", exact=True)).to_be_visible()


def test_what_is_ticked_without_scripts_is_deleted(panel: OpenPanel, community: Community, run: Run) -> None:
    page = panel(scripts=False)
    page.goto("/admin/forums")
    expect(page.locator(".handle").first).to_have_css("visibility", "hidden")  # it only drags
    page.get_by_role("checkbox", name="Choose News").check()
    page.get_by_role("checkbox", name="Choose Staff").check()
    page.locator("[data-many]").get_by_role("button", name="Delete…").click()
    expect(page.get_by_text("5 forums would be deleted")).to_be_visible()
    page.get_by_role("button", name="Delete 5 forums").click()
    expect(page.locator(".flash")).to_contain_text("5 forums were deleted.")
    assert order(run) == ["Help", "Wiki"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_axe_finds_nothing(panel: OpenPanel, community: Community, run: Run) -> None:
    _create_groups(run, FOLDS_FROM)
    page = panel(scripts=True)
    found: dict[str, object] = {}

    def look(name: str, looks: Sequence[tuple[int, Theme]] = LOOKS) -> None:
        if wrong := faults(page, looks):
            found[name] = wrong

    page.goto(f"/admin/forums/{community.wiki}")
    page.get_by_role("button", name="Unfold").click()
    expect(page.get_by_role("checkbox", name=f"Chapter {FOLDS_FROM - 1:03}: view")).to_be_visible()
    look("grid")
    page.goto(f"/admin/forums/{community.news}")
    page.get_by_role("checkbox", name="Guests: add").check()
    page.get_by_role("button", name="Apply to everything below…").click()
    page.wait_for_url("**/below")
    look("below", LOOKS[1:])  # with little that is not on other pages
    for button, action in (
        ("Move…", "move"),
        ("Fields…", "fields"),
        ("Copy…", "copy"),
        ("Permissions…", "permissions"),
        ("Delete…", "delete"),
    ):
        page.goto("/admin/forums")
        page.get_by_role("checkbox", name="Choose News").check()
        page.get_by_role("checkbox", name="Choose Wiki").click(modifiers=["Shift"])
        if action == "move":
            look("tree", LOOKS[:1])  # with nothing that is not on other pages
        page.locator("[data-many]").get_by_role("button", name=button).click()
        page.wait_for_url(f"**/many/{action}")
        look(action)
    page.goto(f"/admin/groups/{community.patrons}/access?kind=forums&all=1")
    page.get_by_role("checkbox", name="Staff: view").check()
    page.get_by_role("button", name="Show what would change").last.click()
    expect(page.get_by_text("1 forum would change")).to_be_visible()
    look("rights", LOOKS[1:])  # the same
    assert found == {}
