"""The event log in the panel: who did what, when and why, and what was changed by it."""

import re

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form
from tests.admin.webhooks.rows import update_webhook
from tests.community import ADMINISTRATORS, MEMBERS, Community
from tests.fixture_types import Clock, Events, Run
from trellis.admin.events import pages as events_pages
from trellis.admin.keys import index as keys_index
from trellis.core.actor import DELIVERY, Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call


def _seqs(text: str) -> list[int]:
    return [int(seq) for seq in re.findall(r'href="/admin/events/(\d+)" data-dialog', text)]


def test_events_are_listed_with_who_what_when_and_why(admin: Visitor, gate: Gate, run: Run) -> None:
    run("keys.create", name="Importer", grants=["forums.*"])
    key = Actor("key", 1, "Importer", frozenset({"forums.create"}))
    made = gate.run(Call("forums.create", key, {"name": "News"}, reason="Nightly import")).value
    run("forums.update", made["id"], name="Olds")
    page = page_text(admin.get("/events"))
    assert re.search(r"2026-01-31 09:30:00 UTC Importer created forum News Nightly import", page)
    assert "The terminal changed forum Olds Name" in page


def test_a_key_that_is_called_terminal_is_not_taken_for_it(admin: Visitor, gate: Gate, run: Run) -> None:
    run("keys.create", name="terminal", grants=["forums.create", "forums.delete"])
    key = Actor("key", 1, "terminal", frozenset({"forums.create", "forums.delete"}))
    made = gate.run(Call("forums.create", key, {"name": "News"})).value
    gate.run(Call("forums.delete", key, {}, made["id"]))
    page = page_text(admin.get("/events?actor=key:1"))
    assert re.search(r"UTC terminal deleted forum News .* UTC terminal created forum News", page)
    assert "The terminal deleted" not in page
    assert "Deleted by terminal." in page_text(admin.get(f"/forums/{made['id']}"))


@pytest.mark.either_engine
def test_the_terminal_and_the_service_are_called_by_name(admin: Visitor, gate: Gate, run: Run) -> None:
    made = run("forums.create", name="News")["id"]
    form = find_form(admin.get(f"/forums/{made}"), f"/forums/{made}")
    run("forums.update", made, name="Olds")
    conflict = admin.post(f"/forums/{made}", form.filled(name="Mine", _action="save"))
    assert "The terminal changed this forum while you were editing it" in page_text(conflict)
    run("forums.delete", made)
    assert "Deleted at the terminal." in page_text(admin.get(f"/forums/{made}"))
    run("webhooks.create", url="https://hooks.example/", events=["*"])
    update_webhook(gate, 1, failures=1)
    gate.run(Call("webhooks.disable", DELIVERY, {"because": "It failed."}, 1))
    assert "Webhook delivery disabled webhook" in page_text(admin.get("/events"))


def test_each_filter_stands_in_the_address(admin: Visitor, gate: Gate, run: Run, clock: Clock) -> None:
    run("keys.create", name="Importer", grants=["forums.*"])
    run("forums.create", name="By hand")
    key = Actor("key", 1, "Importer", frozenset({"forums.create"}))
    gate.run(Call("forums.create", key, {"name": "News"}, request_id="the-id"))
    clock.move(hours=1)
    gate.run(Call("forums.update", Actor("admin", 1, "Mira Holm"), {"name": "Older"}, 1))
    for query, found in (
        ("actor=admin", [6, 2]),
        ("actor=admin:1", [6, 2]),
        ("actor=key", [5]),
        ("actor=key:1", [5]),
        ("actor=key:2", []),
        ("actor=terminal", [4, 3, 1]),
        ("actor=service", []),
        ("operation=forums.create", [5, 4]),
        ("type=forum.updated", [6]),
        ("type=forum.moved", []),
        ("resource=forums", [6, 5, 4]),
        ("resource=forums&resourceId=2", [5]),
        ("requestId=the-id", [5]),
        ("from=2026-01-31T10:00", [6]),
        ("to=2026-01-31T10:00", [5, 4, 3, 2, 1]),
        ("from=2026-01-31T09:00&to=2026-01-31T10:00&actor=key", [5]),
        ("actor=&operation=&resource=", [6, 5, 4, 3, 2, 1]),
    ):
        page = admin.get(f"/events?{query}")
        assert page.status_code == 200, query
        assert _seqs(page.text) == found, query
        if not found:
            assert "No matching events" in page_text(page)


@pytest.mark.either_engine
def test_filters_that_make_no_sense_are_said_and_nothing_breaks(admin: Visitor) -> None:
    for query in ("actor=nobody", "actor=key:x", "resourceId=x", "from=soon", "before=0", "colour=red"):
        page = admin.get(f"/events?{query}")
        assert page.status_code == 400, query
        assert 'role="alert"' in page.text
        assert "saved" not in page_text(page).partition("Save this filter")[0], "a filter saves nothing"


def test_pages_lead_to_older_ones_and_keep_the_filters(admin: Visitor, run: Run) -> None:
    for number in range(51):
        run("blogs.create", name=f"Blog {number}")
        if number % 10 == 0:
            run("calendars.create", name=f"Calendar {number}")
    first = admin.get("/events?resource=blogs")
    assert len(_seqs(first.text)) == 50
    older = re.search(r'rel="next" href="/admin(/events[^"]+)"', first.text)
    assert older is not None
    second = admin.get(older[1].replace("&amp;", "&"))
    assert len(_seqs(second.text)) == 1
    assert 'rel="next"' not in second.text
    assert set(_seqs(first.text)).isdisjoint(_seqs(second.text))


def test_an_event_shows_what_was_changed(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    run("forums.update", community.help, name="Aid", permissions={"view": [MEMBERS, ADMINISTRATORS]}, minContent=3)
    page = page_text(admin.get(f"/events/{events()[-1]['seq']}"))
    assert "The terminal changed forum Aid" in page
    assert "Name removed: Help added: Aid" in page
    assert "View removed: every group added: Members added: Administrators" in page
    assert "Posts needed to see it removed: 0 added: 3" in page
    assert "Description" not in page
    assert f'href="/admin/forums/{community.help}"' in admin.get(f"/events/{events()[-1]['seq']}").text


def test_what_went_with_a_delete_is_listed(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    run("forums.delete", community.news, deleteChildrenOrMove=-1)
    page = page_text(admin.get(f"/events/{events()[-1]['seq']}"))
    assert "What it was" in page
    assert "3 records" in page
    assert f"Deleted: forums {community.releases}" in page
    assert "Go to the record" not in page


def test_a_password_is_only_said_to_have_changed(admin: Visitor, run: Run, community: Community, events: Events) -> None:
    run("forums.update", community.help, password="open sesame")
    page = page_text(admin.get(f"/events/{events()[-1]['seq']}"))
    assert "Password changed; value not recorded" in page
    assert "sesame" not in page


@pytest.mark.either_engine
def test_hostile_text_never_runs(admin: Visitor, gate: Gate, run: Run, events: Events) -> None:
    hostile = "<script>alert(1)</script>\"'"
    run("forums.create", name=hostile)
    key = Actor("key", 1, hostile, frozenset({"forums.update"}))
    gate.run(Call("forums.update", key, {"name": hostile + "2"}, 1, request_id="x", reason=hostile))
    for path in ("/events", "/events/3", "/events/4", "/events?requestId=%3Cscript%3Ealert"):
        assert "<script>alert" not in admin.get(path).text, path
    assert len(events()) == 4


def test_an_event_that_is_not_there_is_said_to_be_so(admin: Visitor) -> None:
    assert admin.get("/events/99").status_code == 404


def test_what_took_something_back_leads_to_it(admin: Visitor, run: Run, community: Community, events: Events) -> None:
    run("forums.update", community.help, name="Aid")
    changed = events()[-1]["seq"]
    run("forums.restore", changed)
    page = admin.get(f"/events/{events()[-1]['seq']}")
    assert f"Undoes event {changed}" in page_text(page)
    assert f'href="/admin/events/{changed}"' in page.text


@pytest.mark.either_engine
def test_rows_name_what_was_changed_as_forms_do(admin: Visitor, community: Community, run: Run) -> None:
    run("forums.update", community.help, minContent=3)

    def cells(language: str) -> list[str]:
        page = admin.get("/events", headers={"accept-language": language}).text
        return [cell for cell in re.findall(r'<td role="cell" class="changed quiet"[^>]*>(.*?)</td>', page) if cell]

    assert cells("en") == ["Posts needed to see it"]
    assert cells("de") not in ([], cells("en"))


@pytest.mark.either_engine
def test_rows_have_the_articles_of_their_language(admin: Visitor, community: Community, run: Run, events: Events) -> None:
    run("forums.create", name="News")
    made = events()[-1]["seq"]
    run("groups.update", MEMBERS, name="Regulars")
    run("calendars.create", name="Dates")
    run("blogs.create", name="Diary")
    run("categories.create", name="Files")
    run("forums.restore", made, deleteCreated=True)
    page = page_text(admin.get("/events", headers={"accept-language": "de"}))
    for told in (
        "Das Terminal hat das Forum News angelegt",
        "Das Terminal hat die Gruppe Regulars geändert",
        "Das Terminal hat den Kalender Dates angelegt",
        "Das Terminal hat den Blog Diary angelegt",
        "Das Terminal hat die Download-Kategorie Files angelegt",
        "Das Terminal hat das Anlegen rückgängig gemacht und das Forum News gelöscht",
    ):
        assert told in page
    shown = page_text(admin.get("/events"))
    assert "The terminal created forum News" in shown
    assert "The terminal undid the creation of forum News" in shown


@pytest.mark.either_engine
def test_bounds_of_a_key_are_told(admin: Visitor, run: Run, events: Events) -> None:
    run("keys.create", name="Importer", grants=["forums.list"], bounds={"forums.list": {"perDay": 5}})
    made = events()[-1]["seq"]
    run("keys.update", 1, bounds={"forums.list": {"perDay": 9}})
    changed = events()[-1]["seq"]
    assert "Bounds added: forums.list: Only 5 times a day." in page_text(admin.get(f"/events/{made}"))
    page = page_text(admin.get(f"/events/{changed}"))
    assert "Bounds removed: forums.list: Only 5 times a day. added: forums.list: Only 9 times a day." in page
    german = page_text(admin.get(f"/events/{changed}", headers={"accept-language": "de"}))
    assert "forums.list: Nur" in german
    assert "forums.list: Only" not in german


def test_who_is_filtered_for_is_named_however_many_there_are(admin: Visitor, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        run("admins.create", name=f"Gardener {number}", login=f"gardener{number}", password="a password of a gardener")
        run("keys.create", name=f"Importer {number}")
    monkeypatch.setattr(events_pages, "_MOST_ADMINS", 1)
    monkeypatch.setattr(keys_index, "_MAX_NAMES", 1)
    for path, option in (
        ("/events?actor=admin:4", '<option value="admin:4" selected>Gardener 2</option>'),
        ("/events?actor=admin:99", '<option value="admin:99" selected>admin:99</option>'),
        ("/events?actor=key:1", '<option value="key:1" selected>Key Importer 0 (1)</option>'),
        ("/requests?key=1", '<option value="1" selected>Importer 0 (1)</option>'),
        ("/proposals?keyId=1", '<option value="1" selected>Importer 0 (1)</option>'),
    ):
        page = admin.get(path)
        assert page.status_code == 200
        assert option in re.sub("[\u2066-\u2069]", "", page.text), path
