"""Batches over REST: the problem document of the member that was refused, and the Idempotency-Key of the whole."""

from tests.api_client import ApiClient, read_refusal
from tests.database_state import DatabaseState

NEWS = {"operation": "forums.create", "as": "news", "body": {"name": "News"}}


def test_a_refusal_carries_the_problem_document_of_the_operation(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        answer = api.post("/core/batch", {"operations": [NEWS, {"operation": "forums.create", "body": {"name": ""}}]})
    read_refusal(answer, 409, "BATCH_REFUSED")
    problem = answer.json()["problem"]
    assert (answer.json()["index"], problem["status"], problem["errorMessage"]) == (1, 400, "NO_TITLE")
    assert problem["errors"][0]["field"] == "name"
    assert problem["requestId"] == answer.json()["requestId"]


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


def test_one_bad_member_is_named_in_the_list(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        answer = api.post("/core/batch", {"operations": [NEWS, {"operation": "forums.get", "id": "seven"}]})
    read_refusal(answer, 400, "INVALID_VALUE")
    assert "operations [1]" in answer.json()["detail"]
