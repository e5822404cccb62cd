"""Choosing a node by a search for its name: nodes that cannot be chosen do not take the places of those that can."""

from typing import Any

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form
from tests.fixture_types import Run
from trellis.admin.nodes import picker
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused

_FEW = 3


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picker, "_MAX_OPTIONS", _FEW)
    monkeypatch.setattr(picker, "_MAX_READ", 3)  # pages, each of one more node than is offered


def _redirects(run: Run, count: int) -> None:
    for number in range(count):
        run("forums.create", name=f"Garden {number}", type="redirect", redirectUrl="https://example.org/")


def _found(admin: Visitor, search: str, more: str = "") -> tuple[list[str], int]:
    found = admin.get(f"/forums/find?search={search}&parents=1{more}").json()
    return [one["name"] for one in found["results"]], found["more"]


def _search(admin: Visitor, path: str, search: str) -> Any:
    return admin.post(path, find_form(admin.get(path), "/move").filled(**{"_search.parentId": search, "_action": "search"}))


def test_nodes_that_cannot_be_parents_do_not_hide_those_that_can(admin: Visitor, run: Run) -> None:
    _redirects(run, 6)
    run("forums.create", name="Garden tools")
    here = run("forums.create", name="Sheds")["id"]
    assert _found(admin, "garden") == (["Garden tools"], 0)
    shown = _search(admin, f"/forums/{here}/move", "garden")
    assert "Garden tools" in page_text(shown)
    assert "more: type more letters" not in page_text(shown)


def test_nodes_below_excluded_ones_do_not_hide_others(admin: Visitor, run: Run) -> None:
    top = run("forums.create", name="Garden")["id"]
    for number in range(6):
        run("forums.create", name=f"Garden {number}", parentId=top)
    run("forums.create", name="Garden tools")
    assert _found(admin, "garden", f"&not={top}") == (["Garden tools"], 0)


def test_a_parent_that_cannot_be_read_now_is_not_said_to_be_missing(
    admin: Visitor, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, path = run("forums.create", name="Garden")["id"], "/forums/new"
    filled = find_form(admin.get(path), path).filled(parentId=str(parent), name="Tools", _action="save")
    read = Gate.run

    def read_others(gate: Gate, call: Call) -> Any:
        if (call.operation, call.target) == ("forums.get", parent):
            raise Refused("BUSY", "The database cannot be reached.")
        return read(gate, call)

    monkeypatch.setattr(Gate, "run", read_others)
    refused = admin.post(path, filled | {"name": ""})
    assert refused.status_code == 503
    assert "cannot be reached" in page_text(refused)


def test_more_counts_no_node_that_cannot_be_chosen_and_was_read(admin: Visitor, run: Run) -> None:
    _redirects(run, 2)
    for number in range(2, 5):
        run("forums.create", name=f"Garden {number}")
    assert _found(admin, "garden") == (["Garden 2", "Garden 3", "Garden 4"], 0)
    run("forums.create", name="Garden 5")
    assert _found(admin, "garden") == (["Garden 2", "Garden 3", "Garden 4"], 1)


def test_a_page_says_that_more_letters_are_needed_if_none_of_the_first_matches_can_be_chosen(admin: Visitor, run: Run) -> None:
    _redirects(run, 13)
    run("forums.create", name="Garden tools")
    here = run("forums.create", name="Sheds")["id"]
    assert _found(admin, "garden") == ([], 2)
    shown = page_text(_search(admin, f"/forums/{here}/move", "garden"))
    assert "The first matches cannot be chosen here. Type more letters to narrow the search." in shown
    assert "No matches." not in shown
    assert "No matches." in page_text(_search(admin, f"/forums/{here}/move", "xyzzy"))
    assert "Garden tools" in page_text(_search(admin, f"/forums/{here}/move", "garden tool"))


@pytest.mark.parametrize("action", ["search", "preview.description"])
def test_a_chosen_node_that_was_deleted_meanwhile_is_not_silently_replaced_by_the_top_level(
    admin: Visitor, run: Run, action: str
) -> None:
    parent = run("forums.create", name="Garden")["id"]
    form = find_form(admin.get(f"/forums/new?parentId={parent}"), "/new")
    assert "already been deleted" not in page_text(admin.post("/forums/new", form.filled(_action=action)))
    run("forums.delete", parent)
    assert "This forum has already been deleted." in page_text(admin.post("/forums/new", form.filled(_action=action)))
