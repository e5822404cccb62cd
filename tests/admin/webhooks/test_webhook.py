"""One webhook: its page, changing it, conflicts, on and off, a new secret, a test, deleting it."""

from typing import Any

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import HtmlForm, read_forms
from tests.admin.webhooks.rows import HOSTILE, URL, find_secret, insert_delivery, open_form, stored_rows, update_webhook
from tests.fixture_types import Clock, Events, Run
from trellis.core.gate import Gate
from trellis.core.webhooks.secret import format_secret
from trellis.store.webhooks import endpoints


@pytest.fixture(autouse=True)
def _hook(run: Run) -> None:
    run("webhooks.create", url=URL, events=["forum.*"], description="Search index")


def _now(gate: Gate) -> Any:
    with gate.store.reading() as tx:
        return endpoints.find(tx, 1)


def test_it_shows_settings_deliveries_and_what_was_changed(admin: Visitor, gate: Gate, run: Run) -> None:
    assert "Nothing has been sent yet" in page_text(admin.get("/webhooks/1"))
    run("webhooks.update", 1, description="Index of all")
    insert_delivery(gate, {"status": 503, "duration": 250}, {}, type="forum.created", seq=7)
    page = admin.get("/webhooks/1")
    for said in (
        "Index of all",
        "Delivering",
        f"Address {URL} Copy the address Events Forums: everything",
        "Delivered forum.created msg_0123456789abcdef 200 2 attempts, last just now 12.0 ms",
        "The terminal changed webhook Index of all Description",
    ):
        assert said in page_text(page)
    assert 'href="/admin/deliveries?webhook=1"' in page.text
    assert find_secret(page) is None


@pytest.mark.either_engine
@pytest.mark.parametrize("because", ["The endpoint returned 410: it is gone.", "Every attempt for a week has failed."])
def test_one_that_the_service_has_switched_off_says_why_and_what_to_do(
    admin: Visitor, run: Run, events: Events, because: str
) -> None:
    run("webhooks.disable", 1, because=because)
    page = admin.get("/webhooks/1")
    assert f"The service switched it off just now . {because}" in page_text(page)
    assert 'href="/admin/webhooks/1/on"' in page.text
    assert because in page_text(admin.get("/webhooks/1/on"))
    assert because in page_text(admin.get(f"/events/{events()[-1]['seq']}"))


@pytest.mark.either_engine
def test_why_it_was_switched_off_is_said_in_the_language_of_the_page(admin: Visitor, run: Run) -> None:
    run("webhooks.disable", 1, because="The endpoint returned 410: it is gone.")
    german = {"accept-language": "de"}
    assert "Der Empfänger hat mit 410 geantwortet: Es gibt ihn nicht mehr." in page_text(admin.get("/webhooks/1", headers=german))
    run("webhooks.update", 1, enabled=True)
    run("webhooks.disable", 1, because="The key that made it, 'Mirror', was revoked.")
    for path in ("/webhooks", "/webhooks/1", "/webhooks/1/on"):
        page = page_text(admin.get(path, headers=german))
        assert "Der Schlüssel „Mirror“, der ihn angelegt hat, wurde widerrufen." in page.replace("\u2068", "").replace("\u2069", "")


def test_one_that_fails_says_since_when(admin: Visitor, gate: Gate, clock: Clock) -> None:
    update_webhook(gate, 1, failing_since=clock.text)
    clock.move(hours=2)
    page = admin.get("/webhooks/1")
    assert "Every attempt has failed since 31 Jan 2026, 09:30 UTC , 2 hours ago" in page_text(page)
    assert "/admin/deliveries?webhook=1&amp;state=waiting" in page.text


# --- changing -----------------------------------------------------------------------------------------------------


def test_it_is_changed(admin: Visitor, events: Events) -> None:
    form = open_form(admin, "/webhooks/1/edit", description="New", events=["", "forum.created", "forum.deleted"], enabled="0")
    assert 'value="forum.*" checked' in admin.get("/webhooks/1/edit").text
    before = events()
    assert admin.post("/webhooks/1/edit", form).headers["location"] == "/admin/webhooks/1"
    (event,) = events()[len(before) :]
    assert (event["operation"], event["actor"]["name"]) == ("webhooks.update", "Mira Holm")
    assert set(event["changed"]) == {"description", "events", "enabled", "state", "disabledAt"}
    assert event["after"]["events"] == ["forum.created", "forum.deleted"]


def test_saving_without_a_change_records_nothing(admin: Visitor, gate: Gate) -> None:
    before = stored_rows(gate)
    assert admin.post("/webhooks/1/edit", open_form(admin, "/webhooks/1/edit")).status_code == 303
    assert "Nothing was changed" in page_text(admin.get("/webhooks/1"))
    assert stored_rows(gate) == before


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("values", "asks"),
    [
        ({"description": "Other"}, False),
        ({"events": ["", "forum.created"]}, False),
        ({"enabled": "0"}, False),
        ({"url": f"{URL}/2"}, True),
        ({"events": ["", "*"]}, True),
        ({"events": ["", "forum.*", "blog.created"]}, True),
    ],
)
def test_the_password_is_asked_for_only_where_records_go_elsewhere(
    admin: Visitor, gate: Gate, clock: Clock, values: dict[str, Any], asks: bool
) -> None:
    clock.move(minutes=20)
    form = open_form(admin, "/webhooks/1/edit", **values)
    before = stored_rows(gate)
    answer = admin.post("/webhooks/1/edit", form)
    assert answer.status_code == (403 if asks else 303)
    assert (stored_rows(gate) == before) == asks


@pytest.mark.either_engine
@pytest.mark.parametrize("path", ["edit", "on"])
def test_the_password_is_asked_for_where_messages_are_sent_again(
    admin: Visitor, gate: Gate, run: Run, clock: Clock, path: str
) -> None:
    run("webhooks.update", 1, enabled=False)
    form = open_form(admin, "/webhooks/1/edit", enabled="1") if path == "edit" else {"skipMissed": "0"}
    clock.move(minutes=20)
    before = stored_rows(gate)
    assert admin.post(f"/webhooks/1/{path}", form).status_code == 403
    assert stored_rows(gate) == before
    assert not run("webhooks.get", 1)["enabled"]


def test_two_administrators_do_not_overwrite_each_other(admin: Visitor, gate: Gate, run: Run) -> None:
    form = open_form(admin, "/webhooks/1/edit", description="Mine", events=["", "*"])
    run("webhooks.update", 1, description="Theirs", enabled=False)
    before = stored_rows(gate)
    conflict = admin.post("/webhooks/1/edit", form)
    assert conflict.status_code == 409
    for said in ("has changed in the meantime", "Description Theirs Mine", "Forums: everything All events", "Send messages no yes"):
        assert said in page_text(conflict)
    assert 'value="Mine"' in conflict.text
    assert stored_rows(gate) == before
    assert admin.post("/webhooks/1/edit", open_form(admin, "/webhooks/1/edit", description="Mine")).status_code == 303
    assert run("webhooks.get", 1)["description"] == "Mine"


def test_what_somebody_else_has_saved_just_so_is_told(admin: Visitor, gate: Gate, run: Run) -> None:
    form = open_form(admin, "/webhooks/1/edit", description="Theirs")
    run("webhooks.update", 1, description="Theirs")
    before = stored_rows(gate)
    conflict = admin.post("/webhooks/1/edit", form)
    assert conflict.status_code == 409
    said = page_text(conflict)
    assert "This webhook has changed in the meantime Both versions are the same now: there is nothing left to save." in said
    assert stored_rows(gate) == before


def test_being_delivered_to_is_no_conflict(admin: Visitor, gate: Gate, run: Run, clock: Clock) -> None:
    form = open_form(admin, "/webhooks/1/edit", description="Mine")
    update_webhook(gate, 1, attempted_at=clock.text, failing_since=clock.text)
    assert admin.post("/webhooks/1/edit", form).status_code == 303
    assert run("webhooks.get", 1)["description"] == "Mine"


def test_a_form_without_a_version_and_a_stale_one_change_nothing(admin: Visitor, gate: Gate) -> None:
    form = open_form(admin, "/webhooks/1/edit", description="Mine")
    before = stored_rows(gate)
    assert admin.post("/webhooks/1/edit", {name: v for name, v in form.items() if name != "_version"}).status_code == 409
    stale = admin.post("/webhooks/1/edit", form, csrf="0" * 64)
    assert stale.status_code == 409
    assert 'value="Mine"' in stale.text
    assert stored_rows(gate) == before


@pytest.mark.either_engine
def test_faults_keep_what_was_typed(admin: Visitor, gate: Gate) -> None:
    form = open_form(admin, "/webhooks/1/edit", url="http://127.0.0.1/", description=HOSTILE)
    before = stored_rows(gate)
    page = admin.post("/webhooks/1/edit", form)
    assert page.status_code == 400
    assert "http://127.0.0.1/" in page.text
    assert "<script>alert" not in page.text
    assert stored_rows(gate) == before


def test_events_of_a_kind_that_is_gone_keep_their_tick(admin: Visitor, gate: Gate) -> None:
    update_webhook(gate, 1, events=["forum.*", "gallery.*"])
    assert 'value="gallery.*" checked' in admin.get("/webhooks/1/edit").text


# --- on and off ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skip", ["0", "1"])
def test_it_is_switched_off_and_on_again(admin: Visitor, gate: Gate, run: Run, events: Events, skip: str) -> None:
    before = events()
    assert admin.post("/webhooks/1/off").status_code == 303
    assert "Off" in page_text(admin.get("/webhooks/1"))
    missed = _now(gate).cursor
    run("forums.create", name="Meanwhile")
    asked = admin.get("/webhooks/1/on")
    assert "Send them now, in order" in page_text(asked)
    assert admin.post("/webhooks/1/on", {"skipMissed": skip}).status_code == 303
    assert [event["operation"] for event in events()[len(before) :]] == ["webhooks.update", "forums.create", "webhooks.update"]
    assert (_now(gate).enabled, _now(gate).cursor > missed) == (True, skip == "1")
    assert admin.get("/webhooks/1/on").status_code == 303


def test_what_was_given_up_is_not_sent_by_switching_it_on_and_the_page_says_so(admin: Visitor, gate: Gate, run: Run) -> None:
    given_up = insert_delivery(gate, {"status": 500}, state="failed")
    run("webhooks.update", 1, enabled=False)
    assert "Those that had been given up are not" in page_text(admin.get("/webhooks/1/on"))
    assert admin.post("/webhooks/1/on", {"skipMissed": "0"}).status_code == 303
    assert run("deliveries.get", given_up)["state"] == "failed"


def _read_form(page: Any) -> HtmlForm:
    """Return the form that leads to the address of its page."""
    return next(one for one in read_forms(page) if not one.action)


def test_one_that_somebody_else_has_switched_on_meanwhile_skips_nothing(admin: Visitor, run: Run, gate: Gate) -> None:
    run("webhooks.update", 1, enabled=False)
    form = _read_form(admin.get("/webhooks/1/on"))
    run("webhooks.update", 1, enabled=True)
    run("forums.create", name="Meanwhile")
    before = _now(gate)
    assert admin.post("/webhooks/1/on", form.filled(skipMissed="1")).headers["location"] == "/admin/webhooks/1"
    assert "The webhook is already switched on." in page_text(admin.get("/webhooks/1"))
    assert _now(gate) == before


def test_switching_it_on_twice_by_the_same_form_skips_once(admin: Visitor, run: Run, gate: Gate) -> None:
    run("webhooks.update", 1, enabled=False)
    form = _read_form(admin.get("/webhooks/1/on"))
    assert admin.post("/webhooks/1/on", form.filled(skipMissed="1")).status_code == 303
    run("forums.create", name="Meanwhile")
    before = _now(gate)
    admin.post("/webhooks/1/on", form.filled(skipMissed="1"))
    assert "The webhook was switched on." in page_text(admin.get("/webhooks/1"))
    assert _now(gate) == before


@pytest.mark.either_engine
def test_switching_with_nonsense_changes_nothing(admin: Visitor, run: Run, gate: Gate) -> None:
    run("webhooks.update", 1, enabled=False)
    admin.get("/webhooks/1/on")
    before = stored_rows(gate)
    assert admin.post("/webhooks/1/on", {"skipMissed": "perhaps"}).status_code == 400
    assert admin.post("/webhooks/1/on", {"url": "https://elsewhere.example/"}).status_code == 400
    assert admin.post("/webhooks/1/on", {"skipMissed": "0"}, csrf="0" * 64).status_code == 409
    assert stored_rows(gate) == before


# --- a new secret, a test, the end --------------------------------------------------------------------------------


@pytest.mark.parametrize("hours", ["0", "24"])
def test_a_secret_is_rotated_and_the_new_one_shown_once(
    admin: Visitor, gate: Gate, clock: Clock, events: Events, hours: str
) -> None:
    old = format_secret(_now(gate).secret, None)
    form = {"overlapHours": hours, "_submission": open_form(admin, "/webhooks/1/rotate")["_submission"]}
    before = events()
    rotated = admin.post("/webhooks/1/rotate", form)
    new = find_secret(rotated)
    assert new not in {None, old}
    assert new == format_secret(_now(gate).secret, None)
    (event,) = events()[len(before) :]
    assert event["operation"] == "webhooks.rotate"
    assert str(new) not in repr(event)
    again = admin.post("/webhooks/1/rotate", form)
    assert (again.status_code, find_secret(again), len(events())) == (200, None, len(before) + 1)
    assert new == format_secret(_now(gate).secret, None)
    if hours == "0":
        assert _now(gate).old_secret is None
        assert "Messages are no longer signed with the old secret" in page_text(rotated)
    else:
        assert format_secret(_now(gate).old_secret, None) == old
        assert "Until 1 Feb 2026, 09:30 UTC , messages are also signed with the old one" in page_text(admin.get("/webhooks/1"))
        assert "The secret was rotated recently" in page_text(admin.get("/webhooks/1/rotate"))
        clock.move(hours=24)
        admin.sign_in()
        assert "also signed with the old one" not in page_text(admin.get("/webhooks/1"))


@pytest.mark.either_engine
def test_rotating_asks_for_the_password(admin: Visitor, gate: Gate, clock: Clock) -> None:
    clock.move(minutes=20)
    before = stored_rows(gate)
    assert "confirm-password" in admin.get("/webhooks/1/rotate").headers["location"]
    assert admin.post("/webhooks/1/rotate", {"overlapHours": "1", "_submission": "x"}).status_code == 403
    assert stored_rows(gate) == before


@pytest.mark.either_engine
def test_an_overlap_of_more_than_a_week_is_refused(admin: Visitor, gate: Gate) -> None:
    admin.get("/webhooks/1/rotate")
    before = stored_rows(gate)
    for hours in ("169", "-1", "x"):
        assert admin.post("/webhooks/1/rotate", {"overlapHours": hours, "_submission": "x"}).status_code == 400, hours
    assert stored_rows(gate) == before


def test_a_test_is_sent_and_leads_to_its_delivery(admin: Visitor, events: Events) -> None:
    admin.get("/webhooks/1")
    before = events()
    answer = admin.post("/webhooks/1/test")
    assert answer.headers["location"] == "/admin/deliveries/1"
    (event,) = events()[len(before) :]
    assert event["operation"] == "webhooks.test"
    page = page_text(admin.get("/deliveries/1"))
    assert "A test is being sent" in page
    assert "Waiting webhook.test" in page
    assert "Mira Holm sent a test to webhook Search index" in page_text(admin.get("/webhooks/1"))


def test_nothing_is_sent_to_one_that_is_off(admin: Visitor, run: Run, gate: Gate) -> None:
    run("webhooks.update", 1, enabled=False)
    assert "Send a test" not in page_text(admin.get("/webhooks/1"))
    before = stored_rows(gate)
    refused = admin.post("/webhooks/1/test")
    assert refused.status_code == 409
    assert "Switch it on first" in page_text(refused)
    assert stored_rows(gate) == before


def test_it_is_deleted_after_asking(admin: Visitor, events: Events, run: Run, gate: Gate) -> None:
    delivery = insert_delivery(gate, {})
    asked = admin.get("/webhooks/1/delete")
    assert f"Nothing more will be sent to {URL} ." in page_text(asked)
    before = events()
    assert admin.post("/webhooks/1/delete").headers["location"] == "/admin/webhooks"
    (event,) = events()[len(before) :]
    assert event["operation"] == "webhooks.delete"
    assert "Search index was deleted" in page_text(admin.get("/webhooks"))
    assert run("webhooks.list")["totalResults"] == 0
    assert "The webhook was deleted" in page_text(admin.get(f"/deliveries/{delivery}"))
    assert "Webhook 1, deleted" in page_text(admin.get("/deliveries"))


def test_one_that_is_not_there_is_said_to_be_so(admin: Visitor, gate: Gate) -> None:
    before = stored_rows(gate)
    for path in ("", "/edit", "/rotate", "/delete", "/on", "/redeliver"):
        assert admin.get(f"/webhooks/9{path}").status_code == 404, path
    for path, status in (("/edit", 404), ("/on", 404), ("/off", 404), ("/test", 404), ("/delete", 400), ("/redeliver", 404)):
        assert admin.post(f"/webhooks/9{path}", {"failedSince": "2026-01-01"}).status_code == status, path
    for path in ("/off", "/test"):
        assert admin.get(f"/webhooks/1{path}").status_code == 405, path
    assert stored_rows(gate) == before


@pytest.mark.either_engine
def test_hostile_text_never_runs(admin: Visitor, run: Run, gate: Gate) -> None:
    run("webhooks.update", 1, description=HOSTILE[:200])
    update_webhook(gate, 1, events=["forum.*", "<script>alert(1)</script>"])
    delivery = insert_delivery(gate, {"answer": HOSTILE, "error": HOSTILE, "status": 500}, state="waiting", type=HOSTILE)
    run("webhooks.disable", 1, because=HOSTILE)
    for path in ("", "/webhooks", "/webhooks/1", "/webhooks/1/edit", "/webhooks/1/on", "/webhooks/1/delete", "/webhooks/1/rotate"):
        text = admin.get(path).text
        assert "<script>alert" not in text, path
        assert "<img src=x" not in text, path
    for path in ("/deliveries", f"/deliveries/{delivery}", "/deliveries?type=<script>alert(1)</script>", "/events"):
        text = admin.get(path).text
        assert "<script>alert" not in text, path
        assert "<img src=x" not in text, path


@pytest.mark.either_engine
def test_what_was_typed_into_the_form_of_one_that_is_gone_can_still_be_read(admin: Visitor, run: Run) -> None:
    typed = open_form(admin, "/webhooks/1/edit", url="https://hooks.example.org/later", description="Index of <all>")
    run("webhooks.delete", 1)
    page = admin.post("/webhooks/1/edit", typed)
    assert page.status_code == 404
    assert "What you typed" in page_text(page)
    assert "enabled 1 events forum.*" in page_text(page)
    assert "https://hooks.example.org/later" in page.text
    assert "Index of &lt;all&gt;" in page.text
    assert admin.get("/webhooks/1/edit").text.count("What you typed") == 0
