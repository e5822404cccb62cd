"""Proposals in a real Chromium: seen, understood and rejected, another approved; and what axe finds."""

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import LetIn
from tests.admin.proposals.conftest import Propose
from tests.browser import bring_axe, faults, list_complaints, opened
from tests.community import Community
from tests.fixture_types import Run
from tests.service_process import Service

pytestmark = pytest.mark.browser


def _decide(page: Page, button: str, reason: str) -> None:
    page.get_by_label("Why").fill(reason)
    page.get_by_role("button", name=button).click()


@pytest.mark.usefixtures("community")
def test_shift_ticks_all_up_to_there(chrome: Browser, service: Service, let_in: LetIn, agent: str) -> None:
    with httpx.Client(base_url=f"{service.address}/api", headers={"Authorization": f"Bearer {agent}"}) as client:
        for name in ("Allotments", "Beds", "Compost", "Dahlias"):
            assert client.post("/forums/forums", json={"name": name}).status_code == 202
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    page.goto("/admin/proposals")
    ticks = page.get_by_role("checkbox")
    ticks.nth(1).click()
    ticks.nth(3).click(modifiers=["Shift"])
    assert [ticks.nth(place).is_checked() for place in range(4)] == [False, True, True, True]
    ticks.nth(2).click()
    ticks.nth(1).click(modifiers=["Shift"])
    assert [ticks.nth(place).is_checked() for place in range(4)] == [False, False, False, True]
    context.close()


@pytest.mark.usefixtures("community")
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_enter_in_the_reason_decides_nothing(
    chrome: Browser, service: Service, let_in: LetIn, run: Run, agent: str, scripts: bool
) -> None:
    with httpx.Client(base_url=f"{service.address}/api", headers={"Authorization": f"Bearer {agent}"}) as client:
        number = client.post("/forums/forums", json={"name": "Garden"}).json()["id"]
    context = opened(chrome, service.address, scripts=scripts)
    page = context.new_page()
    let_in(page)
    for path in (f"/admin/proposals/{number}", "/admin/proposals"):
        page.goto(path)
        for tick in page.get_by_role("checkbox", name=f"Proposal {number}").all():
            tick.check()
        page.get_by_label("Why").fill("Not now.")
        page.get_by_label("Why").press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("press Approve or Reject")
        expect(page.get_by_label("Why")).to_have_value("Not now.")
        assert run("proposals.get", number)["state"] == "open"
    page.get_by_role("checkbox", name=f"Proposal {number}").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("press Approve or Reject")
    assert run("proposals.get", number)["state"] == "open"
    page.get_by_role("button", name="Reject").click()
    expect(page.locator(".flash")).to_contain_text("1 proposal was rejected.")
    context.close()


def test_a_delete_is_understood_and_rejected_and_another_call_approved(
    chrome: Browser, community: Community, service: Service, let_in: LetIn, run: Run, agent: str
) -> None:
    del community
    made = run("forums.create", name="Allotments")["id"]
    for name in ("Beds", "Compost"):
        run("forums.create", name=name, parentId=made)
    headers = {"Authorization": f"Bearer {agent}", "X-Audit-Log-Reason": "Nobody writes there."}
    with httpx.Client(base_url=f"{service.address}/api", headers=headers) as client:
        deleted = client.delete(f"/forums/forums/{made}", params={"deleteChildrenOrMove": "-1"})
        renamed = client.post(f"/forums/forums/{made}", json={"name": "Garden plots"})
        assert (deleted.status_code, renamed.status_code) == (202, 202)

        context = opened(chrome, service.address)
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        let_in(page)
        page.goto("/admin")
        menu = page.get_by_role("navigation", name="Panel")
        expect(menu.get_by_role("link", name="Proposals 2 open")).to_be_visible()
        menu.get_by_role("link", name="Proposals").click()
        page.get_by_role("link", name="Proposal 1", exact=True).click()
        expect(page.get_by_text("and 2 forums below it")).to_be_visible()
        for words in ("Beds", "Compost", "Nobody writes there.", "3 deleted"):
            expect(page.get_by_text(words, exact=True)).to_be_visible()
        _decide(page, "Reject", "They come back in spring.")
        expect(page.locator(".flash")).to_contain_text("Proposal 1 was rejected.")
        told = client.get("/core/proposals/1").json()
        assert (told["state"], told["closedBecause"]) == ("rejected", "They come back in spring.")
        assert run("forums.get", made)["name"] == "Allotments"

        menu.get_by_role("link", name="Proposals 1 open").click()
        page.get_by_role("checkbox", name="Proposal 2").check()
        _decide(page, "Approve", "A better name.")
        expect(page.locator(".flash")).to_contain_text("1 proposal was approved.")
        expect(page.get_by_text("Nothing is waiting for a decision")).to_be_visible()
        assert run("forums.get", made)["name"] == "Garden plots"

    page.get_by_role("link", name="Events", exact=True).click()
    log = page.locator("table.events")
    expect(log).to_contain_text("rejected proposal 1: Delete a forum Allotments")
    expect(log).to_contain_text("They come back in spring.")
    expect(log).to_contain_text("Agent changed forum Garden plots, approved by Mira Holm")
    context.close()
    assert list_complaints(said) == []


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_axe_finds_nothing(
    chrome: Browser, community: Community, service: Service, let_in: LetIn, run: Run, propose: Propose
) -> None:
    news = community.news
    propose("forums.delete", news, deleteChildrenOrMove=-1)
    propose("forums.update", news, name="Bulletin")
    propose("core.batch", operations=[{"operation": "forums.create", "body": {"name": "Board"}}])
    document = {"format": "trellis/1", "name": "spring", "forums": [{"externalId": "s", "name": "Spring"}]}
    propose("structure.apply", document=document)
    run("proposals.reject", propose("forums.create", name="Attic"), reason="No.")
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    bring_axe(page)
    found: dict[str, object] = {}

    run("forums.update", news, description="Changed")
    for path in ("/proposals?state=", "/proposals/2", "/proposals/3"):  # others have nothing that is not on these or on other pages
        page.goto(f"/admin{path}")
        if wrong := faults(page):
            found[path] = wrong
    context.close()
    assert found == {}
