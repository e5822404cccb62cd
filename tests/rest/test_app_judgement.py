"""The order of judgement: address throttle → key → rate limit → endpoint → grant → body; and nothing is told before its turn."""

from typing import Any

import pytest

from tests.api_client import ApiClient, chunks, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey
from tests.service_process import Service

BAD = "trl_00000000_000000000000000000000000000000000000000"
JSON = {"Content-Type": "application/json"}
BODIES: list[dict[str, Any]] = [
    {"content": b"x" * 2_097_152, "headers": JSON},
    {"content": b'{"name": ', "headers": JSON},
    {"content": b"[" * 10_000, "headers": JSON},
    {"content": b'{"nope": 1}', "headers": JSON},
    {"content": b"\xff\x00", "headers": {"Content-Type": "image/png"}},
    {"content": b"name=\xff", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
]


def test_whatever_is_sent_without_a_good_key_only_the_key_is_judged(
    api: ApiClient, community: Community, database: DatabaseState
) -> None:
    for path in ("/forums/forums", f"/forums/forums/{community.news}", "/forums/forums/999", "/forums/forums/zero", "/nowhere"):
        with database.unchanged():
            for body in BODIES:
                read_refusal(api.post(path, key=None, **body), 401, "NO_API_KEY")
                read_refusal(api.post(path, key=BAD, address="203.0.113.9", **body), 401, "INVALID_API_KEY")


def test_whatever_is_sent_without_the_grant_only_the_grant_is_judged(
    api: ApiClient, community: Community, key: MakeKey, database: DatabaseState
) -> None:
    others = key(
        [name for name in api.get("/core/hello").json()["key"]["operations"] if name not in {"forums.create", "forums.update"}]
    )
    for path, missing in (
        ("/forums/forums", "forums.create"),
        (f"/forums/forums/{community.news}", "forums.update"),
        ("/forums/forums/999", "forums.update"),
        ("/forums/forums/zero", "forums.update"),
        ("/forums/forums?%zz", "forums.create"),
    ):
        with database.unchanged():
            for body in BODIES:
                document = read_refusal(api.post(path, key=others, **body), 403, "NO_PERMISSION")
                assert document["missingOperation"] == missing
                assert missing in document["detail"]


def test_a_key_without_the_grant_cannot_tell_what_there_is(api: ApiClient, community: Community, key: MakeKey) -> None:
    nobody = key([])
    for method in ("GET", "POST", "DELETE"):
        answers = [
            api(
                method,
                f"/forums/forums/{number}",
                key=nobody,
                headers={"X-Request-Id": "same", "If-Match": "x", "If-None-Match": "*"},
            )
            for number in (community.news, 999, "zero", 2**70)
        ]
        assert {answer.content for answer in answers} == {answers[0].content}
        read_refusal(answers[0], 403, "NO_PERMISSION")


def test_no_byte_of_a_body_is_read_before_the_key_and_the_grant_are_judged(
    api: ApiClient, key: MakeKey, database: DatabaseState
) -> None:
    for text, status in ((None, 401), (BAD, 401), (key("forums.list"), 403)):
        told: list[int] = []
        with database.unchanged():
            answer = api.post("/forums/forums", key=text, content=chunks(b'{"name":', b'"News"}', told=told), headers=JSON)
        assert (answer.status_code, told) == (status, [])
    told = []
    assert api.post("/forums/forums", content=chunks(b'{"name":', b'"News"}', told=told), headers=JSON).status_code == 201
    assert sum(told) == 15


@pytest.mark.either_engine
def test_a_large_body_is_refused_by_its_announced_length_before_it_is_read(api: ApiClient, database: DatabaseState) -> None:
    told: list[int] = []
    with database.unchanged():
        answer = api.post(
            "/forums/forums", content=chunks(*[b"x" * 65_536] * 32, told=told), headers=JSON | {"Content-Length": "2097152"}
        )
    read_refusal(answer, 413, "BODY_TOO_LARGE")
    assert told == []


@pytest.mark.either_engine
def test_a_large_body_of_unannounced_length_is_refused_as_soon_as_it_is_too_large(api: ApiClient, database: DatabaseState) -> None:
    told: list[int] = []
    with database.unchanged():
        answer = api.post("/forums/forums", content=chunks(*[b" " * 65_536] * 32, told=told), headers=JSON)
    read_refusal(answer, 413, "BODY_TOO_LARGE")
    assert 1_048_576 < sum(told) <= 1_048_576 + 2 * 65_536


@pytest.mark.either_engine
def test_a_body_of_a_mebibyte_is_read_and_one_byte_more_is_not(api: ApiClient) -> None:
    whole = b'{"name": "Long"}'.ljust(1_048_576)
    assert api.post("/calendar/calendar", content=whole, headers=JSON).status_code == 201
    read_refusal(api.post("/calendar/calendar", content=whole + b" ", headers=JSON), 413, "BODY_TOO_LARGE")
    assert api.get("/calendar/calendar").json()["totalResults"] == 1


@pytest.mark.either_engine
def test_the_largest_body_is_a_setting(make_api: MakeApiClient) -> None:
    api = make_api(body_limit=1024)
    assert api.post("/calendar/calendar", content=b'{"name": "Long"}'.ljust(1024), headers=JSON).status_code == 201
    assert (
        "1,024 bytes"
        in read_refusal(api.post("/calendar/calendar", content=b" " * 1025, headers=JSON), 413, "BODY_TOO_LARGE")["detail"]
    )


def test_a_throttled_address_learns_nothing_about_its_key(make_api: MakeApiClient, key: MakeKey) -> None:
    api = make_api(bad_key_limit=2)
    here = {"address": "203.0.113.9"}
    for _ in range(2):
        read_refusal(api.get("/forums/forums", key=BAD, **here), 401, "INVALID_API_KEY")
    for text in (None, BAD, api.key, key([])):
        read_refusal(api.get("/forums/forums", key=text, **here), 429, "TOO_MANY_REQUESTS_WITH_BAD_KEY")
        read_refusal(api.post("/nowhere", key=text, content=b"x" * 2_097_152, **here), 429, "TOO_MANY_REQUESTS_WITH_BAD_KEY")
    assert api.get("/forums/forums").status_code == 200


def test_a_key_that_has_used_up_its_requests_is_told_so_before_anything_about_the_path(
    make_api: MakeApiClient, key: MakeKey, database: DatabaseState
) -> None:
    api = make_api()
    spent = key([], rateLimit=1)
    read_refusal(api.get("/nowhere", key=spent), 404, "NO_ENDPOINT")
    for method, path in (("GET", "/nowhere"), ("PUT", "/forums/forums"), ("POST", "/forums/forums"), ("GET", "/forums/forums/1")):
        with database.unchanged():
            read_refusal(api(method, path, key=spent), 429, "RATE_LIMITED")


@pytest.mark.either_engine
def test_over_http_too_no_body_is_waited_for_before_the_key_the_grant_and_its_length_are_judged(
    service: Service, key: MakeKey
) -> None:
    """The client announces a body and sends none of it: whoever wanted to read it would wait for ever."""
    head = b"POST /api/forums/forums HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    for text, status in ((None, 401), (key("forums.list"), 403), (key("*"), 413)):
        authorization = b"" if text is None else b"Authorization: Bearer " + text.encode() + b"\r\n"
        answer = service.raw(head + authorization + b"Content-Length: 2097152\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:400]
        assert b"application/problem+json" in answer


@pytest.mark.either_engine
def test_a_client_that_sends_a_large_body_over_http_gets_its_answer_and_the_next_one(service: Service, key: MakeKey) -> None:
    everything, nobody = key("*"), key([])
    pieces = [b" " * 65_536] * 32
    for body in (b"".join(pieces), iter(pieces)):
        read_refusal(service.call("POST", "/forums/forums", everything, JSON, content=body), 413, "BODY_TOO_LARGE")
        assert service.call("GET", "/forums/forums", everything).json()["totalResults"] == 0
    read_refusal(service.call("POST", "/forums/forums", nobody, JSON, content=iter(pieces)), 403, "NO_PERMISSION")
    read_refusal(service.call("POST", "/forums/forums", None, JSON, content=b"".join(pieces)), 401, "NO_API_KEY")
    assert service.call("GET", "/core/hello", nobody).status_code == 200
