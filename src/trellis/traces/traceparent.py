"""The header `traceparent` of W3C Trace Context: which trace a request belongs to, and which span has caused it."""

import re
from typing import Final

TRACEPARENT: Final = b"traceparent"
# W3C Trace Context, 3.2: version, trace id, parent id and flags; what later versions add behind them is left out.
_VALID: Final = re.compile(
    rb"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(?:-.*)?", re.ASCII | re.DOTALL
)


def find_traceparent(sent: bytes | None) -> str | None:
    """Return the header as version 00 has it, 55 characters; None without a valid one."""
    found = None if sent is None else _VALID.fullmatch(sent)
    return None if found is None else f"00-{found[1].decode()}"


def find_trace(traceparent: str | None) -> str | None:
    """Return the id of the trace that the header names."""
    return None if traceparent is None else traceparent[3:35]
