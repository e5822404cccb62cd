"""The list of tools: which a key has, in how many tokens, and whether they tell the truth about themselves."""

import warnings
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from itertools import combinations
from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]  # it has no types of its own
import orjson
import pytest

from tests.agent_client import AgentClient
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from trellis.compose import catalogue_of
from trellis.core.operation import Basis, Operation
from trellis.kinds import KINDS
from trellis.mcp.schemas import is_offered
from trellis.mcp.tools import describe_tool

CATALOGUE: Final = catalogue_of(KINDS)
TOOLS: Final = [operation for operation in CATALOGUE.values() if operation.is_tool]
NAMES: Final = sorted(operation.name for operation in CATALOGUE.grantable)
MOST: Final = 9000  # tokens of the tools of a key with every grant
FEW: Final = 1200  # and of one with three
WRITES: Final = {operation.name for operation in CATALOGUE.grantable if operation.writes}


def expect_tools(granted: set[str]) -> list[str]:
    """Say which tools a key with these grants has, from what the declarations say of access."""
    ways: dict[Basis, Callable[[Operation], bool]] = {
        Basis.GRANTED: lambda operation: operation.name in granted,
        Basis.IMPLIED: lambda operation: set(operation.access.needs) <= granted,
        Basis.FORKED: lambda operation: operation.fork is not None and bool(set(operation.fork.to) & granted),
        Basis.ANY_KEY: lambda operation: not operation.access.for_proposers,
        Basis.INNER: lambda operation: any(fnmatchcase(name, one) for one in operation.access.runs for name in granted & WRITES),
    }
    return [one.name for one in TOOLS if ways[one.access.basis](one)]


@cache
def _vocabulary() -> Any:
    """Load the vocabulary that comes with its package, which takes longer than to count the tokens of hundreds of answers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from bpe_openai import get_encoding  # type: ignore[import-untyped]  # noqa: PLC0415  # it warns when it is imported
    return get_encoding("o200k_base")


def count_tokens(answer: bytes) -> int:
    """Count the tokens of an answer."""
    return len(_vocabulary().encode(answer.decode()))


@pytest.mark.either_engine
def test_a_key_with_every_grant_has_them_all_but_what_shows_a_secret(agent: AgentClient, key: MakeKey) -> None:
    text = key(NAMES, bounds={"forums.delete": {"level": "propose"}})
    listed = {tool["name"] for tool in agent.tools(key=text)}
    assert listed == {operation.name for operation in CATALOGUE.values() if operation.path} - {"webhooks.create"}
    assert not {name for name in listed if name.startswith(("keys.", "admins."))}


def test_nothing_that_a_tool_returns_is_shown_once() -> None:
    for operation in TOOLS:
        assert not operation.secret_once
        assert not any(field.is_secret for field in operation.response_fields)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # what a tool says of itself is in no database
def test_all_tools_together_take_few_tokens(agent: AgentClient, key: MakeKey) -> None:
    answer = agent.send("tools/list", key=key(NAMES, bounds={"forums.delete": {"level": "propose"}})).content
    assert count_tokens(answer) < MOST


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # the same
def test_three_grants_take_few_tokens_whichever_they_are(agent: AgentClient, key: MakeKey) -> None:
    alone = {tool["name"]: count_tokens(orjson.dumps(tool)) for tool in agent.tools(key=key(NAMES))}
    around = count_tokens(agent.send("tools/list", key=key()).content) - alone["core.hello"]
    counted = {three: around + sum(alone[name] for name in expect_tools(set(three))) for three in combinations(NAMES, 3)}
    largest = max(counted, key=lambda three: counted[three])
    assert counted[largest] < FEW, (largest, counted[largest])
    assert count_tokens(agent.send("tools/list", key=key(largest)).content) < FEW


@pytest.mark.parametrize("operation", TOOLS, ids=lambda one: one.name)
def test_a_tool_tells_what_the_verb_is(operation: Operation) -> None:
    tool = describe_tool(operation, CATALOGUE)
    hints = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False} | tool.get("annotations", {})
    assert hints["readOnlyHint"] == (not operation.writes)
    if operation.writes and operation.verb is not None:
        assert hints["destructiveHint"] == operation.verb.destructive
        assert hints["idempotentHint"] == operation.verb.idempotent
    assert tool["description"]
    assert len(tool["description"]) < 200


@pytest.mark.parametrize("operation", TOOLS, ids=lambda one: one.name)
def test_a_tool_takes_what_its_operation_takes(operation: Operation) -> None:
    tool = describe_tool(operation, CATALOGUE)
    schema = tool["inputSchema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    named = {field.name for field in operation.takes if is_offered(field)} | ({"id"} if operation.has_target else set())
    told = set(schema.get("properties", {}))
    for other in operation.access.needs:
        if f"takes what {other} takes" in tool["description"]:
            told |= set(describe_tool(CATALOGUE[other], CATALOGUE)["inputSchema"]["properties"]) & named
    assert told == named
    assert set(schema.get("required", ())) <= named
    assert ("dryRun" in schema.get("properties", {})) == operation.writes
    left_out = [field for field in operation.takes if not is_offered(field) and not field.read_only]
    assert not any(field.required for field in left_out)


@pytest.mark.usefixtures("community")
def test_what_is_read_fits_the_output_schema(agent: AgentClient, run: Run, key: MakeKey, community: Community) -> None:
    """Each tool that reads has one, but one that may return text and the one that all keys have; none that writes has."""
    proposer = key("forums.update", bounds={"forums.*": {"level": "propose"}})
    agent.value("forums.update", {"id": community.news, "name": "Bulletin"}, key=proposer)
    run("webhooks.create", url="https://example.com/hook", events=["*"])
    arguments: dict[str, Any] = {"access.check": {"holder": "group:3", "operation": "forums.read", "id": community.news}}
    arguments |= {"access.keys": {"operation": "forums.get"}, "access.view": {"group": 3}}
    arguments |= {"proposals.get": {"id": 1}, "webhooks.get": {"id": 1}}
    for resource in (kind.name for kind in KINDS):
        first = run(f"{resource}.create", name="First", externalId="first")["id"]
        arguments |= {f"{resource}.get": {"id": first}, f"{resource}.get_external": {"externalId": "first"}}
    everything = key(NAMES, bounds={"forums.delete": {"level": "propose"}})
    for tool in agent.tools(key=everything):
        reads = tool.get("annotations", {}).get("readOnlyHint", False)
        assert ("outputSchema" in tool) == (reads and tool["name"] not in {"structure.export", "core.hello"})
        if "outputSchema" in tool:
            told = agent.value(tool["name"], arguments.get(tool["name"], {}))
            assert set(tool["outputSchema"]["required"]) <= set(told)
            jsonschema.validate(told, tool["outputSchema"])


@pytest.mark.either_engine
def test_what_a_refusal_has_beside_its_text_fits_the_output_schema(agent: AgentClient) -> None:
    """The official client in TypeScript validates it, and would show an agent that it does not fit, and not why it was refused."""
    found = agent.tools()
    refused = [agent.call(tool["name"], {"id": 987654, "nope": 1}) for tool in found]
    assert all(result["isError"] for result in refused)
    for tool, result in zip(found, refused, strict=True):
        told = orjson.loads(result["content"][0]["text"])
        assert told["status"] in {400, 404}
        if "outputSchema" in tool and "structuredContent" in result:
            jsonschema.validate(result["structuredContent"], tool["outputSchema"])
        assert result.get("structuredContent", told) == told
