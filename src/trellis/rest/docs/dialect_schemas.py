"""The schemas of answers and errors in the dialects, for the OpenAPI document."""

from collections.abc import Iterable, Mapping
from typing import Final

from trellis.core.dialect import Dialect, DialectMember
from trellis.core.operation import Operation
from trellis.core.verbs import Response
from trellis.refusals import REFUSALS
from trellis.rest.dialect import TRANSLATORS
from trellis.rest.docs.schemas import Schema, component_of, ref, verb_of

_ERRORS: Final = (
    "For a key with this dialect, refusals of these operations, of unknown paths and of methods that a path does not support have "
    "this media type and schema. `statuses` has the status where it differs, by `errorMessage`, and `codes` the `errorCode`, by "
    "ours. All other refusals are problem documents (`Problem`): those of other operations, and those before the key is known."
)
_RECORDS: Final = frozenset((Response.RECORD, Response.PAGE))


def describe_dialects(operation: Operation) -> Mapping[str, Schema]:
    """Return references to the schemas of an operation's answer in the dialects that have their own form for it, by dialect."""
    return {name: ref(_component(dialect, operation)) for name, dialect, _ in _shapes(operation)}


def build_dialect_schemas(operations: Iterable[Operation]) -> dict[str, Schema]:
    """Return the schemas of the errors, the records and other answers in all dialects."""
    errors = {_error_component(one.dialect): _error_schema(one.dialect) for one in TRANSLATORS.values()}
    return errors | {
        _component(dialect, operation): _schema(members) for operation in operations for _, dialect, members in _shapes(operation)
    }


def describe_dialect_errors(operations: Iterable[Operation]) -> dict[str, Schema]:
    """Return how each dialect refuses: media type and schema, the operations that do, and the statuses and codes that differ."""
    listed = tuple(operations)
    return {
        name: {
            "title": translator.dialect.title,
            "description": translator.dialect.doc,
            "errors": {
                "description": _ERRORS,
                "mediaType": translator.dialect.error_type,
                "schema": ref(_error_component(translator.dialect)),
                "operations": [operation.name for operation in listed if translator.covers(operation)],
                "statuses": dict(translator.dialect.statuses),
                "codes": dict(translator.codes),
            },
        }
        for name, translator in TRANSLATORS.items()
    }


def _error_component(dialect: Dialect) -> str:
    return f"{dialect.name.capitalize()}Error"


def _error_schema(dialect: Dialect) -> Schema:
    return {
        "type": "object",
        "description": f"An error in the dialect of {dialect.title}: nothing but the code and the name.",
        "required": ["errorCode", "errorMessage"],
        "additionalProperties": False,
        "properties": {
            "errorCode": {"type": "string", "description": "The error's code.", "examples": ["1F363/1"]},
            "errorMessage": {"type": "string", "enum": list(REFUSALS), "description": "The error's name."},
        },
    }


def _shapes(operation: Operation) -> list[tuple[str, Dialect, tuple[DialectMember, ...]]]:
    found = []
    for name, translator in TRANSLATORS.items():
        dialect_kind = translator.find_dialect_kind(operation)
        is_shown = verb_of(operation).response in _RECORDS
        members = dialect_kind.members if dialect_kind is not None and is_shown else translator.dialect.answers.get(operation.name)
        if members is not None:
            found.append((name, translator.dialect, members))
    return found


def _component(dialect: Dialect, operation: Operation) -> str:
    return f"{dialect.name.capitalize()}{component_of(operation)}"


def _schema(members: Iterable[DialectMember]) -> Schema:
    listed = tuple(members)
    properties = {member.name: dict(member.schema) | {"description": member.doc} for member in listed}
    return {"type": "object", "required": [member.name for member in listed], "properties": properties}
