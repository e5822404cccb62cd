"""Calls of tools: what they return, what is refused and how, and that they are judged like requests to the API."""

import asyncio
import re
import threading
from itertools import product
from typing import Any, Final

import orjson
import pytest

from tests.agent_client import ENVELOPE, OLDER, VERSION, AgentClient
from tests.api_client import ApiClient, chunks
from tests.api_fixtures import MakeApiClient
from tests.community import CATALOGUE, Community
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey, Run
from trellis.core.version import encode_json
from trellis.mcp import results

FORUMS: Final = "/forums/forums"


def key_id(run: Run) -> int:
    """Return the id of the youngest key."""
    return int(run("keys.list", perPage=1000)["results"][-1]["id"])


# --- reading ------------------------------------------------------------------------------------------------------


def test_a_read_returns_what_the_api_returns(agent: AgentClient, api: ApiClient, community: Community) -> None:
    for _ in range(2):  # the second from memory
        assert agent.value("forums.get", {"id": community.news}) == api.get(f"{FORUMS}/{community.news}").json()
        listed = agent.value("forums.list", {"perPage": 2, "sortBy": "name", "parentId": "root"})
        assert listed == api.get(f"{FORUMS}?perPage=2&sortBy=name&parentId=root").json()


@pytest.mark.either_engine
def test_what_is_too_large_for_an_agent_is_refused_with_what_to_do(
    agent: AgentClient, run: Run, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result stands in its response twice; the API returns eight times as much."""
    monkeypatch.setattr(results, "MOST_BYTES", 2**20)
    for number in range(12):
        run("forums.create", name=f"Forum {number}", parentId=community.help, description="x" * 100_000)
    for tool, arguments in (
        ("forums.list", {"parentId": community.help}),
        ("forums.tree", {}),
        ("events.list", {"order": "newest", "limit": 20}),
        ("structure.export", {"format": "json"}),
        ("structure.export", {"format": "yaml"}),
    ):
        told = agent.problem(tool, arguments)
        assert (told["status"], told["errorMessage"]) == (400, "PAGE_TOO_LARGE")
        assert told["detail"].startswith("The result has more than 1 MiB. Ask for less at once:")
        assert {field.name for field in CATALOGUE.find(tool).fields}.intersection(re.findall(r"\w+", told["detail"]))
    assert agent.error("resources/read", {"uri": "trellis://tree/forums"})["status"] == 400
    assert len(agent.value("forums.list", {"parentId": community.help, "perPage": 10})["results"]) == 10


def test_what_is_too_large_for_an_agent_is_not_counted(
    agent: AgentClient, key: MakeKey, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "MOST_BYTES", 5000)
    for number in range(3):
        run("forums.create", name=f"Forum {number}", description="x" * 2000)
    reader = key("forums.list", bounds={"forums.list": {"perDay": 1}})
    for _ in range(2):
        assert agent.problem("forums.list", key=reader)["errorMessage"] == "PAGE_TOO_LARGE"
        told = agent.error("resources/read", {"uri": "trellis://tree/forums"}, key=reader)
        assert told["data"]["errorMessage"] == "PAGE_TOO_LARGE"
    assert agent.value("forums.list", {"perPage": 1}, key=reader)["totalResults"] == 3
    assert agent.problem("forums.list", {"perPage": 1}, key=reader)["errorMessage"] == "GRANT_USED_UP"


def test_a_read_has_the_version_of_the_api(agent: AgentClient, api: ApiClient, community: Community) -> None:
    tag = agent.call("forums.get", {"id": community.news})["_meta"]["trellis/etag"]
    assert api.get(f"{FORUMS}/{community.news}").headers["etag"] == f'"{tag}"'


def test_what_is_in_memory_is_gone_after_a_change(agent: AgentClient, community: Community) -> None:
    agent.value("forums.get", {"id": community.news})
    agent.value("forums.update", {"id": community.news, "name": "Other news"})
    assert agent.value("forums.get", {"id": community.news})["name"] == "Other news"


def test_what_is_in_memory_is_not_for_a_key_without_the_grant(agent: AgentClient, key: MakeKey, community: Community) -> None:
    agent.value("forums.get", {"id": community.news})
    told = agent.problem("forums.get", {"id": community.news}, key=key("forums.list"))
    assert (told["errorMessage"], told["missingOperation"]) == ("NO_PERMISSION", "forums.get")


def test_ids_may_be_numbers_or_their_text(agent: AgentClient, community: Community) -> None:
    for given in (community.news, str(community.news), float(community.news)):
        assert agent.value("forums.get", {"id": given})["id"] == community.news


def test_answers_are_ours_whatever_dialect_the_key_has(agent: AgentClient, key: MakeKey, community: Community) -> None:
    text = key("forums.get", dialect="invision")
    assert agent.value("forums.get", {"id": community.news}, key=text) == agent.value("forums.get", {"id": community.news})


def test_a_text_is_returned_as_it_is(agent: AgentClient) -> None:
    result = agent.call("structure.export", {"format": "yaml"})
    assert "structuredContent" not in result
    assert "format: trellis/1" in result["content"][0]["text"]


# --- writing ------------------------------------------------------------------------------------------------------


def test_a_write_says_which_event_it_left(agent: AgentClient, database: DatabaseState) -> None:
    with database.new_events() as new_events:
        result = agent.call("forums.create", {"name": "News", "permissions": {"view": "*"}})
    (event,) = new_events()
    assert result["_meta"]["trellis/event"] == event["seq"]
    assert result["content"][1]["text"] == f"Recorded as event {event['seq']}."
    assert event["after"] == result["structuredContent"]
    undone = agent.value("events.restore", {"id": event["seq"], "deleteCreated": True})
    assert undone["record"] is None


def test_a_dry_run_changes_nothing(agent: AgentClient, community: Community, database: DatabaseState) -> None:
    with database.unchanged():
        result = agent.call("forums.delete", {"id": community.news, "deleteChildrenOrMove": -1, "dryRun": True})
    assert result["_meta"]["trellis/dryRun"] is True
    assert result["structuredContent"]["dryRun"] is True
    assert community.news in result["structuredContent"]["deleted"]["ids"]
    assert result["content"][1]["text"] == "Dry run: nothing has changed."


def test_a_delete_returns_null_and_its_event(agent: AgentClient, community: Community, run: Run) -> None:
    made = run("forums.create", name="Short")["id"]
    result = agent.call("forums.delete", {"id": made})
    assert "structuredContent" not in result
    assert [one["text"] for one in result["content"]] == ["null", f"Recorded as event {result['_meta']['trellis/event']}."]


def test_a_batch_is_all_or_nothing(agent: AgentClient, database: DatabaseState) -> None:
    steps: list[dict[str, Any]] = [
        {"operation": "forums.create", "body": {"name": "News"}, "as": "news"},
        {"operation": "forums.create", "body": {"name": "Old", "parentId": {"$ref": "news.id"}}},
    ]
    result = agent.call("core.batch", {"operations": steps})
    first, second = result["structuredContent"]["results"]
    assert second["result"]["parentId"] == first["result"]["id"]
    assert result["_meta"]["trellis/changeSet"]
    with database.unchanged():
        told = agent.problem("core.batch", {"operations": [*steps, {"operation": "forums.delete", "id": 987_654}]})
    assert (told["errorMessage"], told["index"], told["problem"]["status"]) == ("BATCH_REFUSED", 2, 404)


def test_no_secret_is_made_not_even_inside_a_batch(agent: AgentClient, database: DatabaseState) -> None:
    webhook = {"url": "https://hooks.example/x", "events": ["*"]}
    with database.unchanged():
        assert agent.error("tools/call", {"name": "webhooks.create", "arguments": webhook})["code"] == -32602
        told = agent.problem("core.batch", {"operations": [{"operation": "webhooks.create", "body": webhook}]})
    assert (told["errorMessage"], told["problem"]["errorMessage"]) == ("BATCH_REFUSED", "NOT_FOR_AGENTS")


def test_the_same_idempotency_key_returns_the_first_result(agent: AgentClient, api: ApiClient, database: DatabaseState) -> None:
    meta = {"trellis/idempotencyKey": "call-1"}
    first = agent.call("forums.create", {"name": "News"}, meta=meta)
    with database.unchanged():
        again = agent.call("forums.create", {"name": "News"}, meta=meta)
        over_rest = api.post(FORUMS, {"name": "News"}, headers={"Idempotency-Key": "call-1"})
        other = agent.problem("forums.create", {"name": "Olds"}, meta=meta)
    assert again["structuredContent"] == first["structuredContent"] == over_rest.json()
    assert again["_meta"]["trellis/replayed"] is True
    made = first["structuredContent"]["id"]
    assert (other["errorMessage"], other["resource"], other["id"]) == ("IDEMPOTENCY_KEY_REUSED", "forums", made)
    event = int(api.delete(f"{FORUMS}/{made}").headers["event"])
    told = agent.problem("forums.create", {"name": "News"}, meta=meta)
    assert (told["errorMessage"], told["id"], told["event"]) == ("IDEMPOTENCY_RECORD_GONE", made, event)


def test_a_change_may_be_on_condition_of_the_version_that_was_read(agent: AgentClient, community: Community) -> None:
    tag = agent.call("forums.get", {"id": community.news})["_meta"]["trellis/etag"]
    change = {"id": community.news, "name": "Newer"}
    newer = agent.call("forums.update", change, meta={"trellis/ifMatch": tag})["_meta"]["trellis/etag"]
    assert agent.problem("forums.update", change | {"name": "No"}, meta={"trellis/ifMatch": tag})["status"] == 412
    assert agent.value("forums.update", change | {"name": "Yes"}, meta={"trellis/ifMatch": f'"{newer}"'})["name"] == "Yes"
    in_dialect = f"{agent.call('forums.get', {'id': change['id']})['_meta']['trellis/etag']}.0123456789abcdef01234567"
    assert agent.value("forums.update", change | {"name": "So"}, meta={"trellis/ifMatch": in_dialect})["name"] == "So"


def test_a_reason_and_a_change_set_stand_in_the_event(agent: AgentClient, database: DatabaseState) -> None:
    with database.new_events() as new_events:
        agent.value("forums.create", {"name": "A"}, meta={"trellis/reason": "Räumt auf", "trellis/changeSet": "spring"})
        agent.value("forums.create", {"name": "B"}, headers={"X-Audit-Log-Reason": "Tidy", "Change-Set": "spring"})
        agent.value("forums.create", {"name": "C"}, meta={"trellis/reason": " \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 "})
    one, other, third = new_events()
    assert (one["reason"], other["reason"], third["reason"]) == (
        "Räumt auf",
        "Tidy",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    )
    assert one["changeSet"] == other["changeSet"] is not None
    assert agent.value("events.list", {"reason": third["reason"]})["results"] == [third]


# --- refusals -----------------------------------------------------------------------------------------------------


def test_a_call_that_is_refused_says_why(agent: AgentClient, database: DatabaseState) -> None:
    cases: list[tuple[str, dict[str, Any], int, str]] = [
        ("forums.get", {}, 400, "MISSING_VALUE"),
        ("forums.get", {"id": None}, 400, "MISSING_VALUE"),
        ("forums.get", {"id": 987_654}, 404, "INVALID_ID"),
        ("forums.get", {"id": "news"}, 404, "INVALID_ID"),
        ("forums.get", {"id": [1]}, 404, "INVALID_ID"),
        ("forums.get", {"id": 10**300}, 404, "INVALID_ID"),
        ("forums.list", {"perPage": 10**300}, 400, "INVALID_VALUE"),
        ("forums.list", {"perPage": {"a": [1]}}, 400, "INVALID_VALUE"),
        ("forums.list", {"nonsense": 1}, 400, "UNKNOWN_PARAMETER"),
        ("forums.create", {}, 400, "NO_TITLE"),
        ("forums.create", {"name": 7}, 400, "INVALID_VALUE"),
        ("forums.create", {"name": "A", "parentId": "x"}, 400, "INVALID_PARENT"),
        ("forums.create", {"name": "A", "permissions": {"view": [987_654]}}, 400, "INVALID_GROUP"),
        ("forums.create", {"name": "A" * 2**19}, 400, "INVALID_VALUE"),
        ("forums.create", {"name": "A", "description": [[[[]]]]}, 400, "INVALID_VALUE"),
        ("forums.create", {f"n{number}": 1 for number in range(999)} | {"name": "A"}, 400, "UNKNOWN_PARAMETER"),
        ("forums.update", {"id": 987_654, "name": "A"}, 404, "INVALID_ID"),
    ]
    with database.unchanged():
        for tool, arguments, status, message in cases:
            told = agent.problem(tool, arguments)
            assert (told["status"], told["errorMessage"]) == (status, message), (tool, str(arguments)[:40])
            assert told["detail"]
            assert told["requestId"]


def test_a_grant_that_was_taken_since_is_named(agent: AgentClient, key: MakeKey, run: Run, database: DatabaseState) -> None:
    text = key(["forums.list", "forums.create"])
    assert "forums.create" in {tool["name"] for tool in agent.tools(key=text)}
    run("keys.update", key_id(run), grants=["forums.list"])
    with database.unchanged():
        told = agent.problem("forums.create", {"name": "News"}, key=text)
    assert (told["errorMessage"], told["missingOperation"]) == ("NO_PERMISSION", "forums.create")
    assert "forums.create" not in {tool["name"] for tool in agent.tools(key=text)}


@pytest.mark.either_engine
def test_what_is_no_tool_is_an_error_of_the_protocol(agent: AgentClient, database: DatabaseState) -> None:
    names: list[Any] = ["nonsense", "keys.create", "keys.list", "admins.list", "forums.restore", "", None, 7, [], "x" * 9999]
    with database.unchanged():
        for name in names:
            headers = {"Mcp-Name": str(name)} if isinstance(name, str) else {}
            told = agent.error("tools/call", {"name": name, "arguments": {}}, headers=headers)
            assert told["status"] == 400, name
            assert told["code"] in {-32602, -32020}, name  # what is no text agrees with no header


@pytest.mark.either_engine
def test_a_body_that_is_too_large_is_refused_unread(agent: AgentClient, database: DatabaseState) -> None:
    with database.unchanged():
        told = agent.error("tools/call", {"name": "forums.create", "arguments": {"name": "A" * 2**20}})
    assert (told["status"], told["code"], told["data"]["errorMessage"]) == (413, 413, "BODY_TOO_LARGE")


@pytest.mark.either_engine
def test_a_document_may_be_as_large_as_over_the_api(agent: AgentClient) -> None:
    document = "format: trellis/1\nname: large\ncalendars: []\n#" + "x" * 2**20
    assert agent.value("structure.plan", {"document": document, "allowEmpty": True})["name"] == "large"
    params = {"name": "structure.plan", "arguments": {"document": document, "allowEmpty": True}, "_meta": ENVELOPE}
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    told = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": "structure.plan"}
    in_parts = chunks(body[:1000], body[1000:])  # whose length is not announced
    answer = agent.api("POST", "", prefix="/mcp", content=in_parts, headers={"Content-Type": "application/json", **told})
    assert answer.json()["result"]["structuredContent"]["name"] == "large", answer.text


@pytest.mark.either_engine
def test_older_clients_name_the_tool_of_a_large_document_in_the_body_alone(agent: AgentClient, database: DatabaseState) -> None:
    document = "format: trellis/1\nname: large\ncalendars: []\n#" + "x" * 2**20

    def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        answer = agent.post(orjson.dumps(body), {"MCP-Protocol-Version": OLDER[0]})
        content: dict[str, Any] = answer.json()["result"]["structuredContent"]
        return content

    assert call("structure.plan", {"document": document, "allowEmpty": True})["name"] == "large"
    with database.unchanged():
        assert call("forums.create", {"name": "A", "description": "x" * 2**20})["errorMessage"] == "BODY_TOO_LARGE"


def test_a_number_that_is_too_large_is_refused_and_not_read_as_null(agent: AgentClient, community: Community) -> None:
    """What is in memory of another call is not returned for it."""
    assert agent.value("forums.list", {"parentId": None})["totalResults"] == 4
    params = {"name": "forums.list", "arguments": {"parentId": "?"}, "_meta": ENVELOPE}
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).replace(b'"?"', b"1e999")
    told = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": "forums.list"}
    error = agent.post(body, told).json()["error"]
    assert (error["code"], error["message"]) == (-32700, "The body is not valid JSON: the number 1e999 is too large.")


@pytest.mark.either_engine
def test_only_json_is_read(agent: AgentClient, database: DatabaseState) -> None:
    with database.unchanged():
        for header in ({"Content-Type": "text/plain"}, {"Content-Encoding": "gzip"}):
            answer = agent.send("tools/call", {"name": "forums.create", "arguments": {}}, headers=header)
            assert (answer.status_code, answer.json()["error"]["data"]["errorMessage"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.either_engine
def test_only_posts_are_answered(agent: AgentClient) -> None:
    for method in ("GET", "DELETE", "PUT", "HEAD"):
        answer = agent.api(method, "", prefix="/mcp")
        assert (answer.status_code, answer.headers["allow"]) == (405, "OPTIONS, POST"), method


# --- who asks -----------------------------------------------------------------------------------------------------


@pytest.mark.either_engine
def test_without_a_key_nothing_is_told(agent: AgentClient, database: DatabaseState) -> None:
    with database.unchanged():
        for method in ("server/discover", "initialize", "tools/list", "nonsense"):
            answer = agent.send(method, key=None)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="trellis"')
            assert answer.json()["error"]["data"]["errorMessage"] == "NO_API_KEY"


def test_bad_keys_count_with_those_of_the_api(make_api: MakeApiClient) -> None:
    api = make_api(bad_key_limit=2)
    agent = AgentClient(api)
    assert agent.send("tools/list", key="nonsense").status_code == 401
    assert api.get(FORUMS, key="nonsense").status_code == 401
    assert agent.send("tools/list").status_code == 429
    assert api.get(FORUMS).status_code == 429


def test_calls_and_requests_share_one_limit(make_api: MakeApiClient) -> None:
    api = make_api(rate_limit=3)
    agent = AgentClient(api)
    assert agent.send("tools/list").headers["x-ratelimit-remaining"] == "2"
    assert api.get(FORUMS).headers["x-ratelimit-remaining"] == "1"
    agent.value("forums.list")
    answer = agent.send("tools/call", {"name": "forums.list", "arguments": {}})
    assert (answer.status_code, answer.headers["x-ratelimit-remaining"]) == (429, "0")
    assert answer.json()["error"]["data"]["errorMessage"] == "RATE_LIMITED"
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("origin", "changes", "status"),
    [
        (None, {}, 200),
        ("http://api.example:8000", {}, 403),  # that of the address itself, which a page elsewhere may have taken on
        ("http://api.example:8000", {"public_url": "http://api.example:8000"}, 200),
        ("https://evil.example", {"public_url": "http://api.example:8000"}, 403),
        ("null", {"public_url": "http://api.example:8000"}, 403),
        ("https://desk.example", {"cors_origins": ("https://desk.example",)}, 200),
        ("https://evil.example", {"cors_origins": ("https://desk.example",)}, 403),
        ("https://evil.example", {"cors_origins": ("*",)}, 200),
    ],
)
def test_pages_of_other_origins_are_refused(make_api: MakeApiClient, origin: str | None, changes: Any, status: int) -> None:
    agent = AgentClient(make_api(**changes))
    answer = agent.send("tools/list", headers={} if origin is None else {"Origin": origin})
    assert answer.status_code == status
    allowed = answer.headers.get("access-control-allow-origin")
    assert allowed == (origin if "cors_origins" in changes and status == 200 else None)
    if status == 403:
        assert answer.json()["error"]["data"]["errorMessage"] == "ORIGIN_NOT_ALLOWED"


@pytest.mark.either_engine
def test_a_page_on_this_machine_may_ask_a_service_on_it(make_api: MakeApiClient) -> None:
    agent = AgentClient(make_api())
    for host in ("localhost:8000", "127.0.0.1:8000", "[::1]:8000"):
        assert agent.send("tools/list", headers={"Host": host, "Origin": f"http://{host}"}).status_code == 200
    for host, origin in (("localhost:8000", "http://localhost:9"), ("[", "http://[")):
        assert agent.send("tools/list", headers={"Host": host, "Origin": origin}).status_code == 403


@pytest.mark.either_engine
def test_a_browser_that_asks_first_is_told_what_it_may_send(make_api: MakeApiClient) -> None:
    api = make_api(cors_origins=("https://desk.example",))
    answer = api("OPTIONS", "", prefix="/mcp", key=None, headers={"Origin": "https://desk.example"})
    assert answer.status_code == 204
    named = {name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")}
    assert {"authorization", "content-type", "mcp-method", "mcp-name", "mcp-protocol-version"} <= named


# --- what is logged -----------------------------------------------------------------------------------------------


def logged(agent: AgentClient, run: Run) -> list[dict[str, Any]]:
    agent.api.do(agent.api.application.service.log.flush())
    found: list[dict[str, Any]] = run("requests.list", limit=100)["results"]
    return found


def test_the_log_has_the_tool_and_its_arguments(agent: AgentClient, run: Run, community: Community) -> None:
    agent.value("forums.get", {"id": community.news})
    agent.problem("forums.get", {"id": 987_654})
    agent.tools()
    agent.error("tools/call", {"name": "nonsense", "arguments": {}})
    unknown, listed, refused, read = logged(agent, run)[:4]
    assert (read["path"], read["operation"], read["status"]) == (f'/mcp forums.get {{"id":{community.news}}}', "forums.get", 200)
    assert (refused["path"], refused["status"], refused["error"]) == ('/mcp forums.get {"id":987654}', 404, "1F363/1")
    assert (listed["path"], listed["operation"]) == ("/mcp tools/list", None)
    assert (unknown["path"], unknown["status"], unknown["error"]) == ("/mcp tools/call", 400, "-32602")
    assert {one["method"] for one in (unknown, listed, refused, read)} == {"POST"}
    assert read["keyId"] == refused["keyId"] is not None


def test_the_log_has_no_secret_and_not_all_of_what_is_long(agent: AgentClient, run: Run, key: MakeKey) -> None:
    other = key("forums.list")
    secret = "a-password-that-nobody-reads"  # of a test
    agent.value("forums.create", {"name": "Hidden", "password": secret})
    agent.value("core.batch", {"operations": [{"operation": "forums.create", "body": {"name": other, "password": secret}}]})
    document = f"format: trellis/1\nname: it\nforums: [{{externalId: h, name: H, password: {secret}}}]"
    agent.value("structure.apply", {"document": document})
    agent.value("forums.create", {"name": "Long", "description": "long " * 10_000})
    agent.value("forums.create", {"name": "Cut", "description": f"{'A' * 53} {other} and more"})
    agent.error("A" * 40 + other, {})
    rows = [row for row in logged(agent, run) if row["path"].startswith("/mcp")]
    assert len(rows) == 6
    assert not any(secret in row["path"] or other[:15] in row["path"] for row in rows)
    assert all(len(row["path"]) <= 512 for row in rows)
    assert '"name":"Hidden","password":"…"' in rows[-1]["path"]


def test_a_method_that_not_every_database_can_hold_keeps_no_request_out_of_the_log(agent: AgentClient, run: Run) -> None:
    agent.tools()
    agent.post(orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "odd\0method", "params": {}}), {"MCP-Protocol-Version": OLDER[0]})
    assert [one["path"] for one in logged(agent, run)] == ["/mcp odd\ufffdmethod", "/mcp tools/list"]


def test_a_key_whose_requests_are_not_logged_leaves_none(agent: AgentClient, run: Run, key: MakeKey) -> None:
    agent.value("forums.list", key=key("forums.list", logRequests=False))
    assert not [row for row in logged(agent, run) if row["path"].startswith("/mcp")]


# --- resources ----------------------------------------------------------------------------------------------------


@pytest.mark.either_engine
def test_resources_are_listed_by_grants(agent: AgentClient, key: MakeKey) -> None:
    def listed(*grants: str) -> list[str]:
        return [one["uri"] for one in agent.ask("resources/list", key=key(grants))["resources"]]

    assert listed() == ["trellis://guide"]
    assert listed("forums.list") == ["trellis://guide", "trellis://tree/forums"]
    assert listed("events.list", "categories.list") == ["trellis://guide", "trellis://tree/categories", "trellis://events"]


def test_a_resource_holds_what_its_operation_returns(agent: AgentClient, api: ApiClient, community: Community) -> None:
    for uri, path in (("trellis://tree/forums", f"{FORUMS}/tree"), ("trellis://events", "/core/events?order=newest&limit=20")):
        result = agent.ask("resources/read", {"uri": uri})
        (held,) = result["contents"]
        assert (held["uri"], held["mimeType"], result["ttlMs"], result["cacheScope"]) == (uri, "application/json", 0, "private")
        assert orjson.loads(held["text"]) == api.get(path).json()
    assert community.news


@pytest.mark.either_engine
def test_what_may_be_large_is_not_encoded_on_the_event_loop(
    agent: AgentClient, api: ApiClient, monkeypatch: pytest.MonkeyPatch, community: Community
) -> None:
    encoded = list[str]()

    def note_thread(value: Any) -> bytes:
        if "News" in str(value):
            encoded.append(threading.current_thread().name)
        return encode_json(value)

    for module, name in product(("mcp.results", "rest.dialect.translator"), ("encode_json", "encode_large")):
        monkeypatch.setattr(f"trellis.{module}.{name}", note_thread)
    steps = {"operations": [{"operation": "forums.get", "id": community.news}]}
    agent.ask("resources/read", {"uri": "trellis://tree/forums"})
    agent.value("core.batch", steps)
    assert api.post("/core/batch", steps).status_code == 200
    assert len(encoded) >= 5
    assert threading.main_thread().name not in encoded


@pytest.mark.either_engine
def test_the_guide_is_a_page(agent: AgentClient, key: MakeKey) -> None:
    (held,) = agent.ask("resources/read", {"uri": "trellis://guide"}, key=key())["contents"]
    assert held["mimeType"] == "text/markdown"
    assert held["text"].startswith("# Trellis")


@pytest.mark.either_engine
def test_a_resource_that_may_not_be_read_is_not_there(agent: AgentClient, key: MakeKey) -> None:
    reader = key("categories.list")
    for uri in ("trellis://nonsense", "trellis://tree/forums", "file:///etc/passwd", "", 7):
        headers = {} if isinstance(uri, str) else {"Mcp-Name": "7"}
        told = agent.error("resources/read", {"uri": uri}, key=reader, headers=headers)
        assert told["status"] == 400, uri
        assert told["code"] in {-32602, -32020}, uri


def test_a_tree_that_is_too_large_to_read_is_refused(agent: AgentClient, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    monkeypatch.setattr("trellis.core.nodes.outline._MOST_IN_TREE", 1)
    for name in ("A", "B"):
        run("forums.create", name=name)
    told = agent.error("resources/read", {"uri": "trellis://tree/forums"})
    assert (told["status"], told["code"], told["data"]["errorMessage"]) == (400, 400, "TREE_TOO_LARGE")


def test_many_calls_at_once_are_each_answered(agent: AgentClient, community: Community) -> None:
    params = {"name": "forums.get", "arguments": {"id": community.news}}

    async def all_at_once() -> list[Any]:
        return list(await asyncio.gather(*[agent.sending("tools/call", params) for _ in range(20)]))

    answers = agent.api.do(all_at_once())
    assert [answer.status_code for answer in answers] == [200] * 20, answers[0].text
    assert len({answer.json()["id"] for answer in answers}) == 20
    assert len({answer.json()["result"]["content"][0]["text"] for answer in answers}) == 1


def test_many_calls_in_parts_at_once_are_each_answered(agent: AgentClient, community: Community) -> None:
    """An older client, or a proxy before it, that announces no length is not one that sends large bodies."""
    params = {"name": "forums.get", "arguments": {"id": community.news}}
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": OLDER[0]}

    async def all_at_once() -> list[Any]:
        sent = [agent.api.sending("POST", "", prefix="/mcp", content=chunks(body[:9], body[9:]), headers=headers) for _ in range(9)]
        return list(await asyncio.gather(*sent))

    assert [answer.json()["result"]["structuredContent"]["id"] for answer in agent.api.do(all_at_once())] == [community.news] * 9
