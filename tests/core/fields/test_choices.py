"""Booleans and choices: what is accepted, and what is refused with which sentence."""

from typing import Any

import pytest

from trellis.core.fields import Boolean, Choice, Invalid, Type

WORD = Choice({"asc": "Up.", "desc": "Down."}, also={"up": "asc"}, message="INVALID_TYPE")


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (Boolean(), True, True),
        (Boolean(), "TRUE", True),
        (Boolean(), 1, True),
        (Boolean(), "1", True),
        (Boolean(), " false ", False),
        (Boolean(), 0, False),
        (Boolean(), "0", False),
        (WORD, "asc", "asc"),
        (WORD, "up", "asc"),
    ],
)
def test_a_value_is_accepted(type_: Type, raw: Any, value: Any) -> None:
    assert type_.parse(raw) == value


@pytest.mark.parametrize(
    ("type_", "raw", "says"),
    [
        (Boolean(), "yes", "must be true or false (or 1 or 0), not 'yes'."),
        (Boolean(), 2, "must be true or false (or 1 or 0), not 2."),
        (Boolean(), 1.0, "must be true or false (or 1 or 0), not 1.0."),
        (Boolean(), None, "must be true or false (or 1 or 0), not null."),
        (WORD, "sideways", "must be one of asc, desc, not 'sideways'."),
        (WORD, ["asc"], "must be one of asc, desc, not ['asc']."),
    ],
)
def test_a_value_is_refused_with_what_is_allowed(type_: Type, raw: Any, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert says in refused.value.detail


@pytest.mark.parametrize(("type_", "raw", "message"), [(WORD, "sideways", "INVALID_TYPE")])
def test_a_value_is_refused_under_the_message_that_fits(type_: Type, raw: Any, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert refused.value.message == message
