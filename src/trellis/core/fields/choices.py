"""Types with a fixed set of values: booleans, and one of several words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from trellis.core.fields.lists import split_list
from trellis.core.fields.type import Invalid, Type, quote
from trellis.sentences import say


@dataclass(frozen=True, slots=True)
class Boolean:
    """A boolean. 1 and 0 are accepted too, and all four as strings, which is how forms send them."""

    widget: str = "checkbox"

    def parse(self, raw: Any) -> bool:
        if isinstance(raw, bool):
            return raw
        if isinstance(raw, int | str) and (value := _BOOLEANS.get(str(raw).strip().lower())) is not None:
            return value
        raise Invalid(say("must be true or false (or 1 or 0), not {raw}.", raw=quote(raw)))

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several words. `words` maps each to its description; `also` maps other spellings to these words."""

    words: Mapping[str, str]
    also: Mapping[str, str] = field(default_factory=dict)
    message: str = "INVALID_VALUE"
    widget: str = "select"

    def parse(self, raw: Any) -> str:
        word = self.also.get(raw, raw) if isinstance(raw, str) else None
        if word not in self.words:
            raise Invalid(say("must be one of {words}, not {raw}.", words=", ".join(self.words), raw=quote(raw)), self.message)
        return str(word)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class Choices(Type):
    """One or several of the words of a choice: a JSON list, or `one,two`."""

    choice: Choice

    def parse(self, raw: Any) -> tuple[str, ...]:
        parts = split_list(raw)
        if not parts:
            raise Invalid(
                say("must be one or more of {words}, not {raw}.", words=", ".join(self.choice.words), raw=quote(raw)),
                self.choice.message,
            )
        return tuple(sorted({self.choice.parse(part.strip() if isinstance(part, str) else part) for part in parts}))

    def schema(self) -> dict[str, Any]:
        words = list(self.choice.words)
        return {"type": "array", "items": {"type": "string", "enum": words}, "minItems": 1, "maxItems": len(words)}
