"""JSON as callers send it: what is refused, and that the reason is said in few words."""

import json
from typing import Any

import pytest

from trellis.core.fields import MAX_NAMES, Invalid, Permissions, TextList, parse_json
from trellis.core.fields.json_text import MAX_DEPTH


def nested(levels: int) -> str:
    """Write objects and lists in turn, so many levels deep."""
    return (
        "".join('{"a":' if level % 2 == 0 else "[" for level in range(levels))
        + "1"
        + "".join("}" if level % 2 == 0 else "]" for level in reversed(range(levels)))
    )


@pytest.mark.parametrize(
    "text", ['{"a": [1, 2.5, "b", null, true]}', "[]", "7", '"a"', '"\\ud83c\\udf0d"', "[" * 60 + "]" * 60, '"' + "[" * 500 + '"']
)
def test_json_is_read_as_it_is(text: str) -> None:
    assert parse_json(text) == json.loads(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "the name 'a' appears twice in one object"),
        ('{"a": {"b": 1, "b": 1}}', "the name 'b' appears twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('["\\ud800"]', "half of a surrogate pair"),
        ('{"\\udfff": 1}', "half of a surrogate pair"),
        ("{", "Expecting"),
        ('{"a": 1e999}', "the number 1e999 is too large"),
        (f'{{"a": -1{"0" * 400}.5}}', "the number -10+… is too large"),
        (f'{{"a": {"9" * 5_000}}}', "^a number has too many digits$"),
        (nested(MAX_DEPTH + 1), f"{MAX_DEPTH} levels are allowed"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        (json.dumps(dict.fromkeys(map(str, range(MAX_NAMES + 1)))), "an object has 1,001 names; 1,000 are allowed"),
        (json.dumps([{"deep": dict.fromkeys(map(str, range(20_000)))}]), "an object has 20,000 names"),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_refused_is_said(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as error:
        parse_json(text)
    assert len(str(error.value)) < 200


def test_the_largest_that_is_allowed_is_read() -> None:
    assert len(parse_json(json.dumps(dict.fromkeys(map(str, range(MAX_NAMES)))))) == MAX_NAMES
    assert parse_json(nested(MAX_DEPTH))


def test_many_objects_may_have_many_names_together() -> None:
    rows = [{"id": number, "name": "x"} for number in range(5_000)]
    assert parse_json(json.dumps(rows)) == rows


@pytest.mark.parametrize(("read", "text"), [(Permissions({"view": "Who sees it."}).parse, '{"view": "*", "view": []}')])
def test_the_text_of_a_form_field_is_read_by_the_same_rules(read: Any, text: str) -> None:
    with pytest.raises(Invalid, match="must be an object"):
        read(text)


def test_a_list_in_the_text_of_a_form_field_is_read() -> None:
    assert TextList().parse('["a", "b"]') == ("a", "b")
