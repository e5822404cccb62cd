"""An agent in this process: sends messages to the MCP endpoint straight through ASGI, as the protocol of 2026-07-28 has them."""

import json
from collections.abc import Mapping
from itertools import count
from typing import Any, Final

import httpx
import orjson

from tests.api_client import ApiClient, Json

VERSION: Final = "2026-07-28"
OLDER: Final = ("2025-11-25", "2025-06-18")
ENVELOPE: Final = {"io.modelcontextprotocol/protocolVersion": VERSION, "io.modelcontextprotocol/clientCapabilities": {}}
_NAMED_BY: Final = {"tools/call": "name", "resources/read": "uri"}


class AgentClient:
    """Calls tools, and reads resources, with the key of an API client unless a call names another one."""

    def __init__(self, api: ApiClient) -> None:
        self.api = api
        self._ids = count(1)

    def post(self, content: bytes, headers: Mapping[str, str], **more: Any) -> httpx.Response:
        """Send a body as it is."""
        answer: httpx.Response = self.api.do(self._posting(content, headers, **more))
        return answer

    def send(self, method: str, params: Json | None = None, **more: Any) -> httpx.Response:
        """Send a request, with the headers that it asks for."""
        answer: httpx.Response = self.api.do(self.sending(method, params, **more))
        return answer

    async def _posting(self, content: bytes, headers: Mapping[str, str], **more: Any) -> httpx.Response:
        told = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
        return await self.api.sending("POST", "", prefix="/mcp", content=content, headers=told, **more)

    async def sending(
        self,
        method: str,
        params: Json | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> httpx.Response:
        """Send a request; `meta` is added to its envelope, and `headers` to those that it asks for."""
        told = {"MCP-Protocol-Version": VERSION, "Mcp-Method": method}
        if (named := _NAMED_BY.get(method)) is not None and params is not None and isinstance(params.get(named), str):
            told["Mcp-Name"] = params[named]
        full = {**(params or {}), "_meta": {**ENVELOPE, **(meta or {})}}
        body = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": full}
        return await self._posting(json.dumps(body).encode(), {**told, **(headers or {})}, **more)

    def ask(self, method: str, params: Json | None = None, **more: Any) -> Json:
        """Send a request, and return its result."""
        answer = self.send(method, params, **more)
        assert answer.status_code == 200, answer.text
        result: Json = answer.json()["result"]
        assert result["resultType"] == "complete"
        return result

    def call(self, tool: str, arguments: Json | None = None, **more: Any) -> Json:
        """Call a tool, and return its result, whatever it says."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}}, **more)

    def value(self, tool: str, arguments: Json | None = None, **more: Any) -> Any:
        """Call a tool that is not refused, and return what its operation returned."""
        result = self.call(tool, arguments, **more)
        assert not result.get("isError"), result
        told = orjson.loads(result["content"][0]["text"])
        assert result.get("structuredContent") == (told if isinstance(told, dict) else None)
        return told

    def problem(self, tool: str, arguments: Json | None = None, **more: Any) -> Json:
        """Call a tool that is refused, and return the problem document."""
        result = self.call(tool, arguments, **more)
        assert result.get("isError"), result
        told: Json = orjson.loads(result["content"][0]["text"])
        assert result.get("structuredContent", told) == told
        return told

    def error(self, method: str, params: Json | None = None, **more: Any) -> Json:
        """Send a request that the protocol refuses, and return the error with its HTTP status."""
        answer = self.send(method, params, **more)
        return {"status": answer.status_code, **answer.json()["error"]}

    def tools(self, **more: Any) -> list[Json]:
        """Return the tools that the key may call."""
        found: list[Json] = self.ask("tools/list", **more)["tools"]
        return found
