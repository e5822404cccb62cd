"""Reading names from the old community, and changing those that our rules do not allow."""

import re
import unicodedata
from html import escape, unescape
from typing import Any, Final

from trellis.core.fields import Invalid, quote
from trellis.core.kind import NodeKind
from trellis.invisible import remove_invisible

_LONGEST: Final = 255
_READ: Final = 4 * _LONGEST  # characters to examine
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_ENTITY: Final = re.compile(r"&(?:[a-zA-Z][a-zA-Z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_BREAKS: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))


def read_name(kind: NodeKind, number: int, original: Any, notes: list[str]) -> str:
    """Return a name that our rules allow, unchanged if possible. Add to `notes` what was changed or will look odd."""
    sent = original if isinstance(original, str) else ""
    text = decode_entities(sent)
    try:
        name: str = kind.name_field.type.parse(text)
    except Invalid:
        name = _repair(text) or f"{kind.singular.capitalize()} {number}"
        notes.append(f"Its name was {quote(original)}, which is not allowed here, so it was changed: check it.")
    if _TAG.search(sent):
        notes.append(
            "Its name contains HTML, which is shown here as plain text. If you do not want that, rename it in the old community."
        )
    return name


def decode_entities(text: str) -> str:
    """Return a text with the characters that its HTML entities stand for.

    The old community shows entities in names as these characters, whether they were stored so, as in its early versions, or come
    from its pages: its templates do not escape them twice.
    """
    return _ENTITY.sub(lambda found: unescape(found[0]), text)


def spell_in_html(name: str, original: Any) -> tuple[str, ...]:
    """Return the forms that a name may have in HTML: as it was sent, and escaped as by us, by PHP, or hardly."""
    sent = (original,) if isinstance(original, str) and original else ()
    return (*sent, escape(name), escape(name).replace("&#x27;", "&#039;"), escape(name, quote=False), name)


def _repair(text: str) -> str:
    text = "".join(" " if unicodedata.category(one) in _BREAKS else one for one in text[:_READ]).strip()
    return remove_invisible(text)[:_LONGEST].strip()
