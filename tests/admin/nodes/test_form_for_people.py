"""Forms shaped by the task: names that a person would say, what counts, what is seldom set, previews, and reasons."""

import re
from html import unescape
from typing import Any

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form
from tests.community import Community
from tests.fixture_types import Events, Run
from trellis.admin.page import PageRequest
from trellis.kinds import KINDS

ONE_ENGINE = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


def _field(page: Any, name: str) -> str:
    """Return the tag around a control."""
    tags = re.findall(rf'<div class="field[^>]*>(?=(?:(?!<div).)*?name="{name}")', page.text, re.DOTALL)
    assert len(tags) == 1, name
    return str(tags[0])


@ONE_ENGINE
def test_no_form_names_a_field_as_programs_do(admin: Visitor, run: Run) -> None:
    run("keys.create", name="Mirror")
    paths = [f"/{kind.name}/new" for kind in KINDS] + ["/keys/new", "/keys/1/edit", "/webhooks/new", "/administrators/new"]
    for path in paths:
        page = admin.get(path)
        assert page.status_code == 200, path
        for label in re.findall(r"<(?:label|legend)[^>]*>(.*?)</(?:label|legend)>", page.text, re.DOTALL):
            text = unescape(re.sub(r"<code>.*?</code>|<[^>]+>", " ", label, flags=re.DOTALL))
            assert not re.search(r"[a-z][A-Z]|\w_\w|\b[a-z]+\.[a-z]+\b", text), (path, text)


@ONE_ENGINE
def test_only_what_counts_is_asked_for(admin: Visitor, run: Run) -> None:
    page = admin.get("/forums/new")
    assert ("hidden" in _field(page, "redirectUrl"), "hidden" in _field(page, "canSeeOthers")) == (True, False)
    form = find_form(page, "/forums/new")
    page = admin.post("/forums/new", form.filled(name="Away", type="redirect", _action="fields"))
    assert ("hidden" in _field(page, "redirectUrl"), "hidden" in _field(page, "canSeeOthers")) == (False, True)
    assert find_form(page, "/forums/new")["name"] == "Away"
    assert run("forums.list")["totalResults"] == 0
    page = admin.post("/forums/new", form.filled(name="Away", type="redirect", _action="save"))
    assert "Address it leads to is required" in page_text(page)
    assert "hidden" not in _field(page, "redirectUrl")


@ONE_ENGINE
def test_what_is_seldom_set_is_folded_unless_it_is(admin: Visitor, run: Run) -> None:
    plain = run("forums.create", name="Plain")["id"]
    themed = run("forums.create", name="Themed", theme=3)["id"]
    run("keys.create", name="Plain")
    run("keys.create", name="Limited", perDay=9)
    for path, is_open in (
        (f"/forums/{plain}", False),
        (f"/forums/{themed}", True),
        ("/keys/1/edit", False),
        ("/keys/2/edit", True),
    ):
        assert ('<details class="seldom" open>' in admin.get(path).text) == is_open, path
    form = find_form(admin.get(f"/forums/{plain}"), f"/forums/{plain}")
    page = admin.post(f"/forums/{plain}", form.filled(sitemapPriority="eleven", _action="save"))
    assert '<details class="seldom" open>' in page.text
    assert "Priority in the sitemap must be" in page_text(page)


@ONE_ENGINE
def test_html_is_shown_in_a_frame_as_it_would_be_saved(admin: Visitor, run: Run, events: Events) -> None:
    number = run("forums.create", name="News")["id"]
    known = events()
    form = find_form(admin.get(f"/forums/{number}"), f"/forums/{number}")
    typed = '<p onclick="x()">Say <b>hello</b></p><script>alert(1)</script>"><i>'
    page = admin.post(f"/forums/{number}", form.filled(description=typed, _action="preview.description"))
    (frame,) = re.findall(r"<iframe [^>]*>", page.text)
    assert frame.startswith("<iframe sandbox srcdoc=")
    shown = unescape(frame.partition('srcdoc="')[2].partition('"')[0])
    assert shown.startswith("<p>Say <b>hello</b></p>")
    assert "script" not in shown
    assert find_form(page, f"/forums/{number}")["description"] == typed
    page = admin.post(f"/forums/{number}", form.filled(description="x" * 100_001, _action="preview.description"))
    assert "Description" in unescape(re.findall(r"<iframe [^>]*>", page.text)[0])
    nested = form.filled(description="<b>" * 3000, _action="preview.description")
    page = admin.post(f"/forums/{number}", nested, headers={"accept-language": "de"})
    assert "Beschreibung hat 3.000 Tags" in unescape(re.findall(r"<iframe [^>]*>", page.text)[0])
    assert "There is nothing to show." in page_text(admin.post(f"/forums/{number}", form.filled(_action="preview.description")))
    assert events() == known


def test_why_something_was_destroyed_is_kept_with_its_event(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    webhook = run("webhooks.create", url="https://hooks.example/x", events=["*"])["id"]
    for path in (f"/forums/{community.betas}/delete", f"/webhooks/{webhook}/delete"):
        form = find_form(admin.get(path), "/delete" if "forums" in path else "")
        known = len(events())
        values = form.filled(_reason="Not\0  need\u202eed", **({"_action": "delete"} if "forums" in path else {}))
        assert admin.post(path, values).status_code == 303
        assert [event["reason"] for event in events()[known:]] == ["Not needed"]
    page = admin.post("/forums/many/delete", {"ids": str(community.staff)})
    known = len(events())
    admin.post("/forums/many/delete", find_form(page, "/many/delete").filled(_reason="Closed", _action="do"))
    assert [event["reason"] for event in events()[known:]] == ["Closed"]


@ONE_ENGINE
def test_a_form_that_nobody_has_touched_has_what_browsers_make_of_its_colour(admin: Visitor, run: Run) -> None:
    """They write a colour in lower case: in upper case it would count as chosen, and leaving the page would be asked about."""
    made = run("calendars.create", name="Trips", color="#ABCDEF")["id"]
    for path, colour in ((f"/calendars/{made}", "#abcdef"), ("/calendars/new", "#3b82f6")):
        assert re.findall(r'<input type="color"[^>]* value="(#\w+)"', admin.get(path).text) == [colour]
    assert 'name="color" value="#ABCDEF"' in admin.get(f"/calendars/{made}").text


@ONE_ENGINE
def test_no_group_is_left_out_where_another_is_deleted_meanwhile(admin: Visitor, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.admin.nodes.names.MOST_PER_PAGE", 2)
    made = [run("groups.create", name=f"{name} group")["id"] for name in ("First", "Second", "Third", "Fourth", "Fifth")]
    fetch = PageRequest.fetch

    async def delete_another(request: PageRequest, operation: str, *given: Any, **options: Any) -> Any:
        found = await fetch(request, operation, *given, **options)
        if operation == "groups.list" and len(made) > 3:
            run("groups.delete", made.pop(0))
        return found

    monkeypatch.setattr(PageRequest, "fetch", delete_another)
    said = page_text(admin.get("/forums/new"))
    assert len(made) == 3
    assert all(f"{name} group" in said for name in ("Third", "Fourth", "Fifth"))
