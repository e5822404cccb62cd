"""The serialized bytes of a record, and its version, which is computed from them: equal bytes have equal versions."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

from trellis.errors import Refused
from trellis.sentences import say

ANY_VERSION: Final = "*"
DIALECT_MARK: Final = "."  # between the version of a record and that of what a dialect shows of it; neither has one


def encode_json(record: Any) -> bytes:
    """Serialize a record as JSON in UTF-8, keeping the order of its members."""
    return orjson.dumps(record)


def compute_version(body: bytes) -> str:
    """Return the version of a body: 24 hexadecimal digits, computed from its bytes alone."""
    return blake2b(body, digest_size=12).hexdigest()


def record_version(record: Mapping[str, Any]) -> str:
    """Return the version of a record, as used in If-Match."""
    return compute_version(encode_json(record))


def find_own_version(tag: str) -> str:
    """Return the version of a record that a tag stands for, which was perhaps read in a dialect.

    No tag becomes any version: only a condition as a whole can be that.
    """
    own = tag.partition(DIALECT_MARK)[0]
    return "" if own == ANY_VERSION != tag else own


def check_precondition(expected: tuple[str, ...], before: Mapping[str, Any]) -> None:
    """Refuse a write that was meant for another version of the record. Without expected versions any version will do."""
    if expected and ANY_VERSION not in expected and record_version(before) not in expected:
        raise Refused(
            "PRECONDITION_FAILED",
            say("The record has changed since you read it: its ETag is not in If-Match. Read it again before you change it."),
        )
