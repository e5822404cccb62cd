"""What the protocol asks of a message, in each of its versions: whatever is wrong with one is refused, and nothing is done."""

import base64
from itertools import product
from typing import Any, Final

import httpx
import orjson
import pytest

from tests.agent_client import ENVELOPE, OLDER, VERSION, AgentClient
from tests.database_state import DatabaseState
from tests.fixture_types import MakeKey

pytestmark = pytest.mark.either_engine

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
MISMATCH, UNSUPPORTED = -32020, -32022
CREATE: Final = {"name": "forums.create", "arguments": {"name": "News"}}
VERSIONED: Final = "io.modelcontextprotocol/protocolVersion"
HEADERS: Final = {"MCP-Protocol-Version": VERSION, "Mcp-Method": "tools/call", "Mcp-Name": "forums.create"}


def body(**changes: Any) -> dict[str, Any]:
    """Return a message that creates a forum, with changes; None takes a member away."""
    whole = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**CREATE, "_meta": ENVELOPE}} | changes
    return {name: value for name, value in whole.items() if value is not None}


def sent(params: Any) -> bytes:
    """Return a call with these parameters."""
    return orjson.dumps(body(params=params))


def code(answer: httpx.Response) -> tuple[int, int]:
    """Return the HTTP status and the code of an error."""
    told = answer.json()
    assert set(told) == {"jsonrpc", "id", "error"}
    assert told["error"]["message"]
    return answer.status_code, told["error"]["code"]


NO_MESSAGES: Final = {
    "nothing": (b"", PARSE_ERROR),
    "half": (b"{", PARSE_ERROR),
    "no UTF-8": (b"\xff", PARSE_ERROR),
    "a name twice": (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', PARSE_ERROR),
    "deep": (b"[" * 100_000, PARSE_ERROR),
    "too deep": (orjson.dumps(body(params={**CREATE, "a": eval("[" * 70 + "]" * 70)})), PARSE_ERROR),  # noqa: S307
    "a batch": (orjson.dumps([body()]), INVALID_REQUEST),
    "an empty batch": (b"[]", INVALID_REQUEST),
    "a text": (b'"ping"', INVALID_REQUEST),
    "another JSON-RPC": (orjson.dumps(body(jsonrpc="1.0")), INVALID_REQUEST),
    "a method that is a number": (orjson.dumps(body(method=7)), INVALID_REQUEST),
    "a response": (orjson.dumps(body(method=None, result={})), INVALID_REQUEST),
    "a fraction as id": (orjson.dumps(body(id=1.5)), INVALID_REQUEST),
    "a boolean as id": (orjson.dumps(body(id=True)), INVALID_REQUEST),
    "no id": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST),
    "a huge id": (b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % (b"9" * 400), INVALID_REQUEST),
    "a long id": (orjson.dumps(body(id="i" * 256)), INVALID_REQUEST),
    "a list of params": (orjson.dumps(body(params=[])), INVALID_REQUEST),
    "a number as meta": (orjson.dumps(body(params={**CREATE, "_meta": 7})), INVALID_PARAMS),
    "no meta": (orjson.dumps(body(params=CREATE)), INVALID_PARAMS),
    "no capabilities": (sent({**CREATE, "_meta": {VERSIONED: VERSION}}), INVALID_PARAMS),
    "list": (orjson.dumps(body(params={"_meta": ENVELOPE, "name": "forums.create", "arguments": []})), INVALID_PARAMS),
    "reason": (orjson.dumps(body(params={"_meta": {**ENVELOPE, "trellis/reason": 7}, **CREATE})), INVALID_PARAMS),
}


def test_what_is_no_message_is_refused(agent: AgentClient, database: DatabaseState) -> None:
    with database.unchanged():
        for what, (content, expected) in NO_MESSAGES.items():
            assert code(agent.post(content, HEADERS)) == (400, expected), what


def test_headers_that_disagree_with_the_body_are_refused(agent: AgentClient, database: DatabaseState) -> None:
    with database.unchanged():
        for name, value in (
            ("MCP-Protocol-Version", "2025-11-25"),
            ("MCP-Protocol-Version", ""),
            ("Mcp-Method", "tools/list"),
            ("Mcp-Method", ""),
            ("Mcp-Method", "Tools/Call"),
            ("Mcp-Name", "forums.get"),
            ("Mcp-Name", ""),
            ("Mcp-Name", "=?base64?!!?="),
            ("Mcp-Name", "=?base64?/w==?="),
        ):
            assert code(agent.post(orjson.dumps(body()), HEADERS | {name: value})) == (400, MISMATCH), (name, value)


def test_a_name_may_be_encoded(agent: AgentClient) -> None:
    name = base64.b64encode(b"forums.create").decode()
    assert agent.post(orjson.dumps(body()), HEADERS | {"Mcp-Name": f"=?base64?{name}?="}).status_code == 200


def test_a_header_sent_twice_disagrees(agent: AgentClient, database: DatabaseState) -> None:
    with database.unchanged():
        assert code(agent.post(orjson.dumps(body()), HEADERS | {"mcp-name": "forums.create, forums.get"})) == (400, MISMATCH)


def test_a_version_that_is_not_spoken_is_told_which_are(agent: AgentClient, database: DatabaseState) -> None:
    plain = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CREATE})
    with database.unchanged():
        for version, is_modern in product(("1900-01-01", "2025-03-26", "2027-01-01", "x" * 1000), (True, False)):
            content = sent({**CREATE, "_meta": {**ENVELOPE, VERSIONED: version}}) if is_modern else plain
            answer = agent.post(content, HEADERS | {"MCP-Protocol-Version": version})
            assert code(answer) == (400, UNSUPPORTED)
            assert answer.json()["error"]["data"] == {"supported": [VERSION, *OLDER], "requested": version[:64]}


def test_without_a_version_only_a_handshake_is_answered(agent: AgentClient, database: DatabaseState) -> None:
    plain = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CREATE}
    with database.unchanged():
        assert code(agent.post(orjson.dumps(plain), {})) == (400, MISMATCH)


@pytest.mark.parametrize(
    ("wanted", "given"),
    [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2024-11-05", "2025-11-25"), (7, "2025-11-25")],
)
def test_older_clients_begin_with_a_handshake(agent: AgentClient, wanted: Any, given: str) -> None:
    params = {"protocolVersion": wanted, "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
    begin = {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params}
    answer = agent.post(orjson.dumps(begin), {})
    assert "mcp-session-id" not in answer.headers
    result = answer.json()["result"]
    assert (answer.json()["id"], result["protocolVersion"], result["serverInfo"]["name"]) == ("a", given, "trellis")
    assert set(result["capabilities"]) == {"tools", "resources"}
    headers = {"MCP-Protocol-Version": given}
    done = agent.post(orjson.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}), headers)
    assert (done.status_code, done.content) == (202, b"")
    listed = agent.post(orjson.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}), headers).json()["result"]["tools"]
    assert listed == agent.tools()
    called = agent.post(orjson.dumps({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": CREATE}), headers)
    assert called.json()["result"]["structuredContent"]["name"] == "News"
    ping = agent.post(orjson.dumps({"jsonrpc": "2.0", "id": 4, "method": "ping"}), headers)
    assert ping.status_code == 200


def test_what_may_be_left_out_may_be_null(agent: AgentClient) -> None:
    headers, message = {"MCP-Protocol-Version": OLDER[0]}, {"jsonrpc": "2.0", "id": 1}
    listed = agent.post(orjson.dumps({**message, "method": "tools/list", "params": None}), headers)
    assert listed.json()["result"]["tools"] == agent.tools()
    call = {"name": "forums.list", "arguments": None, "_meta": None}
    called = agent.post(orjson.dumps({**message, "method": "tools/call", "params": call}), headers)
    assert called.json()["result"]["structuredContent"] == agent.value("forums.list")


def test_a_method_that_is_not_there_is_404_but_for_older_clients(agent: AgentClient) -> None:
    assert agent.error("prompts/list")["code"] == NO_METHOD
    assert agent.error("subscriptions/listen")["status"] == 404
    old = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}  # to these, 404 means that a session has ended
    assert code(agent.post(orjson.dumps(old), {"MCP-Protocol-Version": "2025-06-18"})) == (200, NO_METHOD)
    unknown = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nonsense"}}
    assert code(agent.post(orjson.dumps(unknown), {"MCP-Protocol-Version": "2025-06-18"})) == (200, INVALID_PARAMS)


def test_a_server_tells_what_it_can(agent: AgentClient) -> None:
    result = agent.ask("server/discover")
    assert result["supportedVersions"] == [VERSION, *OLDER]
    assert result["capabilities"] == {"tools": {}, "resources": {}}
    assert "dryRun" in result["instructions"]
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "trellis"


def test_what_may_be_kept_says_for_how_long_and_by_whom(agent: AgentClient) -> None:
    for method in ("server/discover", "tools/list", "resources/list", "resources/templates/list"):
        result = agent.ask(method)
        assert result["ttlMs"] >= 0, method
        assert result["cacheScope"] == "private", method


def test_an_id_comes_back_as_it_was_sent(agent: AgentClient, key: MakeKey) -> None:
    for name in (0, -1, 2**53, "", "a/b", "é"):
        answer = agent.post(orjson.dumps(body(id=name)), HEADERS, key=key("forums.list"))
        assert answer.json()["id"] == name


def test_a_notification_is_accepted_and_does_nothing(agent: AgentClient, database: DatabaseState) -> None:
    with database.unchanged():
        answer = agent.post(orjson.dumps(body(id=None)), HEADERS)
    assert (answer.status_code, answer.content) == (202, b"")
