"""Keys as recipes: what a form begins with, what the key will be able to do in a sentence, its owner, and its line of use."""

import re
from dataclasses import replace
from functools import partial
from html import unescape
from typing import Any, Final

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import read_forms
from tests.fixture_types import Clock, Events, MakeKey, Run
from trellis.admin.keys.grants import GrantGrid
from trellis.admin.keys.recipes import RECIPES
from trellis.compose import catalogue_of
from trellis.core.gate import Gate
from trellis.core.keys import SETTINGS
from trellis.kinds import KINDS
from trellis.store import requests
from trellis.store.requests import Request

*_FIRST, _LAST = (kind.title.lower() for kind in KINDS)
EVERY_KIND: Final = f"{', '.join(_FIRST)} and {_LAST}"


def _form(page: Any) -> Any:
    return next(form for form in read_forms(page) if "grants" in dict(form.pairs))


def _said(page: Any) -> str:
    """Return what a page says that the key will be able to do."""
    found = re.search(r"data-abilities[^>]*>(.*?)</section>", page.text, re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[1] if found else page.text)).strip()


@pytest.mark.parametrize("recipe", ["mirror", "read-only"])
def test_a_recipe_that_reads_every_part_reads_a_new_kind(recipe: str) -> None:
    kind = next(kind for kind in KINDS if kind.name == "calendars")
    grid = GrantGrid(
        catalogue_of((*KINDS, replace(kind, name="galleries", title="Galleries", singular="gallery", path="gallery/galleries")))
    )
    assert {"galleries.list", "galleries.get", "groups.list"} <= set(RECIPES[recipe].describe(grid)["grants"])
    assert "galleries.create" not in RECIPES[recipe].describe(grid)["grants"]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("recipe", "grants", "said"),
    [
        ("calendar-sync", 6, "It may read groups; and read, create and change calendars. It works for 90 days, from anywhere."),
        (
            "mirror",
            2 * len(KINDS) + 2,
            f"It may read {EVERY_KIND}; export the structure; and list events.",
        ),
        ("read-only", 2 * len(KINDS), f"It may read {EVERY_KIND}. It works for 90 days"),
        (
            "agent",
            0,
            "With approval by somebody else for each call, it may delete groups and blogs; create, change, copy",
        ),
    ],
)
def test_a_recipe_is_ticked_said_and_made(admin: Visitor, run: Run, recipe: str, grants: int, said: str) -> None:
    page = admin.get(f"/keys/new?recipe={recipe}")
    assert said in _said(page)
    form = _form(page)
    ticked = [name for name in form.all("grants") if name]
    assert len(ticked) == grants if grants else len(ticked) > 20  # as many as there are kinds for
    assert admin.post("/keys/new", form.filled(name="Made", owner="Mira", note="Runs at night.\nOn shop1.")).status_code == 200
    made = run("keys.get", 1)
    assert made["grants"] == sorted(ticked)
    assert (made["owner"], made["note"], made["preset"]) == ("Mira", "Runs at night.\nOn shop1.", RECIPES[recipe].preset or None)
    assert "Mira" in page_text(admin.get("/keys"))
    assert "Runs at night." in page_text(admin.get("/keys/1"))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_copy_has_all_but_the_secret_and_what_has_ended(admin: Visitor, run: Run, key: MakeKey, clock: Clock) -> None:
    bounds = {"forums.create": {"perDay": 5}, "forums.delete": {"until": "1d"}, "forums.update": {"level": "propose"}}
    granted = [f"forums.{verb}" for verb in ("list", "get", "create", "update", "delete", "copy", "restore")]
    key(granted, name="Importer", bounds=bounds, addresses="192.0.2.0/24", owner="Ada", rateLimit=60, note="By night")
    clock.move(days=2)
    admin.sign_in()
    page = admin.get("/keys/new?copy=1")
    assert _said(page) == (
        "It may read, create, copy and undo changes to forums. With approval by somebody else for each call, it may change forums. "
        "Create a forum: only 5 times a day. It works for 90 days, only from 192.0.2.0/24, at most 60 times a minute."
    )
    assert admin.post("/keys/new", _form(page).filled()).status_code == 200
    old, new = run("keys.get", 1), run("keys.get", 2)
    assert new["name"] == "Importer (copy)"
    same = {field.name for field in SETTINGS} - {"name", "grants", "bounds", "expires"}
    assert {name: new[name] for name in same} == {name: old[name] for name in same}
    assert set(old["grants"]) - set(new["grants"]) == {"forums.delete"}
    assert {name: bound.get("perDay") or bound["level"] for name, bound in new["bounds"].items()} == {
        "forums.create": 5,
        "forums.update": "propose",
    }
    assert new["public"] != old["public"]
    assert admin.get("/keys/new?copy=99").status_code == 404
    assert 'value="Importer (copy)"' not in admin.get("/keys/new?copy=-1").text


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_sentence_follows_the_form_and_changes_nothing(admin: Visitor, run: Run, key: MakeKey, events: Events) -> None:
    key("forums.list", name="Reader", expires="30d")
    before = len(events())
    form = _form(admin.get("/keys/new"))
    typed = form.filled(
        ("grants", "forums.delete"), ("bounds.forums.delete.dryRunOnly", "1"), expires="never", perDay="7", logRequests="0"
    )
    said = _said(admin.post("/keys/describe", typed))
    assert said == (
        "In dry runs only, it may delete forums. It works until somebody revokes it, from anywhere, at most 7 times "
        "a day. Its requests are not logged."
    )
    assert _said(admin.post("/keys/new", form.filled(("grants", "groups.get"), ("_tick", "describe")))).startswith(
        "It may read groups."
    )
    assert _said(admin.get("/keys/new")).startswith("The key may not do anything yet.")
    edited = _form(admin.get("/keys/1/edit"))
    assert _said(admin.post("/keys/describe?of=1", edited.filled())).startswith("It may read forums. It works until 2 Mar 2026")
    assert len(events()) == before
    assert run("keys.list")["totalResults"] == 1


def test_the_list_draws_how_much_each_key_is_used(admin: Visitor, gate: Gate, clock: Clock, key: MakeKey, run: Run) -> None:
    for name in ("Busy", "Idle"):
        key("forums.list", name=name)
    for days in (13, 13, 2, 0, 20):
        clock.move(days=-days)
        one = Request(clock.text, "GET", "/api/forums/forums", "forums.list", 1, "192.0.2.7", 200, 1500, f"r{days}", None)
        gate.store.write(partial(requests.append, batch=[one])).result(30)
        clock.move(days=days)
    assert run("requests.daily", keys=[1, 2], days=14) == {1: [2, *[0] * 10, 1, 0, 1], 2: [0] * 14}
    page = admin.get("/keys")
    said = page_text(page)
    assert "4 requests in 14 days, 1 today" in said
    assert "0 requests in 14 days, 0 today" in said
    assert page.text.count('height="1.0"') == 11 + 14
    bars = re.findall(r'href="/admin(/requests\?key=1&amp;[^"]*)" tabindex="-1"', admin.get("/keys/1").text)
    assert [admin.get(unescape(path)).text.count('data-row="request-') for path in bars] == [1, 2, 1, 1]
    assert run("keys.list", search="nobody")["totalResults"] == 0
    run("keys.update", 2, owner="Nobody in particular")
    assert [one["name"] for one in run("keys.list", search="nobody")["results"]] == ["Idle"]
