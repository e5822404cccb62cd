"""Other ways to write the addresses of the API, which older clients use: turned into the one that it has.

    /api/index.php?/forums/forums&page=2    /api/forums/forums?page=2
    /api/index.php/forums/forums?page=2     /api/forums/forums?page=2
    /api/forums/forums?page=2?perPage=5     /api/forums/forums?page=2&perPage=5
    //api//forums/forums                    /api/forums/forums

HTTP itself has been parsed by then, and steps such as `..` mean nothing: whatever is written begins with the prefix of the API and
reaches its table of routes, which knows what it knows.
"""

import re
from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import unquote

LONGEST_ADDRESS: Final = 64  # characters that are kept of what a trusted proxy tells as the address of a caller
_SCRIPT: Final = b"/index.php"
_SLASHES: Final = re.compile(rb"//+")
_ENCODED_SLASH: Final = re.compile(rb"%2[fF]")
_PATH_IN_QUERY: Final = re.compile(rb"((?:/|%2[fF])[^&?]*)[&?]?(.*)", re.DOTALL)
_NAME_AFTER_MARK: Final = re.compile(rb"\?(?=[A-Za-z_][A-Za-z0-9_.%\[\]-]*=)")
_ADDRESS: Final = b"://"


def rewrite_address(scope: MutableMapping[str, Any], prefix: str) -> None:
    """Give a request to what is below a prefix the address that it would have if it were written plainly.

    What is not below the prefix stays as it is.
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
    """Read a path that was sent as it is, or as the name of a parameter: encoded, and with the sign of an empty value."""
    return sent if sent.startswith(b"/") else _ENCODED_SLASH.sub(b"/", sent).removesuffix(b"=")


def _join(query: bytes) -> bytes:
    """Read a question mark before a parameter as `&`: what was added to an address that had a query already.

    In the value of a parameter that is an address itself it stays.
    """
    return b"&".join(part if _ADDRESS in part else _NAME_AFTER_MARK.sub(b"&", part) for part in query.split(b"&"))
