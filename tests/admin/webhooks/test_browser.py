"""Webhooks in a real Chromium: from making one to its end; and what axe finds on these pages."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import PASSWORD, LetIn
from tests.admin.webhooks.rows import insert_delivery, update_webhook
from tests.browser import LOOKS, bring_axe, confirm, faults, list_complaints, opened
from tests.conftest import NewSettings
from tests.fixture_types import Clock, Run
from tests.service_process import Service
from tests.wait import wait_until
from tests.webhook_receiver import Receiver, respond_with
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.settings import Settings

pytestmark = pytest.mark.browser


@pytest.fixture
def settings(new_settings: NewSettings) -> Settings:
    """Settings that let webhooks go to this machine."""
    return replace(new_settings(), webhook_allow=("127.0.0.1/32",))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that answers 200."""
    with Receiver(respond_with(200, b"thanks")) as receiver:
        yield receiver


def _open_when(page: Page, holds: Callable[[], object], path: str, text: str) -> None:
    """Open a page when something holds: what is sent is written a moment later."""
    wait_until(holds)
    page.goto("/admin" + path)
    expect(page.locator("main")).to_contain_text(text)


def _made(page: Page, url: str) -> str:
    """Make a webhook by the form; give its secret."""
    page.goto("/admin")
    page.get_by_role("link", name="Webhooks").click()
    page.get_by_role("link", name="Create the first webhook").click()
    confirm(page, PASSWORD)
    page.get_by_label("Address", exact=True).fill(url)
    page.get_by_label("Description").fill("Search index")
    page.get_by_role("checkbox", name="Forums: everything").check()
    page.get_by_role("checkbox", name="Calendars: deleted").check()
    page.get_by_role("button", name="Create the webhook").click()
    return page.locator("#new-secret").inner_text()


def test_a_webhook_from_the_form_to_its_end(chrome: Browser, let_in: LetIn, service: Service, receiver: Receiver, run: Run) -> None:
    context = opened(chrome, service.address)
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    let_in(page)
    secret = _made(page, receiver.url)
    page.get_by_role("link", name="I have copied it").click()
    expect(page.locator("main")).to_contain_text("Forums: everything; Calendars: deleted")
    page.get_by_role("button", name="Send a test").first.click()
    _open_when(page, lambda: run("deliveries.list", state="delivered")["results"], "/deliveries/1", "Delivered")
    assert receiver.received[0].verified(secret)["type"] == "webhook.test"
    receiver.answer = respond_with(500, b"out of tea")
    run("forums.create", name="News")
    _open_when(page, lambda: run("webhooks.get", 1)["failingSince"], "/webhooks/1", "Every attempt has failed")
    page.goto("/admin")
    page.get_by_role("link", name="Search index").click()
    page.get_by_role("row", name=re.compile("forum.created")).get_by_role("link").click()
    expect(page.locator("main")).to_contain_text("out of tea")
    page.get_by_role("link", name="Search index").click()
    page.get_by_role("link", name="Send failed deliveries again").click()
    expect(page.locator("main")).to_contain_text("1 message to Search index has failed")
    receiver.answer = respond_with(200)  # not before: the next attempt is made without being asked for
    page.get_by_role("button", name="Send it again").click()
    expect(page.get_by_role("status")).to_contain_text("1 message is being sent again")
    _open_when(page, lambda: not run("webhooks.get", 1)["failingSince"], "/webhooks/1", "Delivering")
    page.get_by_role("link", name="Rotate the secret").click()
    page.get_by_label("The old secret expires").select_option(label="After an hour")
    page.get_by_role("button", name="Rotate and show the new secret").click()
    rotated = page.locator("#new-secret").inner_text()
    receiver.answer = respond_with(410)
    run("forums.create", name="Olds")
    _open_when(page, lambda: run("webhooks.get", 1)["disabledBecause"], "/webhooks", "was switched off by the service")
    for one in (secret, rotated):
        assert receiver.received[-1].verified(one)["data"]["after"]["name"] == "Olds"
    receiver.answer = respond_with(200)
    page.get_by_role("link", name="Search index").first.click()
    page.get_by_role("link", name="Switch on", exact=True).click()
    page.get_by_label("Skip them").check()
    page.get_by_role("button", name="Switch on").click()
    expect(page.get_by_role("status")).to_contain_text("The webhook was switched on")
    page.get_by_role("link", name="Delete").click()
    page.get_by_role("button", name="Delete the webhook").click()
    expect(page.get_by_role("heading", name="Webhooks")).to_be_visible()
    expect(page.get_by_text("There are no webhooks yet")).to_be_visible()
    context.close()
    assert list_complaints(said) == []


def test_a_shown_secret_is_not_shown_again(chrome: Browser, let_in: LetIn, service: Service, receiver: Receiver, run: Run) -> None:
    context = opened(chrome, service.address)
    page = context.new_page()
    let_in(page)
    page.goto("/admin/webhooks/new")
    page.get_by_label("Address", exact=True).fill(receiver.url)
    page.get_by_role("checkbox", name="Every event").check()
    page.get_by_role("button", name="Create the webhook").click()
    secret = page.locator("#new-secret").inner_text()
    page.get_by_role("button", name="Copy").first.click()
    page.reload()
    expect(page.get_by_role("heading", name="the secret has already been shown")).to_be_visible()
    assert secret not in page.content()
    context.close()
    assert run("webhooks.list")["totalResults"] == 1


def test_the_id_of_a_message_stands_in_its_row(page: Page, gate: Gate, run: Run) -> None:
    run("webhooks.create", url="http://127.0.0.1:9999/hook", events=["forum.*"])
    insert_delivery(gate, {"answer": ""}, type="webhook.test")
    for place in ("/admin/webhooks/1", "/admin/deliveries"):
        page.goto(place)
        row = page.get_by_role("row").filter(has_text="webhook.test").bounding_box()
        told = page.get_by_text("msg_0123456789abcdef").bounding_box()
        assert row
        assert told
        assert row["y"] <= told["y"] <= told["y"] + told["height"] <= row["y"] + row["height"]


def test_an_attempt_whose_time_has_come_is_not_in_the_past(page: Page, gate: Gate, run: Run) -> None:
    run("webhooks.create", url="http://127.0.0.1:9999/hook", events=["forum.*"])
    insert_delivery(gate, {"status": 503}, state="waiting", due_at=format_timestamp(datetime.now(UTC) + timedelta(minutes=30)))
    page.clock.install()
    page.goto("/admin/deliveries")
    expect(page.get_by_text("Next in 30 minutes")).to_be_visible()
    page.clock.fast_forward("31:00")
    expect(page.locator("td.why .because")).to_have_text("")
    page.goto("/admin/deliveries/1")
    expect(page.get_by_text("as soon as possible")).not_to_be_visible()
    page.clock.fast_forward("31:00")
    expect(page.get_by_text("as soon as possible")).to_be_visible()


_PAGES = (  # that tests/admin/test_every_page_browser.py does not open, or not in such a state
    *("/webhooks", "/webhooks/2", "/webhooks/2/on", "/webhooks/1/redeliver?failedSince=x", "/deliveries", "/deliveries/1"),
)
# With little that is not on those or on other pages:
_ALIKE: Final = ("", "/webhooks/4", "/deliveries/2", "/webhooks/1", "/deliveries/3", "/webhooks/3")


def _scene(gate: Gate, run: Run, clock: Clock, address: Callable[[str], str]) -> None:
    """Make webhooks in every state, and deliveries in every state."""
    run("webhooks.create", url=address("slow"), events=["forum.*", "blog.deleted"], description="Search index")
    run("webhooks.create", url=address("x" * 300), events=["*"], description="Gone " + "x" * 200)
    run("webhooks.create", url=address("off"), events=["group.*"], enabled=False)
    run("webhooks.create", url=address("new"), events=["calendar.moved"], description="Never sent to")
    run("forums.create", name="News")
    seq = int(run("events.list")["next"])
    failed = {"status": None, "error": "The connection failed: " + "x" * 300, "answer": None}
    insert_delivery(
        gate, {"status": 503, "answer": "<h1>Down</h1>\n" + "y" * 2_000}, failed, state="waiting", seq=seq, type="forum.created"
    )
    insert_delivery(gate, {"answer": ""}, type="webhook.test")
    insert_delivery(gate, {"status": 410}, state="failed", webhook_id=2, seq=9_999, type="forum.updated")
    insert_delivery(gate, state="waiting", webhook_id=3)
    run("webhooks.disable", 2, because="The endpoint returned 410: it is gone.")
    run("webhooks.rotate", 1)
    update_webhook(gate, 1, failing_since=clock.text, attempted_at=clock.text)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_axe_finds_nothing(
    chrome: Browser, let_in: LetIn, serve_still: Service, receiver: Receiver, run: Run, gate: Gate, clock: Clock
) -> None:
    _scene(gate, run, clock, lambda path: f"{receiver.url}/{path}")
    context = opened(chrome, serve_still.address)
    page = context.new_page()
    let_in(page)
    bring_axe(page)
    found: dict[str, object] = {}
    page.goto("/admin/webhooks/new")
    page.get_by_label("Address", exact=True).fill("http://10.0.0.5/")
    page.get_by_role("button", name="Create the webhook").click()
    page.get_by_role("alert").wait_for()
    if faulty := faults(page, LOOKS[:1]):  # in the other one there is nothing that is not on other pages
        found["faults"] = faulty
    page.get_by_label("Address", exact=True).fill(receiver.url)
    page.get_by_role("checkbox", name="Every event").check()
    page.get_by_role("button", name="Create the webhook").click()
    page.locator("#new-secret").wait_for()
    if faulty := faults(page):
        found["once"] = faulty
    for path in _PAGES:
        page.goto("/admin" + path)
        if faulty := faults(page):
            found[path] = faulty
    for path, look in zip(_ALIKE, cycle(LOOKS), strict=False):
        page.goto("/admin" + path)
        if faulty := faults(page, [look]):
            found[path] = faulty
    context.close()
    assert found == {}, "\n".join(f"{where}: {what}" for where, what in found.items())


@pytest.fixture
def serve_still(settings: Settings, tmp_path: Path) -> Iterator[Service]:
    """The service, which sends nothing: what the scene has set stays."""
    with Service(replace(settings, webhook_delivery=False), tmp_path) as running:
        yield running
