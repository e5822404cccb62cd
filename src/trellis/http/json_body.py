"""JSON bodies as they are sent: they end with a line feed, and `?pretty` has them indented, for people who read them."""

from typing import Any, Final

from orjson import OPT_APPEND_NEWLINE, OPT_INDENT_2, dumps

PRETTY: Final = "pretty"  # the parameter, which every endpoint has
_NAME: Final = PRETTY.encode()
_VALUES: Final = {b"": True, b"=": True, b"=1": True, b"=true": True, b"=0": False, b"=false": False}
_COMPACT: Final = OPT_APPEND_NEWLINE
_INDENTED: Final = OPT_APPEND_NEWLINE | OPT_INDENT_2


def encode_body(value: Any, *, pretty: bool = False) -> bytes:
    """Encode a value as a body."""
    return dumps(value, option=_INDENTED if pretty else _COMPACT)


def end_body(encoded: bytes) -> bytes:
    """Make a body of a value that is encoded already."""
    return encoded + b"\n"


def find_pretty(query: bytes) -> bool | None:
    """Return whether a query asks for an indented body; None if it says nothing of it, or what it says is not understood."""
    if _NAME not in query:
        return None
    said = [part.removeprefix(_NAME) for part in query.split(b"&") if part.startswith(_NAME)]
    return _VALUES.get(said[0]) if len(said) == 1 else None
