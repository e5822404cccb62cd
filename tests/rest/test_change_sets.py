"""Change sets over REST: the header that names one, the headers that tell of events, and undoing all of it."""

from tests.api_client import ApiClient, read_refusal
from tests.database_state import DatabaseState
from trellis.refusals import REFUSALS


def test_every_write_tells_its_event_and_its_change_set(api: ApiClient, database: DatabaseState) -> None:
    plain = api.post("/forums/forums", {"name": "A"})
    named = api.post("/forums/forums", {"name": "B"}, headers={"Change-Set": "night"})
    again = api.post("/forums/forums/1", {"name": "C"}, headers={"Change-Set": "night"})
    first, second, third = database.events()[-3:]
    assert [answer.headers["event"] for answer in (plain, named, again)] == [str(one["seq"]) for one in (first, second, third)]
    assert "change-set-id" not in plain.headers
    assert named.headers["change-set-id"] == again.headers["change-set-id"] == str(second["changeSet"])
    unchanged = api.post("/forums/forums/1", {"name": "C"}, headers={"Change-Set": "night"})
    assert "event" not in unchanged.headers


def test_a_change_set_is_read_and_undone(api: ApiClient) -> None:
    headers = {"Change-Set": "night", "X-Request-Id": "r-1", "X-Audit-Log-Reason": "Night run"}
    number = api.post("/forums/forums", {"name": "A"}, headers=headers).headers["change-set-id"]
    api.post("/forums/forums", {"name": "Other"})
    for query in ({"changeSet": number}, {"requestId": "r-1"}, {"reason": "Night run"}):
        found = api.get("/core/events", params=query).json()["results"]
        assert [event["after"]["name"] for event in found] == ["A"], query
    assert api.post(f"/core/changesets/{number}/restore", {}).json()["undoneCount"] == 1
    assert [one["name"] for one in api.get("/forums/forums").json()["results"]] == ["Other"]
    read_refusal(api.post("/core/changesets/999/restore", {}), 404, "INVALID_ID")


def test_events_are_found_by_who_made_them(api: ApiClient, database: DatabaseState) -> None:
    api.post("/forums/forums", {"name": "A"})
    actor = database.events()[-1]["actor"]
    for name in (f"{actor['type']}:{actor['id']}", actor["type"]):
        found = api.get("/core/events", params={"actor": name}).json()["results"]
        assert [event["after"]["name"] for event in found] == ["A"]
    others = api.get("/core/events", params={"actor": "terminal"}).json()["results"]
    assert [event["operation"] for event in others] == ["keys.create"]
    assert api.get("/core/events", params={"actor": "service"}).json()["results"] == []
    assert api.get("/core/events", params={"actor": "key:999"}).json()["results"] == []
    for wrong in ("keys", "terminal:1", "key:", "key:0", "nobody:1", "key:x", "key:007", "key:+7", "key: 7", "key:٧"):  # noqa: RUF001
        read_refusal(api.get("/core/events", params={"actor": wrong}), 400, "INVALID_VALUE")


def test_a_name_that_is_none_is_refused(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        for wrong in ("", "a b", "x" * 65):
            read_refusal(api.post("/forums/forums", {"name": "A"}, headers={"Change-Set": wrong}), 400, "INVALID_HEADER")
    assert "`Change-Set`" in REFUSALS["INVALID_HEADER"].when
