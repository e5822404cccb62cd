"""Whole numbers: what is accepted, and what is refused with which sentence."""

from typing import Any

import pytest

from trellis.core.fields import Integer, Invalid, Type

PRIORITY = Integer(1, 9, nullable=True)


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (Integer(), 0, 0),
        (Integer(), "12", 12),
        (Integer(), " +7 ", 7),
        (Integer(), "\x1f7\u2028", 7),
        (Integer(), 3.0, 3),
        (Integer(), 2**31 - 1, 2**31 - 1),
        (PRIORITY, None, None),
        (PRIORITY, "", None),
        (PRIORITY, 9, 9),
    ],
)
def test_a_value_is_accepted(type_: Type, raw: Any, value: Any) -> None:
    assert type_.parse(raw) == value


@pytest.mark.parametrize(
    ("type_", "raw", "says"),
    [
        (Integer(), -1, "must be a whole number from 0 to 2147483647, not -1."),
        (Integer(), 2**31, "must be a whole number from 0 to 2147483647, not 2147483648."),
        (Integer(), True, "must be a whole number from 0 to 2147483647, not true."),
        (Integer(), 1.5, "must be a whole number from 0 to 2147483647, not 1.5."),
        (Integer(), float("nan"), "not nan."),
        (Integer(), "1e3", "not '1e3'."),
        (Integer(), "9" * 5000, "must be a whole number"),
        (PRIORITY, 10, "must be a whole number from 1 to 9, or null, not 10."),
    ],
)
def test_a_value_is_refused_with_what_is_allowed(type_: Type, raw: Any, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert says in refused.value.detail
