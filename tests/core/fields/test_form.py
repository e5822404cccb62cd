"""Reading a request against its fields: aliases, unknown names, what is missing, and all faults at once."""

import pytest

from trellis.core.fields import Boolean, Field, InputForm, Integer, Text, invalid_id, require
from trellis.errors import Refused

NAME = Field("name", Text(20, 1, missing="NO_TITLE"), "What it is called.", also=("title",), required=True, missing="NO_TITLE")
COUNT = Field("minContent", Integer(), "How many.", also=("min_content",))
OPEN = Field("open", Boolean(), "Whether it is open.")
AT = Field("createdAt", Text(), "When.", read_only=True)
FIELDS = (NAME, COUNT, OPEN, AT)
FORM = InputForm(FIELDS)


def test_values_come_under_their_one_name_whichever_alias_was_sent() -> None:
    given = FORM.read({"title": " News ", "min_content": "3", "open": "1"})
    assert dict(given.values) == {"name": "News", "minContent": 3, "open": True}
    assert given.faults == ()


def test_only_what_was_sent_is_given() -> None:
    given = FORM.read({"open": False})
    assert "open" in given
    assert "name" not in given
    assert given.get("minContent", 7) == 7


def test_read_only_members_are_passed_over() -> None:
    given = FORM.read({"name": "News", "createdAt": 17})
    assert dict(given.values) == {"name": "News"}
    assert given.faults == ()


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    (fault,) = FORM.read({"nmae": "News"}).faults
    assert (fault.field, fault.message) == ("nmae", "UNKNOWN_PARAMETER")
    assert fault.detail == "There is no parameter 'nmae'. Did you mean name?"


def test_an_unknown_name_like_no_other_is_refused_with_all_known_ones() -> None:
    (fault,) = FORM.read({"xyz": 1}).faults
    assert fault.detail == "There is no parameter 'xyz'. The parameters are: minContent, name, open."


def test_an_unknown_name_is_never_told_to_be_a_read_only_one() -> None:
    (fault,) = FORM.read({"createdAtt": 1}).faults
    assert "Did you mean createdAt" not in fault.detail


@pytest.mark.parametrize("name", ["a\x00b", "\ud800", "x" * 5000])
def test_a_hostile_name_is_quoted_short_and_harmless(name: str) -> None:
    (fault,) = FORM.read({name: 1}).faults
    assert len(fault.field) <= 60
    assert len(fault.detail) < 200
    assert "\x00" not in fault.detail
    (fault.field + fault.detail).encode()


def test_only_the_first_unknown_names_come_with_a_suggestion() -> None:
    details = [fault.detail for fault in FORM.read({f"nam{number}": 1 for number in range(8)}).faults]
    assert [detail.endswith(" Did you mean name?") for detail in details] == [True] * 5 + [False] * 3
    assert details[-1] == "There is no parameter 'nam7'."


def test_more_names_than_anybody_needs_are_refused_as_one() -> None:
    assert len(FORM.read({f"x{number}": 1 for number in range(1000)}).faults) == 1000
    with pytest.raises(Refused, match=r"^MALFORMED_REQUEST: The request has 1,001 parameters; at most 1,000 are allowed\.$"):
        FORM.read({f"x{number}": 1 for number in range(1001)})


def test_a_field_sent_under_two_names_is_refused() -> None:
    (fault,) = FORM.read({"name": "News", "title": "Olds"}).faults
    assert fault.field == "name"
    assert fault.detail == "name was sent twice, as name and as title: send it once."


def test_every_fault_is_found_not_only_the_first() -> None:
    given = FORM.read({"name": "x" * 21, "min_content": -1, "open": "maybe", "colour": "red"})
    assert [fault.field for fault in given.faults] == ["name", "minContent", "open", "colour"]
    with pytest.raises(Refused) as refused:
        given.raise_faults()
    assert refused.value.faults == given.faults
    assert refused.value.message == "INVALID_VALUE"
    assert refused.value.detail.startswith("4 fields are invalid: name is 21 characters long")


def test_nothing_is_demanded_where_nothing_is_wrong() -> None:
    FORM.read({"name": "News"}).raise_faults()


def test_a_kind_may_have_a_code_of_its_own_for_a_reason() -> None:
    (fault,) = InputForm(FIELDS, lambda _: "1L364/2").read({"name": ""}).faults
    assert (fault.message, fault.code) == ("NO_TITLE", "1L364/2")


def test_what_is_needed_and_was_not_sent_is_named_first() -> None:
    given = require(FIELDS, FORM.read({"open": "maybe"}))
    assert [(fault.field, fault.message) for fault in given.faults] == [("name", "NO_TITLE"), ("open", "INVALID_VALUE")]
    assert given.faults[0].detail == "name is needed: What it is called."


def test_what_was_sent_wrongly_is_not_said_to_be_missing_too() -> None:
    given = require(FIELDS, FORM.read({"name": 7}))
    assert [fault.message for fault in given.faults] == ["INVALID_VALUE"]


def test_an_id_that_names_nothing_is_refused_by_name() -> None:
    refused = invalid_id("forum", "abc", "1F363/1")
    assert (refused.message, refused.code) == ("INVALID_ID", "1F363/1")
    assert refused.detail == "There is no forum with the id abc."
