"""Reading names from the old community, and changing those that our rules do not allow."""

import re
import unicodedata
from typing import Any, Final

from trellis.core.fields import Invalid, quote
from trellis.core.kind import NodeKind
from trellis.invisible import remove_invisible

_LONGEST: Final = 255
_READ: Final = 4 * _LONGEST  # characters to examine
_HTML: Final = re.compile(r"</?[a-zA-Z][^<>]*>|&(?:[a-zA-Z]+|#[0-9]+|#x[0-9a-fA-F]+);")
_BREAKS: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))


def read_name(kind: NodeKind, number: int, told: Any, notes: list[str]) -> str:
    """Return a name that our rules allow, unchanged if possible. Add to `notes` what was changed or will look odd."""
    text = told if isinstance(told, str) else ""
    try:
        name: str = kind.name_field.type.parse(text)
    except Invalid:
        name = _repair(text) or f"{kind.singular.capitalize()} {number}"
        notes.append(f"Its name was {quote(told)}, which is not allowed here, so it was changed: check it.")
    if _HTML.search(name):
        notes.append(
            "Its name contains HTML, which is shown here as plain text. If you do not want that, rename it in the old community."
        )
    return name


def _repair(text: str) -> str:
    text = "".join(" " if unicodedata.category(one) in _BREAKS else one for one in text[:_READ]).strip()
    return remove_invisible(text)[:_LONGEST].strip()
