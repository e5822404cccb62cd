"""Refusals in the dialect of Invision Community: a code and a name, with the status that its clients expect."""

from typing import Any, Final

import httpx
import pytest

from tests.api_client import ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import MEMBERS, Community
from tests.fixture_types import MakeKey


def check(answer: httpx.Response, status: int, code: str, message: str) -> None:
    """Check that an answer is a refusal of the dialect."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json;charset=UTF-8"), answer.text
    assert list(answer.json().items()) == [("errorCode", code), ("errorMessage", message)]


REFUSALS: Final[list[tuple[str, str, dict[str, str] | None, tuple[int, str, str]]]] = [
    ("GET", "/core/groups/999", None, (404, "1C358/1", "INVALID_ID")),
    ("DELETE", "/core/groups/999", None, (404, "1C358/2", "INVALID_ID")),
    ("DELETE", f"/core/groups/{MEMBERS}", None, (403, "2C358/3", "CANNOT_DELETE")),
    ("GET", "/forums/forums/999", None, (404, "1F363/1", "INVALID_ID")),
    ("GET", "/forums/forums/none", None, (404, "1F363/1", "INVALID_ID")),
    ("DELETE", "/forums/forums/999", None, (404, "1S359/1", "INVALID_ID")),
    ("POST", "/forums/forums", {"type": "normal"}, (400, "1F363/2", "NO_TITLE")),
    ("POST", "/forums/forums", {"title": "Away", "type": "redirect"}, (400, "1F363/3", "NO_REDIRECT_URL")),
    ("POST", "/forums/forums", {"title": "What", "type": "shop"}, (400, "1F363/4", "INVALID_TYPE")),
    ("POST", "/forums/forums", {"title": "Lost", "parent": "999"}, (400, "1T101/3", "INVALID_PARENT")),
    ("GET", "/calendar/calendar/999", None, (404, "1L364/1", "INVALID_ID")),
    ("DELETE", "/calendar/calendars/999", None, (404, "1S359/1", "INVALID_ID")),
    ("POST", "/calendar/calendar", {"color": "#000000"}, (400, "1L364/2", "NO_TITLE")),
    ("GET", "/downloads/category/999", None, (404, "1D365/1", "INVALID_ID")),
    ("DELETE", "/downloads/categories/999", None, (404, "1S359/1", "INVALID_ID")),
    ("DELETE", "/blog/blogs/999", None, (404, "2B302/2", "INVALID_ID")),
    ("GET", "/core/members", None, (404, "2S291/1", "NO_ENDPOINT")),
    ("PUT", "/forums/forums", None, (405, "3S291/2", "BAD_METHOD")),
]


def test_a_refusal_is_a_code_and_a_name(invision: ApiClient, community: Community) -> None:
    for method, path, body, refusal in REFUSALS:
        check(invision(method, path, **({} if body is None else {"data": body})), *refusal)


def test_children_that_have_nowhere_to_go_are_not_found(invision: ApiClient, api: ApiClient, community: Community) -> None:
    path = f"/forums/forums/{community.news}"
    check(invision.delete(path), 404, "1S359/3", "HAS_CHILDREN")
    check(invision.delete(path, params={"deleteChildrenOrMove": ""}), 404, "1S359/3", "HAS_CHILDREN")
    for target in ("999", "0", "x", str(community.betas)):
        check(invision.delete(path, params={"deleteChildrenOrMove": target}), 404, "1S359/2", "INVALID_TARGET")
    read_refusal(api.delete(path), 409, "HAS_CHILDREN")
    read_refusal(api.delete(path, params={"deleteChildrenOrMove": "999"}), 400, "INVALID_TARGET")
    moved = invision("DELETE", path, data={"deleteChildrenOrMove": str(community.help)})
    assert (moved.status_code, moved.json()) == (200, None)
    assert invision.get(f"/forums/forums/{community.releases}").json()["parentId"] == community.help


@pytest.mark.parametrize("target", ["0", "x", "999"])
def test_it_does_not_matter_where_children_would_go_of_what_has_none(
    invision: ApiClient, api: ApiClient, community: Community, target: str
) -> None:
    sent = {"deleteChildrenOrMove": target}
    for client, number in ((invision, community.meetups), (api, community.holidays)):
        deleted = client.delete(f"/calendar/calendar/{number}", params=sent)
        assert (deleted.status_code, deleted.json()) == (200, None)
    assert invision.delete(f"/core/groups/{community.patrons}", params=sent).json() is None
    assert invision.delete(f"/blog/blogs/{community.notebook}", params=sent).json() is None


def test_a_refusal_before_an_endpoint_is_found_is_in_the_dialect_once_the_key_is_known(
    make_api: MakeApiClient, community: Community, key: MakeKey
) -> None:
    client = make_api(key("forums.list", dialect="invision", rateLimit=2))
    check(client.get("/forums/forums/1"), 403, "2S291/3", "NO_PERMISSION")
    assert client.get("/forums/forums").status_code == 200
    limited = client.get("/forums/forums")
    check(limited, 429, "1T103/1", "RATE_LIMITED")
    assert int(limited.headers["retry-after"]) >= 0
    read_refusal(client.get("/forums/forums", key="trl_nobody"), 401, "INVALID_API_KEY")
    read_refusal(client.get("/forums/forums", key=None), 401, "NO_API_KEY")


@pytest.mark.either_engine
def test_bodies_that_cannot_be_read_are_refused_in_the_dialect(invision: ApiClient) -> None:
    sent: dict[str, Any] = {"content": b"{", "headers": {"Content-Type": "application/json"}}
    check(invision("POST", "/forums/forums", **sent), 400, "1T100/1", "MALFORMED_REQUEST")
    sent = {"content": b"title", "headers": {"Content-Type": "text/plain"}}
    check(invision("POST", "/forums/forums", **sent), 415, "1T100/2", "UNSUPPORTED_MEDIA_TYPE")


def test_a_key_in_the_url_is_accepted_from_a_key_with_the_dialect_alone(
    make_api: MakeApiClient, community: Community, key: MakeKey
) -> None:
    theirs, ours = key("*", dialect="invision"), key("*")
    client = make_api()
    for path in (
        f"/forums/forums?key={theirs}",
        f"/index.php?/forums/forums&key={theirs}",
        f"/index.php?/forums/forums?key={theirs}",
    ):
        for _ in range(2):
            answer = client.get(path, key=None)
            assert answer.status_code == 200, answer.text
            assert theirs not in answer.text + str(answer.headers)
    assert client.get(f"/forums/forums?perPage=1&key={theirs}", key=None).json()["perPage"] == 1
    created = client.post(f"/forums/forums?key={theirs}", key=None, data={"title": "By URL"})
    assert created.status_code == 201
    beside = {"Authorization": "Bearer a-token-of-somebody-else"}
    assert client.get(f"/forums/forums?key={theirs}", key=None, headers=beside).status_code == 200
    for text in (ours, theirs[:-1] + "?", "x"):
        read_refusal(client.get(f"/forums/forums?key={text}", key=None), 403, "CANNOT_USE_KEY_AS_URL_PARAM")
    read_refusal(client.get(f"/forums/forums?key={theirs}", key=ours), 403, "CANNOT_USE_KEY_AS_URL_PARAM")


@pytest.mark.parametrize("shown", [True, False])
def test_the_log_has_the_code_that_was_sent(
    make_api: MakeApiClient, community: Community, key: MakeKey, run: Any, shown: bool
) -> None:
    client = make_api(key("*", dialect="invision" if shown else "trellis"))
    client.delete("/calendar/calendar/999")
    client.do(client.application.service.log.flush())
    (logged,) = run("requests.list")["results"]
    assert (logged["operation"], logged["error"]) == ("calendars.delete", "1S359/1" if shown else "1L364/6")


def test_a_create_sent_again_whose_record_is_gone_says_so(invision: ApiClient, api: ApiClient) -> None:
    body, sent = {"title": "News", "type": "discussions"}, {"Idempotency-Key": "a-1"}
    made = invision.post("/forums/forums", body, headers=sent)
    api.delete(f"/forums/forums/{made.json()['id']}")
    check(invision.post("/forums/forums", body, headers=sent), 409, "1T102/4", "IDEMPOTENCY_RECORD_GONE")
