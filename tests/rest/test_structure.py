"""Structure documents over REST: as text and as objects, large ones, and what the responses say of a change set."""

from typing import Any, Final

import httpx
import orjson
import pytest

from tests.api_client import ApiClient, chunks, read_refusal
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey
from tests.service_process import Service, begin_post
from tests.wait import wait_until

DOCUMENT: Final = {"format": "trellis/1", "name": "site", "forums": [{"externalId": "news", "name": "News"}]}
TEXT: Final = "format: trellis/1\nname: site\nforums:\n- externalId: news\n  name: News\n"
LARGE: Final = 5 * 2**20


def large(entries: int) -> dict[str, Any]:
    filling = "x" * (LARGE // entries)
    forums = [{"externalId": f"f{number}", "name": f"F {number}", "description": filling} for number in range(entries)]
    return {"format": "trellis/1", "name": "site", "forums": forums}


def test_a_document_is_exported_as_json_and_as_yaml(api: ApiClient) -> None:
    api.post("/forums/forums", {"name": "News", "externalId": "news"})
    exported = api("GET", "/core/structure", params={"sections": "forums"})
    assert [forum["externalId"] for forum in exported.json()["forums"]] == ["news"]
    text = api("GET", "/core/structure", params={"format": "yaml"})
    assert text.headers["content-type"] == "application/yaml"
    assert "\nformat: trellis/1\nname: the-lantern\n" in text.text
    again = api("GET", "/core/structure", params={"sections": "forums"}, headers={"If-None-Match": exported.headers["etag"]})
    assert again.status_code == 304


def test_a_plan_is_not_applied_with_another_password(api: ApiClient, database: DatabaseState) -> None:
    text = TEXT + "  password: {}\n"
    plan = api.post("/core/structure/plan", {"document": text.format("open sesame")}).json()["plan"]
    with database.unchanged():
        answer = api.post("/core/structure/apply", {"document": text.format("0pen sesame"), "plan": plan})
        read_refusal(answer, 409, "PLAN_DIFFERS")
    assert api.post("/core/structure/apply", {"document": text.format("open sesame"), "plan": plan}).status_code == 200


@pytest.mark.either_engine
def test_a_document_or_a_plan_in_the_wrong_place_is_refused_with_where_it_goes(api: ApiClient, database: DatabaseState) -> None:
    plan = api.post("/core/structure/plan", {"document": DOCUMENT}).json()
    needed = "document is needed: The structure document, as text (YAML, JSON) or as an object."
    with database.unchanged():
        for path, sent in (("plan", DOCUMENT), ("apply", plan), ("apply", {"plan": plan["plan"]})):
            problem = read_refusal(api.post(f"/core/structure/{path}", sent), 400, "MISSING_VALUE")
            assert problem["errors"][0]["message"] == needed
        whole = read_refusal(api.post("/core/structure/apply", {"document": DOCUMENT, "plan": plan}), 400, "INVALID_VALUE")
        assert whole["detail"].startswith("plan must be only the text that structure.plan returned in its member plan, not {")
        invalid = read_refusal(api.post("/core/structure/plan", {"document": {}, "prun": 1}), 400, "INVALID_DOCUMENT")
    assert [error["field"] for error in invalid["errors"]] == ["format", "name", "prun"]


def test_a_list_of_no_sections_does_not_mean_all(api: ApiClient) -> None:
    api.post("/forums/forums", {"name": "News", "externalId": "news"})
    for asked in ("[]", ","):
        refused = api("GET", "/core/structure", params={"sections": asked})
        assert refused.status_code == 400
        assert [error["field"] for error in refused.json()["errors"]] == ["sections"]


def test_what_one_key_exports_is_not_what_another_gets(api: ApiClient, key: MakeKey) -> None:
    api.post("/calendar/calendar", {"name": "Secret"})
    one, other = key(["structure.export", "groups.list", "calendars.list"]), key(["structure.export", "groups.list"])
    assert "calendars" in api("GET", "/core/structure", key=one).json()
    assert "calendars" not in api("GET", "/core/structure", key=other).json()


def test_a_plan_changes_nothing_and_has_no_change_set(api: ApiClient, database: DatabaseState) -> None:
    with database.unchanged():
        plan = api.post("/core/structure/plan", {"document": DOCUMENT})
    assert (plan.status_code, plan.json()["counts"]["create"]) == (200, 1)
    assert "event" not in plan.headers
    assert "change-set-id" not in plan.headers


@pytest.mark.either_engine
def test_a_file_is_sent_as_a_form(api: ApiClient) -> None:
    form = {"document": TEXT, "prune": "1"}
    plan = api("POST", "/core/structure/plan", data=form)
    assert [change["line"] for change in plan.json()["changes"]] == [4]
    applied = api("POST", "/core/structure/apply", data=form | {"plan": plan.json()["plan"]})
    assert applied.status_code == 200
    assert (applied.headers["event"], applied.headers["change-set-id"]) == ("2", "1")  # after the event of the key
    assert api("GET", "/forums/forums/external/news").json()["managedBy"] == "site"


def test_the_same_apply_sent_again_is_done_once(api: ApiClient, database: DatabaseState) -> None:
    headers = {"Idempotency-Key": "apply-1"}
    first = api.post("/core/structure/apply", {"document": DOCUMENT}, headers=headers)
    with database.unchanged():
        again = api.post("/core/structure/apply", {"document": DOCUMENT}, headers=headers)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"


def test_an_apply_and_its_undo(api: ApiClient) -> None:
    applied = api.post("/core/structure/apply", {"document": DOCUMENT})
    undone = api.post(f"/core/changesets/{applied.headers['change-set-id']}/restore")
    assert undone.json()["undoneCount"] == 1
    assert api("GET", "/forums/forums").json()["totalResults"] == 0


@pytest.mark.either_engine
def test_documents_may_be_larger_than_other_bodies(api: ApiClient) -> None:
    document = large(100)
    planned = api.post("/core/structure/plan", {"document": document})
    assert (planned.status_code, planned.json()["counts"]["create"]) == (200, 100)
    read_refusal(api.post("/core/batch", {"operations": document}), 413, "BODY_TOO_LARGE")
    read_refusal(api.post("/core/structure/plan", {"document": "x" * 9 * 2**20}), 413, "BODY_TOO_LARGE")


@pytest.mark.either_engine
def test_so_may_documents_whose_length_is_not_announced(api: ApiClient) -> None:
    def plan(document: object) -> httpx.Response:
        body, kind = orjson.dumps({"document": document}), {"Content-Type": "application/json"}
        return api.post("/core/structure/plan", content=chunks(body[: 2**20], body[2**20 :]), headers=kind)

    assert plan(large(100)).json()["counts"]["create"] == 100
    read_refusal(plan("x" * 9 * 2**20), 413, "BODY_TOO_LARGE")


def test_every_fault_is_in_the_problem_document(api: ApiClient, database: DatabaseState) -> None:
    text = TEXT + "- externalId: news\n  name: Again\n  permissions: {view: [nobody]}\n  colour: red\n"
    with database.unchanged():
        problem = read_refusal(api.post("/core/structure/apply", {"document": text}), 400, "INVALID_DOCUMENT")
    assert [(error["field"], error["message"].partition(":")[0]) for error in problem["errors"]] == [
        ("forums[1].colour", "line 9"),
        ("forums[1].externalId", "line 6"),
    ]


def test_an_outdated_plan_says_what_has_changed(api: ApiClient, database: DatabaseState) -> None:
    plan = api.post("/core/structure/plan", {"document": DOCUMENT}).json()["plan"]
    made = api.post("/forums/forums", {"name": "Another"}).json()["id"]
    with database.unchanged():
        answer = api.post("/core/structure/apply", {"document": DOCUMENT, "plan": plan})
    problem = read_refusal(answer, 409, "PLAN_OUTDATED")
    assert [(change["operation"], change["id"]) for change in problem["changes"]] == [("forums.create", made)]


def test_a_key_has_two_large_requests_under_way_at_most(service: Service, key: MakeKey) -> None:
    text, body = key("*"), orjson.dumps({"document": large(100)})
    path = "/core/structure/plan"

    def plan(content: bytes) -> httpx.Response:
        return service.call("POST", path, text, {"Content-Type": "application/json"}, content=content)

    with begin_post(service.port, f"/api{path}", text, body, 5), begin_post(service.port, f"/api{path}", text, body, 5) as second:
        with begin_post(service.port, f"/api{path}", key("*"), body, 5):  # another key has its own
            third = plan(body)
        read_refusal(third, 503, "BUSY")
        assert third.headers["retry-after"] == "1"
        assert plan(b'{"document": ""}').status_code == 400
        second.sendall(body[5:])
        assert second.recv(12) == b"HTTP/1.1 200"
    wait_until(lambda: plan(body).status_code == 200)
