"""The list of webhooks, making one, and what the overview says of them."""

import re
from typing import Any, Final

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.webhooks.rows import HOSTILE, URL, find_secret, open_form, stored_rows, update_webhook
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, Events, Run
from trellis.admin.webhooks import index
from trellis.admin.webhooks.form import describe_events, event_rows
from trellis.core.gate import Gate
from trellis.core.subscriptions import event_patterns
from trellis.core.webhooks import crud


@pytest.mark.either_engine
def test_without_webhooks_the_list_says_how_to_begin(admin: Visitor) -> None:
    page = admin.get("/webhooks")
    assert page.status_code == 200
    assert "There are no webhooks yet" in page_text(page)
    assert 'href="/admin/webhooks/new"' in page.text


def test_the_list_tells_how_each_does(admin: Visitor, gate: Gate, run: Run, clock: Clock) -> None:
    run("webhooks.create", url=URL, events=["*"], description="Search index")
    run("webhooks.create", url=f"{URL}/2", events=["forum.*", "category.deleted", "category.created"])
    run("webhooks.create", url=URL, events=["group.*"], enabled=False, description="Idle")
    run("webhooks.create", url=URL, events=["*"], description="App")
    run("webhooks.disable", 4, because="The endpoint returned 410: it is gone.")
    update_webhook(gate, 1, attempted_at=clock.text)
    update_webhook(gate, 2, attempted_at=clock.text, failing_since=clock.text, failures=3)
    clock.move(hours=3)
    before = stored_rows(gate)
    page = page_text(admin.get("/webhooks"))
    for said in (
        f"Search index {URL} Delivering All events, including future types 3 hours ago",
        "hooks.example/trellis/2 Failing since 31 Jan 2026, 09:30 UTC Forums: everything; Download categories: created, deleted",
        f"Idle {URL} Off by hand Groups: everything nothing sent yet",
        "Switched off The endpoint returned 410: it is gone.",
        "hooks.example/trellis/2 has been failing since 31 Jan 2026, 09:30 UTC .",
        "App was switched off by the service 3 hours ago . The endpoint returned 410: it is gone.",
    ):
        assert said in page
    assert find_secret(admin.get("/webhooks")) is None
    assert stored_rows(gate) == before


@pytest.mark.either_engine
def test_other_pages_call_each_by_the_name_of_its_own_page(admin: Visitor, gate: Gate, run: Run, clock: Clock) -> None:
    run("webhooks.create", url=URL, events=["*"])
    run("webhooks.create", url=URL, events=["*"], description="Search index")
    for number in (1, 2):
        update_webhook(gate, number, failing_since=clock.text)
    for path in ("", "/events", "/search?text=hooks.example"):
        said = page_text(admin.get(path))
        assert "hooks.example/trellis" in said, path
        assert "Search index" in said, path
        beside = re.sub(f"(Search index[^a-z]*|sends to ){URL}", "", said)  # in hits, and in alarms
        assert "https://hooks.example/trellis" not in beside, path


def test_the_overview_shows_those_that_do_not_get_through(admin: Visitor, gate: Gate, run: Run, clock: Clock) -> None:
    assert "Webhooks that need attention There are no webhooks." in page_text(admin.get(""))
    run("webhooks.create", url=URL, events=["*"], description="Search index")
    assert "The webhook is working." in page_text(admin.get(""))
    run("webhooks.create", url=URL, events=["*"], description="App")
    run("webhooks.create", url=URL, events=["*"], enabled=False, description="Switched off by hand")
    assert "All 3 webhooks are working." in page_text(admin.get(""))
    run("webhooks.disable", 2, because="Every attempt for a week has failed.")
    update_webhook(gate, 1, failing_since=clock.text)
    page = admin.get("")
    assert "2 webhooks are failing Search index Failing since 31 Jan 2026, 09:30 UTC App Switched off just now" in page_text(page)
    assert 'href="/admin/webhooks/1"' in page.text
    assert 'href="/admin/webhooks/2"' in page.text
    run("webhooks.update", 2, enabled=True)
    assert "1 webhook is failing Search index" in page_text(admin.get(""))


def test_the_overview_lists_a_few_and_leads_to_the_rest(admin: Visitor, gate: Gate, run: Run, clock: Clock) -> None:
    for number in range(1, 8):
        run("webhooks.create", url=URL, events=["*"], description=f"No. {number}")
        update_webhook(gate, number, failing_since=clock.text)
    page = page_text(admin.get(""))
    assert "7 webhooks are failing" in page
    assert "No. 5 Failing" in page
    assert "No. 6 Failing" not in page
    assert "All webhooks" in page


# --- making one ---------------------------------------------------------------------------------------------------


def test_a_webhook_is_made_and_its_secret_shown_once(admin: Visitor, events: Events, run: Run, gate: Gate) -> None:
    before = events()
    form = open_form(admin, events=["", "forum.created", "category.*", "category.created"])
    made = admin.post("/webhooks/new", form)
    assert made.status_code == 200
    assert made.headers["cache-control"] == "no-store"
    secret = find_secret(made)
    assert secret is not None
    assert "Verify a message" in page_text(made)
    (event,) = events()[len(before) :]
    assert (event["operation"], event["actor"]["name"]) == ("webhooks.create", "Mira Holm")
    assert (event["after"]["url"], event["after"]["events"]) == (URL, ["forum.created", "category.*"])
    again = admin.post("/webhooks/new", form)  # a reload
    assert again.status_code == 200
    assert "the secret has already been shown" in page_text(again)
    assert find_secret(again) is None
    assert len(events()) == len(before) + 1
    rows = DatabaseState(gate).rows()
    del rows["webhooks"]
    assert secret.removeprefix("whsec_") not in repr(rows)
    assert run("webhooks.list")["totalResults"] == 1
    assert find_secret(admin.get("/webhooks/1")) is None


def test_a_form_that_has_made_a_webhook_makes_no_other_by_itself(admin: Visitor, run: Run) -> None:
    form = open_form(admin)
    admin.post("/webhooks/new", form)
    other = admin.post("/webhooks/new", form | {"description": "Something else"})
    assert other.status_code == 409
    assert "was already sent" in page_text(other)
    assert 'value="Something else"' in other.text
    assert run("webhooks.list")["totalResults"] == 1


def test_every_event_can_be_ticked(admin: Visitor, gate: Gate, run: Run) -> None:
    page = admin.get("/webhooks/new")
    for pattern in event_patterns(gate.environment.event_types):
        assert f'name="events" value="{pattern}"' in page.text, pattern
    assert "later releases" in page_text(page)
    assert admin.post("/webhooks/new", open_form(admin, events=["", "*", "forum.created"])).status_code == 200
    assert run("webhooks.get", 1)["events"] == ["*"]


_FAULTS: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"url": ""}, "Address"),
    ({"url": "http://10.0.0.5/"}, "Address"),
    ({"url": "ftp://hooks.example/"}, "Address"),
    ({"url": HOSTILE}, "Address"),
    ({"events": [""]}, "Events: tick at least one box."),
    ({"events": ["", "forum.lost"]}, "there is no event 'forum.lost'"),
    ({"description": "x" * 501}, "Description"),
    ({"description": HOSTILE, "enabled": "perhaps"}, "Send messages"),
    ({"secret": "whsec_x"}, "no field 'secret'"),
    ({"cursor": "9"}, "no field 'cursor'"),
)


@pytest.mark.either_engine
def test_faults_stand_at_their_fields_and_nothing_is_made(admin: Visitor, gate: Gate) -> None:
    before, form = stored_rows(gate), open_form(admin)
    for values, said in _FAULTS:
        page = admin.post("/webhooks/new", form | values)
        assert page.status_code == 400, values
        assert said in page_text(page)
        assert 'role="alert"' in page.text
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert 'value="forum.*" checked' in page.text or "events" in values
        assert stored_rows(gate) == before


@pytest.mark.either_engine
@pytest.mark.parametrize("ticked", ["forum.*", "*"])
def test_a_fault_stands_at_its_field_whatever_is_ticked(admin: Visitor, ticked: str) -> None:
    page = admin.post("/webhooks/new", open_form(admin, url="ftp://hooks.example/", events=["", ticked]))
    assert page.status_code == 400
    assert re.search(r'<input[^>]* id="field-url"[^>]* aria-invalid="true"', page.text)
    assert 'id="field-url-fault"' in page.text


def test_making_one_asks_for_the_password_and_needs_the_token(admin: Visitor, gate: Gate, clock: Clock) -> None:
    form = open_form(admin)
    before = stored_rows(gate)
    assert admin.post("/webhooks/new", form, csrf="0" * 64).status_code == 409
    clock.move(minutes=20)
    assert "confirm-password" in admin.get("/webhooks/new").headers["location"]
    assert admin.post("/webhooks/new", form).status_code == 403
    assert stored_rows(gate) == before


def test_there_is_an_end_to_webhooks(admin: Visitor, run: Run, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (crud, index):
        monkeypatch.setattr(module, "MOST", 3)
    for _ in range(3):
        run("webhooks.create", url=URL, events=["*"])
    page = admin.get("/webhooks")
    assert "You have reached the maximum number of webhooks" in page_text(page)
    assert 'href="/admin/webhooks/new"' not in page.text
    before = stored_rows(gate)
    assert admin.post("/webhooks/new", open_form(admin)).status_code == 409
    assert stored_rows(gate) == before


@pytest.mark.either_engine
def test_what_is_wanted_in_words(gate: Gate) -> None:
    assert describe_events(["*", "forum.created"], gate.environment) == "All events, including future types"
    assert describe_events(["forum.moved", "forum.created"], gate.environment) == "Forums: created, moved"
    assert describe_events(["forum.*", "forum.created", "blog.deleted"], gate.environment) == "Forums: everything; Blogs: deleted"
    assert describe_events(["gallery.*"], gate.environment) == "gallery.*"
    assert {name for row in event_rows(gate.environment.kinds, gate.environment.event_types) for name, _ in row.types} == set(
        gate.environment.event_types
    )


def test_nobody_sees_them_without_signing_in(visitor: Any, run: Run) -> None:
    run("webhooks.create", url=URL, events=["*"])
    for path in (
        "/webhooks",
        "/webhooks/new",
        "/webhooks/1",
        "/webhooks/1/edit",
        "/webhooks/1/redeliver",
        "/deliveries",
        "/deliveries/1",
    ):
        assert visitor().get(path).status_code == 303, path
