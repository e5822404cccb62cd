"""The serialized bytes of a record, and its version, which is computed from them: equal bytes have equal versions."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

from trellis.errors import Refused
from trellis.sentences import say

ANY_VERSION: Final = "*"
MARK: Final = "."  # in a tag, between the version of a record and that of what is shown of it; neither has one
# Members that change though nobody changes them: of a webhook, how its delivery goes. A record has all of them, or none.
_PASSING: Final = frozenset({"state", "failingSince", "lastAttemptAt", "oldSecretUntil"})


def encode_json(record: Any) -> bytes:
    """Serialize a record as JSON in UTF-8, keeping the order of its members."""
    return orjson.dumps(record)


def compute_version(body: bytes) -> str:
    """Return the version of a body: 24 hexadecimal digits, computed from its bytes alone."""
    return blake2b(body, digest_size=12).hexdigest()


def record_version(record: Mapping[str, Any]) -> str:
    """Return the version of a record, as used in If-Match: that of what somebody can change of it."""
    return compute_version(encode_json(leave_out_passing(record)))


def leave_out_passing(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record without what changes though nobody changes it."""
    return {name: value for name, value in record.items() if name not in _PASSING} if _has_passing(record) else record


def _has_passing(record: Any) -> bool:
    return isinstance(record, Mapping) and record.keys() >= _PASSING


def compute_tag(record: Any, body: bytes, *, is_own: bool = True) -> str:
    """Return the tag of a body that shows a record, or something else: its version, which tells whether it is as it was read.

    The version of the record comes first where it is another: the body is not in our `own` form, or has what changes by itself.
    So the record can be changed on condition that nobody else has changed it (If-Match).
    """
    version = compute_version(body)
    return version if is_own and not _has_passing(record) else f"{record_version(record)}{MARK}{version}"


def find_own_version(tag: str) -> str:
    """Return the version of a record that a tag stands for, which was perhaps read in a dialect. See `compute_tag`.

    No tag becomes any version: only a condition as a whole can be that.
    """
    own = tag.partition(MARK)[0]
    return "" if own == ANY_VERSION != tag else own


def check_precondition(expected: tuple[str, ...], before: Mapping[str, Any]) -> None:
    """Refuse a write that was meant for another version of the record. Without expected versions any version will do."""
    if expected and ANY_VERSION not in expected and record_version(before) not in expected:
        raise Refused(
            "PRECONDITION_FAILED",
            say("The record has changed since you read it: its ETag is not in If-Match. Read it again before you change it."),
        )
