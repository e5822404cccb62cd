"""Reads the arguments of a tool call, and shortens them for the request log."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from trellis.core.fields import MAX_ID, invalid_id, parse_whole_number
from trellis.core.keys import redact_beginning
from trellis.core.operation import Operation
from trellis.core.version import encode_json
from trellis.errors import refuse_fault
from trellis.sentences import say

_MEMBERS: Final = 20  # of a list or an object that are logged
_LEVELS: Final = 4
_LETTERS: Final = 80  # of a text
_CUT: Final = "…"


def take_target(operation: Operation, arguments: Mapping[str, Any]) -> tuple[int | None, Mapping[str, Any]]:
    """Return the id of the record that a call is about, and the other arguments. Raises Refused."""
    if not operation.has_target:
        return None, arguments
    if (sent := arguments.get("id")) is None:
        raise refuse_fault("id", "MISSING_VALUE", say("id is needed: the id of the {singular}.", singular=say(operation.singular)))
    number = parse_whole_number(sent)
    if number is None or not 1 <= number <= MAX_ID:
        raise invalid_id(operation.singular, sent, operation.missing_code)
    return number, {name: value for name, value in arguments.items() if name != "id"}


def encode_arguments(target: int | None, arguments: Mapping[str, Any]) -> bytes:
    """Encode the arguments of a call, to tell calls of a tool apart."""
    try:
        return encode_json([target, arguments])
    except TypeError:  # a number is too large
        return json.dumps([target, arguments]).encode()


def summarize_arguments(arguments: Mapping[str, Any], secrets: frozenset[str]) -> str:
    """Return arguments for the request log: without passwords, and with long values cut to what tells them apart."""
    return encode_json(_cut(arguments, secrets, _LEVELS)).decode() if arguments else ""


def _cut(value: Any, secrets: frozenset[str], levels: int) -> Any:
    if isinstance(value, str):
        if any(name in value for name in secrets):  # it may be a document that contains one
            return _CUT
        return value if len(value) <= _LETTERS else redact_beginning(value, _LETTERS) + _CUT
    if not isinstance(value, dict | list):
        return _CUT if isinstance(value, int) and abs(value) > MAX_ID else value
    if not levels:
        return _CUT
    if isinstance(value, list):
        return [_cut(one, secrets, levels - 1) for one in value[:_MEMBERS]] + ([_CUT] if len(value) > _MEMBERS else [])
    return {
        redact_beginning(name, _LETTERS): _CUT if name in secrets else _cut(one, secrets, levels - 1)
        for name, one in islice(value.items(), _MEMBERS)
    }
