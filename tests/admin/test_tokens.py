"""Forms without the token of their session: each page refuses one that names what is there and that has no other fault."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.everything import fill, group_alike
from tests.admin.html_forms import HtmlForm, find_form, read_forms
from tests.admin.webhooks.rows import insert_delivery
from tests.community import CATALOGUE
from tests.fixture_types import Events, MakeKey, Run
from trellis.admin.page import Page
from trellis.admin.sections import pages_of
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.kinds import KINDS

Fill = Callable[[Visitor], Mapping[str, Any]]

_KIND: Final = "categories"  # of the pages that all kinds have, those of this one: they are filled in below
PAGES: Final = [
    next((page for page in those if page.path.startswith(f"/{_KIND}")), those[-1])
    for those in group_alike(page for page in pages_of(CATALOGUE, KINDS) if page.method == "POST")
]
_TOLD: Final = re.compile("has signed in since this form was opened|was open for too long|belongs to an earlier session")
_ELSEWHERE: Final = {  # pages that come after others: the tests of their tokens
    "/first-run/{link}": "admins/test_first_run.py",
    "/sign-in/code": "factors/test_pages.py",
    "/sign-on/code": "admins/test_sign_on.py",
    "/sign-on/resume": "shows a form again",
    "/confirm-password": "test_sessions.py",
    "/new-password": "test_sessions.py",
}
_PATHS: Final = {  # where the first record is not the one
    "/keys/presets/1/pause": "/keys/presets/agent/pause",
    "/events/1/undo": "/events/3/undo",
    "/keys/1/undo": "/keys/1/undo?since=2026-01-01",
    "/groups/1/access": "/groups/5/access",
}


def _find(page: Any, field: str = "_plan") -> HtmlForm:
    return next(form for form in read_forms(page) if field in dict(form.pairs))


def _read(address: str, **changes: str) -> Fill:
    """Return what fills in the form with a plan that a page shows."""
    return lambda admin: _find(admin.get(address)).filled(**changes)


def _plan(path: str, **values: str) -> Fill:
    """Return what fills in the form that carries out what was asked for, once its plan has been shown."""

    def confirm(admin: Visitor) -> Mapping[str, Any]:
        admin.get("")
        return _find(admin.post(path, {**values, "_action": "plan"})).filled(_action="do")

    return confirm


def _give_rights(admin: Visitor) -> Mapping[str, Any]:
    ticked = _find(admin.get("/groups/5/access?kind=categories&all=1"), "_seen").filled(("may.view", "1"))
    return _find(admin.post("/groups/5/access", {**ticked, "_action": "plan"})).filled(_action="do")


def _drag(admin: Visitor) -> Mapping[str, Any]:
    version = find_form(admin.get("/categories/1/move"), "/move")["_version"]
    return {"ids": "1", "_version": version, "parentId": "", "before": "2", "after": ""}


def _change_below(admin: Visitor) -> Mapping[str, Any]:
    form = find_form(admin.get("/categories/1"), "/categories/1").filled(**{"permissions.view": "*"})
    return find_form(admin.post("/categories/1/below", {**form, "_action": "below"}), "/below").filled(_action="do")


_FILLED: Final[Mapping[str, Fill]] = {  # forms that are judged before their token is
    "/keys/many/grants": _plan("/keys/many/grants", ids="1", grants="groups.list"),
    "/keys/many/revoke": _plan("/keys/many/revoke", ids="1"),
    "/events/3/undo": _read("/events/3/undo", _action="undo"),
    "/change-sets/1/undo": _read("/change-sets/1/undo"),
    "/keys/1/undo?since=2026-01-01": _read("/keys/1/undo?since=2026-01-01"),
    "/categories/1/delete": _read("/categories/1/delete", children="delete", _action="delete"),
    "/categories/1/move": lambda _: {"place": "last", "_action": "save"},
    "/categories/1/below": _change_below,
    "/categories/many/move": _plan("/categories/many/move", ids="1", to="2"),
    "/categories/many/copy": _plan("/categories/many/copy", ids="1", withChildren="1"),
    "/categories/many/permissions": _plan("/categories/many/permissions", ids="1", how="give", options="view", groups="5"),
    "/categories/many/fields": _plan("/categories/many/fields", **{"ids": "1", "_set.description": "1", "description": "X"}),
    "/categories/many/delete": _plan("/categories/many/delete", ids="2"),
    "/categories/many/drag": _drag,
    "/groups/5/access": _give_rights,
}


def find_unguarded(admin: Visitor, pages: Iterable[Page]) -> Iterator[str]:
    """Send a form without its session's token to each page, and yield what pages said that did something else than refuse it."""
    for number, page in enumerate(pages):
        if page.path in _ELSEWHERE:
            continue
        path = re.sub(r"\{\w+(:int)?\}", "1", page.path)
        path = _PATHS.get(path, path)
        values = _FILLED[path](admin) if path in _FILLED else {}
        response = admin.post(path, values, csrf="0" * 64 if number % 2 else "")
        if response.status_code != 409 or not _TOLD.search(page_text(response)):
            yield f"{response.status_code} {path} {page_text(response)[-300:]}"


@pytest.fixture
def filled(gate: Gate, run: Run, key: MakeKey) -> None:
    fill(gate, run, key)
    run("categories.create", name="Αρχείο")
    run("categories.create", name="Κάτω", parentId=1)
    run("keys.create", name="Πράκτορας", preset="agent")
    run("filters.create", name="Δικά", list="requests", query="status=4xx", shared=True)
    insert_delivery(gate, {}, state="failed")
    gate.run(Call("forums.create", Actor("key", 1, "Κλειδί", None), {"name": "Νέα"}))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # the token is checked before a page asks the database
def test_no_page_takes_a_form_without_the_sessions_token(filled: None, admin: Visitor, events: Events) -> None:
    before = events()
    unguarded = list(find_unguarded(admin, PAGES))
    assert not unguarded, "\n".join(unguarded)
    assert events() == before
    assert admin.get("/account").status_code == 200  # the session has not ended either
