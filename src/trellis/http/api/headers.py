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
# An element of a list, which may be empty, with the blanks around it. Blanks are matched possessively: a run of them is scanned
# once.
_ELEMENT: Final = re.compile(rb'[ \t]*+(?:(?P<weak>W/)?"(?P<value>[\x21\x23-\x7e\x80-\xff]*+)"[ \t]*+)?')
_BLANKS: Final = b" \t"
_REASON: Final = Text(500)
_COMMA: Final = ord(",")
_PASSWORD: Final = b"password"  # in the name of each field for one


def accept_request_id(sent: bytes) -> str:
    """Return the id that was sent with a request if it is short, plain and contains no key; "" otherwise."""
    return text if _REQUEST_ID.fullmatch(sent) and redact_keys(text := sent.decode()) == text else ""


def generate_request_ids() -> Iterator[str]:
    """Generate request ids: 16 random hexadecimal digits for this process, then a number."""
    process = os.urandom(8).hex()
    return (f"{process}{number:08x}" for number in count(1))


def is_not_modified(wanted: bytes, tag: bytes) -> bool:
    """Return whether If-None-Match names a tag, compared weakly (RFC 9110, 13.1.2). If malformed, the answer is sent whole."""
    if wanted == b'"%b"' % tag or wanted.strip(_BLANKS) == b"*":
        return True
    return any(value == tag for _, value in _parse_tags(wanted) or ())


def expected_versions(sent: bytes | None) -> tuple[str, ...]:
    """Return the versions in If-Match. Weak ones are left out (RFC 9110, 13.1.1); if there are no others, the result is ("",).

    ("",) matches nothing. Raises Refused (INVALID_HEADER) if the header is malformed: guessing what it means could write without
    the protection that it asks for.
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
    """Return the entity tags of a list (RFC 9110, 5.6.1 and 8.8.3) as pairs of `W/` or nothing and the value; None if malformed."""
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
    """Return a hash of Idempotency-Key; refuse a key that is empty, too long or not plain."""
    if sent is None:
        return None
    if not 1 <= len(sent) <= 255 or not all(0x20 < byte < 0x7F for byte in sent):
        raise Refused("INVALID_HEADER", say("Idempotency-Key must be 1 to 255 visible ASCII characters, such as a UUID."))
    return blake2b(sent, digest_size=16).hexdigest()  # whatever was sent, no secret must be stored


def change_set_name(sent: bytes | None) -> str | None:
    """Read Change-Set; refuse a name that is too long or not plain."""
    if sent is None:
        return None
    if not 1 <= len(sent) <= 64 or not all(0x20 < byte < 0x7F for byte in sent):
        raise Refused("INVALID_HEADER", say("Change-Set must be 1 to 64 visible ASCII characters, such as nightly-2026-01-31."))
    return redact_keys(sent.decode("ascii"))


def audit_reason(sent: bytes | None) -> str | None:
    """Read X-Audit-Log-Reason, in UTF-8 or Latin-1; refuse a reason that is too long or contains control characters."""
    if not sent:
        return None
    try:
        text = sent.decode()
    except UnicodeDecodeError:
        text = sent.decode("latin-1")
    try:
        reason = _REASON.parse(text)  # parsed as the feed parses its filter by reason
    except Invalid:
        detail = say("X-Audit-Log-Reason must be at most 500 characters without control characters.")
        raise Refused("INVALID_HEADER", detail) from None
    return redact_keys(reason) or None


def fingerprint(operation: str, raw: Mapping[str, Any], secret: str) -> str:
    """Return a digest of a request: the same for the same operation, id and values, whatever their order or encoding.

    If there is a password among the values, the digest also depends on the caller's `secret`: it is stored, and nobody who reads it
    there must be able to try passwords with it.
    """
    content = encode_json([operation, _canonicalize(raw)])
    key = blake2b(secret.encode()).digest() if _PASSWORD in content.lower() else b""
    return blake2b(content, key=key, digest_size=16).hexdigest()


def _canonicalize(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[str(name), _canonicalize(value[name])] for name in sorted(value, key=str)]
    return [_canonicalize(one) for one in value] if isinstance(value, list) else repr(value)
