"""One key: its page, changing it, conflicts, rotating, taking grants away, revoking."""

import re
from dataclasses import replace
from datetime import timedelta
from functools import partial
from html import unescape
from typing import Any, Final

import pytest

from tests.admin.conftest import PASSWORD, Visitor, page_text
from tests.admin.html_forms import find_form
from tests.admin.keys.test_index import _form, _key_in
from tests.fixture_types import Clock, Events, MakeKey, Run
from trellis.core.actor import Actor
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.core.keys.keyring import Keyring, authenticate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.store.events import purge as purge_events
from trellis.store.requests import Request, log


def _asked(gate: Gate, clock: Clock, operation: str, *, status: int = 200, key: int = 1, times: int = 1) -> None:
    """Write requests to the log."""
    one = Request(format_timestamp(clock.at), "GET", "/api/x", operation, key, "192.0.2.7", status, 500, "r", None)
    gate.store.write(lambda tx: log.append(tx, [one] * times)).result(30)


def _edit(admin: Visitor, key: int = 1, /, **values: Any) -> dict[str, Any]:
    return _form(admin, f"/keys/{key}/edit", **({"name": "Plugin", "expires": "keep", "grants": ["", "forums.list"]} | values))


def test_a_key_shows_its_requests_grants_and_settings(admin: Visitor, key: MakeKey, gate: Gate, clock: Clock) -> None:
    key(["forums.list", "forums.get"], addresses=["192.0.2.0/24"], rateLimit=60)
    assert "the public part Not used yet" in page_text(admin.get("/keys/1"))
    _asked(gate, clock, "forums.list", times=3)
    _asked(gate, clock, "forums.delete", status=403, times=2)
    page = page_text(admin.get("/keys/1"))
    assert "5 requests" in page
    assert "Answered 3 Unchanged 0 Refused 2 Failed 0" in page
    assert "31 Jan 2026 3 0 2 0" in page, "the table says the same"
    assert "List forums GET / forums/ forums just now" in page
    assert "Get a forum GET / forums/ forums/ {id} not used yet" in page
    assert "Requested, but not granted forums.delete 2 times" in page
    assert "192.0.2.0/24" in page
    assert "All requests with this key" in page


def test_a_call_that_needed_the_grants_of_others_leads_to_the_one_that_is_missing(
    admin: Visitor, key: MakeKey, gate: Gate, clock: Clock
) -> None:
    key(["forums.create"])
    _asked(gate, clock, "forums.tree", status=403)
    _asked(gate, clock, "forums.list", status=403, times=2)
    _asked(gate, clock, "forums.put_external", status=403)
    page = admin.get("/keys/1")
    assert "Requested, but not granted forums.list 3 times" in page_text(page)
    assert "forums.update 1 time" in page_text(page)
    assert 'href="/admin/keys/1/edit?grant=forums.list"' in page.text
    assert 'href="/admin/keys/1/edit?grant=forums.update"' in page.text
    form = admin.get("/keys/1/edit?grant=forums.list").text
    assert re.search(r'value="forums\.list"[^>]* checked', form)


def test_what_is_wrong_in_a_form_of_an_older_version_is_shown_in_the_form(admin: Visitor, key: MakeKey, run: Run) -> None:
    key("forums.list")
    older = _edit(admin, owner="Ada", addresses="nonsense")
    assert admin.post("/keys/1/edit", _edit(admin, note="Changed in another tab")).status_code == 303
    page = admin.post("/keys/1/edit", older)
    assert page.status_code == 409
    assert 'value="Ada"' in page.text
    assert "nonsense</textarea>" in page.text
    assert run("keys.get", 1)["owner"] == ""


def test_what_the_page_of_a_key_takes_away_twice_is_told_as_once(
    admin: Visitor, key: MakeKey, clock: Clock, events: Events
) -> None:
    key(["forums.list", "forums.get"])
    clock.move(days=31)
    admin.sign_in()
    form = find_form(admin.get("/keys/1"), "/ungrant")
    before = len(events())
    for _ in range(2):
        assert admin.post("/keys/1/ungrant", form.filled()).status_code == 303
    assert len(events()) == before + 1
    assert "2 unused grants were removed." in page_text(admin.get("/keys/1"))


def test_what_was_held_for_30_days_without_use_can_be_taken_away(
    admin: Visitor, key: MakeKey, gate: Gate, clock: Clock, events: Events, run: Run
) -> None:
    key(["forums.list", "forums.get", "blogs.delete"], bounds={"blogs.delete": {"perDay": 3}})
    _asked(gate, clock, "forums.get")
    clock.move(days=20)
    _asked(gate, clock, "forums.list")
    clock.move(days=11)
    admin.sign_in()
    clock.move(minutes=20)  # taking away asks for no password
    page = admin.get("/keys/1")
    assert "2 operations granted but not used in 30 days" in page_text(page)
    unused = re.findall(r'name="operation" value="([^"]+)"', page.text)
    assert unused == ["blogs.delete", "forums.get"]
    before = events()
    assert admin.post("/keys/1/ungrant", {"operation": unused}).status_code == 303
    (event,) = events()[len(before) :]
    assert (event["operation"], event["after"]["grants"], event["reason"]) == (
        "keys.update",
        ["forums.list"],
        "Not used for 30 days",
    )
    shown = admin.get("/keys/1")
    assert "not used in 30 days" not in page_text(shown)
    assert "2 unused grants were removed. Undo…" in page_text(shown)
    way_back = f"/events/{event['seq']}/undo"
    assert f'href="/admin{way_back}"' in shown.text
    assert f'href="/admin{way_back}"' in admin.get(f"/events/{event['seq']}").text
    assert admin.get(way_back).headers["location"].startswith("/admin/confirm-password"), "it may do more afterwards"
    admin.post("/confirm-password", {"password": PASSWORD, "next": "/admin/keys/1"})
    page = admin.get(way_back)
    assert "will be changed back, and may then be able to do more than now" in page_text(page)
    assert "blogs.delete: Only 3 times a day" in page_text(page)
    assert admin.post(way_back, find_form(page, "/undo").filled()).status_code == 303
    shown = page_text(admin.get("/keys/1"))
    assert f"is as it was before event {event['seq']}. Undo…" in shown
    again = run("keys.get", 1)
    assert again["grants"] == ["blogs.delete", "forums.get", "forums.list"]
    assert again["bounds"]["blogs.delete"]["perDay"] == 3


def test_what_a_key_could_do_is_judged_only_where_all_its_changes_are_read(
    admin: Visitor, key: MakeKey, gate: Gate, clock: Clock, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    key(["forums.list"])
    clock.move(days=40)
    run("keys.update", 1, grants=["forums.list", "forums.get"])
    for note in "ab":
        run("keys.update", 1, note=note)
    assert run("requests.summary", key=1)["unused"] == ["forums.list"]
    admin.sign_in()
    with monkeypatch.context() as fewer:
        fewer.setattr("trellis.core.requests._MOST_CHANGES", 2)
        assert run("requests.summary", key=1)["unused"] is None
        assert "It is not known which grants are unused" in page_text(admin.get("/keys/1"))
    clock.move(days=20)
    gate.calls.environment = replace(gate.environment, keep_events=14)
    gate.store.write(lambda tx: purge_events(tx, gate.ago(timedelta(days=14)))).result(30)
    assert run("requests.summary", key=1)["unused"] is None


def test_a_grant_that_only_other_operations_need_is_used(admin: Visitor, key: MakeKey, gate: Gate, clock: Clock, run: Run) -> None:
    key(["forums.list", "forums.create", "forums.update", "forums.delete"])
    clock.move(days=31)
    _asked(gate, clock, "forums.tree")
    _asked(gate, clock, "forums.put_external")
    admin.sign_in()
    assert run("requests.summary", key=1)["unused"] == ["forums.delete"]
    page = page_text(admin.get("/keys/1"))
    assert "1 operation granted but not used in 30 days" in page
    assert "List forums GET / forums/ forums just now" in page
    assert "Delete a forum DELETE / forums/ forums/ {id} not used yet" in page


@pytest.mark.parametrize(
    ("asked", "unused"),
    [
        ("core.batch", []),
        ("structure.apply", ["forums.copy", "forums.restore", "webhooks.list"]),
        ("structure.export", ["forums.copy", "forums.delete", "forums.restore", "webhooks.list"]),
        ("changesets.restore", ["forums.copy", "forums.delete", "forums.list", "webhooks.list"]),
    ],
)
def test_a_grant_that_something_larger_may_have_used_is_not_called_unused(
    admin: Visitor, key: MakeKey, gate: Gate, clock: Clock, asked: str, unused: list[str]
) -> None:
    key(
        [
            "forums.list",
            "forums.copy",
            "forums.delete",
            "forums.restore",
            "webhooks.list",
            *([asked] if "structure" in asked else []),
        ]
    )
    clock.move(days=31)
    _asked(gate, clock, asked)
    admin.sign_in()
    assert re.findall(r'name="operation" value="([^"]+)"', admin.get("/keys/1").text) == unused


def test_what_was_granted_lately_is_not_called_unused(admin: Visitor, key: MakeKey, run: Run, clock: Clock) -> None:
    key(["forums.list"])
    clock.move(days=25)
    run("keys.update", 1, grant=["forums.get"])
    clock.move(days=6)
    admin.sign_in()
    assert "1 operation granted but not used" in page_text(admin.get("/keys/1"))


def test_nothing_is_called_unused_where_requests_are_not_logged(admin: Visitor, key: MakeKey, run: Run, clock: Clock) -> None:
    key(["forums.list"], logRequests=False)
    clock.move(days=40)
    admin.sign_in()
    assert "not known which grants are unused" in page_text(admin.get("/keys/1"))
    run("keys.update", 1, logRequests=True)
    assert "not known which grants are unused" in page_text(admin.get("/keys/1"))


def test_taking_away_takes_no_more_than_was_shown(admin: Visitor, key: MakeKey, run: Run, events: Events) -> None:
    key(["forums.list", "forums.get"])
    admin.get("/keys/1")
    before = events()
    assert admin.post("/keys/1/ungrant", {"operation": "forums.lost"}).status_code == 400
    admin.post("/keys/1/ungrant", {})
    assert events() == before
    assert run("keys.get", 1)["grants"] == ["forums.get", "forums.list"]


def test_may_this_key(admin: Visitor, key: MakeKey, events: Events) -> None:
    key(["forums.list"], addresses=["192.0.2.0/24"], expires="30d")
    before = events()
    for query, said in (
        ("operation=forums.list&address=192.0.2.7", "Yes: it has been granted"),
        ("operation=forums.list&address=198.51.100.1", "No: 198.51.100.1 is not one of"),
        ("operation=forums.create", "No: forums.create has not been granted"),
        ("operation=forums.list&when=end", "No: the key expires on"),
        ("operation=core.hello&when=now", "Yes: every valid key may"),
        ("operation=forums.list&address=home", "must be an address"),
        ("operation=keys.create", "cannot be granted to a key"),
    ):
        assert said in page_text(admin.get(f"/keys/1?{query}")), query
    assert events() == before


# --- changing -----------------------------------------------------------------------------------------------------


def test_a_key_is_changed(admin: Visitor, key: MakeKey, events: Events) -> None:
    key(["forums.list"], expires="30d")
    before = events()
    assert admin.post("/keys/1/edit", _edit(admin, name="Renamed", grants=["", "forums.get"])).status_code == 303
    (event,) = events()[len(before) :]
    assert (event["operation"], set(event["changed"])) == ("keys.update", {"name", "grants"})
    assert event["after"]["expiresAt"] == event["before"]["expiresAt"]


def test_saving_without_a_change_records_nothing(admin: Visitor, key: MakeKey, events: Events) -> None:
    key(["forums.list"], expires="30d", addresses=["192.0.2.0/24"], rateLimit=5)
    before = events()
    sent = _edit(admin, addresses="192.0.2.0/24", rateLimit="5")
    assert admin.post("/keys/1/edit", sent).status_code == 303
    assert "Nothing was changed" in page_text(admin.get("/keys/1"))
    assert events() == before


def test_the_dialect_is_shown_and_changed_without_the_password(admin: Visitor, key: MakeKey, clock: Clock, run: Run) -> None:
    key(["forums.list"], dialect="invision")
    clock.move(minutes=20)
    assert "Invision" in page_text(admin.get("/keys/1"))
    assert admin.post("/keys/1/edit", _edit(admin, dialect="trellis")).status_code == 303
    assert run("keys.get", 1)["dialect"] == "trellis"


def test_all_grants_can_be_taken_away(admin: Visitor, key: MakeKey, run: Run) -> None:
    key(["forums.list"])
    assert admin.post("/keys/1/edit", _edit(admin, grants=[""])).status_code == 303
    assert run("keys.get", 1)["grants"] == []


_EDITS: Final[tuple[tuple[dict[str, Any], bool], ...]] = (
    ({"grants": ["", "forums.list"]}, False),
    ({"grants": [""]}, False),
    ({"name": "Other"}, False),
    ({"expires": "30d"}, False),
    ({"addresses": "192.0.2.7"}, False),
    ({"grants": ["", "forums.list", "blogs.delete"]}, True),
    ({"expires": "never"}, True),
    ({"addresses": ""}, True),
    ({"addresses": "192.0.2.0/24\n198.51.100.1"}, True),
    ({"logRequests": "0"}, True),
    ({"rateLimit": "30"}, False),
    ({"rateLimit": "90"}, True),
    ({"rateLimit": ""}, True),
    ({"rateLimit": "0"}, True),
)


@pytest.mark.either_engine
def test_the_password_is_asked_for_again_only_where_more_is_granted(
    admin: Visitor, key: MakeKey, clock: Clock, events: Events
) -> None:
    for _ in _EDITS:
        key(["forums.list", "forums.get"], expires="60d", addresses=["192.0.2.0/24"], rateLimit=60)
    clock.move(minutes=20)
    same = {"rateLimit": "60", "addresses": "192.0.2.0/24", "grants": ["", "forums.list", "forums.get"]}
    for number, (values, asks) in enumerate(_EDITS, 1):
        sent = _edit(admin, number, **(same | values))
        before = events()
        answer = admin.post(f"/keys/{number}/edit", sent)
        assert answer.status_code == (403 if asks else 303), values
        assert ("Enter your password" in page_text(answer)) == asks, values
        assert (events() == before) == asks, values


@pytest.mark.parametrize("values", [{"expires": "30d"}, {"bounds.forums.list.until": "12h"}])
def test_a_span_in_a_form_that_is_sent_twice_counts_from_the_first_time(
    admin: Visitor, key: MakeKey, clock: Clock, events: Events, values: dict[str, str]
) -> None:
    key(["forums.list"])
    sent = _edit(admin, **values)
    before = len(events())
    for _ in range(2):
        clock.move(seconds=1)
        response = admin.post("/keys/1/edit", sent)
        assert response.status_code == 303, page_text(response)
        assert "Saved." in page_text(admin.get("/keys/1"))
    assert len(events()) == before + 1


def test_what_somebody_else_has_saved_just_so_is_told(admin: Visitor, key: MakeKey, run: Run, events: Events) -> None:
    key(["forums.list"])
    sent = _edit(admin, name="Renamed")
    run("keys.update", 1, name="Renamed")
    before = events()
    conflict = admin.post("/keys/1/edit", sent)
    assert conflict.status_code == 409
    said = page_text(conflict)
    assert "Somebody else changed this key in the meantime Both versions are the same now: there is nothing left to save." in said
    assert events() == before


def test_two_administrators_do_not_overwrite_each_other(admin: Visitor, key: MakeKey, run: Run, events: Events) -> None:
    key(["forums.list"])
    sent = _edit(admin, name="Mine", grants=["", "forums.list", "forums.get"])
    run("keys.update", 1, name="Theirs", grants=["forums.list", "blogs.delete"])
    before = events()
    conflict = admin.post("/keys/1/edit", sent)
    assert conflict.status_code == 409
    said = page_text(conflict)
    assert "Somebody else changed this key in the meantime" in said
    assert "Name Theirs Mine" in said
    assert "blogs.delete, forums.list forums.get, forums.list" in said
    assert 'value="Mine"' in conflict.text
    assert events() == before
    version = re.search(r'name="_version" value="([^"]+)"', conflict.text)
    assert version is not None
    assert admin.post("/keys/1/edit", sent | {"_version": version[1]}).status_code == 303
    assert run("keys.get", 1)["name"] == "Mine"


@pytest.mark.either_engine
def test_a_conflict_shows_numbers_as_numbers(admin: Visitor, key: MakeKey, run: Run) -> None:
    key(["forums.list"], perDay=5, rateLimit=7)
    sent = _edit(admin, perDay="1", rateLimit="0", logRequests="0")
    run("keys.update", 1, name="Theirs")
    said = page_text(admin.post("/keys/1/edit", sent))
    assert "Uses a day 5 1 " in said
    assert "Requests per minute 7 0 " in said
    assert "yes no" in said


def test_being_used_is_no_conflict(admin: Visitor, key: MakeKey, gate: Gate, run: Run) -> None:
    key(["forums.list"])
    sent = _edit(admin, name="Mine")
    run("keys.rotate", 1)
    assert admin.post("/keys/1/edit", sent).status_code == 303


def test_faults_and_ticks_keep_the_version_that_was_read(admin: Visitor, key: MakeKey, run: Run) -> None:
    key(["forums.list"])
    sent = _edit(admin, _tick="all")
    run("keys.update", 1, name="Theirs")
    ticked = admin.post("/keys/1/edit", sent)
    assert ticked.status_code == 200
    assert f'name="_version" value="{sent["_version"]}"' in ticked.text
    sent = _edit(admin, rateLimit="x")
    wrong = admin.post("/keys/1/edit", sent)
    assert wrong.status_code == 400
    assert f'name="_version" value="{sent["_version"]}"' in wrong.text


def test_a_form_without_a_version_changes_nothing(admin: Visitor, key: MakeKey, events: Events) -> None:
    key(["forums.list"])
    sent = _edit(admin, name="Mine")
    del sent["_version"]
    before = events()
    assert admin.post("/keys/1/edit", sent).status_code == 409
    assert events() == before


# --- a new secret, and the end ------------------------------------------------------------------------------------


def _judged(gate: Gate, text: str) -> bool:
    with gate.store.reading() as tx:
        try:
            Keyring().admit(authenticate(tx, text, gate.now()), text, "192.0.2.7", gate.now(), None)
        except Refused:
            return False
        return True


@pytest.mark.parametrize("days", ["0", "7"])
def test_a_key_is_rotated_and_the_new_one_shown_once(
    admin: Visitor, key: MakeKey, gate: Gate, clock: Clock, events: Events, days: str
) -> None:
    old = key(["forums.list"])
    sent = {"overlapDays": days, "_submission": _form(admin, "/keys/1/rotate")["_submission"]}
    before = events()
    rotated = admin.post("/keys/1/rotate", sent)
    new = _key_in(rotated)
    assert new is not None
    assert new != old
    assert (_judged(gate, new), _judged(gate, old)) == (True, days == "7")
    (event,) = events()[len(before) :]
    assert event["operation"] == "keys.rotate"
    assert new not in repr(event)
    again = admin.post("/keys/1/rotate", sent)
    assert (_key_in(again), again.status_code) == (None, 200)
    assert len(events()) == len(before) + 1
    warned = "previous secret still works. If you rotate it again, that secret stops working immediately."
    assert (warned in page_text(admin.get("/keys/1/rotate"))) == (days == "7")
    clock.move(days=8)
    assert not _judged(gate, old)


def test_rotating_asks_for_the_password(admin: Visitor, key: MakeKey, clock: Clock, events: Events) -> None:
    key(["forums.list"])
    clock.move(minutes=20)
    before = events()
    assert "confirm-password" in admin.get("/keys/1/rotate").headers["location"]
    assert admin.post("/keys/1/rotate", {"overlapDays": "1", "_submission": "x"}).status_code == 403
    assert events() == before


@pytest.mark.either_engine
def test_an_overlap_of_more_than_a_week_is_refused(admin: Visitor, key: MakeKey, events: Events) -> None:
    key(["forums.list"])
    before = events()
    for days in ("8", "-1", "x"):
        assert admin.post("/keys/1/rotate", {"overlapDays": days, "_submission": "x"}).status_code == 400, days
    assert events() == before


def _main_text(page: Any) -> str:
    """Return the words of a page's form, without its menu."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", page.text.partition("<main")[2])))


def test_the_page_that_revokes_tells_which_webhooks_go_off_with_it(admin: Visitor, key: MakeKey, gate: Gate, run: Run) -> None:
    key(name="Plugin")
    plugin = Actor("key", 1, "Plugin", frozenset({"webhooks.create"}))
    assert "webhook" not in _main_text(admin.get("/keys/1/revoke"))
    for name in ("Search index", ""):
        raw = {"url": "https://hooks.example/x", "events": ["*"], "description": name}
        gate.run(Call("webhooks.create", plugin, raw))
    page = admin.get("/keys/1/revoke")
    assert "2 webhooks created by this key will be switched off too, unless you keep them on: Search index" in _main_text(page)
    assert "Search index https://hooks.example/x hooks.example/x " in page_text(page)  # by the names of their own pages
    assert "Plugin (API key)" in page_text(admin.get("/webhooks/1"))
    assert admin.post("/keys/1/revoke", {"reason": "", "keepWebhooks": "1"}).status_code == 303
    assert run("webhooks.get", 1)["enabled"] is True


def test_a_key_is_revoked_with_a_reason(admin: Visitor, key: MakeKey, gate: Gate, events: Events, clock: Clock) -> None:
    text = key(["forums.list"])
    edited = _edit(admin)
    clock.move(minutes=20)  # ending a key asks for no password
    admin.get("/keys/1/revoke")
    before = events()
    assert admin.post("/keys/1/revoke", {"reason": f"Leaked in a <b>post</b>: {text}"}).status_code == 303
    (event,) = events()[len(before) :]
    assert (event["operation"], event["reason"]) == ("keys.revoke", f"Leaked in a <b>post</b>: {text[:12]}_[hidden]")
    assert event["after"]["revokedBecause"] == event["reason"]
    assert not _judged(gate, text)
    page = admin.get("/keys/1")
    assert "Leaked in a <b>post</b>" in page_text(page)
    assert "<b>post</b>" not in page.text
    assert "/keys/1/revoke" not in page.text
    assert admin.get("/keys/1/edit").status_code == 303
    admin.sign_in()  # rotating asks for the password
    before = events()
    refused = admin.post("/keys/1/edit", edited)
    assert (refused.status_code, "was revoked at" in page_text(refused)) == (409, True)
    assert events() == before


def test_a_key_that_was_revoked_while_a_page_of_it_was_open_is_offered_nothing(
    admin: Visitor, key: MakeKey, run: Run, events: Events
) -> None:
    admin.sign_in()  # rotating asks for the password
    for number, action in enumerate(("rotate", "revoke", "pause", "resume"), 1):
        key(["forums.list"])
        if action == "resume":
            run("keys.pause", number)
        form = find_form(admin.get(f"/keys/{number}/{action}"), "")
        run("keys.revoke", number)
        before = events()
        path = f"/keys/{number}/{action}"
        for ask in (partial(admin.post, path, form.filled()), partial(admin.get, path)):
            response = ask()
            assert (response.status_code, response.headers["location"]) == (303, f"/admin/keys/{number}"), action
            assert "This key has already been revoked. Create a new one." in page_text(admin.get(f"/keys/{number}"))
        assert events() == before, action


@pytest.mark.either_engine
def test_the_time_in_a_refusal_is_told_as_the_panel_tells_times(admin: Visitor, key: MakeKey, run: Run) -> None:
    key(["forums.list"])
    form = _edit(admin)
    run("keys.revoke", 1)
    assert "was revoked at 2026-01-31 09:30:00 UTC." in page_text(admin.post("/keys/1/edit", form))


def test_a_key_that_is_not_there_is_said_to_be_so(admin: Visitor, events: Events) -> None:
    before = events()
    for path in ("", "/edit", "/rotate", "/revoke"):
        assert admin.get(f"/keys/9{path}").status_code == 404, path
    for path in ("/edit", "/ungrant", "/revoke", "/rotate"):
        assert admin.post(f"/keys/9{path}", {"operation": "forums.list"} if path == "/ungrant" else {}).status_code == 404, path
    assert events() == before
