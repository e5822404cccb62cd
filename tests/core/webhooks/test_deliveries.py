"""The operations on what was sent, on both engines."""

from typing import Any, Final

import pytest

from tests.fixture_types import Clock, Run
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.store.webhooks import Attempt, Delivery, outbox

URL: Final = "https://hooks.example/trellis"


@pytest.fixture(autouse=True)
def _hook(run: Run) -> None:
    run("webhooks.create", url=URL, events=["*"])


def _sent(gate: Gate, seq: int | None, *attempts: Attempt, **values: Any) -> None:
    now = gate.now()
    told: dict[str, Any] = {
        "id": 0,
        "webhook_id": 1,
        "seq": seq,
        "message": "msg_1",
        "type": "forum.created",
        "state": "waiting",
        "scheduled_attempts": 1,
        "due_at": now,
        "created_at": now,
        "attempted_at": now,
    }

    def write(tx: Any) -> None:
        delivery = Delivery(**(told | values))
        delivery.id = outbox.insert(tx, delivery)
        for attempt in attempts:
            outbox.record_attempt(tx, delivery, attempt, delivery)

    gate.store.write(write).result(30)


def test_the_list_tells_of_attempts_and_one_of_its_content(gate: Gate, run: Run, clock: Clock) -> None:
    run("forums.create", name="News")
    seq = run("events.list")["next"]
    _sent(gate, seq, Attempt(clock.text, URL, 12, 503, None, "down"))
    listed = run("deliveries.list")
    told = {
        "id": 1,
        "webhookId": 1,
        "messageId": "msg_1",
        "type": "forum.created",
        "event": seq,
        "state": "waiting",
        "nextAttemptAt": clock.text,
        "createdAt": clock.text,
    }
    attempt = {"at": clock.text, "url": URL, "duration": 12, "status": 503, "error": None}
    assert listed == {"results": [told | {"attempts": [attempt]}], "next": None, "complete": True}
    one = run("deliveries.get", 1)
    assert one["attempts"] == [attempt | {"answer": "down"}]
    assert one["headers"] == {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(int(clock.at.timestamp())),
        "webhook-signature": "v1,[hidden]",
    }
    assert (one["request"]["type"], one["request"]["data"]["after"]["name"]) == ("forum.created", "News")


def test_what_is_not_sent_yet_has_no_headers_and_what_is_not_kept_no_content(gate: Gate, run: Run) -> None:
    _sent(gate, 9_999)
    one = run("deliveries.get", 1)
    assert (one["headers"], one["request"], one["attempts"]) == (None, None, [])


def test_one_that_is_not_there_is_refused(run: Run) -> None:
    with pytest.raises(Refused) as caught:
        run("deliveries.get", 1)
    assert (caught.value.message, caught.value.code) == ("INVALID_ID", "1T107/C")


def test_a_cursor_leads_on(gate: Gate, run: Run) -> None:
    for _ in range(5):
        _sent(gate, None)
    first = run("deliveries.list", limit=2)
    second = run("deliveries.list", limit=2, before=first["next"])
    last = run("deliveries.list", limit=2, before=second["next"])
    pages = [[one["id"] for one in page["results"]] for page in (first, second, last)]
    assert (pages, last["next"]) == ([[5, 4], [3, 2], [1]], None)


def test_the_overview_tells_which_do_not_get_through(gate: Gate, run: Run) -> None:
    assert (run("overview.get")["webhooks"], run("overview.get")["failing"]) == (1, {"count": 0, "webhooks": []})
    run("webhooks.update", 1, enabled=False)
    assert run("overview.get")["failing"]["count"] == 0
    run("webhooks.update", 1, enabled=True)
    run("webhooks.disable", 1, because="The endpoint returned 410: it is gone.")
    assert run("overview.get")["failing"] == {"count": 1, "webhooks": [run("webhooks.get", 1)]}
