"""A text that says a number of things has a form for one of them."""

import re
from typing import Final

from tests.languages.texts_of_code import find_all_texts

_COUNTED: Final = re.compile(r"(?:\{(\w+)[^}]*\}|%\((\w+)\)s) (\{several\}|\{plural\}|\{title\}|[a-z]+s)\b")
# What follows a name or an id.
_VERBS: Final = frozenset(
    {
        "accepts",
        "adds",
        "affects",
        "allows",
        "changes",
        "contains",
        "does",
        "expires",
        "goes",
        "has",
        "is",
        "knows",
        "proposes",
        "refers",
        "says",
        "stops",
        "undoes",
        "was",
    }
)
# Numbers that are never one: limits, and what a text is about only if there are several.
_NEVER_ONE: Final = frozenset(
    {
        "below",
        "days",
        "deepest",
        "deepest_tree",
        "longest",
        "max_parameters",
        "most",
        "most_later",
        "most_pairs",
        "most_passkeys",
        "most_records",
        "most_values",
        "n",
        "counted",
        "length",
        "limit",
        "seconds",
        "size",
        "tags",
        "opened",
        "took",
        "all",
        "sum",
    }
)
_NO_NUMBER: Final = frozenset({"external_id", "field", "id", "name", "label", "title", "where"})
_FROM_TWO_ON: Final = frozenset(
    {
        "has {count:,} documents; at most {most:,} are allowed.",
        "{field}: {count} keys have this name. Send the id: {ids}.",
        "is {count:,} characters long; at most {longest:,} are allowed.",
        "is {count:,} characters of HTML once it is escaped; at most {longest:,} are allowed.",
        "The form has {count:,} fields; at most {max_fields} are read.",
        "The request has {count:,} parameters; at most {max_names:,} are allowed.",
        "This request sets {count:,} passwords, but at most {most} are allowed. Nothing was done. Set fewer of them at once.",
        "{count} alarms",
        "{count} alarms and more",
        "{count:,} fields are invalid: {faults}",
        "{count} times a day",
        "{count} times a minute",
    }
)


def test_a_text_with_a_number_has_a_form_for_one() -> None:
    alone = {text for texts in find_all_texts().values() for text in texts if isinstance(text, str) and _counts(text)}
    assert alone == _FROM_TWO_ON, "Use say_many, or ngettext, unless the number is never one."


def _counts(text: str) -> bool:
    return any(
        word not in _VERBS and (value or other) not in _NEVER_ONE | _NO_NUMBER for value, other, word in _COUNTED.findall(text)
    )
