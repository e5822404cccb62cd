"""The official client against the running service, in each version of the protocol that is spoken."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import cache
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Final

import httpx2
import pytest

from tests.each_engine import on_engines
from tests.fixture_types import MakeKey, Run
from tests.mcp.test_tools import NAMES, expect_tools
from tests.service_process import Service

if TYPE_CHECKING:  # it takes half a second to load, in each process that collects the tests
    from mcp import Client

MODES: Final = {"2026-07-28": "2026-07-28", "auto": "2026-07-28", "legacy": "2025-11-25"}  # each with the version that it leads to


@cache
def _read_authorities() -> SSLContext:
    """Read the authorities of the world once: each client would read them anew, which takes longer than what it is asked for."""
    return httpx2.create_ssl_context(trust_env=False)


@asynccontextmanager
async def connect(service: Service, key: str, mode: str) -> AsyncIterator["Client"]:
    """Open the official client, as a program does that has a key."""
    from mcp import Client  # noqa: PLC0415  # see above
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415  # the same

    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, verify=_read_authorities(), trust_env=False) as http:
        transport = streamable_http_client(f"{service.address}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


def run_with(service: Service, key: str, mode: str, work: "Callable[[Client], Awaitable[None]]") -> None:
    """Do some work with a client."""

    async def main() -> None:
        async with connect(service, key, mode) as client:
            assert client.protocol_version == MODES[mode]
            await work(client)

    asyncio.run(main())


@on_engines(["modes"], [("sqlite", ("2026-07-28", "legacy")), ("postgresql", ("auto",))])
def test_a_session_of_an_agent(service: Service, key: MakeKey, run: Run, modes: tuple[str, ...]) -> None:
    """List the tools, read, try, write, be refused, take it back, and read what has happened."""
    from mcp import MCPError  # noqa: PLC0415  # see above
    from mcp.types import TextResourceContents  # noqa: PLC0415  # the same

    text = key(["forums.list", "forums.get", "forums.create", "forums.delete", "forums.restore", "events.list"], name="Agent")

    async def work(client: "Client") -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"forums.get", "forums.create", "forums.tree", "events.restore"} < set(tools)
        assert "forums.update" not in tools
        hints = tools["forums.get"].annotations
        assert hints is not None
        assert hints.read_only_hint

        made = await call(client, "forums.create", name="News", permissions={"view": "*"})
        read = await call(client, "forums.get", id=made["id"])
        assert read == made == run("forums.get", made["id"])
        plan = await call(client, "forums.delete", id=made["id"], dryRun=True)
        assert (plan["dryRun"], plan["deleted"]["ids"]) == (True, [made["id"]])

        assert (await refuse(client, "forums.update", id=made["id"], name="Olds"))["missingOperation"] == "forums.update"
        gone = await client.call_tool("forums.delete", {"id": made["id"]})
        assert (gone.is_error, gone.structured_content) == (False, None)
        assert gone.meta is not None
        assert (await refuse(client, "forums.get", id=made["id"]))["status"] == 404
        restored = await call(client, "events.restore", id=gone.meta["trellis/event"])
        assert restored["record"]["id"] == made["id"]
        events = await call(client, "events.list", order="newest", limit=3)
        assert [event["type"] for event in events["results"]] == ["forum.restored", "forum.deleted", "forum.created"]
        assert {event["actor"]["name"] for event in events["results"]} == {"Agent"}

        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("forums.explode", {})
        uris = [str(one.uri) for one in (await client.list_resources()).resources]
        assert uris == ["trellis://guide", "trellis://tree/forums", "trellis://events"]
        for uri in uris:
            (held,) = (await client.read_resource(uri)).contents
            assert isinstance(held, TextResourceContents)
            assert held.text

    for mode in modes:
        run_with(service, text, mode, work)


async def call(client: "Client", tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a tool that is not refused; the client has checked what it returns against its schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def refuse(client: "Client", tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a tool that is refused; return the problem document."""
    from mcp.types import TextContent  # noqa: PLC0415  # see above

    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    assert isinstance(result.content[0], TextContent)
    problem: dict[str, Any] = json.loads(result.content[0].text)
    return problem


@pytest.mark.either_engine
def test_every_read_fits_what_the_tools_say(service: Service, key: MakeKey, run: Run) -> None:
    run("forums.create", name="News")
    run("calendars.create", name="Meetings")

    async def work(client: "Client") -> None:
        names = [tool.name for tool in (await client.list_tools()).tools if tool.annotations and tool.annotations.read_only_hint]
        assert len(names) > 15
        for name in names:
            if name.endswith((".list", ".tree", ".hello", ".export")):
                assert not (await client.call_tool(name, {})).is_error
        for kind in ("forums", "calendars", "groups"):
            first = (await call(client, f"{kind}.list", perPage=1))["results"][0]
            assert (await call(client, f"{kind}.get", id=first["id"]))["name"] == first["name"]

    text = key(["*", "structure.*"])
    for mode in ("auto", "legacy"):
        run_with(service, text, mode, work)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_keys_have_the_tools_of_their_grants_in_one_order(service: Service, key: MakeKey) -> None:
    """Each in a session of its own, one after the other, in both versions by turns."""
    dice = random.Random(14)  # noqa: S311  # no secret
    granted = [set(dice.sample(NAMES, dice.randint(0, len(NAMES)))) for _ in range(20)]
    texts = [key(sorted(one), bounds={name: {"perDay": 9} for name in sorted(one)[:2]}) for one in granted]

    async def main() -> None:
        for number, (text, one) in enumerate(zip(texts, granted, strict=True)):
            async with connect(service, text, "legacy" if number % 2 else "auto") as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == expect_tools(one)

    asyncio.run(main())


@pytest.mark.either_engine
def test_a_bad_key_cannot_connect(service: Service) -> None:
    from mcp import MCPError  # noqa: PLC0415  # see above

    async def work(client: "Client") -> None:
        await client.list_tools()

    for mode in MODES:
        with pytest.raises((MCPError, ExceptionGroup)) as raised:
            run_with(service, "nonsense", mode, work)
        assert "no longer valid" in repr(find_cause(raised.value))


def find_cause(error: BaseException) -> BaseException:
    """Return what a group of exceptions is about."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@pytest.mark.either_engine
def test_a_client_of_2025_06_18_shakes_hands(service: Service, key: MakeKey) -> None:
    """The official client asks for a newer one, so its messages are sent by hand."""

    async def main() -> None:
        headers = {"Authorization": f"Bearer {key('forums.list')}"}
        async with httpx2.AsyncClient(headers=headers, verify=_read_authorities(), trust_env=False) as http:
            begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
            answer = await http.post(
                f"{service.address}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin}
            )
            assert answer.json()["result"]["protocolVersion"] == "2025-06-18"
            http.headers["MCP-Protocol-Version"] = "2025-06-18"
            listed = await http.post(f"{service.address}/mcp", json={"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
            assert "forums.list" in {tool["name"] for tool in listed.json()["result"]["tools"]}

    asyncio.run(main())
