"""The type of whole numbers."""

import re
from dataclasses import dataclass
from typing import Any, Final

from trellis.core.fields.type import Invalid, quote
from trellis.sentences import say

MAX_INTEGER: Final = 2**31 - 1
OR_NULL: Final = say(", or null")
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,640}\Z", re.ASCII)  # Python converts so many digits, however it is configured
_SEPARATED: Final = re.compile(r"[+-]?[0-9]{1,3}([.,' \N{RIGHT SINGLE QUOTATION MARK}\xa0\u202f])[0-9]{3}(?:\1[0-9]{3})*")


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number within inclusive bounds; if `nullable`, null and the empty string mean no number."""

    least: int = 0
    most: int = MAX_INTEGER
    nullable: bool = False
    widget: str = "number"

    def parse(self, raw: Any) -> int | None:
        if self.nullable and raw in (None, ""):
            return None
        number = parse_whole_number(raw)
        if number is None or not self.least <= number <= self.most:
            none = OR_NULL if self.nullable else ""
            raise Invalid(
                say(
                    "must be a whole number from {least} to {most}{none}, not {raw}.",
                    least=self.least,
                    most=self.most,
                    none=none,
                    raw=quote(raw),
                )
            )
        return number

    def schema(self) -> dict[str, Any]:
        kind = ["integer", "null"] if self.nullable else "integer"
        return {"type": kind, "minimum": self.least, "maximum": self.most}


def parse_whole_number(raw: object) -> int | None:
    """Read a whole number from a JSON number or its text; None if it is not one."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, float) and raw.is_integer() and abs(raw) <= MAX_INTEGER:
        return int(raw)
    if isinstance(raw, str) and _WHOLE_NUMBER.match(text := raw.strip()):
        return int(text)  # by itself, int() would not accept all blanks that strip() removes
    return None


def drop_separators(typed: str) -> str:
    """Return a typed whole number without thousands separators, such as pages show it with in any language; other text as it is."""
    return re.sub(r"[^0-9+-]", "", typed) if _SEPARATED.fullmatch(typed.strip()) else typed
