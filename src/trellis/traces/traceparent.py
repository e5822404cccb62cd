"""The header `traceparent` of W3C Trace Context, which names the trace of a request and the span that caused it."""

import re
from collections.abc import Iterable
from typing import Final

TRACEPARENT: Final = b"traceparent"
# W3C Trace Context, 3.2: version, trace id, parent id and flags. Anything that later versions add after the flags is ignored.
_VALID: Final = re.compile(
    rb"(?!ff)[0-9a-f]{2}-((?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2})(?:-.*)?", re.ASCII | re.DOTALL
)


def find_traceparent(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the header in the form of version 00, 55 characters; None if these headers do not contain a valid one."""
    sent = next((value for name, value in headers if name == TRACEPARENT), None)
    found = None if sent is None else _VALID.fullmatch(sent)
    return None if found is None else f"00-{found[1].decode()}"


def log_fields(request_id: str | None, traceparent: str | None) -> dict[str, str | None]:
    """Return the log fields that identify a request: its id, and the id of the trace that the header names."""
    return {"request": request_id, "trace": None if traceparent is None else traceparent[3:35]}
