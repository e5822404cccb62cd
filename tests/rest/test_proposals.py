"""Proposals over REST: the answer 202, what goes with it, and what a caller asks later."""

from dataclasses import replace

import pytest

from tests.api_client import BASE_URL, ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from trellis.core.gate import Gate

PROPOSED = ("forums.create", "forums.update", "forums.delete")


@pytest.fixture
def agent(key: MakeKey) -> str:
    """A key that may read forums and propose to change them."""
    bounds = {name: {"level": "propose"} for name in PROPOSED}
    return key([*PROPOSED, "forums.get", "forums.list"], name="Agent", bounds=bounds)


def find_agent(run: Run) -> int:
    return int(run("keys.list", search="Agent")["results"][0]["id"])


def test_a_call_is_accepted_and_its_proposal_is_where_it_says(api: ApiClient, agent: str, run: Run) -> None:
    news = run("forums.create", name="News")["id"]
    headers = {"X-Audit-Log-Reason": "Empty.", "X-Request-Id": "agent-1"}
    answer = api.delete(f"/forums/forums/{news}", key=agent, headers=headers)
    assert answer.status_code == 202
    proposal = answer.json()
    assert answer.headers["location"] == f"{BASE_URL}/api/core/proposals/{proposal['id']}"
    assert "dry-run" not in answer.headers
    assert api.get(f"/forums/forums/{news}", key=agent).headers["etag"] == proposal["etag"]
    found = api.get(f"/core/proposals/{proposal['id']}", key=agent)
    assert (found.json(), found.headers["etag"]) == (proposal, answer.headers["etag"])
    assert (proposal["reason"], proposal["plan"]["deleted"]) == ("Empty.", {"count": 1, "ids": [news]})
    created = run("events.list", order="newest", limit=1)["results"][0]
    assert (created["seq"], created["requestId"]) == (int(answer.headers["event"]), "agent-1")
    assert proposal["task"] == {
        "id": proposal["task"]["id"],
        "status": "pending",
        "status_endpoint": f"/api/core/proposals/{proposal['id']}",
        "expires_at": proposal["expiresAt"],
    }
    assert len(proposal["task"]["id"]) > 22


def test_where_the_service_is_known_so_is_where_to_ask(make_api: MakeApiClient, gate: Gate, agent: str) -> None:
    gate.calls.environment = replace(gate.environment, public_url="https://api.example")
    made = make_api().post("/forums/forums", {"name": "News"}, key=agent).json()
    assert made["task"]["status_endpoint"] == f"https://api.example/api/core/proposals/{made['id']}"


def test_it_is_approved_withdrawn_and_rejected_over_rest(api: ApiClient, agent: str, key: MakeKey) -> None:
    reviewer = key(["proposals.approve", "proposals.reject"], name="Reviewer")
    for name in ("One", "Two", "Three"):
        assert api.post("/forums/forums", {"name": name}, key=agent).status_code == 202
    approved = api.post("/core/proposals/1/approve", {"reason": "Fine."}, key=reviewer, headers={"Idempotency-Key": "a"})
    assert approved.status_code == 200
    assert approved.json()["result"]["name"] == "One"
    again = api.post("/core/proposals/1/approve", {"reason": "Fine."}, key=reviewer, headers={"Idempotency-Key": "a"})
    assert (again.json(), again.headers["idempotent-replayed"]) == (approved.json(), "true")
    read_refusal(api.post("/core/proposals/2/reject", {}, key=reviewer), 400, "MISSING_VALUE")
    assert api.post("/core/proposals/2/reject", {"reason": "No."}, key=reviewer).json()["state"] == "rejected"
    assert api.post("/core/proposals/3/withdraw", key=agent).json()["state"] == "withdrawn"
    states = [one["state"] for one in api.get("/core/proposals", key=agent).json()["results"]]
    assert states == ["withdrawn", "rejected", "approved"]
    assert api.get("/core/proposals?state=approved&perPage=1", key=agent).json()["totalResults"] == 1
    proposer = approved.json()["proposer"]["id"]
    assert [api.get(f"/core/proposals?keyId={one}").json()["totalResults"] for one in (proposer, proposer + 1)] == [3, 0]
    assert api.get("/forums/forums?search=One", key=agent).json()["totalResults"] == 1


def test_what_is_decided_on_is_what_was_read(api: ApiClient, agent: str, database: DatabaseState) -> None:
    api.post("/forums/forums", {"name": "News"}, key=agent)
    tag = api.get("/core/proposals/1").headers["etag"]
    with database.unchanged():
        for verb in ("approve", "reject", "withdraw"):
            refused = api.post(f"/core/proposals/1/{verb}", {"reason": "?"}, headers={"If-Match": '"other"'})
            read_refusal(refused, 412, "PRECONDITION_FAILED")
    assert api.post("/core/proposals/1/approve", headers={"If-Match": tag}).status_code == 200


def test_a_refusal_tells_what_has_changed_and_why_it_was_refused(
    api: ApiClient, agent: str, run: Run, database: DatabaseState
) -> None:
    news = run("forums.create", name="News")["id"]
    api.delete(f"/forums/forums/{news}", key=agent)
    run("forums.update", news, name="Bulletin")
    with database.unchanged():
        told = read_refusal(api.post("/core/proposals/1/approve"), 409, "PROPOSAL_OUTDATED")
    assert [one["operation"] for one in told["changes"]] == ["forums.update"]
    assert {"resource": "forums", "id": news, "field": "name", "then": "News", "now": "Bulletin"} in told["differences"]
    run("keys.revoke", find_agent(run))
    with database.unchanged():
        told = read_refusal(api.post("/core/proposals/1/approve"), 409, "PROPOSAL_REFUSED")
    assert (told["problem"]["status"], told["problem"]["errorMessage"]) == (401, "INVALID_API_KEY")
    assert "revoked" in told["problem"]["detail"]


def test_the_first_answer_stays_the_answer_to_an_idempotency_key(api: ApiClient, agent: str, run: Run) -> None:
    headers = {"Idempotency-Key": "once"}
    first = api.post("/forums/forums", {"name": "News"}, key=agent, headers=headers)
    run("keys.update", find_agent(run), bounds={})
    again = api.post("/forums/forums", {"name": "News"}, key=agent, headers=headers)
    assert (again.status_code, again.json(), again.headers["location"]) == (202, first.json(), first.headers["location"])
    assert again.headers["idempotent-replayed"] == "true"
    other = api.post("/forums/forums", {"name": "More"}, key=agent, headers=headers)
    read_refusal(other, 422, "IDEMPOTENCY_KEY_REUSED")
    assert api.post("/forums/forums", {"name": "More"}, key=agent).status_code == 201


def test_an_answer_of_before_stays_what_it_was(api: ApiClient, agent: str, run: Run) -> None:
    headers = {"Idempotency-Key": "once"}
    run("keys.update", find_agent(run), bounds={})
    first = api.post("/forums/forums", {"name": "News"}, key=agent, headers=headers)
    run("keys.update", find_agent(run), bounds={"forums.create": {"level": "propose"}})
    again = api.post("/forums/forums", {"name": "News"}, key=agent, headers=headers)
    assert (again.status_code, again.json(), again.headers["location"]) == (201, first.json(), first.headers["location"])


def test_a_key_with_another_dialect_gets_the_proposal_as_it_is(api: ApiClient, key: MakeKey, run: Run) -> None:
    news = run("forums.create", name="News")["id"]
    bounds = {name: {"level": "propose"} for name in PROPOSED}
    old = key(PROPOSED, name="An old client", dialect="invision", bounds=bounds)
    answer = api.post(f"/forums/forums/{news}", {"title": "Bulletin"}, key=old)
    assert (answer.status_code, answer.json()["state"], answer.json()["input"]) == (202, "open", {"name": "Bulletin"})
    api.post(f"/core/proposals/{answer.json()['id']}/approve")
    assert run("forums.get", news)["name"] == "Bulletin"


def test_proposals_are_refused_beyond_the_limit(api: ApiClient, gate: Gate, agent: str, run: Run, database: DatabaseState) -> None:
    """Each of them clearly, and nothing is done; here five may be."""
    gate.calls.environment = replace(gate.environment, proposals_per_key=5)
    answers = [api.post("/forums/forums", {"name": f"Forum {number}"}, key=agent) for number in range(20)]
    assert [answer.status_code for answer in answers].count(202) == 5
    for refused in answers[5:]:
        assert read_refusal(refused, 409, "TOO_MANY_PROPOSALS")["limit"] == 5
    assert run("forums.list")["totalResults"] == 0
    assert len(database.rows()["proposals"]) == 5


def test_the_reference_tells_of_202_wherever_a_call_can_be_proposed(api: ApiClient, gate: Gate) -> None:
    document = api.get("/openapi.json", key=None).json()
    told = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if isinstance(operation, dict) and "202" in operation.get("responses", ())
    }
    served = {one.name for one in gate.catalogue.values() if one.path is not None and one.is_proposable}
    assert told == served
    assert "schema" in str(document["components"]["responses"]["Accepted"]["content"])
