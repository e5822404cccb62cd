"""Undo in a real Chromium: a branch is deleted and brought back, and a change set undone without scripts; and axe on each page."""

from itertools import cycle
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.admin.conftest import LetIn
from tests.browser import LOOKS, bring_axe, faults, list_complaints, opened, search_picker
from tests.community import ADMINISTRATORS, MEMBERS, Community
from tests.fixture_types import Events, MakeKey, Run, RunForEvent
from tests.service_process import Service
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call

pytestmark = pytest.mark.browser


def _branch(run: Run, community: Community) -> int:
    """Make a branch of 30 forums, four levels deep, no two alike."""

    def make(name: str, number: int, **fields: Any) -> int:
        who = [MEMBERS, community.patrons] if number % 2 else "*"
        raw = {"permissions": {"view": "*", "reply": who}, "description": f"<p>Number {number}</p>", "minContent": number}
        return int(run("forums.create", name=name, **raw | fields)["id"])

    gardens = make("Gardens", 0, position=1)
    for a in range(4):
        bed = make(f"Bed {a}", 1 + a, parentId=gardens, position=0)
        for b in range(3):
            row = make(f"Row {a}.{b}", 5 + 3 * a + b, parentId=bed, type="questions")
            make(f"Plant {a}.{b}", 17 + 3 * a + b, parentId=row, password="sesame")
    make("Compost", 29, parentId=gardens, position=2, permissions={"view": [ADMINISTRATORS]})
    return gardens


def test_a_branch_of_30_forums_is_deleted_and_brought_back(
    chrome: Browser, community: Community, service: Service, let_in: LetIn, run: Run, key: MakeKey, events: Events
) -> None:
    gardens = _branch(run, community)
    text = key(["forums.list", "forums.get"])

    def tree() -> Any:
        """Every forum, in order, as a program sees it, and its own record with its ETag."""
        found = service.call("GET", "/forums/forums?perPage=1000&sortBy=position", text).json()["results"]
        assert len(found) in {7, 37}
        each = [service.call("GET", f"/forums/forums/{one['id']}", text) for one in found]
        return found, [(one.json(), one.headers["etag"]) for one in each]

    before, count = tree(), len(events())
    context = opened(chrome, service.address)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    let_in(page)
    page.goto("/admin/forums")
    page.get_by_role("link", name="Delete Gardens…").click()
    page.get_by_role("radio", name="Delete them too: 30 forums in all").check()
    page.get_by_role("button", name="Delete Gardens").click()
    flash = page.locator(".flash")
    expect(flash).to_contain_text("Gardens and 29 below it were deleted.")
    assert len(tree()[0]) == 7
    flash.get_by_role("link", name="Undo").click()
    expect(
        page.get_by_text("Gardens will be restored at the top level, after News, along with 29 forums below it:")
    ).to_be_visible()
    page.get_by_role("button", name="Undo: restore 30 forums").click()
    expect(page.locator(".flash")).to_contain_text("Gardens and 29 below it were restored.")
    expect(page.get_by_role("link", name="Gardens", exact=True)).to_be_visible()
    assert tree() == before
    assert [event["operation"] for event in events()[count:]] == ["forums.delete", "forums.restore"]
    assert run("forums.get", gardens)["position"] == 1
    page.go_back()  # to the page that undid it
    page.reload()
    expect(page.get_by_text("Already undone")).to_be_visible()
    page.goto("/admin/events")
    expect(page.get_by_role("link", name="Undone by event")).to_be_visible()
    assert run("check.list")["problems"] == []
    context.close()
    assert list_complaints(said) == []


def test_one_whose_parent_is_gone_finds_another(
    chrome: Browser, let_in: LetIn, community: Community, service: Service, run: Run
) -> None:
    run("forums.delete", community.betas)
    run("forums.delete", community.releases)
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    page.goto("/admin/events")
    page.locator("tr", has_text="Betas").locator("td.when a").first.click()
    page.get_by_role("dialog").get_by_role("link", name="Undo…").click()
    search_picker(page, "New parent", "hel")
    page.get_by_role("radio", name="Help").check()
    page.get_by_role("button", name="Undo").last.click()
    expect(page.locator(".flash")).to_contain_text("Betas was restored.")
    expect(page.get_by_role("link", name="Betas", exact=True)).to_be_visible()
    assert run("forums.get", community.betas)["path"] == "Help > Betas"
    context.close()


def _change_set(run: Run, gate: Gate, key: MakeKey, community: Community) -> int:
    """Make a change set of key 1, of which two events cannot be undone."""
    key(["forums.*"])
    operations = [
        *({"operation": "forums.update", "id": one, "body": {"minContent": 9}} for one in (community.staff, community.wiki)),
        {"operation": "forums.create", "body": {"name": "Dahlias"}},
    ]
    made = gate.run(Call("core.batch", Actor("key", 1, "Plugin", None), {"operations": operations})).change_set or 0
    for one in (community.staff, community.wiki):
        run("forums.update", one, minContent=4)
    return made


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_change_set_is_undone_without_scripts_from_one_of_its_events(
    chrome: Browser, community: Community, service: Service, let_in: LetIn, run: Run, gate: Gate, key: MakeKey
) -> None:
    stuck = _change_set(run, gate, key, community)
    context = opened(chrome, service.address, scripts=False)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    let_in(page)
    page.goto("/admin/events")
    page.locator("tr", has_text="Dahlias").locator("td.when a").click()
    page.get_by_role("link", name="Undo the change set…").click()
    expect(page.get_by_role("heading", name=f"Undo change set {stuck}")).to_be_visible()
    page.get_by_role("button", name="Undo 1 event").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was changed: 2 events cannot be undone.")
    page.get_by_role("checkbox", name="Skip events that cannot be undone").check()
    page.get_by_role("button", name="Undo 1 event").click()
    flash = page.locator(".flash")
    expect(flash).to_contain_text("1 event was undone. 2 could not be undone and remain unchanged.")
    there = flash.get_by_role("link", name="Show the events").get_attribute("href")
    page.goto(str(there))
    expect(page.locator("table.log tbody tr")).to_have_count(1)
    assert run("forums.list", name="Dahlias")["results"] == []
    context.close()
    assert list_complaints(said) == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_axe_finds_nothing(  # noqa: PLR0917  # fixtures
    chrome: Browser, let_in: LetIn, community: Community, service: Service, run: Run, do: RunForEvent, gate: Gate, key: MakeKey
) -> None:
    stuck = _change_set(run, gate, key, community)
    changed = do("forums.update", community.help, name="Aid", permissions={"view": [MEMBERS]}, password="sesame")
    orphan = do("forums.delete", community.betas)
    since = do("forums.update", community.interviews, name="Talks")
    run("forums.update", community.interviews, name="Conversations", description="<p>Monthly.</p>")
    run("forums.delete", community.releases)
    undone = do("calendars.delete", community.meetups)
    run("events.restore", undone)
    paths = [f"/change-sets/{stuck}/undo", "/keys/1/undo?since=soon", "/events/1/undo", f"/events/{since}/undo"]
    alike = [f"/events/{seq}/undo" for seq in (changed, orphan, undone)]  # with nothing that is not on those or on other pages
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    bring_axe(page)
    found: dict[str, object] = {}
    for path in paths:
        page.goto(f"/admin{path}")
        if faulty := faults(page):
            found[path] = faulty
    for path, look in zip(alike, cycle(LOOKS), strict=False):
        page.goto(f"/admin{path}")
        if faulty := faults(page, [look]):
            found[path] = faulty
    context.close()
    assert found == {}, "\n".join(f"{where}: {what}" for where, what in found.items())
