"""Forms that were sent and whose answer does not arrive, in a real Chromium: the person learns of it, and nothing is done twice."""

from collections.abc import Iterator
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.admin.conftest import LetIn
from tests.browser import opened, violations
from tests.community import Community
from tests.fixture_types import Run
from tests.local_server import LocalServer, QuietHandler
from tests.service_process import Service

pytestmark = [
    pytest.mark.browser,
    pytest.mark.usefixtures("community"),
    pytest.mark.parametrize("engine", ["sqlite"], indirect=True),
]

_HOPS: Final = {"connection", "accept-encoding", "content-length", "content-encoding", "transfer-encoding"}
_WATCHED: Final = "navigator.serviceWorker.getRegistration('/admin/').then((one) => one?.active?.state === 'activated')"
_LOST: Final = (
    "The connection was lost before the answer arrived, so this may have been done. If you send it again, nothing is done twice."
)


class _Handler(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802  # the standard library's name
        self._pass_on(b"")

    do_HEAD = do_GET  # noqa: N815  # the standard library's name

    def do_POST(self) -> None:  # noqa: N802  # the standard library's name
        self._pass_on(self.rfile.read(int(self.headers["content-length"])))
        self.server.owner.sites.append(self.headers["sec-fetch-site"])

    def _pass_on(self, body: bytes) -> None:
        proxy: _Proxy = self.server.owner
        if self.path.startswith("/admin/news"):
            return self._answer(404, {}, b"")
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOPS}
        answer = httpx.request(self.command, proxy.service + self.path, content=body, headers=headers)
        if self.command == "POST" and proxy.fault == "cut":
            self.close_connection = True
            self.connection.close()
            return None
        if self.command == "POST" and proxy.fault == "timeout":
            return self._answer(504, {"content-type": "text/html"}, b"<h1>Gateway Timeout</h1>")
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOPS}
        return self._answer(answer.status_code, kept, answer.content)

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Proxy(LocalServer):
    """Stands between the browser and the service. Forms reach the service; what it answers to them may not come back."""

    handler = _Handler

    def __init__(self, service: str) -> None:
        self.service = service
        self.fault = ""
        self.sites: list[str] = []  # from which forms were sent, as the browser says


@pytest.fixture
def proxy(service: Service) -> Iterator[_Proxy]:
    """A proxy that passes everything on until it is told otherwise."""
    with _Proxy(service.address) as proxy:
        yield proxy


@pytest.fixture
def page(chrome: Browser, proxy: _Proxy, let_in: LetIn) -> Iterator[Page]:
    """Mira in front of the panel, in a window that has loaded a page of it before."""
    window = opened(chrome, f"http://127.0.0.1:{proxy.port}", workers=True)
    page = window.new_page()
    let_in(page)
    page.goto("/admin")
    page.wait_for_function(_WATCHED)
    yield page
    window.close()


def test_the_page_stays_and_what_is_sent_again_is_done_once(page: Page, proxy: _Proxy, run: Run) -> None:
    page.goto("/admin/forums/new")
    page.get_by_label("Name", exact=True).fill("Made once")
    proxy.fault = "cut"
    button = page.get_by_role("button", name="Create the forum").last
    button.click(no_wait_after=True)
    expect(page.get_by_role("status").filter(has_text=f"{_LOST} What you typed is still here.")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Made once")
    expect(button).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Send again")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Cancel").last).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(button).to_be_focused()
    assert violations(page) == []
    assert run("forums.list", search="Made once")["totalResults"] == 1
    proxy.fault = ""
    page.get_by_role("button", name="Send again").click()
    page.get_by_text("Made once was created.").wait_for()
    assert run("forums.list", search="Made once")["totalResults"] == 1


def test_enter_in_a_field_does_nothing_twice_that_the_button_may_have_done(page: Page, proxy: _Proxy, run: Run) -> None:
    page.goto("/admin/forums/new")
    page.get_by_label("Name", exact=True).fill("Made once")
    proxy.fault = "cut"
    page.get_by_role("button", name="Create the forum").last.click(no_wait_after=True)
    expect(page.get_by_role("status").filter(has_text=_LOST)).to_be_visible()
    proxy.fault = ""
    page.get_by_label("Name", exact=True).press("Enter")
    page.get_by_text("Made once was created.").wait_for()
    assert run("forums.list", search="Made once")["totalResults"] == 1


def test_a_button_with_an_address_of_its_own_says_so_too(page: Page, proxy: _Proxy) -> None:
    page.goto("/admin/forums")
    page.get_by_label("Choose Wiki").check()
    button = page.get_by_role("button", name="Delete…", exact=True)
    proxy.fault = "cut"
    button.click(no_wait_after=True)
    expect(page.get_by_role("status").filter(has_text=_LOST)).to_be_visible()
    expect(button).to_be_enabled()
    proxy.fault = ""
    page.get_by_role("button", name="Send again").click()
    page.get_by_role("heading", name="Delete 1 forum").wait_for()


def test_a_delete_in_a_dialog_says_so_too(page: Page, proxy: _Proxy, community: Community, run: Run) -> None:
    page.goto("/admin/forums")
    page.get_by_role("link", name="Delete Wiki…").click()
    proxy.fault = "timeout"
    page.get_by_role("dialog").get_by_role("button", name="Delete Wiki").click(no_wait_after=True)
    expect(page.get_by_role("dialog").get_by_role("status")).to_have_text(_LOST)  # nothing was typed
    proxy.fault = ""
    page.get_by_role("dialog").get_by_role("button", name="Send again").click()
    expect(page.locator("main")).to_contain_text("Wiki was deleted.")
    assert community.wiki not in {one["id"] for one in run("forums.list")["results"]}
    page.get_by_role("link", name="Delete Help…").click()
    proxy.fault = "cut"
    page.get_by_role("dialog").get_by_role("button", name="Delete Help").click(no_wait_after=True)
    expect(page.get_by_role("status").filter(has_text=_LOST)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Send again")).to_have_count(0)  # it would send nothing
    expect(page.locator("[data-message]")).to_be_hidden()


def test_nobody_is_told_that_they_are_signed_out_before_they_are(page: Page, proxy: _Proxy) -> None:
    other = page.context.new_page()
    other.goto("/admin/keys")
    page.goto("/admin/forums")
    proxy.fault = "timeout"
    page.get_by_role("button", name="Sign out").first.click(no_wait_after=True)
    for tab in (page, other):
        expect(tab.get_by_text("No answer has come: you may still be signed in.")).to_be_visible()
        expect(tab.locator("table, nav, .tree")).to_have_count(0)
        expect(tab.get_by_text("You are signed out.")).to_have_count(0)
    proxy.fault = ""
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Password")).to_be_visible()
    expect(other.get_by_text("You are signed out.")).to_be_visible()


def test_what_another_site_sends_is_sent_as_from_there(page: Page, proxy: _Proxy, run: Run) -> None:
    address = f"http://127.0.0.1:{proxy.port}/admin/forums/new"
    form = f"<form method=post action={address}><button>"
    page.route("**/elsewhere", lambda route: route.fulfill(body=form, content_type="text/html"))
    page.goto("http://elsewhere.example/elsewhere")
    page.get_by_role("button").click()
    page.wait_for_url(address)
    assert proxy.sites == ["cross-site"]
    assert run("forums.list")["totalResults"] == 7
