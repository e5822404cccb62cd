"""Lists as JSON and forms send them, and the type of a list of words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trellis.core.fields.json_text import parse_json
from trellis.core.fields.text import Text
from trellis.core.fields.type import Invalid, Type, quote
from trellis.sentences import say


class FormMapping(dict[str, Any]):
    """An object that was sent in the brackets of a form: `permissions[view]=*`.

    A form cannot contain an empty list, so a member that is missing may have been meant as one. `permissions[view]=` stands for
    one.
    """


@dataclass(frozen=True, slots=True)
class TextList(Type):
    """A list of words: a JSON list, or `one,two`. Order is kept, duplicates are not."""

    most: int = 200
    least: int = 0

    def parse(self, raw: Any) -> tuple[str, ...]:
        parts = split_list(raw)
        if parts is not None and len(parts) < self.least:
            raise Invalid(say("must not be an empty list."))
        if parts is None or len(parts) > self.most:
            raise Invalid(say("must be a list of at most {most} words, not {raw}.", most=self.most, raw=quote(raw)))
        return tuple(dict.fromkeys(Text(255, 1).parse(part) for part in parts))

    def schema(self) -> dict[str, Any]:
        least = {"minItems": self.least} if self.least else {}
        return {"type": "array", "items": {"type": "string"}, **least, "maxItems": self.most}


def split_list(raw: object) -> Sequence[Any] | None:
    """Split a list: a JSON list, its text, words separated by commas, or one whole number. Returns None if it is none of these."""
    raw = parse_json_text(raw)
    if isinstance(raw, str):
        return [part for part in raw.split(",") if part.strip()]
    if isinstance(raw, int) and not isinstance(raw, bool):
        return [raw]
    return raw if isinstance(raw, list | tuple) else None


def parse_json_text(raw: object) -> object:
    """Parse a JSON list or object that was sent as the text of one form field; return anything else unchanged."""
    if isinstance(raw, str) and raw.lstrip()[:1] in {"{", "["}:
        try:
            return parse_json(raw)
        except ValueError:
            return raw
    return raw
