"""The snippets for the configuration of usual clients, on the page that shows a key once, and on the key's own."""

import json
import re
import shlex
import subprocess
from html import unescape
from pathlib import Path
from typing import Any, Final

import pytest

from tests.admin.conftest import MakeVisitor, Visitor
from tests.admin.keys.test_index import _form, _key_in
from tests.api_fixtures import MakeService, serve
from tests.fixture_types import MakeKey
from trellis.admin.keys.clients import PLACEHOLDER, build_snippets

pytestmark = pytest.mark.either_engine

__all__ = ["serve"]  # a fixture
CLIENTS: Final = ("claude-code", "claude-desktop", "cursor", "vs-code", "curl")


def snippets_in(page: str) -> dict[str, str]:
    found = re.findall(r'<pre id="([a-z-]+)-snippet"[^>]*>(.*?)</pre>', page, re.DOTALL)
    return {name: unescape(text) for name, text in found}


def test_the_page_of_a_new_key_has_them_with_the_key(admin: Visitor) -> None:
    made = admin.post("/keys/new", _form(admin))
    key, snippets = _key_in(made), snippets_in(made.text)
    assert tuple(snippets) == CLIENTS
    assert key is not None
    assert all(key in text and "http://panel.example/mcp" in text for text in snippets.values())
    assert made.text.count("<details") >= len(CLIENTS), "they are folded"


def test_the_page_of_a_key_has_them_with_a_placeholder(admin: Visitor, key: MakeKey) -> None:
    secret = key("forums.list")
    page = admin.get("/keys/1").text
    snippets = snippets_in(page)
    assert tuple(snippets) == CLIENTS
    assert all(PLACEHOLDER in text for text in snippets.values())
    assert secret not in page


def test_a_revoked_key_has_none(admin: Visitor, key: MakeKey, run: Any) -> None:
    key("forums.list")
    run("keys.revoke", 1)
    assert not snippets_in(admin.get("/keys/1").text)


def test_they_have_the_public_address(visitor: MakeVisitor, mira: int) -> None:
    admin = visitor(https=True, public_url="https://api.example")
    admin.sign_in()
    snippets = snippets_in(admin.post("/keys/new", _form(admin)).text)
    assert all("https://api.example/mcp" in text for text in snippets.values())


def test_files_are_of_the_shape_that_their_clients_read() -> None:
    texts = {one.id: one.text for one in build_snippets("https://api.example", "SECRET")}
    reached = {"url": "https://api.example/mcp", "headers": {"Authorization": "Bearer SECRET"}}
    assert json.loads(texts["cursor"]) == {"mcpServers": {"trellis": reached}}
    assert json.loads(texts["vs-code"]) == {"servers": {"trellis": {"type": "http", **reached}}}
    bridge = json.loads(texts["claude-desktop"])["mcpServers"]["trellis"]
    assert (bridge["command"], bridge["env"]) == ("npx", {"TRELLIS_AUTHORIZATION": "Bearer SECRET"})
    assert shlex.split(texts["claude-code"])[-2:] == ["--header", "Authorization: Bearer SECRET"]


@pytest.mark.parametrize(
    ("base", "plain"), [("https://api.example", False), ("http://api.example", True), ("http://localhost:8000", False)]
)
def test_an_address_without_encryption_has_to_be_allowed(base: str, plain: bool) -> None:  # a parameter
    (text,) = (one.text for one in build_snippets(base) if one.id == "claude-desktop")
    assert ("--allow-http" in json.loads(text)["mcpServers"]["trellis"]["args"]) == plain


def test_the_command_lists_the_tools(serve: MakeService, key: MakeKey, tmp_path: Path) -> None:
    (text,) = (one.text for one in build_snippets(serve().address, key("forums.list")) if one.id == "curl")
    done = subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert "forums.list" in {tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]}
