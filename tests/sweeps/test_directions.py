"""No page and no command lets a name turn the direction of what stands around it."""

import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tests.admin.conftest import PASSWORD, Visitor, _sign_in_once, _signed_in, _template, admin, mira, visitor
from tests.cli.conftest import Trellis, cli, nowhere, trellis
from tests.fixture_types import Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call

__all__ = [  # fixtures
    "_sign_in_once",
    "_signed_in",
    "_template",
    "admin",
    "cli",
    "mira",
    "nowhere",
    "trellis",
    "visitor",
]

NAME = "\u202egnp.exe"  # shown as `exe.png`, and all that follows from right to left
_EXACT = re.compile(r'value="[^"]*"|<textarea[^>]*>[^<]*')  # what a form sends back
_LINK = re.compile(r'(?:href|action)="(/admin[^"#?]*)"')


@pytest.fixture
def named(run: Run, gate: Gate) -> None:
    """Everything that can have such a name has it, and has changed."""
    for kind in gate.environment.kinds:
        node = run(f"{kind.name}.create", name=NAME)
        run(f"{kind.name}.update", node["id"], name=NAME + "2")
    run("forums.create", name=NAME, parentId=1)
    run("keys.create", name=NAME, owner=NAME, grants=["webhooks.*"], expires="3d")
    run("forums.create", name="News", permissions={"view": "*", "read": [2, run("groups.create", name=NAME)["id"]]})
    key = Actor("key", 1, NAME, frozenset({"webhooks.create"}))
    gate.run(Call("webhooks.create", key, {"url": "https://hooks.example/x", "events": ["*"], "description": NAME}, reason=NAME))
    run("admins.create", name=NAME, login=NAME + "x", password=PASSWORD)
    run("calendars.create", name=NAME)
    run("calendars.delete", 2)


def _turned(html: str) -> Iterator[str]:
    """Return the places where the name is not isolated."""
    shown = _EXACT.sub("", html)
    for found in re.finditer("\u202e", shown):
        if shown[found.start() - 1] != "\u2068":
            yield shown[max(0, found.start() - 80) : found.start() + 20]


def test_no_page_of_the_panel_is_turned(admin: Visitor, named: None) -> None:
    waiting, seen, names = ["/admin"], set[str](), 0
    turned: dict[str, list[str]] = {}
    while waiting:
        path = waiting.pop()
        if path in seen or "/static/" in path or path.endswith("/sign-out"):
            continue
        seen.add(path)
        page = admin.get(path.removeprefix("/admin"))
        if page.status_code == 200 and "text/html" in page.headers["content-type"]:
            turned |= {path: places} if (places := list(_turned(page.text))) else {}
            names += page.text.count("\u202e")
            waiting += _LINK.findall(page.text)
    assert turned == {}, "\n".join(f"{path}: {place!r}" for path, places in turned.items() for place in places)
    assert len(seen) > 60
    assert names > 100


def test_nor_is_what_a_write_tells(admin: Visitor, named: None) -> None:
    told = [
        admin.post("/forums/1/delete", {"_action": "delete"}),
        admin.post("/groups/2/delete", {"_action": "delete"}),
        admin.post("/administrators/2/disable"),
        admin.post("/administrators/new", {"name": "x", "login": NAME + "x"}),
        admin.get("/search?text=gnp"),
        admin.post("/filters", {"name": NAME, "list": "keys", "query": ""}),
    ]
    for response in told:
        assert list(_turned(response.text)) == [], response.text
    assert list(_turned(admin.get("/administrators").text)) == []  # with the message of what was done last


def test_what_forms_send_back_is_exact(admin: Visitor, named: None) -> None:
    assert f'value="{NAME}2"' in admin.get("/forums/1").text
    assert f'value="{NAME}"' in admin.get("/administrators/2").text


def test_a_terminal_shows_what_would_turn_it(trellis: Trellis, named: None) -> None:
    for arguments in (("keys", "list"), ("admins", "list"), ("run", "forums.get", "1"), ("keys", "list", "--json")):
        output = trellis(*arguments).stdout
        assert "\\u202egnp" in output
        assert "\u202e" not in output
    told: Any = orjson.loads(trellis("run", "forums.get", "1", "--json").stdout)
    assert told["name"] == NAME + "2"
    assert "\u202e" not in trellis("run", "forums.delete", "1").stderr
