"""The serialised bytes of a record, and its version, which is computed from them: equal bytes have equal versions."""

from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

from trellis.errors import Refused
from trellis.sentences import say

ANY_VERSION: Final = "*"
MARK: Final = "."  # in a tag, separates the version of a record from the version of its body; neither contains one
# Members that change by themselves: the state of a webhook's delivery. A record has all of them, or none.
_PASSING: Final = frozenset({"state", "failingSince", "lastAttemptAt", "oldSecretUntil"})
_UNCOUNTED: Final = _PASSING | {"secret"}  # which only the response to the create of a webhook has
_FEW: Final = 25  # items of a list that are encoded with the rest
_PART: Final = 500  # items that are encoded at once; changes of a plan in about a tenth of a millisecond
_PART_BYTES: Final = 256 * 1024  # of JSON that is encoded at once, about


def encode_json(record: Any) -> bytes:
    """Serialise a record as JSON in UTF-8, keeping the order of its members."""
    return orjson.dumps(record)


def encode_large(value: Any) -> bytes:
    """Serialise a value as `encode_json` does, but its long lists in parts: while one is encoded, no other thread can run."""
    if isinstance(value, Mapping):
        return orjson.dumps({name: _encode_in_parts(one) for name, one in value.items()})
    return orjson.dumps([_encode_in_parts(one) for one in value] if isinstance(value, list | tuple) else value)


def _encode_in_parts(value: Any) -> Any:
    if not isinstance(value, list) or len(value) <= _FEW:
        return value
    parts = list[bytes]()
    at, count = 0, _FEW
    while at < len(value):
        parts.append(orjson.dumps(value[at : at + count])[1:-1])
        at += count
        count = max(1, min(_PART, count * _PART_BYTES // len(parts[-1])))
    return orjson.Fragment(b"[%b]" % b",".join(parts))


def compute_version(body: bytes) -> str:
    """Return the version of a body: 24 hexadecimal digits, computed from its bytes alone."""
    return blake2b(body, digest_size=12).hexdigest()


def record_version(record: Mapping[str, Any]) -> str:
    """Return the version of a record, as used in If-Match: it ignores members that change by themselves, and a new secret."""
    return compute_version(encode_json(leave_out_passing(record)))


def leave_out_passing(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record without the members that change by themselves, and without a new secret."""
    return {name: value for name, value in record.items() if name not in _UNCOUNTED} if _has_passing(record) else record


def _has_passing(record: Any) -> bool:
    return isinstance(record, Mapping) and record.keys() >= _PASSING


def compute_tag(record: Any, body: bytes, *, is_own: bool = True) -> str:
    """Return the tag of a body that shows a record, or something else: its version, which shows whether it is still as it was read.

    The version of the record comes first if it is a different one: if the body is not in our own form (`is_own`), or has members
    that change by themselves. So the record can be changed on condition that nobody else has changed it (If-Match).
    """
    version = compute_version(body)
    return version if is_own and not _has_passing(record) else f"{record_version(record)}{MARK}{version}"


def find_own_version(tag: str) -> str:
    """Return the version of the record that a tag stands for, even if the record was read in a dialect. See `compute_tag`.

    Part of a tag never means any version (`*`): only a condition as a whole can mean that.
    """
    own = tag.partition(MARK)[0]
    return "" if own == ANY_VERSION != tag else own


def check_precondition(expected: tuple[str, ...], before: Mapping[str, Any]) -> None:
    """Refuse a write that was meant for another version of the record. Without expected versions any version will do."""
    if expected and ANY_VERSION not in expected and record_version(before) not in expected:
        raise Refused("PRECONDITION_FAILED", _CHANGED if any(expected) else _NEVER)


def fields_version(record: Mapping[str, Any], names: Collection[str]) -> str:
    """Return the version of some fields of a record: those that a form shows."""
    return compute_version(encode_json([record[name] for name in sorted(names)]))


def check_fields(expected: tuple[str, ...], before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]) -> None:
    """Refuse a form that showed other values of these fields than those stored now, unless it changes none of them."""
    if expected and fields_version(before, names) not in expected and any(before[name] != after[name] for name in names):
        raise Refused("PRECONDITION_FAILED", _CHANGED_SINCE_SHOWN)


_CHANGED_SINCE_SHOWN: Final = say("Somebody has changed this since it was shown. Nothing was saved.")
_CHANGED: Final = say("The record has changed since you read it: its ETag is not in If-Match. Read it again before you change it.")
_NEVER: Final = say(
    'Nothing in If-Match can match: an ETag that begins with W/ never does, and neither does "*" in quotation marks. Leave out W/, '
    "which a proxy that compresses responses may have added."
)
