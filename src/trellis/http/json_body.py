"""Encodes JSON bodies: they end with a line feed, and are indented for people if the request has `?pretty`.

A feed is sent with one value per line (NDJSON) to callers who ask for that.
"""

from collections.abc import Iterable
from typing import Any, Final

from orjson import OPT_APPEND_NEWLINE, OPT_INDENT_2, dumps

PRETTY: Final = "pretty"  # the name of a parameter that every endpoint has
LINES: Final = "application/x-ndjson"
_NAME: Final = PRETTY.encode()
_VALUES: Final = {b"": True, b"=": True, b"=1": True, b"=true": True, b"=0": False, b"=false": False}
_COMPACT: Final = OPT_APPEND_NEWLINE
_INDENTED: Final = OPT_APPEND_NEWLINE | OPT_INDENT_2


def encode_body(value: Any, *, pretty: bool = False) -> bytes:
    """Encode a value as a body."""
    return dumps(value, option=_INDENTED if pretty else _COMPACT)


def encode_lines(values: Iterable[Any]) -> bytes:
    """Encode values as a body with one value per line."""
    return b"".join([dumps(value, option=_COMPACT) for value in values])


def accepts_lines(accept: bytes) -> bool:
    """Return whether an Accept header asks for one value per line: it names NDJSON, and prefers it at least as much as JSON."""
    wanted = {b"application/json": 0.0, LINES.encode(): 0.0}
    for part in accept.lower().split(b","):
        name, *parameters = (piece.strip() for piece in part.split(b";"))
        if name in wanted:
            wanted[name] = next((_read_quality(one[2:]) for one in parameters if one.startswith(b"q=")), 1.0)
    json, lines = wanted.values()
    return lines > 0 and lines >= json


def _read_quality(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def end_body(encoded: bytes) -> bytes:
    """Return the body for a value that is encoded already."""
    return encoded + b"\n"


def find_pretty(query: bytes) -> bool | None:
    """Return whether a query asks for an indented body; None if the parameter is missing, repeated or not understood."""
    if _NAME not in query:
        return None
    said = [part.removeprefix(_NAME) for part in query.split(b"&") if part.startswith(_NAME)]
    return _VALUES.get(said[0]) if len(said) == 1 else None
