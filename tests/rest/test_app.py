"""Paths and methods: what is served where, and what is answered to everything else."""

import pytest

from tests.api_client import ApiClient, read_field_errors, read_refusal
from tests.api_fixtures import MakeApiClient
from tests.community import COMMUNITY_URL, GRANTABLE, Community, grantable
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, MakeKey
from tests.service_process import Service
from trellis.http.policy import POLICY as NOTHING
from trellis.rest.docs.reference import POLICY

RECORD_METHODS = "DELETE, GET, HEAD, OPTIONS, POST"


def test_hello_tells_any_good_key_about_the_service_and_about_itself(api: ApiClient, key: MakeKey, clock: Clock) -> None:
    nobody = key([], name="Bystander", expires="1d")
    answer = api.get("/core/hello", key=nobody)
    assert answer.status_code == 200
    told = answer.json()
    version = told.pop("version")
    assert version[0].isdigit()
    clock.move(days=1)
    expires = clock.text
    assert told == {
        "communityName": "The Lantern",
        "communityUrl": COMMUNITY_URL,
        "key": {"name": "Bystander", "dialect": "trellis", "expiresAt": expires, "operations": [], "bounds": {}, "perDay": None},
    }


def test_hello_names_every_operation_that_the_key_may_run(api: ApiClient, key: MakeKey) -> None:
    assert len(api.get("/core/hello").json()["key"]["operations"]) == GRANTABLE
    some = api.get("/core/hello", key=key(["forums.list", "calendars.*"])).json()["key"]
    assert some["operations"] == grantable("calendars.*", "forums.list")
    assert some["expiresAt"] is None


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("path", "also"), [("/calendar/calendar", "/calendar/calendars"), ("/downloads/category", "/downloads/categories")]
)
def test_the_other_path_of_a_resource_serves_the_same(api: ApiClient, database: DatabaseState, path: str, also: str) -> None:
    made = api.post(also, {"name": "Elsewhere"})
    assert made.status_code == 201
    number = made.json()["id"]
    assert made.headers["location"].endswith(f"/api{path}/{number}")
    assert api.get(f"{also}/{number}").json() == api.get(f"{path}/{number}").json() == made.json()
    assert api.get(also).json() == api.get(path).json()
    assert api.post(f"{also}/{number}", {"name": "Here"}).json()["name"] == "Here"
    assert api.delete(f"{also}/{number}").json() is None
    read_refusal(api.get(f"{path}/{number}"), 404, "INVALID_ID")
    assert [event["operation"].partition(".")[2] for event in database.events()[-3:]] == ["create", "update", "delete"]


@pytest.mark.either_engine
def test_a_path_with_a_trailing_slash_is_the_same_path(api: ApiClient, community: Community) -> None:
    assert api.get("/forums/forums/").content == api.get("/forums/forums").content
    assert api.get(f"/forums/forums/{community.news}/").content == api.get(f"/forums/forums/{community.news}").content
    assert api.post("/forums/forums/", {"name": "Slashed"}).status_code == 201
    assert api.get("/core/hello/").status_code == 200


def test_head_answers_as_get_does_but_without_a_body(api: ApiClient, community: Community) -> None:
    for path, status in (
        ("/forums/forums", 200),
        (f"/forums/forums/{community.news}", 200),
        ("/forums/forums/999", 404),
        ("/core/hello", 200),
    ):
        asked = {"X-Request-Id": "one-and-the-same"}
        get, head = api.get(path, headers=asked), api("HEAD", path, headers=asked)
        assert head.status_code == get.status_code == status
        assert head.content == b""
        assert int(head.headers["content-length"]) == len(get.content)
        passing = {"x-ratelimit-remaining", "x-ratelimit-reset"}
        assert {k: v for k, v in head.headers.items() if k not in passing} == {
            k: v for k, v in get.headers.items() if k not in passing
        }


@pytest.mark.either_engine
def test_head_is_refused_where_get_is(api: ApiClient, community: Community, key: MakeKey) -> None:
    assert api("HEAD", f"/forums/forums/{community.news}/copy").status_code == 405
    assert api("HEAD", "/forums/forums", key=key("forums.get")).status_code == 403
    assert api("HEAD", "/forums/forums", key=None).status_code == 401


@pytest.mark.either_engine
def test_options_needs_no_key_and_tells_the_methods_of_a_path(api: ApiClient) -> None:
    for path, allowed in (
        ("/forums/forums", "GET, HEAD, OPTIONS, POST"),
        ("/forums/forums/1", RECORD_METHODS),
        ("/calendar/calendars/1/", RECORD_METHODS),
        ("/core/groups", "GET, HEAD, OPTIONS"),
        ("/core/groups/2", "DELETE, GET, HEAD, OPTIONS"),
        ("/blog/blogs", "GET, HEAD, OPTIONS"),
        ("/blog/blogs/1", "DELETE, GET, HEAD, OPTIONS"),
        ("/blog/blogs/external/a", "DELETE, GET, HEAD, OPTIONS"),
        ("/core/hello", "GET, HEAD, OPTIONS"),
    ):
        answer = api("OPTIONS", path, key=None)
        assert (answer.status_code, answer.headers["allow"], answer.content) == (204, allowed, b""), path
        assert "content-type" not in answer.headers


@pytest.mark.either_engine
def test_an_unknown_method_is_refused_with_those_that_are_known(
    api: ApiClient, community: Community, database: DatabaseState
) -> None:
    with database.unchanged():
        for method in ("PUT", "PATCH", "TRACE", "CONNECT", "PROPFIND", "BREW", "X" * 500):
            answer = api(method, f"/forums/forums/{community.news}", content=b'{"name": "Changed"}')
            read_refusal(answer, 405, "BAD_METHOD")
            assert answer.headers["allow"] == RECORD_METHODS


@pytest.mark.either_engine
def test_what_is_not_served_over_rest_is_not_there(api: ApiClient, community: Community, database: DatabaseState) -> None:
    with database.unchanged():
        assert read_refusal(api.post("/core/groups", {"name": "Mods"}), 405, "BAD_METHOD")["allow"] == "GET, HEAD, OPTIONS"
        assert (
            read_refusal(api.post("/core/groups/2", {"name": "Mods"}), 405, "BAD_METHOD")["allow"] == "DELETE, GET, HEAD, OPTIONS"
        )
        blog = f"/blog/blogs/{community.notebook}"
        assert read_refusal(api.post(blog, {"name": "Diary"}), 405, "BAD_METHOD")["allow"] == "DELETE, GET, HEAD, OPTIONS"
        assert read_refusal(api.post("/blog/blogs", {"name": "Diary"}), 405, "BAD_METHOD")["allow"] == "GET, HEAD, OPTIONS"
        read_refusal(api.post(f"{blog}/copy"), 404, "NO_ENDPOINT")
        read_refusal(api.get("/blog/blogs/tree"), 404, "INVALID_ID")


NOWHERE = [
    "",
    "/",
    "/nothing",
    "/forums",
    "/forums/",
    "/core",
    "/blog/posts",
    "/Forums/forums",
    "/forums/forums/1/2",
    "/forums%2Fforums",
    "/forums%2fforums/1",
    "/forums/forums%2F1",
    "/forums/%66orums",
    "/forums/forums%00",
    "/forums/%2e%2e/forums/forums",
    "/%2e%2e/healthz",
    "/%2e%2e%2fforums%2fforums",
    "/forums;jsessionid=1/forums",
    "/keys",
    "/events",
    "/{id}",
    "/forums/forums/{id}/{id}",
    "/" + "a" * 4000,
]


@pytest.mark.either_engine
def test_a_path_that_is_not_there_is_not_there_for_anybody(
    api: ApiClient, key: MakeKey, database: DatabaseState, subtests: pytest.Subtests
) -> None:
    nobody = key([])
    with database.unchanged():
        for number, path in enumerate(NOWHERE):
            with subtests.test(path):
                for method in ("GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS"):
                    assert api(method, path, key=None, address=f"192.0.2.{number}").status_code == 401, method
                for method in ("GET", "POST", "DELETE", "PUT", "OPTIONS"):
                    document = read_refusal(api(method, path, key=nobody), 404, "NO_ENDPOINT")
                    assert len(document["detail"]) < 300


IDS = [
    "0",
    "-1",
    "+1",
    "01",
    "1.0",
    "1e0",
    "abc",
    "null",
    "%31",
    "%EF%BC%91",
    "1%20",
    "1%00",
    "..%2f1",
    "%2e",
    "1,2",
    "0x1",
    "9" * 19,
    "9" * 5000,
    str(2**63),
]


def test_what_is_no_id_is_refused_like_an_id_that_is_not_there(
    api: ApiClient, community: Community, database: DatabaseState, subtests: pytest.Subtests
) -> None:
    for path, codes in (
        ("/forums/forums", {"GET": "1F363/1", "POST": "1F363/5", "DELETE": "1S359/1"}),
        ("/core/groups", {"GET": "1C358/1", "DELETE": "1C358/2"}),
    ):
        for method, code in codes.items():
            gone = read_refusal(api(method, f"{path}/987654321"), 404, "INVALID_ID")
            assert gone["errorCode"] == code
            with database.unchanged():
                for text in [*IDS, str(2**63 - 1)]:
                    with subtests.test(f"{method} {path}/{text[:30]}"):
                        document = read_refusal(api(method, f"{path}/{text}"), 404, "INVALID_ID")
                        assert document["errorCode"] == code
                        assert len(document["detail"]) < 300


def test_every_resource_and_operation_has_its_own_code_for_a_missing_record(api: ApiClient) -> None:
    codes = [
        read_refusal(api(method, f"{path}/999999"), 404, "INVALID_ID")["errorCode"]
        for path in ("/forums/forums", "/calendar/calendar", "/downloads/category", "/core/groups", "/blog/blogs")
        for method in ("GET", "POST", "DELETE")
        if method != "POST" or path not in {"/core/groups", "/blog/blogs"}
    ]
    assert len(codes) == len(set(codes)) == 13


def test_a_wrong_id_is_told_before_a_wrong_body(api: ApiClient) -> None:
    read_refusal(api.post("/forums/forums/abc", content=b"{", headers={"Content-Type": "application/json"}), 404, "INVALID_ID")


@pytest.mark.either_engine
def test_every_answer_says_that_it_is_private_and_what_it_is(api: ApiClient) -> None:
    for answer in (
        api.get("/forums/forums"),
        api.get("/forums/forums/9"),
        api.get("/forums/forums", key=None),
        api("OPTIONS", "/forums/forums"),
    ):
        assert answer.headers["cache-control"] == "private, no-cache"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == NOTHING[1].decode()
        assert "strict-transport-security" not in answer.headers
        assert {part.strip() for part in answer.headers["vary"].split(",")} >= {"Authorization", "X-API-Key", "Origin"}
        assert len(answer.headers["x-request-id"]) == 24


def test_a_failure_of_ours_is_a_problem_document_too(
    make_api: MakeApiClient, database: DatabaseState, caplog: pytest.LogCaptureFixture
) -> None:
    api = make_api()
    with database.unchanged():
        api.application.rest.gate.calls.environment = None  # type: ignore[assignment]  # as broken as can be
        try:
            answer = api.get("/core/hello", headers={"X-Request-Id": "the-broken-one"})
        finally:
            api.application.rest.gate.calls.environment = database.environment
    document = read_refusal(answer, 500, "INTERNAL_ERROR")
    assert "Traceback" not in answer.text
    assert "NoneType" not in answer.text
    assert document["requestId"] == "the-broken-one"
    assert "the-broken-one" in caplog.text
    assert api.get("/core/hello").status_code == 200


@pytest.mark.either_engine
def test_paths_are_taken_as_they_were_sent_over_a_real_connection(service: Service, key: MakeKey, community: Community) -> None:
    """Servers and clients tidy paths up; these are sent byte for byte."""
    sent = f"Authorization: Bearer {key('*')}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    for path, status in (
        (f"/api/forums/forums/{community.news}", 200),
        (f"/api/forums/forums/{community.news}/", 200),
        ("/api/forums/../forums/forums", 404),
        ("/api/../api/forums/forums", 404),
        ("/api/%2e%2e/healthz", 404),
        ("/%61pi/forums/forums", 404),
        ("/api/forums%2Fforums", 404),
        ("/api/forums/forums/%2e%2e", 404),
        ("/api//forums/forums", 200),
        ("//api/forums/forums", 200),
        ("/api/index.php?/forums/forums", 200),
        ("/api/index.php/forums/forums", 200),
        ("/api/index.php/../healthz", 404),
        ("/api/index.php?/../healthz", 404),
        ("//healthz", 404),
        ("//admin", 404),
        ("/api/forums/forums?x=%zz", 400),
    ):
        answer = service.raw(b"GET " + path.encode() + b" HTTP/1.1\r\n" + sent)
        assert answer.startswith(b"HTTP/1.1 %d " % status), (path, answer)
    assert service.call("GET", "/core/hello", key("*")).status_code == 200


@pytest.mark.either_engine
def test_an_unknown_parameter_in_the_query_is_refused_wherever_it_stands(
    api: ApiClient, community: Community, database: DatabaseState
) -> None:
    with database.unchanged():
        assert read_field_errors(api.get(f"/forums/forums/{community.news}?fields=name")) == {"fields": "UNKNOWN_PARAMETER"}
        assert read_field_errors(api.get("/core/hello?x=1")) == {"x": "UNKNOWN_PARAMETER"}
        assert read_field_errors(api.delete(f"/forums/forums/{community.betas}?force=1")) == {"force": "UNKNOWN_PARAMETER"}
        assert read_field_errors(api.post("/forums/forums?force=1", {"name": "News"})) == {"force": "UNKNOWN_PARAMETER"}


@pytest.mark.either_engine
def test_where_callers_use_https_browsers_are_told_to_insist_on_it(make_api: MakeApiClient) -> None:
    api = make_api(public_url="https://api.example")
    for answer in (api("GET", "/core/hello"), api("GET", "/core/hello", key=None), api("GET", "/docs", key=None)):
        assert answer.headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"
    other = make_api(public_url="https://api.example", hsts_subdomains=False)
    assert other("GET", "/core/hello").headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.either_engine
def test_the_pages_of_the_reference_keep_a_policy_of_their_own(api: ApiClient) -> None:
    first = api("GET", "/docs", key=None)
    again = api("GET", "/docs", key=None, headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert {answer.headers["content-security-policy"] for answer in (first, again)} == {POLICY}
