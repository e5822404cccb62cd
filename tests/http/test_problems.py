"""The one table between operations and HTTP is complete both ways, and its documents are those of RFC 9457."""

import json
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.community import ENDPOINTS
from trellis.compose import catalogue_of
from trellis.core.verbs import SHARED
from trellis.errors import REASONS, Fault, Refused, refuse_faults
from trellis.http.problems import STATUS, format_problem
from trellis.http.routes import build_routes
from trellis.kinds import KINDS

CONTRACT = {
    ("NO_API_KEY", "2S290/6"): 401,
    ("INVALID_API_KEY", "3S290/7"): 401,
    ("IP_ADDRESS_NOT_ALLOWED", "2S290/8"): 403,
    ("CANNOT_USE_KEY_AS_URL_PARAM", "2S290/B"): 403,
    ("NO_PERMISSION", "2S291/3"): 403,
    ("NO_ENDPOINT", "2S291/1"): 404,
    ("BAD_METHOD", "3S291/2"): 405,
    ("INVALID_ID", "1S359/1"): 404,
    ("NO_TITLE", "1F363/2"): 400,
    ("NO_REDIRECT_URL", "1F363/3"): 400,
    ("INVALID_TYPE", "1F363/4"): 400,
    ("CANNOT_DELETE", "2C358/3"): 403,
    ("INVALID_TARGET", "1S359/2"): 400,
    ("HAS_CHILDREN", "1S359/3"): 409,
    ("TOO_MANY_REQUESTS_WITH_BAD_KEY", "1S290/D"): 429,
    ("RATE_LIMITED", "1T103/1"): 429,
    ("INVALID_PARENT", "1T101/3"): 400,
    ("INVALID_POSITION", "1T101/4"): 400,
    ("PRECONDITION_FAILED", "1T102/1"): 412,
    ("IDEMPOTENCY_KEY_REUSED", "1T102/2"): 422,
    ("IDEMPOTENCY_KEY_IN_USE", "1T102/3"): 409,
    ("UNSUPPORTED_MEDIA_TYPE", "1T100/2"): 415,
    ("BODY_TOO_LARGE", "1T100/3"): 413,
    ("MALFORMED_REQUEST", "1T100/1"): 400,
    ("INTERNAL_ERROR", "4T104/2"): 500,
}


def test_every_refusal_has_a_status_and_every_status_a_refusal() -> None:
    assert set(STATUS) == set(REASONS)
    assert {status // 100 for status in STATUS.values()} == {4, 5}


@pytest.mark.parametrize(("reason", "status"), CONTRACT.items(), ids=lambda value: value[0] if isinstance(value, tuple) else None)
def test_the_statuses_are_those_of_the_contract(reason: tuple[str, str], status: int) -> None:
    message, code = reason
    assert (REASONS[message].code, STATUS[message]) == (code, status)


def test_a_code_belongs_to_one_message_in_the_whole_catalogue() -> None:
    """Code and message are unique together: a code of a kind's own is nobody else's."""
    owners: dict[str, set[str]] = defaultdict(set)
    for reason in REASONS.values():
        owners[reason.code].add(reason.message)
    for operation in catalogue_of(KINDS).values():
        for message, code in operation.refusals:
            owners[code].add(message)
            assert message in REASONS
    assert {code: messages for code, messages in owners.items() if len(messages) > 1} == {}


def test_every_verb_is_spelt_and_every_route_is_an_operation() -> None:
    catalogue = catalogue_of(KINDS)
    found = build_routes(catalogue)
    served = {operation.name for operation in catalogue.values() if operation.path is not None}
    assert {route.operation.name for route in found} == served
    assert {route.verb for route in found} >= set(SHARED.values())
    spelt = [(route.method, path) for route in found for path in (route.path, *route.also)]
    assert len(spelt) == len(set(spelt))


def test_the_routes_are_those_of_the_contract() -> None:
    four = ("/forums/forums", "/calendar/calendar", "/downloads/category", "/core/groups")
    wanted = {("GET", "/core/hello", 200), ("DELETE", "/blog/blogs/{id}", 200)}
    wanted |= {(method, path + tail, 200) for path in four for method, tail in (("GET", ""), ("GET", "/{id}"), ("DELETE", "/{id}"))}
    wanted |= {("POST", path, 201) for path in four[:3]} | {("POST", f"{path}/{{id}}", 200) for path in four[:3]}
    assert len(wanted) == 19 + 1
    ours = "/core/webhooks"
    wanted |= {("GET", ours, 200), ("POST", ours, 201)} | {(method, f"{ours}/{{id}}", 200) for method in ("GET", "POST", "DELETE")}
    wanted |= {("GET", "/core/events", 200), ("POST", "/core/events/{id}/restore", 200)}
    found = {(route.method, route.path, route.status) for route in build_routes(catalogue_of(KINDS))}
    assert found >= wanted
    assert len(found) == ENDPOINTS
    also = {route.path: route.also for route in build_routes(catalogue_of(KINDS)) if route.also}
    assert also == {
        "/calendar/calendar": ("/calendar/calendars",),
        "/calendar/calendar/{id}": ("/calendar/calendars/{id}",),
        "/downloads/category": ("/downloads/categories",),
        "/downloads/category/{id}": ("/downloads/categories/{id}",),
    }


@pytest.mark.parametrize("message", REASONS)
def test_a_refusal_becomes_a_problem_document(message: str) -> None:
    refused = Refused(message, "What was wrong, and what to do.", facts={"retryAfter": 7})
    status, body = format_problem(refused, "https://api.example", "request-1")
    assert status == STATUS[message]
    assert json.loads(body) == {
        "type": f"https://api.example/api/docs#{message}",
        "title": REASONS[message].title,
        "status": status,
        "detail": "What was wrong, and what to do.",
        "errorCode": REASONS[message].code,
        "errorMessage": message,
        "requestId": "request-1",
        "retryAfter": 7,
    }


def test_every_fault_is_listed_with_its_field_code_and_message() -> None:
    refused = refuse_faults(
        (Fault("name", "NO_TITLE", "name is needed.", "1L364/2"), Fault("theme", "INVALID_VALUE", "theme must be one."))
    )
    _, body = format_problem(refused, "", "")
    document = json.loads(body)
    assert (document["errorCode"], document["errorMessage"]) == ("1L364/2", "NO_TITLE")
    assert document["errors"] == [
        {"field": "name", "code": "NO_TITLE", "errorCode": "1L364/2", "message": "name is needed."},
        {"field": "theme", "code": "INVALID_VALUE", "errorCode": "1T101/2", "message": "theme must be one."},
    ]


@given(st.text(), st.sampled_from(sorted(REASONS)))
def test_no_detail_breaks_the_document(detail: str, message: str) -> None:
    try:
        detail.encode()
    except UnicodeEncodeError:
        return  # no refusal quotes what UTF-8 cannot carry: see trellis.core.fields.values.shown
    _, body = format_problem(Refused(message, detail), "https://api.example", "r")
    assert json.loads(body)["detail"] == detail
