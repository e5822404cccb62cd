"""Configuration snippets for common MCP clients, with the address of this service and a key."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

PLACEHOLDER: Final = "YOUR_KEY"
_NAME: Final = "trellis"
_AT_HOME: Final = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True)
class Snippet:
    """A text to put into a client's configuration: `id` marks it on the page, `place` is the file or program it belongs in."""

    id: str
    client: str
    place: str
    text: str


def build_snippets(base: str, secret: str = PLACEHOLDER) -> tuple[Snippet, ...]:
    """Return the snippets for a service at the address `base`, with the secret of a key or a placeholder for it."""
    url, header = f"{base}/mcp", f"Authorization: Bearer {secret}"
    remote = {"url": url, "headers": {"Authorization": f"Bearer {secret}"}}
    typed = {"type": "http", **remote}
    return (
        Snippet("claude-code", "Claude Code", "a terminal", f"claude mcp add --transport http {_NAME} {url} --header '{header}'"),
        Snippet("claude-desktop", "Claude Desktop", "claude_desktop_config.json", _write("mcpServers", _bridge(url, secret))),
        Snippet("cursor", "Cursor", ".cursor/mcp.json", _write("mcpServers", remote)),
        Snippet("vs-code", "VS Code", ".vscode/mcp.json", _write("servers", typed)),
        Snippet("curl", "curl", "a terminal", _call(url, header)),
    )


def _write(heading: str, server: dict[str, Any]) -> str:
    return orjson.dumps({heading: {_NAME: server}}, option=orjson.OPT_INDENT_2).decode()


def _bridge(url: str, secret: str) -> dict[str, Any]:
    """Return the configuration for a client that can only start programs: it starts `mcp-remote`, which sends the key."""
    plain = [] if url.startswith("https://") or urlsplit(url).hostname in _AT_HOME else ["--allow-http"]
    # Some clients split arguments at spaces, so the part with a space is in a variable.
    arguments = ["-y", "mcp-remote", url, *plain, "--header", "Authorization:${TRELLIS_AUTHORIZATION}"]
    return {"command": "npx", "args": arguments, "env": {"TRELLIS_AUTHORIZATION": f"Bearer {secret}"}}


def _call(url: str, header: str) -> str:
    return (
        f"curl -s -H '{header}' -H 'Content-Type: application/json' -H 'MCP-Protocol-Version: 2025-11-25' \\\n"
        f'  -d \'{{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}}\' {url}'
    )
