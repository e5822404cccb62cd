"""Batches over REST: the problem document of the member that was refused, and the Idempotency-Key of the whole."""

from tests.api_client import ApiClient, read_refusal
from tests.database_state import DatabaseState
from tests.fixture_types import Run

NEWS = {"operation": "forums.create", "as": "news", "body": {"name": "News"}}


def test_a_refusal_carries_the_problem_document_of_the_operation(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        answer = api.post("/core/batch", {"operations": [NEWS, {"operation": "forums.create", "body": {"name": ""}}]})
    read_refusal(answer, 409, "BATCH_REFUSED")
    problem = answer.json()["problem"]
    assert (answer.json()["index"], problem["status"], problem["errorMessage"]) == (1, 400, "NO_TITLE")
    assert problem["errors"][0]["field"] == "name"
    assert problem["requestId"] == answer.json()["requestId"]


def test_one_operation_as_the_body_is_refused_with_where_operations_go(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        problem = read_refusal(api.post("/core/batch", NEWS), 400, "MISSING_VALUE")
    assert problem["errors"][0]["message"].startswith("operations is needed: The operations to run, in order: objects with")
    assert [error["field"] for error in problem["errors"]] == ["operations", "operation", "as", "body"]


def test_the_same_batch_sent_again_is_done_once(api: ApiClient, database: DatabaseState) -> None:
    headers = {"Idempotency-Key": "batch-1"}
    first = api.post("/core/batch", {"operations": [NEWS]}, headers=headers)
    with database.unchanged():
        again = api.post("/core/batch", {"operations": [NEWS]}, headers=headers)
    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    read_refusal(api.post("/core/batch", {"operations": [NEWS, NEWS]}, headers=headers), 422, "IDEMPOTENCY_KEY_REUSED")


def test_a_secret_of_a_batch_is_shown_once(api: ApiClient) -> None:
    wanted = [{"operation": "webhooks.create", "body": {"url": "https://hooks.example/a", "events": "*"}}]
    headers = {"Idempotency-Key": "batch-2"}
    first = api.post("/core/batch", {"operations": wanted}, headers=headers).json()
    again = api.post("/core/batch", {"operations": wanted}, headers=headers).json()
    assert first["results"][0]["result"]["secret"].startswith("whsec_")
    assert "secret" not in again["results"][0]["result"]


def test_a_batch_sent_again_is_answered_as_the_first_time(api: ApiClient, run: Run) -> None:
    one, other = (run("calendars.create", name=name)["id"] for name in ("Meetings", "Trips"))
    deleted = run("forums.delete", run("forums.create", name="News")["id"])
    assert deleted is None
    event = run("events.list", order="newest", limit=1)["results"][0]["seq"]
    steps = [
        {"operation": "events.restore", "id": event},
        {"operation": "calendars.order", "body": {"ids": [other, one]}},
        {"operation": "calendars.delete", "id": one},
    ]
    headers = {"Idempotency-Key": "batch-3"}
    first = api.post("/core/batch", {"operations": steps}, headers=headers).json()
    assert ["dryRun" in (step["result"] or {}) for step in first["results"]] == [False, False, False]
    assert api.post("/core/batch", {"operations": steps}, headers=headers).json() == first


def test_one_bad_member_is_named_in_the_list(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        answer = api.post("/core/batch", {"operations": [NEWS, {"operation": "forums.get", "id": "seven"}]})
    read_refusal(answer, 400, "INVALID_VALUE")
    assert "operations [1]" in answer.json()["detail"]
