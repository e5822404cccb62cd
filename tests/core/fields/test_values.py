"""The field types: what each takes, what each refuses and how it says so, and that its JSON Schema tells the truth."""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no types of its own

from trellis.core.fields.values import (
    MAX_ID,
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
from trellis.core.keys.fields import Expiry, Networks

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
each_type = pytest.mark.parametrize("name", TYPES)


def as_json(value: Any) -> Any:
    """Write a kept value as it is answered."""
    if isinstance(value, dict):
        return {name: as_json(part) for name, part in value.items()}
    return [as_json(part) for part in value] if isinstance(value, list | tuple) else value


def judged(type_: Type, raw: Any) -> tuple[Any, str]:
    """Give the value to keep, or what is wrong with it."""
    try:
        return type_.parse(raw), ""
    except Invalid as invalid:
        return None, invalid.detail


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (LINE, "  News\n", "News"),
        (LINE, "", ""),
        (LINE, "x" * 10, "x" * 10),
        (PAGE, "one\r\n\ttwo", "one\r\n\ttwo"),
        (Html(), '<p onclick="x()">Hi<script>alert(1)</script></p>', "<p>Hi</p>"),
        (Html(), "<script>alert(1)</script> Hi ", "Hi"),
        (Html(), "a&#1;b", "ab"),
        (Boolean(), True, True),
        (Boolean(), "TRUE", True),
        (Boolean(), 1, True),
        (Boolean(), "1", True),
        (Boolean(), " false ", False),
        (Boolean(), 0, False),
        (Boolean(), "0", False),
        (Integer(), 0, 0),
        (Integer(), "12", 12),
        (Integer(), " +7 ", 7),
        (Integer(), 3.0, 3),
        (Integer(), 2**31 - 1, 2**31 - 1),
        (PRIORITY, None, None),
        (PRIORITY, "", None),
        (PRIORITY, 9, 9),
        (WORD, "asc", "asc"),
        (WORD, "up", "asc"),
        (Color(), " #3b82f6 ", "#3B82F6"),
        (Url(), "https://example.com/a?b=c#d", "https://example.com/a?b=c#d"),
        (Url(), "HTTP://[::1]:8000/", "HTTP://[::1]:8000/"),
        (Url(), None, None),
        (Url(), "", None),
        (Password(), " spaces count ", " spaces count "),
        (Password(), None, None),
        (Password(), "", None),
        (Timestamp(), "2026-01-31T09:30:00Z", "2026-01-31T09:30:00.000Z"),
        (Timestamp(), "2026-01-31T10:30:00.1239+01:00", "2026-01-31T09:30:00.123Z"),
        (Timestamp(), "2026-01-31T10:30:00 01:00", "2026-01-31T09:30:00.000Z"),  # a '+' that a URL has made a space
        (Timestamp(), "2026-01-31", "2026-01-31T00:00:00.000Z"),
        (Timestamp(nullable=True), None, None),
        (NodeId(), "7", 7),
        (NodeId(), MAX_ID, MAX_ID),
        (NodeId(nullable=True), "", None),
        (ParentId(), 7, 7),
        *((ParentId(), raw, None) for raw in (None, "", 0, "0", -1, "-1", "root", "null")),
        (ChildrenFate(), "-1", -1),
        (ChildrenFate(), 7, 7),
        (Ids(), "3,1, 3", (1, 3)),
        (Ids(), [3, "1"], (1, 3)),
        (Ids(), "[3,1]", (1, 3)),
        (Ids(), 3, (3,)),
        (Ids(), "", ()),
        (TextList(), "two,one,two", ("two", "one")),
        (TextList(), ["one", "two"], ("one", "two")),
        (Groups(), "*", "*"),
        (Groups(), [4, 3, 3], (3, 4)),
        (Groups(), "3,4", (3, 4)),
        (Groups(), [], ()),
        (OPTIONS, {"view": "*", "add": [3]}, {"view": "*", "add": (3,)}),
        (OPTIONS, '{"add": "3,4"}', {"add": (3, 4)}),
        (OPTIONS, {}, {}),
        (Anything(), {"what": "ever"}, None),
        (Networks(), ["192.0.2.7/24", "2001:db8::1"], ["192.0.2.0/24", "2001:db8::1/128"]),
        (Networks(), None, []),
        (Expiry(), "never", None),
    ],
)
def test_a_type_takes(type_: Type, raw: Any, value: Any) -> None:
    assert type_.parse(raw) == value


@pytest.mark.parametrize(
    ("type_", "raw", "says"),
    [
        (LINE, 7, "must be text, not 7."),
        (LINE, None, "must be text, not None."),
        (LINE, "x" * 11, "is 11 characters long; at most 10 are allowed."),
        (LINE, "a\x00b", "must not hold control characters; U+0000 stands at 1."),
        (LINE, "a\nb", "must not hold control characters; U+000A stands at 1."),
        (LINE, "a\u2028b", "must not hold control characters; U+2028 stands at 1."),
        (PAGE, "a\ud800b", "must not hold control characters; U+D800 stands at 1."),
        (Html(50), "&" * 11, "at most 50 are allowed"),  # 11 characters as sent, 55 as they would be kept
        (Boolean(), "yes", "must be true or false (or 1 or 0), not 'yes'."),
        (Boolean(), 2, "must be true or false (or 1 or 0), not 2."),
        (Boolean(), 1.0, "must be true or false (or 1 or 0), not 1.0."),
        (Boolean(), None, "must be true or false (or 1 or 0), not None."),
        (Integer(), -1, "must be a whole number from 0 to 2147483647, not -1."),
        (Integer(), 2**31, "must be a whole number from 0 to 2147483647, not 2147483648."),
        (Integer(), True, "must be a whole number from 0 to 2147483647, not True."),
        (Integer(), 1.5, "must be a whole number from 0 to 2147483647, not 1.5."),
        (Integer(), float("nan"), "not nan."),
        (Integer(), "1e3", "not '1e3'."),
        (Integer(), "9" * 5000, "must be a whole number"),
        (PRIORITY, 10, "must be a whole number from 1 to 9, or null, not 10."),
        (WORD, "sideways", "must be one of asc, desc, not 'sideways'."),
        (WORD, ["asc"], "must be one of asc, desc, not ['asc']."),
        (Color(), "#3b82f", "must be a colour as #RRGGBB"),
        (Color(), "red", "must be a colour as #RRGGBB, such as #3B82F6, not 'red'."),
        *(
            (Url(), raw, "must be an http or https address")
            for raw in (
                "javascript:alert(1)",
                "//example.com",
                "https://",
                "https://a b.example/",
                "http://[::1",
                "http://a.example:99999/",
                'https://a.example/"onclick="x',
            )
        ),
        (Url(), 7, "must be text, not 7."),
        (Password(), 7, "must be text of at most 255 characters"),
        (Password(), "x" * 256, "must be text of at most 255 characters"),
        (Password(), "a\x00b", "without control characters"),
        (Timestamp(), "yesterday", "must be a moment in ISO 8601, such as 2026-01-31T09:30:00Z, not 'yesterday'."),
        (Timestamp(), 1769851800, "must be a moment in ISO 8601"),
        (Timestamp(), "9999-12-31T23:59:59-01:00", "must be a moment in ISO 8601"),
        (Timestamp(), None, "must be a moment in ISO 8601"),
        (NodeId(), 0, "must be an id, a whole number from 1 up, not 0."),
        (NodeId(), MAX_ID + 1, "must be an id"),
        (NodeId(), None, "must be an id"),
        (ParentId(), -2, "must be a parent's id, or null for the top level, not -2."),
        (ParentId(), "top", "must be a parent's id"),
        (ChildrenFate(), 0, "must be -1 (delete the children) or the id of their new parent, not 0."),
        (ChildrenFate(), None, "must be -1 (delete the children)"),
        (Ids(2), [1, 2, 3], "must be at most 2 ids, such as 1,2,3, not [1, 2, 3]."),
        (Ids(), [1, 0], "must be an id"),
        (Ids(), {"a": 1}, "must be at most 1000 ids"),
        (TextList(1), "one,two", "must be a list of at most 1 words"),
        (TextList(), [1], "must be text, not 1."),
        (Groups(), "all", "must be \"*\" (every group) or a list of group ids, not 'all'."),
        (OPTIONS, [], 'must be an object such as {"view": "*", "add": [3]}, not [].'),
        (OPTIONS, "{", "must be an object"),
        (OPTIONS, {"viwe": "*"}, "has no option 'viwe'; the options are view, add."),
        (OPTIONS, {"add": 0}, "'add' must be \"*\" (every group) or a list of group ids, not 0."),
        (Networks(), "192.0.2.0/33", "must be addresses or networks such as 192.0.2.0/24, not '192.0.2.0/33'."),
        (Networks(), ["192.0.2.1", "example.com"], "not 'example.com'."),
        (Networks(), [f"192.0.2.{n}" for n in range(101)], "must be at most 100 addresses"),
        (Expiry(), "90", "must be a span such as 90d or 12h, a moment in ISO 8601, or null for never, not '90'."),
        (Expiry(), "0d", "must be a span"),
        (Expiry(), "36501d", "must be a span"),
        (Expiry(), "9" * 5000 + "d", "must be a span"),
        (Expiry(), 90, "must be a span"),
    ],
)
def test_a_type_refuses_and_says_what_is_allowed(type_: Type, raw: Any, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert says in refused.value.detail


@pytest.mark.parametrize(
    ("type_", "raw", "message"),
    [
        (LINE, 7, "INVALID_VALUE"),
        (NAME, " \n ", "NO_TITLE"),
        (WORD, "sideways", "INVALID_TYPE"),
        (ParentId(), -2, "INVALID_PARENT"),
        (ChildrenFate(), 0, "INVALID_TARGET"),
        (OPTIONS, {"viwe": "*"}, "UNKNOWN_PARAMETER"),
    ],
)
def test_a_refusal_carries_the_reason_that_fits(type_: Type, raw: Any, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert refused.value.message == message


@each_type
@given(raw=anything)
@example(raw="&#13;<b>x</b>&#32;")
@example(raw="<script></script> x")
@example(raw=10**400)
def test_whatever_is_sent_is_kept_or_refused_with_a_sentence(name: str, raw: Any) -> None:
    type_ = TYPES[name]
    value, problem = judged(type_, raw)
    if problem:
        assert problem.endswith(".")
        assert len(problem) < 400
        problem.encode()  # it can be sent back
    else:
        kept = as_json(value)
        assert list(Draft202012Validator(type_.schema()).iter_errors(kept)) == [], "the schema does not allow what is answered"
        assert type_.parse(kept) == value, "what is answered cannot be sent back unchanged"


@pytest.mark.parametrize("name", EXACT)
@given(raw=exact)
def test_what_the_schema_allows_is_taken(name: str, raw: Any) -> None:
    type_ = TYPES[name]
    if Draft202012Validator(type_.schema()).is_valid(raw):
        type_.parse(raw)


@each_type
def test_a_schema_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(TYPES[name].schema())


@given(html=st.text(st.sampled_from("<>/&;#x13 ab\"'=-!pscript\n\r\t\xa0"), max_size=60))
def test_sanitised_html_stays_as_it_is_when_it_is_sent_back(html: str) -> None:
    kept, problem = judged(Html(), html)
    assert problem or Html().parse(kept) == kept


@given(raw=anything)
def test_what_is_quoted_is_short_and_harmless(raw: Any) -> None:
    quoted = quote(raw)
    assert len(quoted) <= 60
    quoted.encode()
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", quoted)
