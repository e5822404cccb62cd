"""The interface of field types, and the exception by which they refuse a value.

A type's `parse` turns what a caller sent (a JSON value, or the text of a form field) into the value that is stored, or raises
Invalid with a sentence that says what is allowed. `schema` is the JSON Schema (draft 2020-12) of that value.
"""

import re
from dataclasses import dataclass
from typing import Any, Final, Protocol

# C0 and C1 controls, DEL, the Unicode line and paragraph separators, and surrogates, which UTF-8 cannot carry.
CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Invalid(Exception):
    """Raised for a value that its type does not allow. `detail` says what is allowed; `message` names a row of REFUSALS.

    For a value with parts, `parts` lists what is wrong with each part: (its path, a sentence).
    """

    def __init__(self, detail: str, message: str = "INVALID_VALUE", parts: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(detail)
        self.parts = parts
        self.detail = detail
        self.message = message


class Type(Protocol):
    """The type of a field's value."""

    @property
    def widget(self) -> str:
        """The form control for entering it: text, textarea, number, checkbox, select, color, url, password, …."""
        return "text"

    def parse(self, raw: Any) -> Any:
        """Return the value to store; raise Invalid if it is not allowed."""

    def schema(self) -> dict[str, Any]:
        """Return its JSON Schema."""


def quote(raw: object) -> str:
    """Quote a value that was sent, in at most 60 characters without control characters, so that it can be sent back."""
    text = f"'{raw}'" if isinstance(raw, str) else "null" if raw is None else repr(raw)
    text = text.lower() if isinstance(raw, bool) else text  # as in JSON
    text = CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
    return text if len(text) <= 60 else text[:57] + "…" + text[-1]


@dataclass(frozen=True, slots=True)
class Anything(Type):
    """A value that is accepted and ignored."""

    def parse(self, raw: Any) -> None:
        del raw

    def schema(self) -> dict[str, Any]:
        return {}
