"""Rewrites API addresses from the forms that older clients use to the plain form.

    /api/index.php?/forums/forums&page=2    /api/forums/forums?page=2
    /api/index.php/forums/forums?page=2     /api/forums/forums?page=2
    /api/forums/forums?page=2?perPage=5     /api/forums/forums?page=2&perPage=5
    //api//forums/forums                    /api/forums/forums

HTTP itself has been parsed by then, and segments such as `..` have no meaning: every rewritten address begins with the prefix of
the API and is looked up in its table of routes, which contains only known paths.
"""

import re
from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import unquote

LONGEST_ADDRESS: Final = 64  # characters kept of a caller's address as a trusted proxy reports it
_SCRIPT: Final = b"/index.php"
_SLASHES: Final = re.compile(rb"//+")
_ENCODED_SLASH: Final = re.compile(rb"%2[fF]")
_PATH_IN_QUERY: Final = re.compile(rb"((?:/|%2[fF])[^&?]*)[&?]?(.*)", re.DOTALL)
_NAME_AFTER_MARK: Final = re.compile(rb"\?(?=[A-Za-z_][A-Za-z0-9_.%\[\]-]*=)")
_ADDRESS: Final = b"://"


def rewrite_address(scope: MutableMapping[str, Any], prefix: str) -> None:
    """Rewrite the address of a request for a path below a prefix to its plain form.

    Addresses that are not below the prefix stay as they are.
    """
    path: bytes = (scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")).partition(b"?")[0]
    query: bytes = scope["query_string"]
    if b"//" not in path and _SCRIPT not in path and b"?" not in query:
        return
    start = prefix.encode()
    plain = _SLASHES.sub(b"/", path)
    if not plain.startswith(start + b"/"):
        return
    script = start + _SCRIPT
    if plain.rstrip(b"/") == script and (found := _PATH_IN_QUERY.fullmatch(query)) is not None:
        plain, query = start + _SLASHES.sub(b"/", _read_path(found[1])), found[2]
    elif plain.startswith(script + b"/"):
        plain = start + plain.removeprefix(script)
    if plain != path:
        scope["raw_path"], scope["path"] = plain, unquote(plain.decode("latin-1"))
    scope["query_string"] = _join(query) if b"?" in query else query


def _read_path(sent: bytes) -> bytes:
    """Return the path in a query. If it was sent as a parameter name, decode its slashes and remove the `=` of the empty value."""
    return sent if sent.startswith(b"/") else _ENCODED_SLASH.sub(b"/", sent).removesuffix(b"=")


def _join(query: bytes) -> bytes:
    """Replace a question mark before a parameter by `&`: the parameter was added to an address that already had a query.

    In a parameter whose value is itself an address, question marks stay.
    """
    return b"&".join(part if _ADDRESS in part else _NAME_AFTER_MARK.sub(b"&", part) for part in query.split(b"&"))
