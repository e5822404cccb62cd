"""Translates requests in a dialect into the input that the operation takes."""

import re
from collections.abc import Mapping
from typing import Any, Final

from trellis.core.dialect import Dialect, DialectKind
from trellis.core.fields import (
    EVERYONE,
    Boolean,
    Color,
    Field,
    Groups,
    Html,
    Integer,
    Invalid,
    ParentId,
    Password,
    Permissions,
    Text,
    Url,
    parse_json_text,
    parse_whole_number,
)
from trellis.core.operation import DRY_RUN, Operation
from trellis.core.verbs import Body

_UNSET: Final = object()  # stands for a value that is ignored, as if it had not been sent
_COLOR: Final = re.compile(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_MAY_BE_EMPTY: Final = (Text, Html, Password, Url, ParentId, Groups, Permissions)  # types for which "" has a meaning of its own


def read_input(
    dialect: Dialect, dialect_kind: DialectKind | None, operation: Operation, raw: Mapping[str, Any], at: str
) -> dict[str, Any]:
    """Return the input of a request under our own names. Names that the operation does not know are left out.

    If a parameter has a value under several names, the one that is not ours counts: an answer that a client sends back also has
    ours.
    """
    taken: dict[str, Any] = {}
    theirs: set[str] = set()
    for name, value in raw.items():
        field = operation.form.find(name)
        if field is None or field.read_only or (name == field.name and name in theirs):
            continue
        # A value that is ignored must not turn a dry run into a write.
        cleaned = value if field is DRY_RUN else _clean(dialect, dialect_kind, field, value)
        if cleaned is not _UNSET:
            taken[field.name] = cleaned
            theirs |= {field.name} - {name}
    is_new = operation.verb is not None and operation.verb.body is Body.NEW
    return _complete(dialect_kind, operation, taken, at) if is_new and dialect_kind is not None else taken


def _complete(dialect_kind: DialectKind, operation: Operation, taken: dict[str, Any], at: str) -> dict[str, Any]:
    """Add the defaults of a new record. Permissions that were not sent are for nobody, unless they are inherited or copied."""
    defaults = {name: value.format(at=at) if isinstance(value, str) else value for name, value in dialect_kind.defaults.items()}
    taken |= {name: value for name, value in defaults.items() if not str(taken.get(name) or "").strip()}
    field = operation.form.find("permissions")
    if field is not None and isinstance(field.type, Permissions) and "copyPermissionsFrom" not in taken and not _inherits(taken):
        sent = taken.get(field.name, {})
        if isinstance(sent, Mapping):
            taken[field.name] = {**dict.fromkeys(field.type.options, ()), **sent}
    return taken


def _inherits(taken: Mapping[str, Any]) -> bool:
    try:
        return Boolean().parse(taken.get("inheritPermissions", False))
    except Invalid:
        return False  # the operation reports what is wrong with it


def _clean(dialect: Dialect, dialect_kind: DialectKind | None, field: Field, value: Any) -> Any:
    if field.name in dialect.clamped and isinstance(field.type, Integer):
        number = parse_whole_number(value)
        return _UNSET if number is None else min(max(number, field.type.least), field.type.most)
    if field.name in dialect.ignored:
        return value if _is_allowed(field, value) else _UNSET
    if isinstance(field.type, Permissions) and dialect_kind is not None:
        return _clean_permissions(dialect_kind.options, value)
    if value is None or (value == "" and not isinstance(field.type, _MAY_BE_EMPTY)):
        return None if _is_nullable(field) else _UNSET
    if isinstance(field.type, Integer) and field.type.nullable and field.type.least > 0 and parse_whole_number(value) == 0:
        return None
    return _clean_color(value) if isinstance(field.type, Color) else value


def _is_allowed(field: Field, value: Any) -> bool:
    try:
        field.type.parse(value)
    except Invalid:
        return False
    return True


def _is_nullable(field: Field) -> bool:
    kinds = field.type.schema().get("type")
    return isinstance(kinds, list) and "null" in kinds


def _clean_color(value: Any) -> Any:
    """Return a hexadecimal colour as #RRGGBB: its clients may leave out the `#`, or send three digits as in CSS."""
    match = _COLOR.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return value  # the operation reports what is wrong with it
    digits = match[1]
    return f"#{digits if len(digits) == 6 else ''.join(digit * 2 for digit in digits)}"


def _clean_permissions(options: Mapping[str, str], value: Any) -> Any:
    """Return permissions under our own option names. PHP sends an object without members as an empty list."""
    value = parse_json_text(value)
    if value in (None, "", []):
        return _UNSET
    if not isinstance(value, Mapping):
        return value  # the operation reports what is wrong with it
    sent = sorted(options.keys() & value.keys(), key=lambda name: options[name] == name)  # a name takes precedence over its number
    named = {options[name]: name for name in sent}
    return {option: _clean_who(value[name]) for option, name in named.items()}


def _clean_who(who: Any) -> Any:
    """Return who may do something, without null and empty elements; null means nobody, a list of only `*` everybody."""
    if who is None:
        return ()
    if who == [EVERYONE]:
        return EVERYONE
    return [one for one in who if one not in (None, "")] if isinstance(who, list) else who
