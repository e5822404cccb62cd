"""What was sent to webhooks in the panel: searched, looked at, and sent again."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from tests.admin.conftest import PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import find_form
from tests.admin.webhooks.rows import URL, find_secret, insert_delivery, stored_rows, update_webhook
from tests.fixture_types import Clock, Events, Run
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.core.webhooks.secret import format_secret
from trellis.store.tables import deliveries
from trellis.store.webhooks import endpoints

Ago = Callable[..., str]


@pytest.fixture
def ago(clock: Clock) -> Ago:
    """Return a moment that lies back: `ago(hours=2)`."""
    return lambda **span: format_timestamp(clock.at - timedelta(**span))


@pytest.fixture(autouse=True)
def _hooks(run: Run) -> None:
    run("webhooks.create", url=URL, events=["*"], description="Search index")
    run("webhooks.create", url=URL, events=["*"], description="App")


def _listed(page: Any) -> list[int]:
    return [int(number) for number in re.findall(r'class="when"><a href="/admin/deliveries/(\d+)"', page.text)]


@pytest.mark.either_engine
def test_without_deliveries_the_list_says_so(admin: Visitor) -> None:
    page = admin.get("/deliveries")
    assert page.status_code == 200
    assert "Nothing has been sent yet" in page_text(page)


@pytest.mark.either_engine
def test_a_button_begins_with_a_capital_in_each_language(admin: Visitor, gate: Gate) -> None:
    insert_delivery(gate, {}, type="forum.created")
    assert "Copy the body" in page_text(admin.get("/deliveries/1"))
    admin.client.headers["accept-language"] = "de"
    assert "Den Body kopieren" in page_text(admin.get("/deliveries/1"))


@pytest.mark.either_engine
def test_why_an_attempt_failed_is_said_in_the_language_of_the_page(admin: Visitor, gate: Gate) -> None:
    for stored, shown in (
        ("There was no complete response within 15 seconds.", "Innerhalb von 15 Sekunden kam keine vollständige Antwort."),
        ("The connection failed: it took too long.", "Die Verbindung kam nicht zustande: Es hat zu lange gedauert."),
        ("The connection failed: No route to host", "Die Verbindung kam nicht zustande: No route to host"),
        ("The address leads to a socket of this machine.", "Die Adresse führt zu einem Socket dieser Maschine."),
        ("Something of before", "Something of before"),
    ):
        number = insert_delivery(gate, {"status": None, "error": stored}, type="forum.created", state="failed")
        for language, text in (("en", stored), ("de", shown)):
            for path in ("/deliveries", f"/deliveries/{number}"):
                assert text in page_text(admin.get(path, headers={"accept-language": language})), path


def test_a_row_tells_everything_at_a_glance(admin: Visitor, gate: Gate, clock: Clock) -> None:
    failed = {"status": None, "error": "The connection failed: refused.", "duration": 3, "answer": None}
    insert_delivery(
        gate,
        {"status": 503},
        failed,
        state="waiting",
        type="forum.created",
        due_at=format_timestamp(clock.at + timedelta(minutes=5)),
    )
    insert_delivery(gate, webhook_id=2, state="waiting", type="forum.moved")
    insert_delivery(gate, {"status": 500, "duration": 15_000}, state="failed", webhook_id=2, message="msg_two")
    page = page_text(admin.get("/deliveries"))
    for said in (
        "Trying again forum.created msg_0123456789abcdef Search index No response 2 attempts, last just now",
        "The connection failed: refused. Next in 5 minutes 3.0 ms",
        "Waiting forum.moved msg_0123456789abcdef App not sent yet",
        "Failed webhook.test msg_two App 500 just now 15.0 s",
    ):
        assert said in page


def test_each_filter_stands_in_the_address(admin: Visitor, gate: Gate, ago: Ago) -> None:
    insert_delivery(gate, {}, created_at=ago(hours=5))
    insert_delivery(gate, {}, webhook_id=2, created_at=ago(minutes=1))
    insert_delivery(gate, state="waiting")
    insert_delivery(gate, {}, state="failed", type="forum.created", created_at=ago(minutes=5))
    insert_delivery(gate, {}, state="failed", type="blog.deleted")
    insert_delivery(gate, {}, type="forum.created", seq=77)
    before = stored_rows(gate)
    for query, found in (
        ("", [6, 5, 4, 3, 2, 1]),
        ("webhook=2", [2]),
        ("webhook=99", []),
        ("state=waiting", [3]),
        ("state=failed", [5, 4]),
        ("state=failed&webhook=1&type=blog.deleted", [5]),
        ("type=forum.created", [6, 4]),
        ("event=77", [6]),
        ("event=77&state=failed", []),
        ("event=77&webhook=2", []),
        ("from=2026-01-31T09:27", [6, 5, 3, 2]),
        ("to=2026-01-31T09:27", [4, 1]),
        ("from=2026-01-31T08:00&to=2026-01-31T09:30", [4, 2]),
        ("webhook=1&from=2026-01-31T09:27&state=", [6, 5, 3]),
        ("before=4", [3, 2, 1]),
        ("from=0001-01-01&to=9999-12-31T23:59", [6, 5, 4, 3, 2, 1]),
        ("from=9999-12-31T23:59", []),
        ("to=0001-01-01", []),
    ):
        page = admin.get(f"/deliveries?{query}")
        assert page.status_code == 200, query
        assert _listed(page) == found, query
        if not found:
            assert "No matching deliveries" in page_text(page)
    assert stored_rows(gate) == before


@pytest.mark.either_engine
def test_filters_that_make_no_sense_are_said_and_nothing_breaks(admin: Visitor, gate: Gate) -> None:
    insert_delivery(gate, {})
    for query in ("webhook=x", "state=lost", "from=soon", "before=-1", "event=0", "colour=red", f"webhook={10**20}"):
        page = admin.get(f"/deliveries?{query}")
        assert page.status_code == 400, query
        assert 'role="alert"' in page.text, query


def test_pages_lead_to_older_ones_and_keep_the_filters(admin: Visitor, gate: Gate) -> None:
    for number in range(120):
        insert_delivery(gate, {}, webhook_id=1 + number % 2)
    seen, path = list[int](), "/deliveries?webhook=2"
    for _ in range(2):
        page = admin.get(path)
        seen += _listed(page)
        older = re.search(r'rel="next" href="/admin(/deliveries[^"]+)"', page.text)
        path = older[1].replace("&amp;", "&") if older else ""
        assert not path or "webhook=2" in path
    assert path == ""
    assert seen == [number for number in range(120, 0, -1) if number % 2 == 0]
    assert "This is the end of the log" in page_text(admin.get("/deliveries?before=1"))


def test_an_impatient_search_says_how_far_it_looked(admin: Visitor, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.store.webhooks.log._STRETCH", 5)
    monkeypatch.setattr("trellis.store.log_search.LONGEST", 0.0)
    for number in range(12):
        insert_delivery(gate, {}, type="forum.moved" if number else "forum.created")
    page = admin.get("/deliveries?type=forum.created")
    assert "Nothing found yet" in page_text(page)
    assert "stopped at delivery 7" in page_text(page)
    for _ in range(5):
        further = re.search(r'rel="next" href="/admin(/deliveries[^"]+)"', page.text)
        if further is None:
            break
        page = admin.get(further[1].replace("&amp;", "&"))
    assert _listed(page) == [1]


# --- one of them --------------------------------------------------------------------------------------------------


def test_a_delivery_shows_request_answer_and_attempts(
    admin: Visitor, gate: Gate, run: Run, events: Events, clock: Clock, ago: Ago
) -> None:
    run("forums.create", name="News <b>")
    seq = events()[-1]["seq"]
    insert_delivery(
        gate,
        {"at": ago(minutes=5), "status": 503, "duration": 250, "answer": "<h1>Down</h1>"},
        {"status": None, "duration": 15_000, "error": "There was no complete response within 15 seconds.", "answer": None},
        {"status": 204, "answer": ""},
        seq=seq,
        state="waiting",
        type="forum.created",
        due_at=format_timestamp(clock.at + timedelta(minutes=30)),
    )
    before = stored_rows(gate)
    page = admin.get("/deliveries/1")
    assert page.status_code == 200
    for said in (
        "Trying again forum.created",
        "Next attempt in 30 minutes",
        f"503 2026-01-31 09:25:00 UTC after 250 ms {URL}",
        "No response 2026-01-31 09:30:00 UTC after 15.0 s",
        "There was no complete response within 15 seconds.",
        "The response was empty.",
        "<h1>Down</h1>",
        "webhook-id: msg_0123456789abcdef webhook-timestamp: 1769851800 webhook-signature: v1,[hidden]",
        '"type": "forum.created"',
        '"name": "News <b>"',
    ):
        assert said in re.sub(r"\s+", " ", page_text(page).replace("<h1> Down", "<h1>Down")), said
    assert "<h1>Down" not in page.text
    assert f'href="/admin/events/{seq}"' in page.text
    assert f'href="/admin/deliveries?event={seq}"' in page.text
    assert stored_rows(gate) == before


@pytest.mark.either_engine
def test_no_page_shows_a_secret_or_a_signature(admin: Visitor, gate: Gate) -> None:
    insert_delivery(gate, {})
    with gate.store.reading() as tx:
        hook = endpoints.find(tx, 1)
    assert hook is not None
    secret = format_secret(hook.secret, None)
    for path in ("/webhooks", "/webhooks/1", "/webhooks/1/edit", "/deliveries", "/deliveries/1", "/webhooks/1/redeliver"):
        page = admin.get(path)
        assert find_secret(page) is None
        assert secret.removeprefix("whsec_") not in page.text
        assert not re.search(r"v1,[A-Za-z0-9+/]", page.text)


def test_one_whose_event_is_no_longer_kept_says_so(admin: Visitor, gate: Gate) -> None:
    insert_delivery(gate, {"status": 500}, seq=9_999, state="failed", type="forum.created")
    page = page_text(admin.get("/deliveries/1"))
    assert "has been purged" in page
    assert "Send it again" not in page


def test_one_about_what_a_role_may_not_read_says_so_and_can_be_sent_again(
    visitor: MakeVisitor, gate: Gate, run: Run, events: Events
) -> None:
    run("admins.create", name="Ada", login="ada", password=PASSWORD, mustChangePassword=False, role="key-manager")
    alarm = insert_delivery(gate, {"status": 500}, seq=events()[-1]["seq"], state="failed", type="alarm.new_administrator")
    manager = visitor()
    assert manager.sign_in("ada", PASSWORD).status_code == 303
    page = manager.get(f"/deliveries/{alarm}")
    assert "because your role does not let you read what it is about" in page_text(page)
    assert "purged" not in page_text(page)
    assert "/admin/events/" not in page.text
    sent = find_form(page, f"/deliveries/{alarm}/again").filled()
    assert manager.post(f"/deliveries/{alarm}/again", sent).status_code == 303
    assert run("deliveries.get", alarm)["state"] == "waiting"


@pytest.mark.either_engine
def test_a_very_long_body_is_cut(admin: Visitor, gate: Gate, run: Run, events: Events) -> None:
    run("forums.create", name="Long", description="<p>" + "word " * 19_000 + "</p>")
    insert_delivery(gate, {}, seq=events()[-1]["seq"])
    page = admin.get("/deliveries/1")
    assert "more characters" in page_text(page)
    assert len(page.text) < 100_000


@pytest.mark.parametrize("number", ["7", str(10**17)])
def test_one_that_is_not_there_is_said_to_be_so(admin: Visitor, gate: Gate, number: str) -> None:
    admin.get("/webhooks/1")
    before = stored_rows(gate)
    assert admin.get(f"/deliveries/{number}").status_code == 404
    assert admin.post(f"/deliveries/{number}/again").status_code == 404
    assert admin.get(f"/deliveries/{number}/again").status_code == 405
    assert stored_rows(gate) == before


# --- sending again ------------------------------------------------------------------------------------------------


def _states(gate: Gate) -> dict[int, str]:
    with gate.store.reading() as tx:
        return {row.id: row.state for row in tx.connection.execute(sa.select(deliveries.c.id, deliveries.c.state))}


def test_one_is_sent_again(admin: Visitor, gate: Gate, events: Events) -> None:
    for _ in range(2):
        insert_delivery(gate, {"status": 500}, state="failed")
    admin.get("/deliveries/1")
    before = events()
    answer = admin.post("/deliveries/1/again")
    assert answer.headers["location"] == "/admin/deliveries/1"
    (event,) = events()[len(before) :]
    assert (event["operation"], event["resourceId"], event["after"]["delivery"]) == ("webhooks.redeliver", 1, 1)
    assert _states(gate) == {1: "waiting", 2: "failed"}
    assert "The message is being sent again" in page_text(admin.get("/deliveries/1"))


def test_nothing_is_sent_again_to_one_that_is_off(admin: Visitor, gate: Gate, run: Run) -> None:
    insert_delivery(gate, {"status": 500}, state="failed")
    run("webhooks.update", 1, enabled=False)
    page = page_text(admin.get("/deliveries/1"))
    assert "Switch it on first" in page
    assert "Send it again" not in page
    before = stored_rows(gate)
    assert admin.post("/deliveries/1/again").status_code == 409
    assert admin.get("/webhooks/1/redeliver").status_code == 303
    assert admin.post("/webhooks/1/redeliver", {"failedSince": "2026-01-01"}).status_code == 409
    assert stored_rows(gate) == before


def test_all_that_failed_since_a_moment_is_counted_and_sent_again(admin: Visitor, gate: Gate, events: Events, ago: Ago) -> None:
    insert_delivery(gate, {"status": 500}, state="failed", attempted_at=ago(days=3))
    insert_delivery(gate, {"status": 500}, state="failed", attempted_at=ago(hours=3))
    insert_delivery(gate, {"status": 500}, state="waiting", attempted_at=ago(hours=2))
    insert_delivery(gate, {}, attempted_at=ago(hours=1))
    insert_delivery(gate, {"status": 500}, state="failed", webhook_id=2)
    before = stored_rows(gate)
    page = admin.get("/webhooks/1/redeliver")
    assert "2 messages to Search index have failed since 2026-01-30 09:30 UTC ." in page_text(page)
    assert "3 messages" in page_text(admin.get("/webhooks/1/redeliver?failedSince=2026-01-01T00:00"))
    assert "Nothing has failed since" in page_text(admin.get("/webhooks/1/redeliver?failedSince=2026-01-31T09:00"))
    assert stored_rows(gate) == before
    seen = events()
    admin.get("/webhooks/1/redeliver")
    answer = admin.post("/webhooks/1/redeliver", {"failedSince": "2026-01-30T09:30"})
    assert answer.headers["location"] == "/admin/deliveries?webhook=1"
    (event,) = events()[len(seen) :]
    assert (event["operation"], event["after"]["count"]) == ("webhooks.redeliver", 2)
    assert _states(gate) == {1: "failed", 2: "waiting", 3: "waiting", 4: "delivered", 5: "failed"}
    assert "2 messages are being sent again" in page_text(admin.get("/deliveries?webhook=1"))


def test_sending_again_begins_with_the_failure(admin: Visitor, gate: Gate, ago: Ago) -> None:
    update_webhook(gate, 1, failing_since=ago(days=2))
    assert 'value="2026-01-29T09:30"' in admin.get("/webhooks/1/redeliver").text


@pytest.mark.either_engine
def test_a_moment_that_makes_no_sense_sends_nothing(admin: Visitor, gate: Gate) -> None:
    insert_delivery(gate, {"status": 500}, state="failed")
    admin.get("/webhooks/1/redeliver")
    before = stored_rows(gate)
    for since in ("soon", "", "2026-13-01"):
        page = admin.post("/webhooks/1/redeliver", {"failedSince": since})
        assert page.status_code == 400, since
        assert 'role="alert"' in page.text, since
        assert admin.get(f"/webhooks/1/redeliver?failedSince={since or '+x'}").status_code == 400, since
    assert stored_rows(gate) == before


@pytest.mark.either_engine
def test_a_stale_form_sends_nothing(admin: Visitor, gate: Gate) -> None:
    insert_delivery(gate, {"status": 500}, state="failed")
    before = stored_rows(gate)
    stale = admin.post("/webhooks/1/redeliver", {"failedSince": "2026-01-01"}, csrf="0" * 64)
    assert stale.status_code == 409
    assert "check it and send it again" in page_text(stale)
    assert admin.post("/deliveries/1/again", csrf="0" * 64).status_code == 409
    assert stored_rows(gate) == before
