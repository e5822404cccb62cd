"""Webhooks over REST: what is said there, and what is not."""

from tests.admin.webhooks.rows import update_webhook
from tests.agent_client import AgentClient
from tests.api_client import ApiClient, read_refusal
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, MakeKey, Run
from trellis.core.gate import Gate

PATH = "/core/webhooks"
BODY = {"url": "https://hooks.example/trellis", "events": ["forum.*"]}


def test_the_life_of_a_webhook(api: ApiClient) -> None:
    made = api.post(PATH, BODY)
    assert made.status_code == 201
    assert made.headers["location"].endswith("/api/core/webhooks/1")
    record = made.json()
    assert record.pop("secret").startswith("whsec_")
    got = api.get(f"{PATH}/1")
    assert got.json() == record
    assert api.get(PATH).json()["results"] == [record]
    changed = made
    for raw, state in (({"enabled": "0"}, "off"), ({"enabled": "1"}, "on"), ({"description": "Search"}, "on")):
        changed = api.post(f"{PATH}/1", raw, headers={"If-Match": changed.headers["etag"]})
        assert (changed.status_code, changed.json()["state"]) == (200, state)
    read_refusal(api.post(f"{PATH}/1", {"enabled": True}, headers={"If-Match": got.headers["etag"]}), 412, "PRECONDITION_FAILED")
    assert api.delete(f"{PATH}/1").json() is None
    read_refusal(api.get(f"{PATH}/1"), 404, "INVALID_ID")
    assert api.get(f"{PATH}/x").json()["errorCode"] == "1T107/4"


def test_an_old_secret_is_no_longer_told_of_when_it_has_expired(api: ApiClient, run: Run, clock: Clock) -> None:
    api.post(PATH, BODY)
    until = run("webhooks.rotate", 1, overlapHours=1)["oldSecretUntil"]
    for expected in (until, until, None):
        shown = (api.get(f"{PATH}/1").json(), *api.get(PATH).json()["results"])
        assert [one["oldSecretUntil"] for one in shown] == [expected] * 2
        clock.move(minutes=30)
    tag = api.get(f"{PATH}/1").headers["etag"]
    assert api.post(f"{PATH}/1", {"description": "Search"}, headers={"If-Match": tag}).status_code == 200


def test_delivery_is_no_change_that_if_match_refuses(api: ApiClient, gate: Gate, clock: Clock) -> None:
    api.post(PATH, BODY)
    agent = AgentClient(api)
    read = api.get(f"{PATH}/1").headers["etag"]
    told = agent.call("webhooks.get", {"id": 1})["_meta"]["trellis/etag"]
    assert read == f'"{told}"'
    update_webhook(gate, 1, attempted_at=gate.now(), failing_since=gate.now(), failures=1)
    again = api.get(f"{PATH}/1", headers={"If-None-Match": read})
    assert (again.status_code, again.json()["state"]) == (200, "failing")
    assert api.get(f"{PATH}/1", headers={"If-None-Match": again.headers["etag"]}).status_code == 304
    changed = api.post(f"{PATH}/1", {"description": "Search"}, headers={"If-Match": read})
    assert changed.status_code == 200
    for tag in (read, again.headers["etag"]):
        read_refusal(api.post(f"{PATH}/1", {"description": "X"}, headers={"If-Match": tag}), 412, "PRECONDITION_FAILED")
    update_webhook(gate, 1, attempted_at=gate.now(), failing_since=None, failures=0)
    step = {"operation": "webhooks.update", "id": 1, "body": {"events": ["*"]}, "ifMatch": changed.headers["etag"]}
    assert api.post("/core/batch", {"operations": [step]}).status_code == 200
    told = agent.call("webhooks.get", {"id": 1})["_meta"]["trellis/etag"]
    update_webhook(gate, 1, attempted_at=gate.now(), failing_since=gate.now(), failures=1)
    assert agent.value("webhooks.update", {"id": 1, "enabled": False}, meta={"trellis/ifMatch": told})["state"] == "off"
    assert agent.problem("webhooks.delete", {"id": 1}, meta={"trellis/ifMatch": told})["status"] == 412


def test_what_was_read_can_be_sent_back(api: ApiClient, database: DatabaseState) -> None:
    api.post(PATH, BODY)
    record = api.get(f"{PATH}/1").json()
    with database.unchanged():
        assert api.post(f"{PATH}/1", record).json() == record


def test_a_private_address_and_an_unknown_event_are_refused_by_code(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        refused = read_refusal(api.post(PATH, {"url": "http://10.0.0.5/", "events": "*"}), 400, "ADDRESS_NOT_ALLOWED")
        assert refused["errorCode"] == "1T107/1"
        refused = read_refusal(api.post(PATH, BODY | {"events": ["forum.changed"]}), 400, "UNKNOWN_EVENT")
        assert refused["errorCode"] == "1T107/2"


def test_a_replayed_create_shows_the_secret_no_second_time(api: ApiClient) -> None:
    first, again = (api.post(PATH, BODY, headers={"Idempotency-Key": "one"}) for _ in range(2))
    assert "secret" in first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json() == {name: value for name, value in first.json().items() if name != "secret"}


def test_an_event_tells_the_idempotency_key_of_its_request(api: ApiClient, run: Run) -> None:
    api.post("/forums/forums", {"name": "News"}, headers={"Idempotency-Key": "mine-1", "X-Request-Id": "r-1"})
    api.post("/forums/forums", {"name": "News"}, headers={"Idempotency-Key": api.key})
    first, second = run("events.list", resource="forums")["results"]
    assert (first["idempotencyKey"], first["requestId"]) == ("mine-1", "r-1")
    assert second["idempotencyKey"].endswith("[hidden]")


def test_the_upkeep_is_not_served(api: ApiClient, key: MakeKey) -> None:
    api.post(PATH, BODY)
    for path in ("rotate", "test", "redeliver", "deliveries"):
        read_refusal(api.post(f"{PATH}/1/{path}", {}), 404, "NO_ENDPOINT")
