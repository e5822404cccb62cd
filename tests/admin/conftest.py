"""The fixtures of the panel's tests: a browser without a screen or scripts for the quick ones, Chromium for the others."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from html import unescape
from http.cookiejar import Cookie
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from playwright.sync_api import Browser, BrowserContext, Page
from starlette import routing

from tests.admin.html_forms import find_form
from tests.browser import chromium, opened
from tests.conftest import runner, settings_for
from tests.databases import Databases
from tests.fixture_types import Clock, Run
from tests.panel_client import PanelClient
from tests.service_process import Service
from trellis.admin import allowed, app
from trellis.admin.app import Panel
from trellis.compose import compose
from trellis.core.admins.sessions import insert_session
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.settings import Settings

PASSWORD: Final = "correct horse battery"
LOGIN: Final = "mira@example.com"


@pytest.fixture(scope="session", autouse=True)
def _paths_compiled_once(_alike_for_every_test: None) -> Iterator[None]:
    """Let the path of each page be compiled once for all panels, also where the panel itself compiles it; see savings.py."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (app, allowed):
            patch.setattr(module, "compile_path", routing.compile_path)
        yield


@pytest.fixture(scope="session", autouse=True)
def _pages_listed_once(_paths_compiled_once: None) -> Iterator[None]:
    """Let panels share pages, routes, files and templates: to make them anew takes longer than to respond to a request."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("pages_of", "build_routes", "Allowed", "Static", "View"):
            patch.setattr(app, name, _once_for_each(getattr(app, name)))
        yield


def _once_for_each(make: Callable[..., Any]) -> Callable[..., Any]:
    """Make something once for the same texts and objects; that other objects are equal to them is not asked: it takes longer."""
    made: dict[tuple[str | int, ...], tuple[Any, Any]] = {}  # with what it was made of, whose numbers no other objects get then

    def find_or_make(*given: Any) -> Any:
        known = tuple(one if isinstance(one, str) else id(one) for one in given)
        if known not in made:
            made[known] = given, make(*given)
        return made[known][1]

    return find_or_make


@dataclass
class Visitor:
    """Somebody in front of the panel: a client that keeps cookies, and reads the token of each page it has seen."""

    client: PanelClient
    csrf: str = ""

    def get(self, path: str, **how: Any) -> Any:
        """Open a page; paths are without /admin. Redirects are told, not followed."""
        return self._seen(self.client.get("/admin" + path, follow_redirects=False, **how))

    def post(self, path: str, values: Any = None, *, csrf: str | None = None, **how: Any) -> Any:
        """Send a form with the token of the page seen last, or with another one; "" sends none."""
        token = self.csrf if csrf is None else csrf
        sent = dict(values or {}) | ({"csrf": token} if token else {})
        return self._seen(self.client.post("/admin" + path, data=sent, follow_redirects=False, **how))

    def _seen(self, response: Any) -> Any:
        if found := re.search(r'name="csrf" value="([0-9a-f]{64})"', response.text):
            self.csrf = found[1]
        return response

    def sign_in(self, login: str = LOGIN, password: str = PASSWORD) -> Any:
        """Sign in by the form."""
        self.get("/sign-in")
        response = self.post("/sign-in", {"login": login, "password": password})
        if response.status_code == 303:
            self.get("/keyboard")
        return response


def page_text(response: Any) -> str:
    """Return the words of a page."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", response.text)))


@contextmanager
def before_writing(act: Callable[[], object]) -> Iterator[None]:
    """Do something after a form has been checked, and before the first write that it causes."""
    waiting, submit = [act], Gate.submit

    def submit_late(gate: Gate, call: Call) -> Any:
        if waiting and "dryRun" not in call.raw:
            waiting.pop()()
        return submit(gate, call)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gate, "submit", submit_late)
        yield
    assert not waiting, "nothing was written"


@contextmanager
def unreachable_after_writing() -> Iterator[None]:
    """Refuse whatever is read by operations after the first write, as while the database cannot be reached."""
    has_written, run, submit = [], Gate.run, Gate.submit

    def submit_first(gate: Gate, call: Call) -> Any:
        written = submit(gate, call)
        if "dryRun" not in call.raw:
            has_written.append(True)
        return written

    def run_before(gate: Gate, call: Call) -> Any:
        if has_written:
            raise Refused("BUSY", "The database cannot be reached.")
        return run(gate, call)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gate, "submit", submit_first)
        patch.setattr(Gate, "run", run_before)
        yield
    assert has_written, "nothing was written"


class MakeVisitor(Protocol):
    """Puts somebody in front of the panel: `visitor(address="192.0.2.1", https=True, public_url=…)`."""

    def __call__(self, *, address: str = "192.0.2.7", https: bool = False, **changes: Any) -> Visitor: ...


@pytest.fixture
def visitor(gate: Gate, settings: Settings) -> Iterator[MakeVisitor]:
    """Somebody who has not signed in."""
    with ExitStack() as opened:

        def make(*, address: str = "192.0.2.7", https: bool = False, **changes: Any) -> Visitor:
            panel: Any = Panel(gate, replace(settings, **changes))
            scheme = "https" if https else "http"
            client = PanelClient(panel, f"{scheme}://panel.example", client=(address, 50000))
            return Visitor(opened.enter_context(client))

        yield make


@dataclass(frozen=True)
class _SignedIn:
    """A database in which Mira is, with a session of hers, and what her browser keeps of it."""

    url: str
    id: int
    cookies: tuple[Cookie, ...]
    csrf: str


@pytest.fixture(scope="session")
def _sign_in_once(databases: Databases) -> Callable[[str], _SignedIn]:
    """Give a database like another one, with Mira signed in: it takes longer than most tests of pages, so it is made once."""

    @cache
    def sign_in(template: str) -> _SignedIn:
        settings = settings_for(databases.new(template))
        gate = compose(settings, clock=Clock())
        mira = _create_mira(runner(gate))
        with PanelClient(Panel(gate, settings), "http://panel.example", client=("192.0.2.7", 50000)) as client:
            browser = Visitor(client)
            assert browser.sign_in().status_code == 303
            signed_in = _SignedIn(settings.database_url, mira, tuple(client.cookies.jar), browser.csrf)
        gate.store.close()
        return signed_in

    return sign_in


@pytest.fixture
def _signed_in(_plain_template: str, _sign_in_once: Callable[[str], _SignedIn]) -> _SignedIn:
    return _sign_in_once(_plain_template)


@pytest.fixture
def _template(request: pytest.FixtureRequest, _plain_template: str) -> str:
    """The database of a test that asks for `admin` has her and her session in it from the beginning."""
    return str(request.getfixturevalue("_signed_in").url) if "admin" in request.fixturenames else _plain_template


def _create_mira(run: Run) -> int:
    return int(run("admins.create", name="Mira Holm", login=LOGIN, password=PASSWORD, mustChangePassword=False)["id"])


@pytest.fixture
def mira(request: pytest.FixtureRequest, run: Run) -> int:
    """An administrator, Mira Holm; gives her id."""
    return int(request.getfixturevalue("_signed_in").id) if "admin" in request.fixturenames else _create_mira(run)


@pytest.fixture
def admin(visitor: MakeVisitor, _signed_in: _SignedIn) -> Visitor:
    """Mira, signed in."""
    browser = visitor()
    for cookie in _signed_in.cookies:
        browser.client.cookies.jar.set_cookie(copy(cookie))
    browser.csrf = _signed_in.csrf
    return browser


def undo(admin: Visitor, seq: int, **changes: str) -> Any:
    """Open the page that undoes an event, and press its button."""
    return admin.post(f"/events/{seq}/undo", find_form(admin.get(f"/events/{seq}/undo"), "/undo").filled(_action="undo", **changes))


@pytest.fixture
def service(settings: Settings, tmp_path: Path) -> Iterator[Service]:
    """The service in a process of its own, over this test's database."""
    with Service(settings, tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    """A real browser. It is given back after its module: until then, no other test could start an event loop in this thread."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def window(chrome: Browser, service: Service) -> Iterator[BrowserContext]:
    """A window of the browser on the service."""
    window = opened(chrome, service.address)
    yield window
    window.close()


class LetIn(Protocol):
    """Gives a window somebody's session: `let_in(page)` Mira's, `let_in(page, 3)` that of administrator 3. It opens no page."""

    def __call__(self, page: Page, admin: int | None = None) -> None: ...


@pytest.fixture
def let_in(gate: Gate, mira: int) -> LetIn:
    """Give a window the cookie that somebody would get by signing in.

    To sign in takes three requests and a slow hash of the password; `test_browser.py` does it.
    """

    def let_in(page: Page, admin: int | None = None) -> None:
        now = format_timestamp(datetime.now(UTC))  # the service in its own process goes by the real clock
        token = gate.store.write(lambda tx: insert_session(tx, admin or mira, "127.0.0.1", "", now, "password")).result()
        cookie: Any = {"name": "trellis_session", "value": token, "domain": "127.0.0.1", "path": "/admin"}
        page.context.add_cookies([cookie | {"httpOnly": True, "sameSite": "Lax"}])

    return let_in


@pytest.fixture
def page(window: BrowserContext, let_in: LetIn) -> Iterator[Page]:
    """A page of a window in which Mira is signed in, before it opens anything; at the end no script may have failed."""
    page = window.new_page()
    failed: list[str] = []
    page.on("pageerror", lambda error: failed.append(str(error)))
    let_in(page)
    yield page
    window.close()  # a script may fail until then
    assert failed == []
