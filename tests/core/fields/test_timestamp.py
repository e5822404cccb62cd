"""Timestamps: what is accepted, and what is refused with which sentence."""

from typing import Any

import pytest

from trellis.core.fields import Invalid, Timestamp, Type


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (Timestamp(), "2026-01-31T09:30:00Z", "2026-01-31T09:30:00.000Z"),
        (Timestamp(), "2026-01-31T10:30:00.1239+01:00", "2026-01-31T09:30:00.123Z"),
        (Timestamp(), "2026-01-31T10:30:00 01:00", "2026-01-31T09:30:00.000Z"),  # a '+' that a URL has made a space
        (Timestamp(), "2026-01-31", "2026-01-31T00:00:00.000Z"),
        (Timestamp(nullable=True), None, None),
    ],
)
def test_a_value_is_accepted(type_: Type, raw: Any, value: Any) -> None:
    assert type_.parse(raw) == value


@pytest.mark.parametrize(
    ("type_", "raw", "says"),
    [
        (Timestamp(), "yesterday", "must be a timestamp in ISO 8601, such as 2026-01-31T09:30:00Z, not 'yesterday'."),
        (Timestamp(), 1769851800, "must be a timestamp in ISO 8601"),
        (Timestamp(), "9999-12-31T23:59:59-01:00", "must be a timestamp in ISO 8601"),
        (Timestamp(), None, "must be a timestamp in ISO 8601"),
    ],
)
def test_a_value_is_refused_with_what_is_allowed(type_: Type, raw: Any, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert says in refused.value.detail
