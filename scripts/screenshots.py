"""Take the screenshots of the README and the docs: a fresh sample community, some traffic, and the main pages.

With names behind it, such as `webhooks delivery`, it takes only those.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = ROOT / "docs" / "screenshots"
PAGES: Final = {
    "overview": ("/admin", "light"),
    "forums": ("/admin/forums", "dark"),
    "forum": ("/admin/forums/2", "light"),
    "new-key": ("/admin/keys/new", "light"),
    "key": ("/admin/keys/1", "dark"),
    "requests": ("/admin/requests", "light"),
    "events": ("/admin/events", "light"),
    "reference": ("/api/docs", "light"),
}
# Taken behind the others, since events are made for them.
HOOK_PAGES: Final = {
    "webhooks": ("/admin/webhooks", "light"),
    "delivery": ("/admin/deliveries/1", "dark"),
}
_ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
_READS: Final = (
    "forums/forums",
    "forums/forums?search=garden",
    "calendar/calendar",
    "core/groups",
    "forums/forums/999",
    "core/hello",
)


@contextmanager
def service(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Serve a fresh sample community; give its address, key, login and password."""
    output = folder / "output"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRELLIS_")}
    environment["TRELLIS_DATABASE_URL"] = f"sqlite:///{folder}/trellis.db"
    environment["TRELLIS_WEBHOOK_ALLOW"] = "127.0.0.1,::1"
    with output.open("w") as out:
        command = [sys.executable, "-m", "trellis", "serve", "--demo", "--port", "0"]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out)
    try:
        yield _told(output, r"Panel: +(\S+)/admin"), _told(output, r"Demo key: +(\S+)"), *_account(output)
    finally:
        process.terminate()
        process.wait(30)


def _told(output: Path, pattern: str) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if found := re.search(pattern, output.read_text()):
            return found[1]
        time.sleep(0.1)
    raise SystemExit(f"The service did not start: {output.read_text()}")


def _account(output: Path) -> tuple[str, str]:
    return _told(output, r"Sign in as: +(\S+)"), _told(output, r"Password: +(\S+)")


def traffic(address: str, key: str) -> None:
    """Send some requests, so that there is something to see."""
    for number in range(40):
        request = urllib.request.Request(  # noqa: S310  # our own
            f"{address}/api/{_READS[number % len(_READS)]}", headers={"Authorization": f"Bearer {key}"}
        )
        with suppress(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=10).close()  # noqa: S310  # our own
    time.sleep(2)  # until the request log is written


def post(address: str, key: str, path: str, **body: object) -> Mapping[str, str]:
    """Send a request that writes; return the headers of the response."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/api/{path}", json.dumps(body).encode(), headers)  # noqa: S310  # our own
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310  # our own
        return dict(response.headers)


def sign_in(page: Page, login: str, password: str) -> None:
    """Sign in by the form."""
    page.goto("/admin/sign-in")
    page.get_by_label("Login").fill(login)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Overview").wait_for()


class _Receiver(BaseHTTPRequestHandler):
    """Answers webhooks: one path is up, one is down, one is gone."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        answers = {"/search": (200, b"indexed"), "/chat": (503, b"Down for maintenance. Back at six."), "/app": (410, b"Gone.")}
        status, body = answers[self.path]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the standard library's name
        del format, args


def hooks(address: str, key: str) -> None:
    """Make webhooks that get through, fail and are gone, and let something happen."""
    server = HTTPServer(("127.0.0.1", 0), _Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    send = partial(post, address, key)
    url = f"http://localhost:{server.server_port}"
    send("core/webhooks", url=f"{url}/search", events=["forum.*", "category.*"], description="Search index")
    send("core/webhooks", url=f"{url}/chat", events=["calendar.created"], description="Announcements in the chat")
    send("core/webhooks", url=f"{url}/app", events=["category.created"], description="Mobile app")
    send("core/webhooks", url="https://archive.example/trellis", events=["*"], description="Archive", enabled=False)
    send("calendar/calendar", name="Star parties")
    time.sleep(8)  # until the first delivery, that of the chat, has failed twice
    send("forums/forums", name="Meteor showers")
    send("downloads/category", name="Posters")
    time.sleep(3)
    server.shutdown()


def take(browser: Browser, address: str, login: str, password: str, pages: Mapping[str, tuple[str, str]]) -> None:
    """Sign in, and take each page."""
    for theme in sorted({theme for _, theme in pages.values()}):
        context = browser.new_context(
            base_url=address, viewport={"width": 1280, "height": 860}, color_scheme="light" if theme == "light" else "dark"
        )
        page = context.new_page()
        sign_in(page, login, password)
        for name, path in ((name, path) for name, (path, wanted) in pages.items() if wanted == theme):
            page.goto(path)
            if "/confirm-password" in page.url:
                page.get_by_label("Password of").fill(password)
                page.get_by_role("button", name="Continue").click()
            page.wait_for_load_state("networkidle")
            page.screenshot(path=FOLDER / f"{name}.png")
            print(f"docs/screenshots/{name}.png", flush=True)
        context.close()


def take_undo_of_change_set(browser: Browser, address: str, key: str, login: str, password: str) -> None:
    """Run a batch, change one of its records again, and take the page that would undo the batch."""
    operations = [
        *({"operation": "calendars.create", "body": {"name": name}} for name in ("Workshops", "Excursions", "Eclipses")),
        {"operation": "forums.update", "id": 2, "body": {"minContent": 3}},
        {"operation": "forums.update", "id": 3, "body": {"minContent": 3}},
    ]
    headers = post(address, key, "core/batch", operations=operations)
    number = next(value for name, value in headers.items() if name.lower() == "change-set-id")
    post(address, key, "forums/forums/3", minContent=5)
    take(browser, address, login, password, {"undo-change-set": (f"/admin/change-sets/{number}/undo", "light")})


_TYPE: Final = "text => { document.querySelector('textarea[name=document]').value = text }"
_ADDED: Final = """\
- externalId: eclipses
  name: Eclipses
  children:
  - externalId: eclipses.corona
    name: Corona
"""


def take_structure(browser: Browser, address: str, login: str, password: str) -> None:
    """Let a document manage the community, change a forum by hand, and take the plan of a document with other changes."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 860}, color_scheme="light")
    page = context.new_page()
    sign_in(page, login, password)
    exported = page.request.get("/admin/structure/export").text()
    page.goto("/admin/structure")
    page.evaluate(_TYPE, exported)
    page.get_by_role("checkbox", name="Take over").check()
    page.get_by_role("button", name="Plan", exact=True).click()
    page.get_by_role("button", name="Apply this plan").click()
    page.locator(".flash").wait_for()
    page.goto("/admin/forums/2")
    name = page.get_by_label("Name", exact=True).input_value()
    page.get_by_label("Name", exact=True).fill("Notices")
    page.locator("button[value=save]").click()
    page.locator(".flash").wait_for()
    page.goto("/admin/structure")
    exported = page.request.get("/admin/structure/export").text().replace("name: Notices\n", f"name: {name}\n")
    exported = exported.replace("reply: [administrators, moderators]", "reply: [members, moderators]", 1)
    page.evaluate(_TYPE, exported.replace("\nforums:\n", f"\nforums:\n{_ADDED}", 1))
    page.get_by_role("button", name="Plan", exact=True).click()
    page.get_by_role("button", name="Apply this plan").wait_for()
    page.screenshot(path=FOLDER / "structure.png")
    print("docs/screenshots/structure.png", flush=True)
    context.close()


def take_german(browser: Browser, address: str, login: str, password: str) -> None:
    """Take the page of a new key as a browser in German sees it."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 860}, locale="de-DE")
    page = context.new_page()
    page.goto("/admin/sign-in")
    page.locator("input[name=login]").fill(login)
    page.locator("input[name=password]").fill(password)
    page.locator("button.primary").click()
    page.wait_for_url("**/admin")
    page.goto("/admin/keys/new?recipe=calendar-sync")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=FOLDER / "german.png")
    print("docs/screenshots/german.png", flush=True)
    context.close()


def take_undo(browser: Browser, address: str, login: str, password: str) -> None:
    """Delete a forum with all below it, and take the page that would undo it. It comes last: the forums are fewer then."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 860}, color_scheme="light")
    page = context.new_page()
    sign_in(page, login, password)
    page.goto("/admin/forums/1/delete")
    page.get_by_role("radio", name="Delete them too").check()
    page.locator("button[value=delete]").click()
    page.locator(".flash").get_by_role("link", name="Undo").click()
    page.wait_for_load_state("networkidle")
    page.screenshot(path=FOLDER / "undo.png")
    print("docs/screenshots/undo.png", flush=True)
    context.close()


def main() -> None:
    """Take them all."""
    names = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
    browser_path = next((path for name in names if (path := shutil.which(name))), None)
    if browser_path is None:
        raise SystemExit("There is no Chromium here; see `make browser`.")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        service(Path(folder)) as (address, key, login, password),
        sync_playwright() as tool,
    ):
        traffic(address, key)
        browser = tool.chromium.launch(executable_path=browser_path, args=list(_ARGUMENTS))
        wanted = set(sys.argv[1:]) or {*PAGES, *HOOK_PAGES, "german", "undo", "undo-change-set", "structure"}
        take(browser, address, login, password, {name: page for name, page in PAGES.items() if name in wanted})
        if "german" in wanted:
            take_german(browser, address, login, password)
        if wanted & set(HOOK_PAGES):
            hooks(address, key)
            take(browser, address, login, password, {name: page for name, page in HOOK_PAGES.items() if name in wanted})
        if "undo-change-set" in wanted:
            take_undo_of_change_set(browser, address, key, login, password)
        if "structure" in wanted:
            take_structure(browser, address, login, password)
        if "undo" in wanted:
            take_undo(browser, address, login, password)
        browser.close()


if __name__ == "__main__":
    main()
