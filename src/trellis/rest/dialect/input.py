"""Requests in a dialect: what its clients send, turned into what the operation takes."""

from collections.abc import Mapping
from typing import Any, Final

from trellis.core.dialect import Dialect, Shape
from trellis.core.fields import (
    Boolean,
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

_UNSET: Final = object()  # a value that says nothing: as if it had not been sent
_MAY_BE_EMPTY: Final = (Text, Html, Password, Url, ParentId, Groups, Permissions)  # types for which "" has a meaning of its own


def read_input(dialect: Dialect, shape: Shape | None, operation: Operation, raw: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Return what a request asks for, by names that the operation knows. Unknown names are left out.

    Where a parameter is sent under several names, the one that is not ours counts: an answer that is sent back has ours too.
    """
    taken: dict[str, Any] = {}
    for name, value in raw.items():
        field = operation.form.find(name)
        if field is None or field.read_only or (name == field.name and any(other in raw for other in field.also)):
            continue
        # No value that is passed over may turn a dry run into a write.
        cleaned = value if field is DRY_RUN else _clean(dialect, shape, field, value)
        if cleaned is not _UNSET:
            taken[field.name] = cleaned
    is_new = operation.verb is not None and operation.verb.body is Body.NEW
    return _complete(shape, operation, taken, at) if is_new and shape is not None else taken


def _complete(shape: Shape, operation: Operation, taken: dict[str, Any], at: str) -> dict[str, Any]:
    """Add what a new record has where nothing was sent. Nobody may do what was left out, unless it is to be inherited."""
    defaults = {name: value.format(at=at) if isinstance(value, str) else value for name, value in shape.defaults.items()}
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
        return False  # the operation says what is wrong with it


def _clean(dialect: Dialect, shape: Shape | None, field: Field, value: Any) -> Any:
    if field.name in dialect.clamped and isinstance(field.type, Integer):
        number = parse_whole_number(value)
        return _UNSET if number is None else min(max(number, field.type.least), field.type.most)
    if field.name in dialect.ignored:
        return value if _is_allowed(field, value) else _UNSET
    if isinstance(field.type, Permissions) and shape is not None:
        return _clean_permissions(shape.options, value)
    if value is None or (value == "" and not isinstance(field.type, _MAY_BE_EMPTY)):
        return None if _is_nullable(field) else _UNSET
    if isinstance(field.type, Integer) and field.type.nullable and field.type.least > 0 and parse_whole_number(value) == 0:
        return None
    return value


def _is_allowed(field: Field, value: Any) -> bool:
    try:
        field.type.parse(value)
    except Invalid:
        return False
    return True


def _is_nullable(field: Field) -> bool:
    kinds = field.type.schema().get("type")
    return isinstance(kinds, list) and "null" in kinds


def _clean_permissions(options: Mapping[str, str], value: Any) -> Any:
    """Return permissions by our names. An empty list is what PHP sends for an object without members."""
    value = parse_json_text(value)
    if value in (None, "", []):
        return _UNSET
    if not isinstance(value, Mapping):
        return value  # the operation says what is wrong with it
    sent = sorted(options.keys() & value.keys(), key=lambda name: options[name] == name)  # its own name counts, not its number
    named = {options[name]: name for name in sent}
    return {option: _clean_who(value[name]) for option, name in named.items()}


def _clean_who(who: Any) -> Any:
    """Return who may do something: null and empty elements stand for nobody."""
    if who is None:
        return ()
    return [one for one in who if one not in (None, "")] if isinstance(who, list) else who
