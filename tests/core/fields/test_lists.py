"""Lists of words: what is accepted, and what is refused with which sentence."""

from typing import Any

import pytest

from trellis.core.fields import Invalid, TextList, Type


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (TextList(), "two,one,two", ("two", "one")),
        (TextList(), ["one", "two"], ("one", "two")),
    ],
)
def test_a_value_is_accepted(type_: Type, raw: Any, value: Any) -> None:
    assert type_.parse(raw) == value


@pytest.mark.parametrize(
    ("type_", "raw", "says"),
    [
        (TextList(1), "one,two", "must be a list of at most 1 words"),
        (TextList(), [1], "must be text, not 1."),
    ],
)
def test_a_value_is_refused_with_what_is_allowed(type_: Type, raw: Any, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert says in refused.value.detail
