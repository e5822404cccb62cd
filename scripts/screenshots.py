"""Take the screenshots of the README and the docs: a fresh sample community, some traffic, and the main pages."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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


def sign_in(page: Page, login: str, password: str) -> None:
    """Sign in by the form."""
    page.goto("/admin/sign-in")
    page.get_by_label("Login").fill(login)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Overview").wait_for()


def take(browser: Browser, address: str, login: str, password: str) -> None:
    """Sign in, and take each page."""
    for theme in sorted({theme for _, theme in PAGES.values()}):
        context = browser.new_context(
            base_url=address, viewport={"width": 1280, "height": 860}, color_scheme="light" if theme == "light" else "dark"
        )
        page = context.new_page()
        sign_in(page, login, password)
        for name, path in ((name, path) for name, (path, wanted) in PAGES.items() if wanted == theme):
            page.goto(path)
            if "/confirm-password" in page.url:
                page.get_by_label("Password of").fill(password)
                page.get_by_role("button", name="Go on").click()
            page.wait_for_load_state("networkidle")
            page.screenshot(path=FOLDER / f"{name}.png")
            print(f"docs/screenshots/{name}.png", flush=True)
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
    browser_path = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
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
        take(browser, address, login, password)
        take_undo(browser, address, login, password)
        browser.close()


if __name__ == "__main__":
    main()
