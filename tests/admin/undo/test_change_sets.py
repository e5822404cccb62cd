"""Undoing many events in the panel, a change set or what a key did: told first, with every conflict, and then done."""

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.admin.conftest import MakeVisitor, Visitor, before_writing, page_text
from tests.admin.html_forms import HtmlForm, find_form, read_forms
from tests.community import Community
from tests.fixture_types import Clock, Events, MakeKey, Run
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.store import events as log

PLUGIN = Actor("key", 1, "Plugin", None)
SKIP = "Skip events that cannot be undone"


@pytest.fixture
def work(gate: Gate, community: Community, key: MakeKey) -> int:
    """A change set of key 1: two forums are made, another is renamed, a calendar is deleted."""
    key(["forums.*", "calendars.*"])
    operations = [
        *({"operation": "forums.create", "body": {"name": name}} for name in ("North", "South")),
        {"operation": "forums.update", "id": community.help, "body": {"name": "Aid"}},
        {"operation": "calendars.delete", "id": community.meetups},
    ]
    found = gate.run(Call("core.batch", PLUGIN, {"operations": operations})).change_set
    assert found is not None
    return found


def _names(run: Run) -> list[str]:
    found = [run(f"{kind}.list", perPage=1000)["results"] for kind in ("forums", "calendars")]
    return sorted(one["name"] for results in found for one in results)


def _find(run: Run, name: str) -> int:
    return int(run("forums.list", name=name)["results"][0]["id"])


def _form(response: Any) -> HtmlForm:
    """Return the form that undoes."""
    return next(form for form in read_forms(response) if any(name == "_plan" for name, _ in form.pairs))


def _press(admin: Visitor, page: Any, **changes: str) -> Any:
    form = _form(page)
    return admin.post(form.action.removeprefix("/admin").replace("&amp;", "&"), form.filled(**changes))


# --- the way there ------------------------------------------------------------------------------------------------


def test_an_event_tells_its_change_set(admin: Visitor, work: int, events: Events) -> None:
    alone, last = events()[0]["seq"], events()[-1]["seq"]
    page = admin.get(f"/events/{last}")
    assert f"Part of change set {work} , with 4 events." in page_text(page)
    assert f'href="/admin/events?changeSet={work}"' in page.text
    assert f'href="/admin/change-sets/{work}/undo"' in page.text
    assert "change set" not in page_text(admin.get(f"/events/{alone}"))


def test_the_events_of_a_change_set_are_listed(admin: Visitor, run: Run, work: int, events: Events) -> None:
    seqs = [event["seq"] for event in events() if event["changeSet"] == work]
    run("forums.create", name="Later")
    page = admin.get(f"/events?changeSet={work}")
    assert [int(seq) for seq in re.findall(r'href="/admin/events/(\d+)" data-dialog', page.text)] == seqs[::-1]
    assert find_form(page, "/events")["changeSet"] == str(work)
    assert f'href="/admin/change-sets/{work}/undo"' in page.text
    for query, status in (("changeSet=999", 200), ("changeSet=x", 400), ("", 200)):
        other = admin.get(f"/events?{query}")
        assert (other.status_code, "/change-sets/" in other.text) == (status, False)


# --- a change set -------------------------------------------------------------------------------------------------


def test_what_would_be_undone_is_told_and_nothing_is_kept(admin: Visitor, run: Run, work: int, events: Events) -> None:
    before, names = events(), _names(run)
    page = admin.get(f"/change-sets/{work}/undo")
    text = page_text(page)
    assert page.status_code == 200
    assert "4 events by Plugin , the most recent just now" in text
    assert "Calendars Delete a calendar 1 Forums Create a forum 2 Forums Change a forum 1" in text
    assert "Undo 4 events" in text
    assert SKIP not in text
    assert "cannot be undone" not in text
    assert (events(), _names(run)) == (before, names)


def test_it_is_undone_and_the_message_leads_to_its_events(admin: Visitor, run: Run, work: int, events: Events) -> None:
    count = len(events())
    response = _press(admin, admin.get(f"/change-sets/{work}/undo"))
    assert (response.status_code, response.headers["location"]) == (303, f"/admin/events?changeSet={work}")
    new = events()[count:]
    (undoing,) = {event["changeSet"] for event in new}
    assert [event["operation"] for event in new] == ["calendars.restore", *["forums.restore"] * 3]
    assert {event["actor"]["name"] for event in new} == {"Mira Holm"}
    assert {"Help", "Meetups"} <= set(_names(run))
    assert not {"North", "South", "Aid"} & set(_names(run))
    page = admin.get(f"/events?changeSet={work}")
    assert "4 events were undone. Show the events" in page_text(page)
    assert f'<a href="/admin/events?changeSet={undoing}">Show the events</a>' in page.text
    assert page_text(page).count("Undone by event") == 4
    nothing = admin.get(f"/change-sets/{work}/undo")
    assert "There is nothing to undo: all events of this change set that are still kept have already been undone." in page_text(
        nothing
    )


def test_a_form_that_is_sent_twice_is_told_that_it_is_done(admin: Visitor, work: int, events: Events) -> None:
    for path, about in ((f"/change-sets/{work}/undo", f"/events?changeSet={work}"), ("/keys/1/undo?since=2026-01-01", "/keys/1")):
        page = admin.get(path)
        first, before = _press(admin, page), events()
        second = _press(admin, page)
        assert (first.status_code, second.status_code, second.headers.get("location")) == (303, 303, f"/admin{about}")
        assert "4 events were undone." in page_text(admin.get(about))
        assert events() == before
        undoing = before[-1]["changeSet"]
        assert _press(admin, admin.get(f"/change-sets/{undoing}/undo")).status_code == 303  # and all is there again


def test_what_was_skipped_is_told_by_a_form_that_is_sent_twice_too(admin: Visitor, run: Run, work: int, events: Events) -> None:
    run("forums.update", _find(run, "Aid"), name="Rescue")
    page = admin.get(f"/change-sets/{work}/undo")
    first, before = _press(admin, page, skipConflicts="1"), events()
    assert (first.status_code, _press(admin, page, skipConflicts="1").status_code) == (303, 303)
    assert "3 events were undone. 1 could not be undone and remains unchanged." in page_text(admin.get(f"/events?changeSet={work}"))
    assert events() == before


def test_the_undoing_is_undone_by_its_own_page(admin: Visitor, run: Run, work: int, events: Events) -> None:
    names = _names(run)
    _press(admin, admin.get(f"/change-sets/{work}/undo"))
    undoing = events()[-1]["changeSet"]
    assert _press(admin, admin.get(f"/change-sets/{undoing}/undo")).status_code == 303
    assert _names(run) == names


def test_a_conflict_is_told_with_its_event_and_stops_all_until_it_is_skipped(
    admin: Visitor, run: Run, work: int, events: Events
) -> None:
    made = next(event["seq"] for event in events() if event["after"] and event["after"].get("name") == "North")
    run("forums.update", _find(run, "North"), name="By hand")
    before, names = events(), _names(run)
    page = admin.get(f"/change-sets/{work}/undo")
    assert "1 event cannot be undone Nothing will change unless you skip these events." in page_text(page)
    assert f'<a href="/admin/events/{made}">Event {made}</a> (Create a forum): ' in page.text
    assert SKIP in page_text(page)
    refused = _press(admin, page)
    assert refused.status_code == 409
    assert f"Nothing was changed: 1 event cannot be undone. Tick “{SKIP}” to undo the others." in page_text(refused)
    assert (events(), _names(run)) == (before, names)
    assert _press(admin, refused, skipConflicts="1").status_code == 303
    assert "3 events were undone. 1 could not be undone and remains unchanged." in page_text(admin.get("/events"))
    assert "By hand" in _names(run)
    assert not {"South", "Aid"} & set(_names(run))


def test_a_conflict_that_comes_at_the_last_moment_is_seen_first(
    admin: Visitor, run: Run, community: Community, work: int, events: Events
) -> None:
    run("forums.update", community.help, name="Assistance")
    page = admin.get(f"/change-sets/{work}/undo")
    with before_writing(lambda: run("forums.update", _find(run, "North"), name="Arctic")):
        page = _press(admin, page, skipConflicts="1")
    assert page.status_code == 409
    assert "has changed since this page was loaded" in page_text(page)
    assert _names(run)[:1] == ["Arctic"]
    assert events()[-1]["operation"] == "forums.update", "nothing was undone"


def test_where_nothing_can_be_undone_there_is_no_button(admin: Visitor, run: Run, gate: Gate, community: Community) -> None:
    call = Call("forums.update", PLUGIN, {"name": "Aid"}, community.help, change_set="night")
    number = gate.run(call).change_set
    run("forums.update", community.help, name="By hand")
    page = admin.get(f"/change-sets/{number}/undo")
    assert "None of these events can be undone. " in page_text(page)
    assert SKIP not in page_text(page)
    assert 'class="button primary"' not in page.text


def test_what_has_been_undone_already_is_told(admin: Visitor, run: Run, work: int, events: Events) -> None:
    run("events.restore", events()[-1]["seq"])
    text = page_text(admin.get(f"/change-sets/{work}/undo"))
    assert "1 event has already been undone." in text
    assert "Undo 3 events" in text


def test_a_page_that_is_outdated_undoes_nothing(admin: Visitor, run: Run, work: int, events: Events) -> None:
    page = admin.get(f"/change-sets/{work}/undo")
    run("forums.update", _find(run, "North"), name="By hand")
    before = events()
    response = _press(admin, page, skipConflicts="1")
    assert response.status_code == 409
    assert "What would be undone has changed since this page was loaded." in page_text(response)
    assert "1 event cannot be undone" in page_text(response)
    assert ("skipConflicts", "1") not in _form(response).pairs, "the tick was for other conflicts"
    assert events() == before


@pytest.mark.either_engine
@pytest.mark.parametrize("csrf", ["", "0" * 64])
def test_a_form_of_another_session_undoes_nothing(admin: Visitor, work: int, events: Events, csrf: str) -> None:
    form = _form(admin.get(f"/change-sets/{work}/undo"))
    before = events()
    response = admin.post(f"/change-sets/{work}/undo", form.filled(), csrf=csrf)
    assert response.status_code == 409
    assert "Nothing has been changed yet" in page_text(response)
    assert events() == before


@pytest.mark.either_engine
def test_a_field_that_the_form_does_not_have_is_refused(admin: Visitor, work: int, events: Events) -> None:
    before = events()
    response = _press(admin, admin.get(f"/change-sets/{work}/undo"), colour="red")
    assert response.status_code == 400
    assert "This form has no field 'colour'." in page_text(response)
    assert events() == before


def test_what_does_not_exist_is_not_found(admin: Visitor) -> None:
    for path in ("/change-sets/999/undo", "/change-sets/0/undo", "/keys/999/undo", "/keys/0/undo"):
        assert admin.get(path).status_code == 404, path
        assert admin.post(path, {"_plan": "x"}).status_code == 404, path


def test_only_what_came_after_an_event_is_undone(admin: Visitor, run: Run, work: int, events: Events) -> None:
    after = next(event["seq"] for event in events() if event["after"] and event["after"].get("name") == "South")
    assert [("after", "")] in [form.pairs for form in read_forms(admin.get(f"/change-sets/{work}/undo"))]
    page = admin.get(f"/change-sets/{work}/undo?after={after}")
    assert "Calendars Delete a calendar 1 Forums Change a forum 1" in page_text(page)
    assert "already been undone" not in page_text(page)
    assert _press(admin, page).status_code == 303
    assert {"North", "South", "Help", "Meetups"} <= set(_names(run))
    nothing = page_text(admin.get(f"/change-sets/{work}/undo?after={after}"))
    assert "There is nothing to undo: all events of this change set after that one have already been undone." in nothing


@pytest.mark.either_engine
def test_a_number_that_is_none_is_said(admin: Visitor, work: int) -> None:
    page = admin.get(f"/change-sets/{work}/undo?after=soon")
    assert (page.status_code, "_plan" in page.text) == (400, False)
    assert "After event" in page_text(page)


def test_of_too_many_the_newest_can_be_undone_first(
    admin: Visitor, run: Run, work: int, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis.core.undo.many.MOST", 2)
    page = admin.get(f"/change-sets/{work}/undo")
    assert page.status_code == 409
    text = page_text(page)
    assert "There are more than 2 events to undo, which is the most that can be undone at once." in text
    assert "Nothing was changed. Undo the newest ones" in text
    assert "Send after" not in text
    after = next(event["seq"] for event in events() if event["after"] and event["after"].get("name") == "South")
    assert f'href="/admin/change-sets/{work}/undo?after={after}"' in page.text
    assert _press(admin, admin.get(f"/change-sets/{work}/undo?after={after}")).status_code == 303
    assert _press(admin, admin.get(f"/change-sets/{work}/undo")).status_code == 303
    assert not {"North", "South", "Aid"} & set(_names(run))


# --- what a key did -----------------------------------------------------------------------------------------------


@pytest.mark.either_engine
def test_a_key_s_page_leads_to_undoing_what_it_did_since_a_time(admin: Visitor, key: MakeKey) -> None:
    key(["forums.*"])
    page = admin.get("/keys/1")
    assert "Undo what this key did since…" in page_text(page)
    assert ("since", "") in find_form(page, "/keys/1/undo").pairs


def test_what_a_key_did_since_a_time_is_told_and_undone(
    admin: Visitor, run: Run, gate: Gate, key: MakeKey, clock: Clock, events: Events
) -> None:
    key(["forums.*"])
    gate.run(Call("forums.create", PLUGIN, {"name": "Early"}))
    clock.move(hours=1)  # to 10:30
    gate.run(Call("forums.create", PLUGIN, {"name": "Late"}))
    run("forums.create", name="By the terminal")
    run("keys.revoke", 1)
    before = events()
    page = admin.get("/keys/1/undo?since=2026-01-31T10:00")
    assert "Forums Create a forum 1" in page_text(page)
    assert "Undo 1 event" in page_text(page)
    assert find_form(page, "/undo#plan")["since"] == "2026-01-31T10:00"
    assert 'id="plan" tabindex="-1"' in page.text  # what the form leads to
    assert events() == before
    response = _press(admin, page)
    assert (response.status_code, response.headers["location"]) == (303, "/admin/keys/1")
    shown = admin.get("/keys/1")
    assert "1 event was undone. Show the events" in page_text(shown)
    assert f"changeSet={events()[-1]['changeSet']}" in shown.text
    assert _names(run) == ["By the terminal", "Early"]


def test_one_page_asks_for_the_time_and_says_what_is_wrong_with_it(admin: Visitor, key: MakeKey, events: Events) -> None:
    key(["forums.*"])
    empty = admin.get("/keys/1/undo")
    assert (empty.status_code, 'role="alert"' in empty.text, "_plan" in empty.text) == (200, False, False)
    before = events()
    wrong = admin.get("/keys/1/undo?since=soon")
    assert (wrong.status_code, 'role="alert"' in wrong.text, "_plan" in wrong.text) == (400, True, False)
    assert "Since UTC" in page_text(wrong)
    for query in ("", "?since=soon"):
        assert admin.post(f"/keys/1/undo{query}", {"_plan": "x"}).status_code == 400
    nothing = page_text(admin.get("/keys/1/undo?since=2026-01-31T10:00"))
    assert "There is nothing to undo: this key has changed nothing since then, or all of it has already been undone." in nothing
    assert events() == before


def test_what_a_key_did_after_an_event_is_undone(
    admin: Visitor, run: Run, gate: Gate, key: MakeKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    key(["forums.*"])
    first, _ = (gate.run(Call("forums.create", PLUGIN, {"name": name})).event for name in ("First", "Second"))
    assert [name for name, _ in find_form(admin.get("/keys/1"), "/keys/1/undo").pairs] == ["since", "_zone", "after"]
    monkeypatch.setattr("trellis.core.undo.many.MOST", 1)
    page = admin.get("/keys/1/undo?since=2026-01-31T00:00")
    assert f"?since=2026-01-31T00%3A00%3A00.000Z&amp;after={first}" in page.text
    assert _press(admin, admin.get(f"/keys/1/undo?since=2026-01-31T00:00&after={first}")).status_code == 303
    assert _names(run) == ["First"]


def test_what_is_no_node_is_a_conflict(admin: Visitor, gate: Gate, key: MakeKey) -> None:
    key(["webhooks.*"])
    gate.run(Call("webhooks.create", PLUGIN, {"url": "https://hooks.example/in", "events": ["forum.created"]}))
    page = page_text(admin.get("/keys/1/undo?since=2026-01-31T00:00"))
    assert "None of these events can be undone." in page
    assert "only changes of nodes and keys can be undone." in page


def test_purged_events_are_told_and_stop_all_until_they_are_skipped(
    gate: Gate, run: Run, clock: Clock, mira: int, visitor: MakeVisitor
) -> None:
    number = None
    for name in ("First", "Second"):
        number = gate.run(Call("forums.create", PLUGIN, {"name": name}, change_set="night")).change_set
        clock.move(days=60)
    gate.store.write(lambda tx: log.purge(tx, gate.ago(timedelta(days=90)))).result(30)
    admin = visitor()
    admin.sign_in()  # only now, or else the session would have ended
    page = admin.get(f"/change-sets/{number}/undo")
    assert "1 event has been purged and cannot be undone." in page_text(page)
    refused = _press(admin, page)
    assert refused.status_code == 409
    assert f"Nothing was changed: 1 event has been purged and cannot be undone. Tick “{SKIP}” to undo the others." in page_text(
        refused
    )
    assert _names(run) == ["First", "Second"]
    _press(admin, page, skipConflicts="1")
    assert _names(run) == ["First"]
