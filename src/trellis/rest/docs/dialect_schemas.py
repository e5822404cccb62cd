"""The schemas of answers in the dialects, for the OpenAPI document."""

from collections.abc import Iterable, Mapping
from typing import Final

from trellis.core.dialect import Dialect, Member
from trellis.core.operation import Operation
from trellis.core.verbs import Response
from trellis.rest.dialect import TRANSLATORS
from trellis.rest.docs.schemas import Schema, component_of, ref, verb_of

_RECORDS: Final = frozenset((Response.RECORD, Response.PAGE))


def describe_dialects(operation: Operation) -> Mapping[str, Schema]:
    """Return references to the schemas of an operation's answer in the dialects that have their own form for it, by dialect."""
    return {name: ref(_component(dialect, operation)) for name, dialect, _ in _shapes(operation)}


def build_dialect_schemas(operations: Iterable[Operation]) -> dict[str, Schema]:
    """Return the schemas of the records, and of other answers, in all dialects."""
    return {
        _component(dialect, operation): _schema(members) for operation in operations for _, dialect, members in _shapes(operation)
    }


def _shapes(operation: Operation) -> list[tuple[str, Dialect, tuple[Member, ...]]]:
    found = []
    for name, translator in TRANSLATORS.items():
        shape = translator.find_shape(operation)
        is_shown = verb_of(operation).response in _RECORDS
        members = shape.members if shape is not None and is_shown else translator.dialect.answers.get(operation.name)
        if members is not None:
            found.append((name, translator.dialect, members))
    return found


def _component(dialect: Dialect, operation: Operation) -> str:
    return f"{dialect.name.capitalize()}{component_of(operation)}"


def _schema(members: Iterable[Member]) -> Schema:
    listed = tuple(members)
    properties = {member.name: dict(member.schema) | {"description": member.doc} for member in listed}
    return {"type": "object", "required": [member.name for member in listed], "properties": properties}
