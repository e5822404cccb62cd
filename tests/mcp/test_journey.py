"""The whole way of an agent: it proposes with the official client, and a person decides in the panel meanwhile."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.browser import chromium, opened, sign_in
from tests.fixture_types import MakeKey, Run
from tests.mcp.test_client import call, refuse, run_with
from tests.service_process import Service

if TYPE_CHECKING:  # as in test_client.py
    from mcp import Client

pytestmark = pytest.mark.browser

LOGIN: Final = "mira"
PASSWORD: Final = "long enough for a panel"
GRANTS: Final = ("forums.list", "forums.get", "forums.create", "forums.restore")
PROPOSED: Final = ("forums.update", "forums.delete")
PATIENCE: Final = 120  # seconds until a decision that does not come is given up


class Agent:
    """What the agent does, in a thread of its own. `has_proposed` is set when somebody has to decide."""

    def __init__(self, service: Service, key: str) -> None:
        self.service, self.key = service, key
        self.has_proposed = threading.Event()

    def live(self) -> None:
        try:
            run_with(self.service, self.key, "auto", self._work)
        finally:
            self.has_proposed.set()

    async def _work(self, client: "Client") -> None:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert tools > {"forums.list", "forums.get", "forums.create", *PROPOSED, "events.restore", "proposals.get"}
        assert not {name for name in tools if name.startswith("calendars.")}

        plots = (await call(client, "forums.create", name="Allotments"))["id"]
        for name in ("Beds", "Compost"):
            await call(client, "forums.create", name=name, parentId=plots)
        assert (await refuse(client, "calendars.create", name="Sowing"))["missingOperation"] == "calendars.create"

        deleted = await client.call_tool("forums.delete", {"id": plots, "deleteChildrenOrMove": -1})
        renamed = await client.call_tool("forums.update", {"id": plots, "name": "Garden plots"})
        assert [self._read(one) for one in (deleted, renamed)] == [(1, "open"), (2, "open")]
        assert (await call(client, "forums.get", id=plots))["name"] == "Allotments"
        self.has_proposed.set()

        rejected, approved = [await self._wait_for_decision(client, number) for number in (1, 2)]
        assert (rejected["state"], rejected["closedBecause"]) == ("rejected", "They come back in spring.")
        assert (approved["state"], approved["result"]["name"]) == ("approved", "Garden plots")
        assert (await call(client, "forums.list", parentId=plots))["totalResults"] == 2
        undone = await call(client, "events.restore", id=approved["event"])
        assert undone["record"]["name"] == (await call(client, "forums.get", id=plots))["name"] == "Allotments"

    @staticmethod
    def _read(result: Any) -> tuple[int, str]:
        assert not result.is_error, result
        assert result.meta["trellis/proposal"] == result.structured_content["id"]
        return result.structured_content["id"], result.structured_content["state"]

    @staticmethod
    async def _wait_for_decision(client: "Client", number: int) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            while True:
                if (proposal := await call(client, "proposals.get", id=number))["state"] != "open":
                    return proposal
                await asyncio.sleep(0.2)


def test_an_agent_proposes_and_a_person_decides(service: Service, key: MakeKey, run: Run) -> None:
    run("admins.create", name="Mira Holm", login=LOGIN, password=PASSWORD, mustChangePassword=False)
    text = key([*GRANTS, *PROPOSED], name="Gardener", bounds={name: {"level": "propose"} for name in PROPOSED})
    agent = Agent(service, text)
    # A thread of its own for the agent, since the browser has this one's event loop.
    with chromium() as chrome, ThreadPoolExecutor(1) as thread:
        page = opened(chrome, service.address).new_page()
        sign_in(page, LOGIN, PASSWORD)
        living = thread.submit(agent.live)
        assert agent.has_proposed.wait(PATIENCE)
        if living.done():
            living.result()
        _decide_in_the_panel(page)
        living.result(PATIENCE)

        page.goto("/admin/events")
        log = page.locator("table.events")
        for told in (
            "rejected proposal 1: Delete a forum Allotments",
            "They come back in spring.",
            "Gardener changed forum Garden plots, approved by Mira Holm",
            "A better name.",
            "Gardener undid",
        ):
            expect(log).to_contain_text(told)


def _decide_in_the_panel(page: Page) -> None:
    page.goto("/admin/proposals/1")
    expect(page.get_by_text("and 2 forums below it")).to_be_visible()
    for words in ("Beds", "Compost", "3 deleted"):
        expect(page.get_by_text(words, exact=True)).to_be_visible()
    _decide(page, "Reject", "They come back in spring.")
    expect(page.locator(".flash")).to_contain_text("Proposal 1 was rejected.")
    page.goto("/admin/proposals/2")
    expect(page.get_by_text("Garden plots").first).to_be_visible()
    _decide(page, "Approve", "A better name.")
    expect(page.locator(".flash")).to_contain_text("Proposal 2 was approved")


def _decide(page: Page, button: str, reason: str) -> None:
    page.get_by_label("Why").fill(reason)
    page.get_by_role("button", name=button).click()
