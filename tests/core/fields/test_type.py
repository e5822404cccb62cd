"""What holds for every field type, whatever is sent: it is kept or refused with a sentence, and the JSON Schema is right."""

import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types of its own

from trellis.core.fields import (
    Anything,
    Boolean,
    ChildrenFate,
    Choice,
    Color,
    Groups,
    Html,
    Ids,
    Integer,
    Invalid,
    NodeId,
    ParentId,
    Password,
    Permissions,
    Text,
    TextList,
    Timestamp,
    Type,
    Url,
    quote,
)
from trellis.core.keys.fields import Networks
from trellis.core.passwords import Plain

LINE, PAGE, NAME = Text(10), Text(50, lines=True), Text(255, 1, missing="NO_TITLE")
THEME, PRIORITY = Integer(1, nullable=True), Integer(1, 9, nullable=True)
WORD = Choice({"asc": "Up.", "desc": "Down."}, also={"up": "asc"}, message="INVALID_TYPE")
OPTIONS = Permissions({"view": "See it.", "add": "Write in it."})
TYPES: dict[str, Type] = {
    "line": LINE,
    "page": PAGE,
    "name": NAME,
    "html": Html(200),
    "boolean": Boolean(),
    "integer": Integer(),
    "priority": PRIORITY,
    "choice": WORD,
    "color": Color(),
    "url": Url(),
    "password": Password(),
    "moment": Timestamp(),
    "moment or none": Timestamp(nullable=True),
    "node": NodeId(),
    "node or none": NodeId(nullable=True),
    "parent": ParentId(),
    "fate": ChildrenFate(),
    "ids": Ids(5),
    "words": TextList(5),
    "groups": Groups(),
    "permissions": OPTIONS,
    "networks": Networks(),
}
# Those whose schema says all that there is to say: what it allows, they take.
EXACT = (
    "boolean",
    "integer",
    "priority",
    "choice",
    "color",
    "node",
    "node or none",
    "parent",
    "fate",
    "ids",
    "groups",
    "permissions",
)

letters = st.text(st.characters(exclude_categories=()), max_size=12)  # control characters and lone surrogates too
telling = st.sampled_from(
    ["*", "", "null", "true", "asc", "#00ff00", "https://a.example/", "1,2", "[1]", '{"view":"*"}', "7d", "2026-01-31"]
)
numbers = st.integers(-(2**70), 2**70) | st.integers(-3, 12)


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = telling | st.sampled_from(["view", "add"]) | letters
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=3), max_leaves=6)


exact = nested(st.none() | st.booleans() | numbers | telling | letters)
anything = exact | nested(st.floats() | telling)
SCHEMAS = {name: Draft202012Validator(type_.schema()) for name, type_ in TYPES.items()}


def as_json(value: Any) -> Any:
    """Write a kept value as it is answered."""
    if isinstance(value, dict):
        return {name: as_json(part) for name, part in value.items()}
    return [as_json(part) for part in value] if isinstance(value, list | tuple) else value


def judged(type_: Type, raw: Any) -> tuple[Any, str]:
    """Return the value to keep, or what is wrong with it."""
    try:
        return type_.parse(raw), ""
    except Invalid as invalid:
        return None, invalid.detail


@settings(max_examples=settings().max_examples * 4)
@given(raw=anything)
@example(raw="&#13;<b>x</b>&#32;")
@example(raw="<script></script> x")
@example(raw=10**400)
def test_whatever_is_sent_is_kept_or_refused_with_a_sentence(raw: Any) -> None:
    for name, type_ in TYPES.items():
        value, problem = judged(type_, raw)
        if problem:
            assert problem.endswith("."), name
            assert len(problem) < 400, name
            problem.encode()  # it can be sent back
        else:
            kept = as_json(value.text if isinstance(value, Plain) else value)
            assert SCHEMAS[name].is_valid(kept), f"{name}: the schema does not allow what is answered"
            assert type_.parse(kept) == value, f"{name}: what is answered cannot be sent back unchanged"


@settings(max_examples=settings().max_examples * 4)
@given(raw=exact)
def test_what_the_schema_allows_is_taken(raw: Any) -> None:
    for name in EXACT:
        if SCHEMAS[name].is_valid(raw):
            TYPES[name].parse(raw)


def test_a_schema_is_a_schema() -> None:
    for type_ in TYPES.values():
        Draft202012Validator.check_schema(type_.schema())


@given(raw=anything)
def test_what_is_quoted_is_short_and_harmless(raw: Any) -> None:
    quoted = quote(raw)
    assert len(quoted) <= 60
    quoted.encode()
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", quoted)


def test_what_means_nothing_is_accepted_and_ignored() -> None:
    type_: Type = Anything()
    assert type_.parse({"what": "ever"}) is None
