"""The feed and undo over REST: who may, what is answered, and what is refused."""

import threading
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.api_client import ApiClient, read_field_errors, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, MakeKey, Run
from trellis.core.actor import Actor
from trellis.core.events.event import show_event
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.housekeeping import Purges
from trellis.store import snapshots
from trellis.store.events import log

FEED = "/core/events"


def newest(api: ApiClient) -> int:
    return int(api.get(f"{FEED}?order=newest&limit=1").json()["results"][0]["seq"])


# --- the feed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_a_filter_that_takes_long_does_not_hold_the_event_loop(
    api: ApiClient, gate: Gate, run: Run, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    where = list[bool]()

    def note_thread(*given: Any) -> Any:
        where.append(threading.current_thread() is threading.main_thread())
        return show_event(*given)

    monkeypatch.setattr("trellis.core.events.feed.show_event", note_thread)
    monkeypatch.setattr("trellis.store.engine.store.BRIEFLY", seconds)
    monkeypatch.setattr("trellis.store.sqlite._STEPS", 100)  # instead of hundreds of thousands of events
    for number in range(20):
        run("calendars.create", name=f"Day {number}")
    gate.store.close_reader()  # the next one counts these steps
    (found,) = api.get(f"{FEED}?resourceId=20&actor=terminal").json()["results"]
    assert found["after"]["name"] == "Day 19"
    assert where == [gate.store.reads_inline and seconds > 0]


def test_following_the_next_link_leads_through_every_event_once(api: ApiClient, community: Community) -> None:
    seen, path = [], f"{FEED}?limit=4"
    while path:
        answer = api.get(path)
        assert answer.status_code == 200
        seen += [event["seq"] for event in answer.json()["results"]]
        assert bool(answer.links) == answer.json()["more"]
        link = urlsplit(answer.links["next"]["url"]) if answer.links else None
        path = f"{link.path.removeprefix('/api')}?{link.query}" if link else ""
    assert seen == list(range(1, newest(api) + 1))


def test_an_unchanged_feed_is_304(api: ApiClient, community: Community) -> None:
    first = api.get(f"{FEED}?after=5")
    again = api.get(f"{FEED}?after=5", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    api.post("/forums/forums", {"name": "Polls"})
    changed = api.get(f"{FEED}?after=5", headers={"If-None-Match": first.headers["etag"]})
    assert changed.json()["results"][-1]["type"] == "forum.created"


def test_an_event_over_rest_has_who_why_and_in_which_request(api: ApiClient) -> None:
    api.post("/calendar/calendar", {"name": "Trips"}, headers={"X-Request-Id": "r-1", "X-Audit-Log-Reason": "Summer"})
    (event,) = api.get(f"{FEED}?operation=calendars.create").json()["results"]
    assert (event["requestId"], event["reason"], event["actor"]["type"], event["undoes"]) == ("r-1", "Summer", "key", None)
    assert event["after"] == api.get(f"/calendar/calendar/{event['resourceId']}").json()


def test_a_cursor_behind_which_events_are_purged_is_410(api: ApiClient, gate: Gate, community: Community, clock: Clock) -> None:
    clock.move(days=91)
    gate.store.write(lambda tx: log.purge(tx, gate.ago(timedelta(days=90)))).result(30)
    api.post("/forums/forums", {"name": "Polls"})
    document = read_refusal(api.get(f"{FEED}?after=3"), 410, "NO_LONGER_KEPT")
    assert (document["oldest"], document["newest"]) == (newest(api), newest(api))
    assert api.get(FEED).json()["oldest"] == newest(api)
    assert read_field_errors(api.get(f"{FEED}?after=9999")) == {"after": "INVALID_VALUE"}


def test_the_feed_needs_its_grant(api: ApiClient, key: MakeKey) -> None:
    document = read_refusal(api.get(FEED, key=key("forums.*")), 403, "NO_PERMISSION")
    assert document["missingOperation"] == "events.list"
    assert api.get(FEED, key=key("events.list")).status_code == 200


# --- undo ---------------------------------------------------------------------------------------------------------


def test_a_deleted_branch_comes_back_with_what_every_get_had_answered(api: ApiClient, community: Community) -> None:
    forums = (community.news, community.releases, community.betas, community.interviews, community.help)
    before = {forum: api.get(f"/forums/forums/{forum}") for forum in forums}
    assert api.delete(f"/forums/forums/{community.news}?deleteChildrenOrMove=-1").status_code == 200
    answer = api.post(f"{FEED}/{newest(api)}/restore")
    assert answer.status_code == 200, answer.text
    assert answer.json()["record"] == before[community.news].json()
    for forum, was in before.items():
        now = api.get(f"/forums/forums/{forum}")
        assert (now.content, now.headers["etag"]) == (was.content, was.headers["etag"])


def test_the_grant_is_that_of_what_the_event_is_about(
    api: ApiClient, key: MakeKey, community: Community, database: DatabaseState
) -> None:
    api.delete(f"/calendar/calendar/{community.meetups}")
    path = f"{FEED}/{newest(api)}/restore"
    other, reader = key(["forums.*", "events.list"]), key(["events.list", "calendars.delete"])
    with database.unchanged():
        document = read_refusal(api.post(path, key=other), 403, "NO_PERMISSION")
        assert document["missingOperation"] == "calendars.restore"
        for unknown in (path, f"{FEED}/999/restore", f"{FEED}/x/restore"):
            document = read_refusal(api.post(unknown, key=reader), 403, "NO_PERMISSION")
            assert document["missingOperation"] == "*.restore", "nothing is told about the event"
    assert api.post(path, key=key("calendars.restore")).status_code == 200
    (event,) = api.get(f"{FEED}?operation=calendars.restore").json()["results"]
    assert event["type"] == "calendar.restored"


def test_the_grant_is_judged_before_the_body(api: ApiClient, key: MakeKey, community: Community) -> None:
    api.delete(f"/calendar/calendar/{community.meetups}")
    path = f"{FEED}/{newest(api)}/restore"
    broken = {"content": b"{", "headers": {"Content-Type": "application/json"}}
    read_refusal(api("POST", path, key=key(["forums.*", "events.list"]), **broken), 403, "NO_PERMISSION")
    read_refusal(api("POST", path, key=key("forums.*"), **broken), 404, "INVALID_ID")
    read_refusal(api("POST", path, **broken), 400, "MALFORMED_REQUEST")


def test_a_key_that_may_undo_one_thing_learns_nothing_of_other_events(
    api: ApiClient, gate: Gate, key: MakeKey, community: Community, run: Run, database: DatabaseState
) -> None:
    api.delete(f"/calendar/calendar/{community.meetups}")
    run("webhooks.create", url="https://hooks.example/", events=["*"])
    gate.store.write(lambda tx: tx.raw.execute("DELETE FROM events WHERE seq < 4")).result(60)
    everything, last = {event["seq"]: event["resource"] for event in run("events.list", limit=1000)["results"]}, newest(api)
    others = [number for number, resource in everything.items() if resource != "forums"]
    assert {everything[number] for number in others} >= {"keys", "blogs", "calendars", "webhooks"}
    text = key("forums.restore", name="Undoes forums")
    with database.unchanged():
        answers = {}
        for number in (1, 3, *others, last + 1, last + 50, 999_999):
            for path in (f"{FEED}/{number}/restore", f"{FEED}/{number}/restore?dryRun=1"):
                answer = api.post(path, key=text, headers={"X-Request-Id": "same"})
                read_refusal(answer, 404, "INVALID_ID")
                answers[answer.text.replace(f"event {number} ", "event N ")] = path
        assert len(answers) == 1, answers
    with pytest.raises(Refused, match="INVALID_ID"):
        gate.run(Call("forums.restore", Actor("key", 9, "x", frozenset({"forums.restore"})), target=others[-1]))
    api.post(f"/forums/forums/{community.news}", {"name": "Newer"})
    assert api.post(f"{FEED}/{newest(api)}/restore", key=text).status_code == 200


def test_a_key_that_may_list_events_is_told_why_one_cannot_be_undone(
    api: ApiClient, gate: Gate, key: MakeKey, community: Community
) -> None:
    api.delete(f"/calendar/calendar/{community.meetups}")
    deleted = newest(api)
    text = key(["forums.restore", "events.list"], name="Told")
    gate.store.write(lambda tx: tx.raw.execute("DELETE FROM events WHERE seq < 4")).result(60)
    read_refusal(api.post(f"{FEED}/2/restore", key=text), 410, "NO_LONGER_KEPT")
    read_refusal(api.post(f"{FEED}/{deleted + 1}/restore", key=text), 409, "NOT_RESTORABLE")
    document = read_refusal(api.post(f"{FEED}/{deleted}/restore", key=text), 403, "NO_PERMISSION")
    assert document["missingOperation"] == "calendars.restore"


def test_an_event_that_there_is_not_is_404(api: ApiClient) -> None:
    for number in ("999", "0", "-1", "x", "1.5", 2**63):
        document = read_refusal(api.post(f"{FEED}/{number}/restore"), 404, "INVALID_ID")
        assert document["errorCode"] == "1T106/5"
        assert document["detail"].startswith("There is no event")


def test_the_path_answers_post_alone(api: ApiClient, community: Community) -> None:
    assert api("OPTIONS", f"{FEED}/1/restore", key=None).headers["allow"] == "OPTIONS, POST"
    read_refusal(api.get(f"{FEED}/1/restore"), 405, "BAD_METHOD")
    read_refusal(api.get(f"{FEED}/1"), 404, "NO_ENDPOINT")
    read_refusal(api.post(f"{FEED}/1/undo"), 404, "NO_ENDPOINT")
    read_refusal(api.post("/forums/forums/1/restore"), 404, "NO_ENDPOINT")
    assert api("OPTIONS", FEED, key=None).headers["allow"] == "GET, HEAD, OPTIONS"


def test_a_dry_run_keeps_nothing(api: ApiClient, community: Community, database: DatabaseState) -> None:
    api.delete(f"/forums/forums/{community.news}?deleteChildrenOrMove={community.help}")
    seq = newest(api)
    with database.unchanged():
        dry = api.post(f"{FEED}/{seq}/restore", {"dryRun": True})
    assert (dry.status_code, dry.headers["dry-run"], dry.json()["dryRun"]) == (200, "true", True)
    assert dry.json()["moved"]["ids"] == [community.releases, community.interviews]
    assert api.post(f"{FEED}/{seq}/restore").json() == {name: value for name, value in dry.json().items() if name != "dryRun"}


def test_each_refusal_has_its_status_and_its_facts(
    api: ApiClient, community: Community, gate: Gate, run: Run, clock: Clock
) -> None:
    api.post(f"/forums/forums/{community.betas}", {"name": "Alphas"})
    update = newest(api)
    api.post(f"/forums/forums/{community.betas}", {"name": "Gammas", "password": "sesame"})
    document = read_refusal(api.post(f"{FEED}/{update}/restore"), 409, "CHANGED_SINCE")
    assert document["differences"] == [{"field": "name", "then": "Alphas", "now": "Gammas"}, {"field": "password"}]
    assert "argon2" not in str(document)
    read_refusal(api.post(f"{FEED}/1/restore"), 409, "NOT_RESTORABLE")
    api.delete(f"/forums/forums/{community.betas}")
    deleted = newest(api)
    api.delete(f"/forums/forums/{community.releases}")
    assert read_refusal(api.post(f"{FEED}/{deleted}/restore"), 409, "PARENT_NEEDED")["parentId"] == community.releases
    assert read_field_errors(api.post(f"{FEED}/{deleted}/restore", {"parentId": 999})) == {"parentId": "INVALID_PARENT"}
    assert read_field_errors(api.post(f"{FEED}/{deleted}/restore", {"to": 1})) == {"to": "UNKNOWN_PARAMETER"}
    assert api.post(f"{FEED}/{deleted}/restore?parentId=root").json()["record"]["path"] == "Gammas"
    assert read_refusal(api.post(f"{FEED}/{deleted}/restore"), 409, "NOT_RESTORABLE")["undoneBy"] == newest(api)
    clock.move(days=31)
    gate.store.write(lambda tx: snapshots.purge(tx, gate.ago(timedelta(days=30)))).result(30)
    read_refusal(api.post(f"{FEED}/{update}/restore"), 410, "NO_LONGER_KEPT")


def test_if_match_is_judged_where_there_is_a_record(api: ApiClient, community: Community) -> None:
    read = api.get(f"/forums/forums/{community.help}").headers["etag"]
    changed = api.post(f"/forums/forums/{community.help}", {"name": "Questions"}).headers["etag"]
    path = f"{FEED}/{newest(api)}/restore"
    read_refusal(api.post(path, headers={"If-Match": read}), 412, "PRECONDITION_FAILED")
    assert api.post(path, headers={"If-Match": changed}).status_code == 200


def test_no_answer_ever_shows_what_snapshots_hold(api: ApiClient, community: Community) -> None:
    api.post(f"/forums/forums/{community.help}", {"password": "sesame"})
    api.delete(f"/forums/forums/{community.help}")
    restored = api.post(f"{FEED}/{newest(api)}/restore")
    for answer in (restored, api.get(f"{FEED}?limit=1000"), api.get(f"/forums/forums/{community.help}")):
        assert "argon2" not in answer.text
        assert "sesame" not in answer.text
    assert restored.json()["record"]["passwordProtected"] is True


def test_the_bookkeeper_purges_what_is_older_than_it_is_kept(
    make_api: MakeApiClient, gate: Gate, run: Run, community: Community, clock: Clock
) -> None:
    api = make_api(keep_events=20, keep_snapshots=10)
    purges = Purges(api.application.gate, api.application.settings)
    run("forums.update", community.help, name="Questions")
    api.do(purges.run(trusting=True))
    assert run("check.list")["kept"]["snapshots"]["count"] == 1
    clock.move(days=11)
    api.do(purges.run(trusting=True))
    kept = run("check.list")["kept"]
    assert (kept["snapshots"]["count"], kept["events"]["count"], kept["snapshots"]["purged"]) == (0, newest(api), 1)
    clock.move(days=10)
    run("forums.update", community.help, name="Help")
    api.do(purges.run(trusting=True))
    kept = run("check.list")["kept"]
    assert (kept["snapshots"]["count"], kept["events"]["count"]) == (1, 1)
    assert kept["events"]["purged"] == newest(api) - 1
    assert run("check.list")["problems"] == []


def test_no_key_undoes_a_change_of_a_key(api: ApiClient, run: Run) -> None:
    run("keys.update", 1, name="Renamed")
    seq = run("events.list", order="newest", limit=1)["results"][0]["seq"]
    answer = api.post(f"/core/events/{seq}/restore")
    assert (answer.status_code, answer.json()["errorMessage"]) == (409, "NOT_RESTORABLE")
    assert "only changes of nodes can be undone" in answer.json()["detail"]
