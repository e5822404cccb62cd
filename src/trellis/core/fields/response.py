"""Types of responses of operations that are not about nodes: objects and lists, described for the reference, never accepted."""

from dataclasses import dataclass
from typing import Any

from trellis.core.fields.field import Field
from trellis.core.fields.type import Invalid, Type
from trellis.sentences import say


class _Returned(Type):
    def parse(self, raw: Any) -> Any:
        del raw
        raise Invalid(say("is only returned, never accepted."))


@dataclass(frozen=True, slots=True)
class ObjectOf(_Returned):
    """An object of these fields; without any, an object of any shape."""

    fields: tuple[Field, ...] = ()

    def schema(self) -> dict[str, Any]:
        if not self.fields:
            return {"type": "object"}
        names = [field.name for field in self.fields]
        return {
            "type": "object",
            "required": names,
            "properties": {field.name: field.schema() for field in self.fields},
        }


@dataclass(frozen=True, slots=True)
class ListOf(_Returned):
    """A list of objects of these fields."""

    fields: tuple[Field, ...]

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": ObjectOf(self.fields).schema()}


@dataclass(frozen=True, slots=True)
class Nullable(Type):
    """A value of another type, or null."""

    type: Type

    def parse(self, raw: Any) -> Any:
        return None if raw is None else self.type.parse(raw)

    def schema(self) -> dict[str, Any]:
        schema = self.type.schema()
        return schema | {"type": [schema["type"], "null"]}
