"""Calls from pages in a browser (CORS): off by default, and what an allowed origin may see."""

import pytest

from tests.api_client import ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import Community

pytestmark = pytest.mark.either_engine

PAGE = "https://app.example"
PREFLIGHT = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}


def cors(headers: object) -> dict[str, str]:
    return {name: value for name, value in dict(headers).items() if name.startswith("access-control-")}  # type: ignore[call-overload]  # httpx's headers are a mapping


def words(text: str) -> set[str]:
    return {word.strip().lower() for word in text.split(",")}


def test_without_a_setting_no_page_may_call(api: ApiClient) -> None:
    assert cors(api.get("/forums/forums", headers={"Origin": PAGE}).headers) == {}
    assert cors(api("OPTIONS", "/forums/forums", key=None, headers=PREFLIGHT).headers) == {}


def test_a_page_of_an_allowed_origin_may_call_and_read_every_header_of_ours(make_api: MakeApiClient, community: Community) -> None:
    api = make_api(cors_origins=(PAGE, "https://other.example"))
    listed = api.get("/forums/forums", headers={"Origin": PAGE})
    assert listed.headers["access-control-allow-origin"] == PAGE
    exposed = words(listed.headers["access-control-expose-headers"])
    dry = api.delete(f"/forums/forums/{community.betas}?dryRun=1", headers={"Origin": PAGE})
    made = api.post("/forums/forums", {"name": "Here"}, headers={"Origin": PAGE, "Idempotency-Key": "a"})
    again = api.post("/forums/forums", {"name": "Here"}, headers={"Origin": PAGE, "Idempotency-Key": "a"})
    ours = {
        "link",
        "etag",
        "location",
        "dry-run",
        "idempotent-replayed",
        "x-request-id",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
    }
    ours |= {"x-ratelimit-reset", "retry-after"}
    assert exposed >= ours
    sent = {name for answer in (listed, dry, made, again) for name in answer.headers}
    plain = {"content-type", "content-length", "cache-control", "content-security-policy"}
    assert {name for name in sent if not name.startswith("access-control-")} - plain - {"vary", "x-content-type-options"} <= exposed


def test_a_page_may_read_why_it_was_refused(make_api: MakeApiClient) -> None:
    api = make_api(cors_origins=(PAGE,))
    for text, message, status in ((None, "NO_API_KEY", 401), ("x", "INVALID_API_KEY", 401), (api.key, "INVALID_ID", 404)):
        answer = api.get("/forums/forums/99", key=text, headers={"Origin": PAGE})
        read_refusal(answer, status, message)
        assert answer.headers["access-control-allow-origin"] == PAGE


def test_pages_of_other_origins_may_not(make_api: MakeApiClient) -> None:
    api = make_api(cors_origins=(PAGE,))
    for origin in ("https://evil.example", "http://app.example", f"{PAGE}.evil.example", f"{PAGE}/", "null", "*"):
        assert cors(api.get("/forums/forums", headers={"Origin": origin}).headers) == {}
        assert (
            "access-control-allow-origin"
            not in api("OPTIONS", "/forums/forums", key=None, headers=PREFLIGHT | {"Origin": origin}).headers
        )
    assert cors(api.get("/forums/forums").headers) == {}, "no page, no word"


def test_a_star_is_every_origin(make_api: MakeApiClient) -> None:
    api = make_api(cors_origins=("*",))
    assert api.get("/forums/forums", headers={"Origin": "null"}).headers["access-control-allow-origin"] == "null"
    assert "access-control-allow-credentials" not in api.get("/forums/forums", headers={"Origin": PAGE}).headers


def test_a_page_may_read_that_a_path_does_not_exist(make_api: MakeApiClient) -> None:
    api = make_api(cors_origins=(PAGE,))
    for path in ("/forms/forms", "/forums/forums/1/copies"):
        for method in ("GET", "POST", "PUT", "DELETE"):
            asked = api("OPTIONS", path, key=None, headers=PREFLIGHT | {"Access-Control-Request-Method": method})
            assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, PAGE)
            assert method.lower() in words(asked.headers["access-control-allow-methods"])
            assert "authorization" in words(asked.headers["access-control-allow-headers"])
            answer = api(method, path, headers={"Origin": PAGE})
            read_refusal(answer, 404, "NO_ENDPOINT")
            assert answer.headers["access-control-allow-origin"] == PAGE
        read_refusal(api("OPTIONS", path, headers={"Origin": PAGE}), 404, "NO_ENDPOINT")
    closed = make_api(cors_origins=())
    read_refusal(closed("OPTIONS", "/forms/forms", key=None, headers=PREFLIGHT), 401, "NO_API_KEY")


def test_a_browser_may_ask_first(make_api: MakeApiClient) -> None:
    api = make_api(cors_origins=(PAGE,))
    answer = api("OPTIONS", "/forums/forums/1", key=None, headers=PREFLIGHT)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert words(answer.headers["access-control-allow-methods"]) >= {"get", "post", "delete"}
    taken = {
        "authorization",
        "content-type",
        "idempotency-key",
        "if-match",
        "if-none-match",
        "x-api-key",
        "change-set",
        "mcp-method",  # for /mcp: both have one list
        "mcp-name",
        "mcp-protocol-version",
        "traceparent",
        "tracestate",  # nothing is made of it, but a page that traces sends it beside the other
        "x-audit-log-reason",
        "x-request-id",
    }
    assert words(answer.headers["access-control-allow-headers"]) == taken
    assert int(answer.headers["access-control-max-age"]) > 0
