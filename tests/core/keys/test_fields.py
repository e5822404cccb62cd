"""The fields of a key: its networks and its expiry."""

from typing import Any

import pytest

from trellis.core.fields import Invalid, Type
from trellis.core.keys.bounds import MEMBERS
from trellis.core.keys.expiry import Expiry
from trellis.core.keys.fields import SETTINGS, Networks


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (Networks(), ["192.0.2.7/24", "2001:db8::1"], ["192.0.2.0/24", "2001:db8::1/128"]),
        (Networks(), None, []),
        (Expiry(), "never", None),
    ],
)
def test_a_value_is_accepted(type_: Type, raw: Any, value: Any) -> None:
    assert type_.parse(raw) == value


@pytest.mark.parametrize(
    ("type_", "raw", "says"),
    [
        (Networks(), "192.0.2.0/33", "must be addresses or networks such as 192.0.2.0/24, not '192.0.2.0/33'."),
        (Networks(), ["192.0.2.1", "example.com"], "not 'example.com'."),
        (Networks(), "fe80::1%eth0", "must be addresses or networks such as 192.0.2.0/24, not 'fe80::1%eth0'."),
        (Networks(), [f"192.0.2.{n}" for n in range(101)], "must be at most 100 addresses"),
        (Expiry(), "90", "must be a duration such as 90d or 12h, a timestamp in ISO 8601, or null for never, not '90'."),
        (Expiry(), "0d", "must be a duration"),
        (Expiry(), "36501d", "must be a duration"),
        (Expiry(), "9" * 5000 + "d", "must be a duration"),
        (Expiry(), 90, "must be a duration"),
    ],
)
def test_a_value_is_refused_with_what_is_allowed(type_: Type, raw: Any, says: str) -> None:
    with pytest.raises(Invalid) as refused:
        type_.parse(raw)
    assert says in refused.value.detail


def test_the_bounds_of_a_key_are_explained_with_all_their_members() -> None:
    (doc,) = (field.doc for field in SETTINGS if field.name == "bounds")
    assert [member.name for member in MEMBERS if f"`{member.name}`" not in doc] == []
