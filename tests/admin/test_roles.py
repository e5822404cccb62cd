"""The panel as each role sees it: what is shown can be done, and what is not shown is refused when it is sent all the same."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import pytest

from tests.admin.conftest import PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.everything import group_alike
from tests.admin.html_forms import read_forms
from tests.each_engine import on_engines
from tests.fixture_types import Events, MakeKey, Run, RunForEvent
from trellis.admin.app import Panel
from trellis.admin.page import Page
from trellis.core.gate import Gate
from trellis.core.roles import OWN, OWNER, ROLES
from trellis.kinds import KINDS
from trellis.settings import Settings

ROLE_OF: Final = [*((name, ()) for name in ROLES), ("structure-editor", ("forums",))]
# Statements differ by whether somebody sees everything, some resources or some kinds; the rest is decided without the database.
# On SQLite, key managers are those who see some resources.
_ON_POSTGRESQL: Final = ((OWNER, ()), ("approver", ()), ("structure-editor", ("forums",)))
_ENGINES: Final = [("sqlite", *one) for one in ROLE_OF if one[0] != "approver"] + [("postgresql", *one) for one in _ON_POSTGRESQL]
REFUSED: Final = "An owner can change roles."
# What is everybody's: one's own account, and where pages are told of news.
OWN_PAGES: Final = ("/account", "/news", "/keyboard")
GONE: Final = "999999"


@pytest.fixture
def records(run: Run, key: MakeKey, do: RunForEvent, gate: Gate) -> dict[str, int]:
    """One record of everything that has a page, by the first part of its address."""
    found = {kind.name: int(run(f"{kind.name}.create", name="News")["id"]) for kind in KINDS}
    key(["forums.list"])
    run("webhooks.create", url="https://hooks.example/in", events=["*"])
    event = do("forums.update", found["forums"], description="<p>Old and new.</p>")
    proposing = {"operation": "forums.delete", "target": found["forums"], "input": {}}
    proposal = int(run("proposals.create", **proposing)["id"])
    paused = do("keys.pause", 1)
    return {**found, "keys": 1, "webhooks": 1, "events": event, "proposals": proposal, "event-of-key": paused}


@pytest.fixture
def sign_in_as(run: Run, visitor: MakeVisitor) -> Any:
    """Signs an administrator with a role in, and gives their id and their browser."""

    def sign_in(role: str, kinds: tuple[str, ...] = ()) -> tuple[int, Visitor]:
        raw = {"name": "Ada Berg", "login": "ada", "password": PASSWORD, "mustChangePassword": False}
        made = run("admins.create", **raw, role=role, kinds=list(kinds))
        browser = visitor()
        assert browser.sign_in("ada", PASSWORD).status_code == 303
        return int(made["id"]), browser

    return sign_in


def fill_in(page: Page, records: dict[str, int], *, gone: bool = False) -> str:
    """Return an address of a page: of a record that there is, or of one that there is not."""
    number = GONE if gone else str(records.get(page.path.partition("/")[2].partition("/")[0], GONE))
    return re.sub(r"\{\w+(:int)?\}", number, page.path)


def choose(pages: Iterable[Page], may: Callable[[Page], bool]) -> list[Page]:
    """Choose from pages that all kinds of nodes have one that may be opened, and one that may not."""
    return [those[at % len(those)] for at, those in enumerate(group_alike(pages, may))]


def is_refused(response: Any) -> bool:
    refused = response.status_code == 403 and REFUSED in page_text(response)
    assert refused or REFUSED not in response.text
    return refused


def test_every_page_names_what_it_needs(gate: Gate, settings: Settings) -> None:
    pages = Panel(gate, settings).pages
    without = {page.path for page in pages if not (page.needs or page.open or page.before)}
    assert [path for path in without if not path.startswith(OWN_PAGES)] == []
    for page in pages:
        for name in page.needs:
            assert name in gate.catalogue, page.path


@on_engines(["role", "kinds"], _ENGINES)
def test_a_role_can_do_what_it_is_shown_and_nothing_else(
    role: str, kinds: tuple[str, ...], gate: Gate, settings: Settings, records: dict[str, int], sign_in_as: Any, events: Events
) -> None:
    me, browser = sign_in_as(role, kinds)
    permit = gate.environment.permits.find(role, ",".join(kinds) or None)
    undoable = records["event-of-key" if role == "key-manager" else "events"]
    records = {**records, "administrators": me, "events": undoable}

    def may(page: Page, *, own: bool) -> bool:
        return all(permit is None or name in permit.operations or (own and name in OWN) for name in page.needs)

    pages = choose((page for page in Panel(gate, settings).pages if page.needs), partial(may, own=True))
    shown: set[str] = set()
    refused: dict[str, bool] = {}  # by address
    for page in (page for page in pages if page.method == "GET"):
        response = browser.get(path := fill_in(page, records))
        refused[path] = is_refused(response)
        assert refused[path] is not may(page, own=True), (page.path, response.status_code)
        assert response.status_code < 500, page.path
        shown |= set(re.findall(r'(?:href|action)="/admin(/[^"#?]*)', response.text))
        if '<div class="locked' in response.text:  # every control outside of a form is shut
            outside = re.sub(r"<form\b.*?</form>", "", response.text, flags=re.DOTALL)
            assert not re.findall(r"<(?:input|select|textarea|button type=.submit.)(?! disabled)\b[^>]*>", outside), page.path
    for path in sorted(path for path in shown if "/static/" not in path):
        assert not (refused[path] if path in refused else is_refused(browser.get(path))), path
    before = [event["seq"] for event in events()]
    for page in (page for page in pages if page.method == "POST" and not may(page, own=True)):
        assert is_refused(browser.post(fill_in(page, records))), page.path
    assert [event["seq"] for event in events()] == before
    for page in (page for page in pages if page.method == "POST" and may(page, own=False) and "{id" in page.path):
        assert not is_refused(browser.post(fill_in(page, records, gone=True))), page.path


def test_the_menu_has_what_the_role_may_open(sign_in_as: Any) -> None:
    _, browser = sign_in_as("structure-editor", ("forums",))
    page = browser.get("").text
    menu = re.findall(r'<a href="([^"]*)"', page[page.index("<nav") : page.index("</nav>")])
    community, system = ["/admin/forums", "/admin/groups", "/admin/structure"], ["/admin/alarms", "/admin/events"]
    assert menu == ["/admin", *community, "/api/docs", *system, "/admin/account"]


def test_a_role_that_only_reads_sees_a_form_without_a_button(sign_in_as: Any, records: dict[str, int]) -> None:
    _, browser = sign_in_as("auditor")
    page = browser.get(f"/forums/{records['forums']}")
    assert 'value="News"' in page.text
    assert '<div class="locked' in page.text
    for word in ("Save", "Delete…", "Move…", "New forum"):
        assert word not in page_text(page)
    assert 'class="handle"' not in browser.get("/forums").text


def test_an_empty_list_says_what_its_reader_may_do_next(sign_in_as: Any) -> None:
    _, browser = sign_in_as("approver")
    events = browser.get("/events")
    assert "No events yet Changes to what your role may see appear here" in page_text(events)
    assert "end of the log" not in page_text(events)
    assert "Back to the newest" in page_text(browser.get("/events?before=1"))
    for path in ("/requests", ""):
        page = page_text(browser.get(path))
        assert "No requests yet" in page
        assert "create a key" not in page


def test_the_page_of_documents_has_the_script_of_their_form_only_where_that_is(sign_in_as: Any, admin: Visitor) -> None:
    _, browser = sign_in_as("auditor")
    page = browser.get("/structure").text
    assert "<textarea" not in page
    assert "structure.js" not in page
    assert "structure.js" in admin.get("/structure").text


def test_a_form_about_oneself_that_is_sent_twice_is_saved_once(sign_in_as: Any, events: Events) -> None:
    me, browser = sign_in_as("key-manager")
    page = browser.get(f"/administrators/{me}")
    typed = next(one for one in read_forms(page) if one.action == "" and one.all("login")).filled(name="Ada Berger")
    before = len(events())
    assert [browser.post(f"/administrators/{me}", typed).status_code for _ in range(2)] == [303, 303]
    assert len(events()) == before + 1


def test_a_demotion_applies_to_the_next_request(sign_in_as: Any, run: Run) -> None:
    run("admins.create", name="Bo", login="bo", password=PASSWORD)
    me, browser = sign_in_as(OWNER)
    assert browser.get("/keys/new").status_code == 200
    run("admins.set_role", me, role="auditor")
    assert is_refused(browser.get("/keys/new"))
    assert is_refused(browser.post("/keys/new", {"name": "Mine"}))
    assert run("keys.list")["totalResults"] == 0


def test_an_owner_gives_a_role(admin: Visitor, run: Run, events: Events) -> None:
    ada = run("admins.create", name="Ada Berg", login="ada", password=PASSWORD)["id"]
    page = admin.get(f"/administrators/{ada}/role")
    assert page.status_code == 200
    saved = admin.post(f"/administrators/{ada}/role", {"role": "structure-editor", "kinds": ["", "forums", "calendars"]})
    assert saved.headers["location"] == f"/admin/administrators/{ada}"
    assert (events()[-1]["operation"], events()[-1]["actor"]["type"]) == ("admins.set_role", "admin")
    assert "Structure editor (forums, calendars)" in page_text(admin.get("/administrators"))
    wrong = admin.post(f"/administrators/{ada}/role", {"role": "auditor", "kinds": ["", "forums"]})
    assert (wrong.status_code, "is for all kinds" in page_text(wrong)) == (400, True)
    made = admin.post("/administrators/new", {"name": "Bo", "login": "bo", "role": "approver", "kinds": ""})
    assert made.status_code == 200
    assert run("admins.get", ada + 1)["role"] == "approver"


def test_a_role_that_was_given_in_the_meantime_is_not_put_back(admin: Visitor, run: Run, events: Events) -> None:
    ada = run("admins.create", name="Ada Berg", login="ada", password=PASSWORD, role="structure-editor", kinds=["forums"])["id"]
    path = f"/administrators/{ada}/role"
    (opened,) = (one for one in read_forms(admin.get(path)) if one.action == "")
    run("admins.set_role", ada, role="auditor")
    before = len(events())
    conflict = admin.post(path, opened.filled(("kinds", "calendars")))
    assert (conflict.status_code, len(events())) == (409, before)
    said = page_text(conflict)
    assert "Somebody else changed this administrator in the meantime" in said
    assert "Role Auditor Structure editor" in said
    assert "For these kinds all Forums, Calendars" in said
    (again,) = (one for one in read_forms(conflict) if one.action == "")
    assert admin.post(path, again.filled()).status_code == 303
    assert run("admins.get", ada)["kinds"] == ["forums", "calendars"]


def test_the_only_owner_cannot_be_demoted(admin: Visitor, mira: int, run: Run) -> None:
    page = admin.post(f"/administrators/{mira}/role", {"role": "auditor", "kinds": ""})
    assert "is the only owner who can sign in" in page_text(page)
    assert run("admins.get", mira)["role"] == OWNER
