"""Reads the headers of a request: its id, its conditions, its idempotency token, its audit reason."""

import os
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import count
from typing import Any, Final

from trellis.core.fields import Invalid, Text
from trellis.core.keys import redact_keys
from trellis.core.version import ANY_VERSION, encode_json
from trellis.errors import Refused
from trellis.sentences import say

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._~+/=:-]{1,128}")
# An element of a list, which may be empty, and the blanks around it. Blanks are possessive: a run of them is walked through once.
_ELEMENT: Final = re.compile(rb'[ \t]*+(?:(?P<weak>W/)?"(?P<value>[\x21\x23-\x7e\x80-\xff]*+)"[ \t]*+)?')
_BLANKS: Final = b" \t"
_REASON: Final = Text(500)
_COMMA: Final = ord(",")


def accept_request_id(sent: bytes | None) -> str:
    """Take a request's id if it is short, plain and no key; "" otherwise."""
    return text if sent is not None and _REQUEST_ID.fullmatch(sent) and redact_keys(text := sent.decode()) == text else ""


def generate_request_ids() -> Iterator[str]:
    """Make request ids: 16 random digits for this process, and a number."""
    process = os.urandom(8).hex()
    return (f"{process}{number:08x}" for number in count(1))


def is_not_modified(wanted: bytes, tag: bytes) -> bool:
    """Compare with If-None-Match, weakly (RFC 9110, 13.1.2). One that is malformed is passed over: the answer is sent whole."""
    if wanted == b'"%b"' % tag or wanted.strip(_BLANKS) == b"*":
        return True
    return any(value == tag for _, value in _parse_tags(wanted) or ())


def expected_versions(sent: bytes | None) -> tuple[str, ...]:
    """Read If-Match, which compares strongly (RFC 9110, 13.1.1): weak tags match nothing, so that without a strong one it is ("",).

    Raises Refused (INVALID_HEADER) for one that is malformed: to guess what it was to protect would be to write without it.
    """
    if sent is None:
        return ()
    if sent.strip(_BLANKS) == b"*":
        return (ANY_VERSION,)
    if not (tags := _parse_tags(sent)):
        raise Refused(
            "INVALID_HEADER",
            say("If-Match must be the ETag that you read, in its quotation marks, a comma-separated list of ETags, or * alone."),
        )
    strong = (value.decode("latin-1") for weak, value in tags if not weak)
    return tuple(value for value in strong if value != ANY_VERSION) or ("",)


def _parse_tags(sent: bytes) -> list[tuple[bytes, bytes]] | None:
    """Read a list of entity tags (RFC 9110, 5.6.1 and 8.8.3) as pairs of `W/` or nothing and the value; None if it is malformed."""
    tags: list[tuple[bytes, bytes]] = []
    end = -1
    while end < len(sent):
        if (element := _ELEMENT.match(sent, end + 1)) is None:
            return None
        if element["value"] is not None:
            tags.append((element["weak"] or b"", element["value"]))
        end = element.end()
        if end < len(sent) and sent[end] != _COMMA:
            return None
    return tags


def idempotency_token(sent: bytes | None) -> str | None:
    """Read Idempotency-Key; refuse one that is empty, too long or not plain."""
    if sent is None:
        return None
    if not 1 <= len(sent) <= 255 or not all(0x20 < byte < 0x7F for byte in sent):
        raise Refused("INVALID_HEADER", say("Idempotency-Key must be 1 to 255 visible ASCII characters, such as a UUID."))
    return blake2b(sent, digest_size=16).hexdigest()  # what is kept must not be a secret, whatever was sent


def change_set_name(sent: bytes | None) -> str | None:
    """Read Change-Set; refuse a name that is too long or not plain."""
    if sent is None:
        return None
    if not 1 <= len(sent) <= 64 or not all(0x20 < byte < 0x7F for byte in sent):
        raise Refused("INVALID_HEADER", say("Change-Set must be 1 to 64 visible ASCII characters, such as nightly-2026-01-31."))
    return redact_keys(sent.decode("ascii"))


def audit_reason(sent: bytes | None) -> str | None:
    """Read X-Audit-Log-Reason, in UTF-8 or Latin-1; refuse one that is too long or holds control characters."""
    if not sent:
        return None
    try:
        text = sent.decode()
    except UnicodeDecodeError:
        text = sent.decode("latin-1")
    try:
        reason = _REASON.parse(text)  # as the feed reads the filter for it
    except Invalid:
        detail = say("X-Audit-Log-Reason must be at most 500 characters without control characters.")
        raise Refused("INVALID_HEADER", detail) from None
    return redact_keys(reason) or None


def fingerprint(operation: str, raw: Mapping[str, Any]) -> str:
    """Return a digest of what a request asks for: the same for the same path and values, in whatever order or encoding."""
    return blake2b(encode_json([operation, _canonicalize(raw)]), digest_size=16).hexdigest()


def _canonicalize(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[str(name), _canonicalize(value[name])] for name in sorted(value, key=str)]
    return [_canonicalize(one) for one in value] if isinstance(value, list) else repr(value)
