"""The bytes of a record, and the version that they make: equal bytes, equal version."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

from trellis.errors import Refused

_ANY: Final = "*"


def encode_json(record: Any) -> bytes:
    """Write a record as JSON in UTF-8, its members in the order they stand in."""
    return orjson.dumps(record)


def compute_version(body: bytes) -> str:
    """Return the version of a body: 24 hexadecimal digits, made from its bytes alone."""
    return blake2b(body, digest_size=12).hexdigest()


def check_precondition(expected: tuple[str, ...], before: Mapping[str, Any]) -> None:
    """Refuse a write that was meant for another version of the record; nothing expected is any."""
    if expected and _ANY not in expected and compute_version(encode_json(before)) not in expected:
        raise Refused(
            "PRECONDITION_FAILED",
            "The record has changed since you read it: its ETag is not in If-Match. Get it again, and decide anew.",
        )
