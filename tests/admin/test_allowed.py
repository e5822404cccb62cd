"""What a role's pages leave out: links, buttons and forms that would be refused, and never a word or a value."""

import gc
import tracemalloc
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any, cast

import pytest

from trellis.admin.allowed import Allowed
from trellis.admin.app import Panel
from trellis.admin.page import PageRequest
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.settings import Settings

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
SAVE = '<button type="submit" class="button"><span>Save</span></button>'


class Words(HTMLParser):
    """The words of a page, and the tags with their attributes, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data.split()


@pytest.fixture
def rewrite(gate: Gate, settings: Settings) -> Any:
    """Return a page as a role sees it."""
    allowed = Allowed(Panel(gate, settings).pages)

    def run(html: str, role: str = "auditor", kinds: str | None = None, path: str = "/admin/forums/1") -> str:
        permit = gate.environment.permits.find(role, kinds)
        actor = Actor("admin", 7, "Ada", None if permit is None else permit.operations, permit=permit)
        me = SimpleNamespace(actor=actor, permit=permit)
        request = SimpleNamespace(me=me, catalogue=gate.catalogue, http=SimpleNamespace(url=SimpleNamespace(path=path)))
        return allowed.leave_out(html, cast("PageRequest", request))

    return run


def test_words_and_values_stay_as_they_are(rewrite: Any) -> None:
    said = 'Our data-protection rules: <a href="/admin/keys/1/revoke">x</a> data-row="1" > <form> disabled form="f"'
    shown = said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;")
    html = (
        f'<form method="post" action="/admin/forums/1" class="stack" data-form><p data-says="x">{shown}</p>'
        f'<input name="description" value="{shown}" data-twin="a"><textarea data-grows="1">{shown}</textarea>'
        f'<select name="to" title=" data-x=&#34;1&#34; href="><option value="a data-b" selected>{shown}</option></select>'
        f"{SAVE}</form>"
    )
    assert rewrite(html, "owner") == html
    seen, full = Words(rewrite(html)), Words(html)
    assert seen.words == full.words[: -len(["Save"])]
    assert [tag for tag, _ in seen.tags] == ["div", "p", "input", "textarea", "select", "option"]
    assert dict(seen.tags)["input"] == {"disabled": None, "name": "description", "value": said}
    assert dict(seen.tags)["select"] == {"disabled": None, "name": "to", "title": ' data-x="1" href='}
    assert dict(seen.tags)["option"] == {"value": "a data-b", "selected": None}
    assert dict(seen.tags)["p"] == {}


def test_a_link_is_judged_by_its_own_address(rewrite: Any) -> None:
    open_link = '<a title="x href=" class="button" href="/admin/forums/1?next=/admin/keys/new#end">See</a>'
    assert rewrite(open_link) == open_link
    for path in (
        "/keys/1/revoke",
        "/keys/presets/agent/pause",
        "/keys/presets/%61gent/pause",
        "/keys/1/revoke/",
        "/keys/new?recipe=agent",
    ):
        assert rewrite(f'<a class="button plain" href="/admin{path}">Do it…</a>') == "", path
        assert rewrite(f'In <a title="a > b" href="/admin{path}">these</a> words') == "In these words", path
        assert rewrite(f'<p class="row"> <a href="/admin{path}">Alone</a></p>') == "", path
    for href in ("/admin/static/1/mark.svg", "/api/docs", "/administer", "?page=2", "#end", "https://example.org/admin/keys/new"):
        assert rewrite(link := f'<a href="{href}">Else</a>') == link
    own = '<a href="/admin/administrators/7">Me</a> <a href="/admin/administrators/8">You</a>'
    assert rewrite(own, "key-manager") == '<a href="/admin/administrators/7">Me</a> You'


def test_a_button_is_judged_by_where_it_leads(rewrite: Any) -> None:
    both = (
        '<form method="post" action="/admin/forums/many/delete"><button formaction="/admin/forums/many/delete">Delete…</button>'
        '<button type="button">All</button><button formaction="/admin/calendars/many/delete">Other…</button></form>'
    )
    assert rewrite(both, "structure-editor") == both
    assert rewrite(both, "structure-editor", "forums") == both.replace(
        '<button formaction="/admin/calendars/many/delete">Other…</button>', ""
    )
    assert Words(rewrite(both, "structure-editor", "calendars")).words == ["All", "Other…"]
    assert rewrite('<form method="post" action="/admin/keys/1/pause"><input type="hidden" name="a">' + SAVE + "</form>") == ""
    here = '<form method="post"><input name="a"></form>'
    assert rewrite(here, path="/admin/forums/1").startswith('<div class="locked ')
    assert rewrite(here, path="/admin/account/password") == here


def test_a_control_outside_of_its_form_goes_with_it(rewrite: Any) -> None:
    html = (
        '<input form="f" name="ids" value="1" data-x><button form="f">Send</button>'
        '<input form="g" name="q"><button form="g">Find</button>'
        '<form id="f" method="post" action="/admin/forums/1"><input name="a"></form>'
        '<form id="g" action="/admin/forums"><input name="b"></form>'
    )
    assert rewrite(html) == (
        '<input disabled name="ids" value="1"><input form="g" name="q"><button form="g">Find</button>'
        '<div class="locked "><input disabled name="a"></div><form id="g" action="/admin/forums"><input name="b"></form>'
    )
    assert rewrite(html, "structure-editor") == html


def test_what_was_typed_is_not_kept_in_memory(rewrite: Any) -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(20):
            rewrite(f'<a href="/admin/keys/1">Key</a><input value="/admin/{chr(97 + number) * 1_000_000}">')
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 5_000_000
    finally:
        tracemalloc.stop()
