"""A real Chromium: opening pages of the panel and the reference, signing in, and asking axe what is wrong with a page."""

import re
import shutil
from asyncio import AbstractEventLoop, _set_running_loop, get_running_loop
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.npm_packages import npm_package

Theme = Literal["light", "dark"]
WIDTHS: Final = (1280, 360)
THEMES: Final[tuple[Theme, ...]] = ("light", "dark")
LOOKS: Final = tuple(zip(WIDTHS, THEMES, strict=True))  # each width and each theme: colours do not depend on the width

_HEIGHT: Final = 900
_NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Every address is of this machine: for the font that the pages of an OpenID provider name, no name server is asked.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
    # Every page is of this machine: no process is kept ready for another site, and none of its own draws what nobody sees.
    "--disable-site-isolation-trials",
    # A window begins with an empty page. What comes then, and other pages beside it, come into the same process, not into others.
    "--renderer-process-limit=1",
    "--in-process-gpu",
    # A page comes into the frame of the one before: a frame of its own for each takes as long to make as the page takes to load.
    # What asks the service is in the browser's process: to hand each response over from another one takes a tenth of all its time.
    "--enable-features=RenderDocument:level/crashed-frame,NetworkServiceInProcess2",
    # What a page runs, it runs once: to compile it well, as for a program that goes on for long, takes longer than that saves.
    "--js-flags=--no-opt --no-maglev --single-threaded-gc",
)
_GIVE_UP: Final = 60_000  # milliseconds until what a page should show is given up
_TOLD: Final = 2_000  # characters of a page that a failed test tells
# Of refusals, for which tests look themselves; where a test is in a field before the browser has chosen one; and of windows
# without service workers.
_HARMLESS: Final = ("Failed to load resource", "Autofocus processing was blocked", "Service Worker registration blocked")
_ALL: Final = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
COLOURS: Final = ("color-contrast", "link-in-text-block")
PLACES: Final = ("target-size", "scrollable-region-focusable", "region")

_right_colours: Final[set[str]] = set()  # of texts, with what is behind them, as axe.js tells them: what this process has seen


def list_complaints(said: Iterable[str]) -> list[str]:
    """Return what pages have told their console that nobody expects."""
    return [text for text in said if not any(part in text for part in _HARMLESS)]


def chromium_path() -> str | None:
    """Find a browser, if there is one."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


@dataclass(frozen=True)
class _Started:
    """The browser of this process, with the event loop that it is driven by."""

    browser: Browser
    loop: AbstractEventLoop
    closing: ExitStack


_started: Final[list[_Started]] = []


@contextmanager
def chromium() -> Iterator[Browser]:
    """Lend the browser of this process, which starts when it is wanted first; skip the test where there is none.

    It is driven by an event loop that runs in this thread, where no other could run then. In between that loop counts as one that
    does not run: nothing happens in it, since every window is closed.
    """
    expect.set_options(timeout=_GIVE_UP)
    started = _started[0] if _started else _start()
    _set_running_loop(started.loop)
    try:
        yield started.browser
    finally:
        for context in started.browser.contexts:
            context.close()
        _set_running_loop(None)


def _start() -> _Started:
    path = chromium_path()
    if path is None:
        pytest.skip("There is no Chromium here; see `make browser`.")
    with ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        stack.callback(browser.close)
        _started.append(_Started(browser, get_running_loop(), stack.pop_all()))
    return _started[0]


def end_chromium() -> None:
    """End the browser of this process, if it was started."""
    while _started:
        started = _started.pop()
        _set_running_loop(started.loop)
        started.closing.close()
        _set_running_loop(None)


def tell_pages() -> str:
    """Return where each open page is and what it shows: what somebody wants to know of a test that failed elsewhere."""
    return "\n\n".join(_tell(page) for started in _started for context in started.browser.contexts for page in context.pages)


def _tell(page: Page) -> str:
    try:
        shown = page.locator("main, dialog[open]").all_inner_texts()
    except PlaywrightError as error:
        shown = [str(error)]
    return "\n".join([page.url, *shown])[:_TOLD]


def opened(
    browser: Browser,
    address: str,
    *,
    width: int = 1280,
    theme: Theme = "light",
    scripts: bool = True,
    state: Any = None,
    workers: bool = False,
) -> BrowserContext:
    """Open a window on a service. `state` is the `storage_state()` of another one: the same session.

    Without `workers`, no service worker comes between a form and the service: a test could not hold what a worker sends.
    """
    context = browser.new_context(
        base_url=address,
        viewport={"width": width, "height": _HEIGHT},
        color_scheme=theme,
        java_script_enabled=scripts,
        reduced_motion="reduce",
        storage_state=state,
        service_workers="allow" if workers else "block",
    )
    context.set_default_timeout(_GIVE_UP)
    return context


def search_picker(page: Page, label: str, text: str) -> None:
    """Type into the search of a picker, and wait for what it finds: the list gets shorter, and what is below it moves."""
    page.get_by_label(f"{label}: search by name").fill(text)
    expect(page.get_by_role("status").filter(has_text=re.compile(r"^\s*\d+ found\.\s*$"))).to_have_count(1)


def take_hold(page: Page, name: str) -> None:
    """Take hold of a node in a tree, to drag it."""
    handle = page.get_by_role("button", name=f"Move {name}:").bounding_box()
    assert handle is not None
    page.mouse.move(handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
    page.mouse.down()


def sign_in(page: Page, login: str, password: str) -> None:
    """Sign in by the form."""
    page.goto("/admin/sign-in")
    page.get_by_label("Login").fill(login)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("heading", name="Overview").wait_for()


def confirm(page: Page, password: str) -> None:
    """Enter the password again, where the panel asks for it."""
    if "/confirm-password" in page.url:
        page.get_by_label("Password of").fill(password)
        page.get_by_role("button", name="Continue").click()


def wait_until_drawn(page: Page) -> None:
    """Wait until a page has loaded and its next two frames are drawn: before that, the browser may lose a key or move the focus."""
    page.wait_for_load_state()
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


@cache
def _axe_source() -> str:
    return (npm_package("axe-core") / "axe.min.js").read_text(encoding="utf-8")


@cache
def _question() -> str:
    return Path(__file__).with_name("axe.js").read_text(encoding="utf-8")


def bring_axe(page: Page) -> None:
    """Let every address that a page opens from now on have axe: for many of them that takes half as long as to send it to each."""
    page.add_init_script(_axe_source())


def violations(page: Page, about: tuple[str, ...] = ()) -> list[str]:
    """Ask axe for everything on a page that somebody could not see, read or use, or only for what is about colours or places."""
    given = {"runOnly": {"type": "rule", "values": about} if about else _ALL, "known": list(_right_colours)}
    found: dict[str, Any] | None = page.evaluate(_question(), given)
    if found is None:
        page.evaluate(_axe_source())
        found = page.evaluate(_question(), given)
    assert found is not None
    _right_colours.update(found["right"])
    return [
        f"{violation['id']}: {violation['help']} – " + "; ".join(node[:160] for node in violation["nodes"][:3])
        for violation in found["violations"]
    ]


def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window: it should be none."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def faults(page: Page, looks: Sequence[tuple[int, Theme]] = LOOKS) -> dict[str, list[str]]:
    """Return what axe finds on a page, and whether it is too wide, in each look; those without a fault are left out.

    One look is enough at a page that is put together otherwise, but of nothing that is not on other pages in each look.

    The page is loaded once and looked at in each: its scripts do not ask for the width or the theme. The window is as large
    afterwards as before, in the last theme. Axe is asked for everything in the first look, and in the others for what the width or
    the theme decides.
    """
    found, before = {}, page.viewport_size
    for width, theme in looks:
        page.set_viewport_size({"width": width, "height": _HEIGHT})
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        wide = [f"{pixels} px too wide"] if (pixels := overflow(page)) > 0 else []
        about = () if (width, theme) == looks[0] else (*COLOURS, *PLACES)
        if wrong := violations(page, about) + wide:
            found[f"{width} {theme}"] = wrong
    if before is not None:
        page.set_viewport_size(before)
    return found
