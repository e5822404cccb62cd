"""Routes are complete both ways, and refusals become the documents of RFC 9457."""

import json
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.community import ENDPOINTS
from trellis.compose import catalogue_of
from trellis.core.verbs import SHARED
from trellis.errors import Fault, Refused, refuse_faults
from trellis.http.problems import format_problem, problem_headers
from trellis.http.routes import build_routes
from trellis.kinds import KINDS
from trellis.refusals import REFUSALS


def test_a_code_belongs_to_one_message_in_the_whole_catalogue() -> None:
    """Code and message are unique together: a code of a kind's own is nobody else's."""
    owners: dict[str, set[str]] = defaultdict(set)
    for refusal in REFUSALS.values():
        owners[refusal.code].add(refusal.message)
    for operation in catalogue_of(KINDS).values():
        for message, code in operation.refusals:
            owners[code].add(message)
            assert message in REFUSALS
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
    plurals = {"/calendar/calendar": "/calendar/calendars", "/downloads/category": "/downloads/categories"}
    tails = {path.removeprefix(one) for path in also for one in plurals if path.startswith(one)}
    assert tails >= {"", "/{id}", "/{id}/copy"}
    assert all(
        other == (path.replace(one, plurals[one]),) for path, other in also.items() for one in plurals if path.startswith(one)
    )


@pytest.mark.parametrize("message", REFUSALS)
def test_a_refusal_becomes_a_problem_document(message: str) -> None:
    refused = Refused(message, "What was wrong, and what to do.", facts={"retryAfter": 7})
    body = format_problem(refused, "https://api.example", "request-1")
    assert json.loads(body) == {
        "type": f"https://api.example/api/docs#{message}",
        "title": REFUSALS[message].title,
        "status": REFUSALS[message].status,
        "detail": "What was wrong, and what to do.",
        "errorCode": REFUSALS[message].code,
        "errorMessage": message,
        "requestId": "request-1",
        "retryAfter": 7,
    }


def test_every_fault_is_listed_with_its_field_code_and_message() -> None:
    refused = refuse_faults(
        Fault("name", "NO_TITLE", "name is needed.", "1L364/2"), Fault("theme", "INVALID_VALUE", "theme must be one.")
    )
    body = format_problem(refused, "", "")
    document = json.loads(body)
    assert (document["errorCode"], document["errorMessage"]) == ("1L364/2", "NO_TITLE")
    assert document["errors"] == [
        {"field": "name", "code": "NO_TITLE", "errorCode": "1L364/2", "message": "name is needed."},
        {"field": "theme", "code": "INVALID_VALUE", "errorCode": "1T101/2", "message": "theme must be one."},
    ]


def test_the_headers_of_a_refusal_are_filled_in() -> None:
    assert problem_headers(Refused("RATE_LIMITED", "", facts={"retryAfter": 7})) == {"Retry-After": "7"}
    assert problem_headers(Refused("BAD_METHOD", "", facts={"allow": "GET, HEAD"})) == {"Allow": "GET, HEAD"}
    assert problem_headers(Refused("BUSY", "")) == {"Retry-After": "1"}
    assert problem_headers(Refused("NO_API_KEY", "")) == {"WWW-Authenticate": 'Bearer realm="trellis"'}
    assert problem_headers(Refused("INVALID_VALUE", "")) == {}


@given(st.text(), st.sampled_from(sorted(REFUSALS)))
def test_no_detail_breaks_the_document(detail: str, message: str) -> None:
    try:
        detail.encode()
    except UnicodeEncodeError:
        return  # no refusal quotes what UTF-8 cannot carry: see trellis.core.fields.quote
    body = format_problem(Refused(message, detail), "https://api.example", "r")
    assert json.loads(body)["detail"] == detail
