"""JSON as callers send it, parsed in the same way everywhere: in a body, a form field or a parameter of the command line."""

import json
import math
from typing import Any, Final, NoReturn

from trellis.core.fields.type import quote

MAX_NAMES: Final = 1000  # names of one object
MAX_DEPTH: Final = 64  # levels; code that writes and compares values recursively takes three times as many


class _NotAllowed(ValueError):
    """Raised for JSON that is not accepted here; its text says why."""


def parse_json(text: str) -> Any:
    """Parse JSON in time linear in its length. Raises ValueError, whose text says what is wrong as the end of a sentence.

    It refuses text that is not JSON, a name that appears twice in one object, more than MAX_NAMES names in one, more than MAX_DEPTH
    levels, and values that neither a database nor a response could hold: lone surrogates, numbers that are too large.
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (json.JSONDecodeError, _NotAllowed):
        raise
    except ValueError:  # from Python, about a whole number; its text names the setting that would allow it
        raise ValueError("a number has too many digits") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_deeper(value, MAX_DEPTH):
        raise ValueError(f"it is nested too deeply; {MAX_DEPTH} levels are allowed")
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeError:
            raise ValueError("it contains half of a surrogate pair, which is not a character") from None
    return value


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MAX_NAMES:
        raise _NotAllowed(f"an object has {len(pairs):,} names; {MAX_NAMES:,} are allowed")
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _NotAllowed(f"the name {quote(name)} appears twice in one object")
        found[name] = value
    return found


def _refuse_constant(constant: str) -> NoReturn:
    raise _NotAllowed(f"{constant} is not JSON")


def _parse_fraction(text: str) -> float:
    if math.isinf(number := float(text)):
        raise _NotAllowed(f"the number {quote(text).strip(chr(39))} is too large")
    return number


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_build_object, parse_float=_parse_fraction, parse_constant=_refuse_constant)


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether lists and objects are nested deeper than a number of levels."""
    level = [value]
    for _ in range(levels):
        nodes = (one for one in level if isinstance(one, dict | list))
        level = [below for node in nodes for below in (node.values() if isinstance(node, dict) else node)]
    return any(isinstance(one, dict | list) for one in level)
