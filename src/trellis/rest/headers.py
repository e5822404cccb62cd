"""What the headers of a request say: its id, its conditions, its idempotency token, its reason."""

import os
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from itertools import count
from typing import Any, Final

from trellis.core.keys import redact_keys
from trellis.core.version import encode_json
from trellis.errors import Refused

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._~+/=:-]{1,128}")
_TAG: Final = re.compile(rb'(W/)?"([^"]*)"|(\*)')


def request_id(sent: bytes | None) -> str:
    """Take a request's id if it is short, plain and no key; "" otherwise."""
    return text if sent is not None and _REQUEST_ID.fullmatch(sent) and redact_keys(text := sent.decode()) == text else ""


def request_ids() -> Iterator[str]:
    """Make request ids: 16 random digits for this process, and a number."""
    process = os.urandom(8).hex()
    return (f"{process}{number:08x}" for number in count(1))


def none_match(wanted: bytes, tag: bytes) -> bool:
    """Compare weakly, as If-None-Match does (RFC 9110, 13.1.2)."""
    return any(star or value == tag for _, value, star in _TAG.findall(wanted))


def expected_versions(sent: bytes | None) -> tuple[str, ...]:
    """Read If-Match, which compares strongly (RFC 9110, 13.1.1): weak tags match nothing."""
    if sent is None:
        return ()
    tags = tuple("*" if star else value.decode("latin-1") for weak, value, star in _TAG.findall(sent) if not weak)
    return tags or ("",)


def idempotency_token(sent: bytes | None) -> str | None:
    """Read Idempotency-Key; refuse one that is empty, too long or not plain."""
    if sent is None:
        return None
    if not 1 <= len(sent) <= 255 or not all(0x20 < byte < 0x7F for byte in sent):
        raise Refused("INVALID_HEADER", "Idempotency-Key must be 1 to 255 visible ASCII characters, such as a UUID.")
    return blake2b(sent, digest_size=16).hexdigest()  # what is kept must not be a secret, whatever was sent


def audit_reason(sent: bytes | None) -> str | None:
    """Read X-Audit-Log-Reason, in UTF-8 or Latin-1; refuse one that is too long or holds control characters."""
    if not sent:
        return None
    try:
        text = sent.decode()
    except UnicodeDecodeError:
        text = sent.decode("latin-1")
    if len(text) > 500 or not text.isprintable():
        raise Refused("INVALID_HEADER", "X-Audit-Log-Reason must be at most 500 characters without control characters.")
    return redact_keys(text)


def fingerprint(operation: str, raw: Mapping[str, Any]) -> str:
    """Give a digest of what a request asks for: the same for the same path and values, in whatever order or encoding."""
    return blake2b(encode_json([operation, _sorted(raw)]), digest_size=16).hexdigest()


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[str(name), _sorted(value[name])] for name in sorted(value, key=str)]
    return [_sorted(one) for one in value] if isinstance(value, list) else repr(value)
