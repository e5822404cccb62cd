"""A field: its label, and its JSON Schema."""

import pytest

from trellis.core.fields import Field, Integer, Text


@pytest.mark.parametrize(("name", "label"), [("minContent", "Min content"), ("name", "Name"), ("redirectUrl", "Redirect url")])
def test_a_field_has_a_label_in_words(name: str, label: str) -> None:
    assert Field(name, Text(), "").label == label


def test_a_fields_schema_carries_its_description() -> None:
    schema = Field("minContent", Integer(), "How many.").schema()
    assert schema == {
        "type": "integer",
        "minimum": 0,
        "maximum": 2**31 - 1,
        "description": "How many.",
    }
