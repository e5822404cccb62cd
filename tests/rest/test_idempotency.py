"""Idempotency-Key: a create that is sent again answers what it answered first, and makes nothing twice."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tests.api_client import ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, MakeKey
from tests.lost_commits import lost_commits
from tests.service_process import Service
from trellis.asgi import Application
from trellis.compose import compose
from trellis.core.gate import Gate
from trellis.http.api.headers import idempotency_token
from trellis.settings import Settings
from trellis.store.engine import Transaction
from trellis.store.tables import idempotent_responses

FORUMS = "/forums/forums"
BODY = {"name": "Once", "permissions": {"view": "*", "attachments": []}, "description": "<p>Ä</p>"}


def token(text: str) -> dict[str, str]:
    return {"Idempotency-Key": text}


def same(
    first: httpx.Response, again: httpx.Response, told: tuple[str, ...] = ("location", "etag", "event", "content-type")
) -> bool:
    """Return whether an answer is the first one, byte for byte, and says so."""
    assert first.status_code == 201, first.text
    assert "idempotent-replayed" not in first.headers
    return (
        (again.status_code, again.content) == (201, first.content)
        and again.headers.get("idempotent-replayed") == "true"
        and [again.headers[name] for name in told] == [first.headers[name] for name in told]
    )


@pytest.fixture
def other_worker(settings: Settings, clock: Clock, api: ApiClient) -> Iterator[ApiClient]:
    """Another worker on the same database, or this one after a restart."""
    gate = compose(settings, clock=clock)
    other = ApiClient(Application(settings, gate), api.key)
    yield other
    other.close()
    gate.store.close()


def test_a_create_sent_again_answers_the_same_bytes_and_makes_nothing(
    api: ApiClient, community: Community, database: DatabaseState, clock: Clock
) -> None:
    with database.new_events() as new_events:
        first = api.post(FORUMS, BODY, headers=token("a-1"))
    assert len(new_events()) == 1
    clock.move(hours=23)
    with database.unchanged():
        assert same(first, api.post(FORUMS, BODY, headers=token("a-1")))
        assert same(first, api.post(f"{FORUMS}/", dict(reversed(BODY.items())), headers=token("a-1"))), (
            "the order of members means nothing"
        )


def test_the_answer_survives_a_restart_and_is_known_to_every_worker(
    api: ApiClient, other_worker: ApiClient, database: DatabaseState
) -> None:
    first = api.post(FORUMS, BODY, headers=token("a-1"))
    with database.unchanged():
        assert same(first, other_worker.post(FORUMS, BODY, headers=token("a-1")))


def test_whoever_missed_the_answer_to_a_batch_learns_its_change_set(api: ApiClient, database: DatabaseState) -> None:
    batch = {"operations": [{"operation": "forums.create", "body": BODY}] * 2}
    first = api.post("/core/batch", batch, headers=token("b-1"))
    with database.unchanged():
        again = api.post("/core/batch", batch, headers=token("b-1"))
    assert again.headers["idempotent-replayed"] == "true"
    assert [again.headers[name] for name in ("change-set-id", "event")] == [first.headers["change-set-id"], first.headers["event"]]
    undone = api.post(f"/core/changesets/{again.headers['change-set-id']}/restore").json()
    assert undone["undoneCount"] == 2


def gone(answer: httpx.Response) -> dict[str, Any]:
    """Return what a refusal says of a record that is gone: its resource, its id, and which event deleted it."""
    told = read_refusal(answer, 409, "IDEMPOTENCY_RECORD_GONE")
    return {name: told[name] for name in ("resource", "id", "event", "index") if name in told}


def test_the_first_answer_stands_when_the_record_has_changed_but_not_when_it_is_gone(
    api: ApiClient, database: DatabaseState
) -> None:
    first = api.post(FORUMS, BODY, headers=token("a-1"))
    forum = first.json()["id"]
    api.post(f"{FORUMS}/{forum}", {"name": "Renamed"})
    assert same(first, api.post(FORUMS, BODY, headers=token("a-1")))
    event = int(api.delete(f"{FORUMS}/{forum}").headers["event"])
    with database.unchanged():
        again = api.post(FORUMS, BODY, headers=token("a-1"))
    assert gone(again) == {"resource": "forums", "id": forum, "event": event}
    assert f"event {event} deleted it" in again.json()["detail"]
    assert api.post(f"/core/events/{event}/restore").status_code == 200
    assert same(first, api.post(FORUMS, BODY, headers=token("a-1"))), "it is back"
    assert api.post(FORUMS, BODY, headers=token("a-2")).json()["id"] == forum + 1


def test_what_was_deleted_with_something_else_is_gone_too(api: ApiClient) -> None:
    above = api.post(FORUMS, {"name": "Above"}).json()["id"]
    below = api.post(FORUMS, {"name": "Below", "parentId": above}, headers=token("a-1"))
    copy = api.post(f"{FORUMS}/{above}/copy", {"parentId": above}, headers=token("a-2"))
    event = int(api.delete(f"{FORUMS}/{above}?deleteChildrenOrMove=-1").headers["event"])
    again = api.post(FORUMS, {"name": "Below", "parentId": above}, headers=token("a-1"))
    assert gone(again) == {"resource": "forums", "id": below.json()["id"], "event": event}
    again = api.post(f"{FORUMS}/{above}/copy", {"parentId": above}, headers=token("a-2"))
    assert gone(again) == {"resource": "forums", "id": copy.json()["id"], "event": event}


def test_the_answer_to_an_apply_stands_whatever_has_become_of_its_records(api: ApiClient, database: DatabaseState) -> None:
    wanted = {"document": {"format": "trellis/1", "name": "site", "forums": [{"externalId": "a", "name": "A"}]}}
    first = api.post("/core/structure/apply", wanted, headers=token("s-1"))
    api.delete(f"{FORUMS}/external/a")
    with database.unchanged():
        again = api.post("/core/structure/apply", wanted, headers=token("s-1"))
    assert (again.status_code, again.content) == (200, first.content)
    assert (again.headers["idempotent-replayed"], again.headers["event"]) == ("true", first.headers["event"])


def test_so_is_a_webhook(api: ApiClient) -> None:
    body = {"url": "https://hooks.example/x", "events": ["*"]}
    made = api.post("/core/webhooks", body, headers=token("a-1")).json()["id"]
    event = int(api.delete(f"/core/webhooks/{made}").headers["event"])
    again = api.post("/core/webhooks", body, headers=token("a-1"))
    assert gone(again) == {"resource": "webhooks", "id": made, "event": event}


@pytest.mark.parametrize("operation", ["forums.create", "forums.put_external"])
def test_a_batch_says_which_of_its_records_is_gone_but_for_those_that_it_deleted_itself(api: ApiClient, operation: str) -> None:
    operations = [
        {"operation": "forums.create", "as": "short", "body": {"name": "Short"}},
        {"operation": operation, "body": {"name": "Long", "externalId": "long"}},
        {"operation": "forums.delete", "id": {"$ref": "short.id"}},
    ]
    first = api.post("/core/batch", {"operations": operations}, headers=token("a-1"))
    forum = first.json()["results"][1]["result"]["id"]
    again = api.post("/core/batch", {"operations": operations}, headers=token("a-1"))
    assert (again.status_code, again.content, again.headers["idempotent-replayed"]) == (200, first.content, "true")
    event = int(api.delete(f"{FORUMS}/{forum}").headers["event"])
    again = api.post("/core/batch", {"operations": operations}, headers=token("a-1"))
    assert gone(again) == {"resource": "forums", "id": forum, "event": event, "index": 1}


def test_a_key_whose_bound_does_not_hold_the_record_is_told_as_if_there_were_none(
    api: ApiClient, key: MakeKey, database: DatabaseState
) -> None:
    inside, outside = (api.post(FORUMS, {"name": name}).json()["id"] for name in ("Inside", "Outside"))
    bot = key(["forums.create"], name="Bot", bounds={"forums.*": {"under": [inside]}})
    body = {"name": "Mine", "parentId": inside}
    moved, deleted, known = (api.post(FORUMS, body, key=bot, headers=token(name)) for name in ("a-1", "a-2", "a-3"))
    for made in (moved, deleted):
        api.post(f"{FORUMS}/{made.json()['id']}", {"parentId": outside})
    api.delete(f"{FORUMS}/{deleted.json()['id']}")
    event = int(api.delete(f"{FORUMS}/{known.json()['id']}").headers["event"])
    with database.unchanged():
        answers = [api.post(FORUMS, body, key=bot, headers=token(name)) for name in ("a-1", "a-2", "a-3")]
        other = [api.post(FORUMS, {**body, "name": "Else"}, key=bot, headers=token(name)) for name in ("a-1", "a-2")]
    assert [gone(answer) for answer in answers] == [
        {"resource": "forums", "id": moved.json()["id"]},
        {"resource": "forums", "id": deleted.json()["id"]},
        {"resource": "forums", "id": known.json()["id"], "event": event},
    ]
    assert ["event" in answer.json()["detail"] for answer in answers] == [False, False, True]
    assert all("id" not in read_refusal(answer, 422, "IDEMPOTENCY_KEY_REUSED") for answer in other)


def test_an_answer_kept_by_an_earlier_version_is_still_replayed(api: ApiClient, gate: Gate) -> None:
    first = api.post(FORUMS, BODY, headers=token("a-1"))

    def strip(tx: Transaction) -> None:
        column = idempotent_responses.c.response
        kept = tx.decode(tx.connection.execute(sa.select(column)).scalar_one())
        tx.connection.execute(sa.update(idempotent_responses).values({column: tx.encode(kept["$response"])}))

    gate.store.write(strip).result(30)
    assert same(first, api.post(FORUMS, BODY, headers=token("a-1")), ("location", "etag", "content-type"))
    assert "id" not in read_refusal(api.post(FORUMS, {"name": "Else"}, headers=token("a-1")), 422, "IDEMPOTENCY_KEY_REUSED")
    event = int(api.delete(f"{FORUMS}/{first.json()['id']}").headers["event"])
    assert gone(api.post(FORUMS, BODY, headers=token("a-1")))["event"] == event


def test_another_request_under_the_same_key_is_refused(api: ApiClient, database: DatabaseState) -> None:
    made = api.post("/calendar/calendar", {"name": "Once"}, headers=token("a-1")).json()["id"]
    with database.unchanged():
        for path, body in (
            ("/calendar/calendar", {"name": "Other"}),
            ("/calendar/calendar", {"name": "Once", "color": "#000000"}),
            ("/calendar/calendar?color=%23000000", {"name": "Once"}),
            ("/downloads/category", {"name": "Once"}),
        ):
            told = read_refusal(api.post(path, body, headers=token("a-1")), 422, "IDEMPOTENCY_KEY_REUSED")
            assert (told["resource"], told["id"]) == ("calendars", made)
            assert f"calendars:{made}" in told["detail"]


def test_each_api_key_has_its_own(api: ApiClient, key: MakeKey) -> None:
    first = api.post(FORUMS, BODY, headers=token("a-1"))
    second = api.post(FORUMS, BODY, headers=token("a-1"), key=key("forums.*"))
    assert second.status_code == 201
    assert second.json()["id"] == first.json()["id"] + 1


def test_nobody_who_reads_what_is_kept_can_try_passwords_with_it(api: ApiClient, key: MakeKey, gate: Gate) -> None:
    """What two keys have sent is told apart there only if there is a password in it: then it takes the key, too."""
    body = {**BODY, "password": "swordfish"}
    assert same(api.post(FORUMS, body, headers=token("a-1")), api.post(FORUMS, body, headers=token("a-1")))
    read_refusal(api.post(FORUMS, {**body, "password": "halibut"}, headers=token("a-1")), 422, "IDEMPOTENCY_KEY_REUSED")
    inner = {"operations": [{"operation": "forums.create", "body": body}]}
    document = {"document": "format: trellis/1\nname: site\nforums: [{externalId: a, name: A, password: swordfish}]\n"}
    other = key("*")
    for sent in (api.key, other):
        assert api.post(FORUMS, body, headers=token("password"), key=sent).status_code == 201
        assert api.post("/core/batch", inner, headers=token("batch"), key=sent).status_code == 200
        assert api.post("/core/structure/apply", document, headers=token("document"), key=sent).status_code == 200
        assert api.post(FORUMS, BODY, headers=token("plain"), key=sent).status_code == 201
    columns = idempotent_responses.c
    with gate.store.reading() as tx:
        kept = tx.connection.execute(sa.select(columns.token, columns.fingerprint).distinct()).all()
    found = {
        name: sum(one.token == idempotency_token(name.encode()) for one in kept)
        for name in ("password", "batch", "document", "plain")
    }
    assert found == {"password": 2, "batch": 2, "document": 2, "plain": 1}


def test_after_a_day_the_key_may_be_used_anew(api: ApiClient, clock: Clock) -> None:
    first = api.post(FORUMS, BODY, headers=token("a-1"))
    clock.move(hours=24)
    assert same(first, api.post(FORUMS, BODY, headers=token("a-1")))
    clock.move(seconds=1)
    second = api.post(FORUMS, {"name": "Another"}, headers=token("a-1"))
    assert second.json()["id"] == first.json()["id"] + 1
    assert same(second, api.post(FORUMS, {"name": "Another"}, headers=token("a-1")))


def test_what_was_refused_may_be_put_right_under_the_same_key(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        read_refusal(api.post(FORUMS, {"name": ""}, headers=token("a-1")), 400, "NO_TITLE")
    assert api.post(FORUMS, BODY, headers=token("a-1")).status_code == 201


def test_a_dry_run_is_not_kept(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        dry = api.post(f"{FORUMS}?dryRun=1", BODY, headers=token("a-1"))
    assert dry.headers["dry-run"] == "true"
    assert api.post(FORUMS, BODY, headers=token("a-1")).status_code == 201


def test_a_batch_that_only_reads_is_not_kept_but_one_that_may_change_something_is(
    api: ApiClient, community: Community, key: MakeKey, database: DatabaseState
) -> None:
    """A key that may only read could fill the disk with 8 MiB at a time."""
    reading = key(["forums.get", "structure.plan", "forums.list", "groups.list"])
    read = {"operation": "forums.get", "id": community.staff}
    document = {"format": "trellis/1", "name": "a", "forums": [{"externalId": "new", "name": "New"}]}
    batch = {"operations": [read, {"operation": "structure.plan", "body": {"document": document}}]}
    for name in ("Team", "Crew"):
        api.post(f"{FORUMS}/{community.staff}", {"name": name})
        with database.unchanged():
            answer = api.post("/core/batch", batch, headers=token("a-1"), key=reading)
        assert (answer.status_code, answer.json()["results"][0]["result"]["name"]) == (200, name)
        assert "idempotent-replayed" not in answer.headers
    as_it_is = {"operations": [{"operation": "forums.update", "id": community.staff, "body": {"name": "Crew"}}]}
    assert api.post("/core/batch", as_it_is, headers=token("a-2")).json()["results"][0]["event"] is None
    api.post(f"{FORUMS}/{community.staff}", {"name": "Team"})
    assert api.post("/core/batch", as_it_is, headers=token("a-2")).headers["idempotent-replayed"] == "true"
    assert api.get(f"{FORUMS}/{community.staff}").json()["name"] == "Team"


def test_it_is_judged_after_the_key_and_the_grant(api: ApiClient, key: MakeKey, run: object) -> None:
    first = api.post(FORUMS, BODY, headers=token("a-1"))
    read_refusal(api.post(FORUMS, BODY, headers=token("a-1"), key=key("forums.list")), 403, "NO_PERMISSION")
    read_refusal(api.post(FORUMS, BODY, headers=token("a-1"), key=None), 401, "NO_API_KEY")
    assert same(first, api.post(FORUMS, BODY, headers=token("a-1")))


def test_it_means_nothing_where_nothing_is_created(api: ApiClient, community: Community, database: DatabaseState) -> None:
    path = f"{FORUMS}/{community.staff}"
    assert api.get(path, headers=token("a-1")).status_code == 200
    for name in ("Team", "Crew"):
        answer = api.post(path, {"name": name}, headers=token("a-1"))
        assert (answer.status_code, answer.json()["name"]) == (200, name)
        assert "idempotent-replayed" not in answer.headers
    assert api.delete(path, headers=token("a-1")).json() is None
    read_refusal(api.delete(path, headers=token("a-1")), 404, "INVALID_ID")
    assert database.rows()["idempotent_responses"] == []


def test_a_key_is_one_to_255_visible_characters(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        for text in ("", "x" * 256, "two words", "tab\tbed", "é"):
            document = read_refusal(api.post(FORUMS, BODY, headers=token(text)), 400, "INVALID_HEADER")
            assert "Idempotency-Key" in document["detail"]
    for text in ("x" * 255, '"quoted"', "!~'\\%00", "0"):
        first = api.post(FORUMS, BODY, headers=token(text))
        assert same(first, api.post(FORUMS, BODY, headers=token(text)))


def test_while_the_first_is_running_the_second_is_told_to_wait(api: ApiClient, gate: Gate, database: DatabaseState) -> None:
    """The writer is kept busy until one of the two is answered, so that the other is certainly under way by then."""
    busy = threading.Event()
    held = gate.store.write(lambda _: busy.wait(60))

    async def send_both() -> tuple[httpx.Response, httpx.Response]:
        sent = [asyncio.ensure_future(api.sending("POST", FORUMS, json=BODY, headers=token("a-1"))) for _ in range(2)]
        answered, waiting = await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
        busy.set()
        return await waiting.pop(), answered.pop().result()

    with database.new_events() as new_events:
        first, second = api.do(send_both())
        assert held.result(60) is True
        read_refusal(second, 409, "IDEMPOTENCY_KEY_IN_USE")
        assert same(first, api.post(FORUMS, BODY, headers=token("a-1")))
    assert len(new_events()) == 1


def test_many_at_once_make_one_record(make_api: MakeApiClient, settings: Settings, clock: Clock, database: DatabaseState) -> None:
    """Two workers, each asked ten times at once: the first makes the record, the others replay it or are told to wait."""
    here = make_api()
    gate = compose(settings, clock=clock)
    there = ApiClient(Application(settings, gate), here.key)
    answers: list[httpx.Response] = []
    with database.new_events() as new_events:
        asking = [
            threading.Thread(
                target=lambda w=worker: answers.extend(
                    w.together(*(w.sending("POST", FORUMS, json=BODY, headers=token("a-1")) for _ in range(10)))
                )
            )
            for worker in (here, there)
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
        there.close()
        gate.store.close()
        made = [answer for answer in answers if answer.status_code == 201]
        waiting = [answer for answer in answers if answer.status_code == 409]
        assert len(made) + len(waiting) == len(answers) == 20
        assert {answer.content for answer in made} == {made[0].content}
        assert [answer.headers.get("idempotent-replayed") for answer in made].count(None) == 1
        assert len(new_events()) == 1
    assert here.get(FORUMS).json()["totalResults"] == 1


def test_over_http_and_across_a_real_restart_the_answer_is_the_same(service: Service, key: MakeKey, api: ApiClient) -> None:
    text = key("calendars.create")
    first = service.call("POST", "/calendar/calendar", text, token("a-1"), json={"name": "Once"})
    assert same(first, service.call("POST", "/calendar/calendar", text, token("a-1"), json={"name": "Once"}))
    address = service.address
    assert service.terminate() == 0
    again = api.post(
        "/calendar/calendar", {"name": "Once"}, headers=token("a-1") | {"Host": address.removeprefix("http://")}, key=text
    )
    # The gate of this test keeps a time of its own, in which the answer is not yet a day old.
    assert same(first, again)


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_a_create_whose_commit_was_not_acknowledged_can_be_sent_again_as_it_is(api: ApiClient) -> None:
    with lost_commits():
        refused = read_refusal(api.post(FORUMS, BODY, headers=token("lost")), 503, "BUSY")
    assert "may have been made" in refused["detail"]
    again = api.post(FORUMS, BODY, headers=token("lost"))
    assert (again.status_code, again.headers.get("idempotent-replayed")) == (201, "true")
    assert api.get(FORUMS).json()["totalResults"] == 1
