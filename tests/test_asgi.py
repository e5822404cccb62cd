"""The application: what stands beside the API, what it is told about the database, and how it starts."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.api_client import ApiClient, read_refusal
from tests.api_fixtures import MakeApiClient, api, make_api, serve, service
from tests.community import Community
from tests.service_process import Service
from trellis import asgi
from trellis.asgi import Application
from trellis.core.keys.secret import new_secret
from trellis.errors import Refused
from trellis.http.policy import POLICY
from trellis.settings import PREFIX, Settings
from trellis.store import sqlite
from trellis.store.engine.faults import FileGone
from trellis.store.engine.transaction import Transaction

__all__ = ["api", "make_api", "serve", "service"]


def get(application: Application, path: str) -> httpx.Response:
    async def asked() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application), base_url="http://api.example") as client:
            return await client.get(path)

    return asyncio.run(asked())


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/healthz", 200, "ok"),
        ("/", 307, ""),
        ("/nothing", 404, "/api/docs"),
        ("/apiary", 404, "/api/docs"),
        ("/healthz/", 404, "/api/docs"),
    ],
)
def test_what_stands_beside_the_api(api: ApiClient, path: str, status: int, told: str) -> None:
    answer = get(api.application, path)
    assert (answer.status_code, told in answer.text) == (status, True)
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    policy = answer.headers["content-security-policy"].split("; ")
    assert policy == ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    assert "strict-transport-security" not in answer.headers
    assert answer.headers.get("location") == ("/api/docs" if status == 307 else None)


def test_beside_the_api_too_browsers_insist_on_https_where_callers_use_it(make_api: MakeApiClient) -> None:
    api = make_api(public_url="https://api.example")
    for path in ("/healthz", "/", "/nothing", "/api/nothing"):
        answer = get(api.application, path)
        assert answer.headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"


def test_the_root_leads_to_the_reference_below_the_public_address(make_api: MakeApiClient) -> None:
    api = make_api(public_url="https://example.com/trellis")
    assert get(api.application, "/").headers["location"] == "/trellis/api/docs"


def test_all_below_api_is_the_apis(api: ApiClient) -> None:
    for path in ("/api", "/api/", "/api/nothing"):
        read_refusal(get(api.application, path), 401, "NO_API_KEY")


def test_what_is_not_http_is_refused(api: ApiClient) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(_message: Any) -> None:
        raise AssertionError("nothing is to be answered")

    with pytest.raises(RuntimeError, match="does not support websocket"):
        api.do(api.application({"type": "websocket", "path": "/api", "headers": []}, receive, send))


@pytest.fixture
def unreachable() -> Settings:
    """Settings for a PostgreSQL server that is not there."""
    return Settings.load({"TRELLIS_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing", "TRELLIS_BUSY_TIMEOUT": "1"}, None)


def test_without_its_database_the_service_says_so_and_asks_to_be_asked_again(
    unreachable: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    outside = ApiClient(Application(unreachable), str(new_secret()))
    health = get(outside.application, "/healthz")
    assert (health.status_code, "database" in health.text) == (503, True)
    read_refusal(outside.get("/forums/forums", key=None), 401, "NO_API_KEY")
    answer = outside.get("/forums/forums")
    assert read_refusal(answer, 503, "BUSY")["errorCode"] == "4T104/1"
    assert int(answer.headers["retry-after"]) >= 1
    assert "could not be used" in caplog.text
    outside.close()
    outside.application.gate.store.close()


def test_it_starts_only_over_a_database_at_the_newest_step(empty_database: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}DATABASE_URL", empty_database.database_url)
    with pytest.raises(RuntimeError, match=r"trellis migrate"):
        asgi.create()


def test_it_starts_from_the_environment(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}DATABASE_URL", settings.database_url)
    monkeypatch.setenv(f"{PREFIX}COMMUNITY_NAME", "By environment")
    application = asgi.create()
    assert application.gate.environment.community_name == "By environment"
    assert get(application, "/healthz").text == "ok\n"
    asyncio.run(application.service.close())
    application.gate.store.close()


def test_a_running_service_is_healthy_and_says_nothing_about_its_server(service: Service) -> None:
    answer = service.client.get(f"{service.address}/healthz")
    assert (answer.status_code, answer.text) == (200, "ok\n")
    assert "server" not in answer.headers
    assert service.client.get(service.address, follow_redirects=False).headers["location"] == "/api/docs"


def test_a_request_that_does_not_name_its_host_once_is_refused_everywhere(service: Service) -> None:
    for path in ("/", "/healthz", "/nothing", "/admin", "/admin/sign-in", "/api/docs", "/api/openapi.json", "/api/forums/forums"):
        for hosts in ("", "Host: a.example\r\nHost: b.example\r\n", "Host: a.example\r\nHost: a.example\r\n"):
            answer = service.raw(f"GET {path} HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n".encode())
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 400 "), (path, answer)
            assert b"exactly one Host header" in body
            assert (b"application/problem+json" in head) == path.startswith("/api/"), path
        once = service.raw(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        assert once.startswith(b"HTTP/1.1 "), path
        assert not once.startswith(b"HTTP/1.1 400"), path
        assert not service.raw(f"GET {path} HTTP/1.0\r\n\r\n".encode()).startswith(b"HTTP/1.1 400"), "older than the header"
    assert service.raw(b"GET /healthz HTTP/1.0\r\n\r\n").endswith(b"ok\n")


def test_what_the_api_answers_runs_nothing_in_a_browser(api: ApiClient, community: Community) -> None:
    forum = f"/forums/forums/{community.news}"
    answers = [
        *(api.get("/forums/forums"), api.get(forum), api.get(forum, headers={"If-None-Match": api.get(forum).headers["etag"]})),
        *(
            api.get(forum, key=None),
            api.get("/nowhere"),
            api.post("/forums/forums", {"name": "<script>"}),
            api.post(forum, {"x": 1}),
        ),
        *(api("HEAD", forum), api("OPTIONS", forum), api("PUT", forum), api.get("/openapi.json"), api.delete(forum)),
    ]
    for answer in answers:
        assert answer.headers.get_list("content-security-policy") == [POLICY[1].decode()], answer.request
    (policy,) = api.get("/docs").headers.get_list("content-security-policy")
    assert "script-src 'self'" in policy, "the reference has scripts of its own"


def lose_file(_tx: Transaction) -> None:
    raise FileGone


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_health_tells_a_fault_of_the_file_until_it_is_over(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sqlite._library, "SQLITE_OPEN_READWRITE", sqlite._library.SQLITE_OPEN_READONLY)
        with pytest.raises(Refused):  # the writer opens the file again for the next write
            api.application.gate.store.write(lose_file, quiet=True).result(30)
        refused = read_refusal(api.post("/forums/forums", json={"name": "News"}), 503, "BUSY")
        assert refused["detail"].startswith("The database cannot be written to.")
        health = get(api.application, "/healthz")
        assert (health.status_code, health.text) == (503, "The database cannot be written to.\n")
    health = get(api.application, "/healthz")
    assert (health.status_code, health.text) == (200, "ok\n")
    assert api.post("/forums/forums", json={"name": "News"}).status_code == 201
