"""Refusals as they are raised."""

import pytest

from trellis.errors import Fault, Refused, refuse_faults


def test_only_what_is_in_the_table_can_be_raised() -> None:
    with pytest.raises(KeyError):
        Refused("OUT_OF_TEA", "There is none left.")
    with pytest.raises(KeyError):
        Fault("tea", "OUT_OF_TEA", "There is none left.")


def test_a_refusal_says_its_message_and_its_detail() -> None:
    assert str(Refused("BUSY", "Try again.")) == "BUSY: Try again."


def test_a_refusal_has_the_code_of_its_row_unless_it_brings_its_own() -> None:
    assert Refused("INVALID_ID", "").code == "1S359/1"
    own = Refused("INVALID_ID", "", code="1F363/1")
    assert (own.code, own.status, own.refusal.title) == ("1F363/1", 404, "There is no such record")


def test_one_fault_is_told_as_it_is() -> None:
    refused = refuse_faults(Fault("color", "INVALID_VALUE", "color must be a colour."))
    assert (refused.message, refused.detail) == ("INVALID_VALUE", "color must be a colour.")


def test_several_faults_are_counted_and_all_told() -> None:
    faults = (
        Fault("name", "NO_TITLE", "name is needed.", "1L364/2"),
        Fault("color", "INVALID_VALUE", "color must be a colour."),
    )
    refused = refuse_faults(*faults)
    assert refused.detail == "2 fields are invalid: name is needed. color must be a colour."
    assert (refused.message, refused.code, refused.faults) == ("NO_TITLE", "1L364/2", faults)


def test_a_sentence_about_several_fields_is_said_once() -> None:
    told = "Send at most one of position, before and after, not before and after."
    refused = refuse_faults(*(Fault(name, "INVALID_POSITION", told) for name in ("before", "after")))
    assert refused.detail == f"2 fields are invalid: {told}"
    assert [fault.field for fault in refused.faults] == ["before", "after"]


def test_of_very_many_faults_twenty_are_told_and_the_others_counted() -> None:
    faults = [Fault(f"x{number}", "UNKNOWN_PARAMETER", f"There is no x{number}.") for number in range(1000)]
    refused = refuse_faults(*faults, Fault("name", "NO_TITLE", "name is needed."))
    assert (refused.message, len(refused.faults), refused.more_faults) == ("NO_TITLE", 20, 981)
    assert refused.detail.startswith("1,001 fields are invalid: name is needed. There is no x0.")
    assert refused.detail.endswith("There is no x18. The other 981 are not listed.")
    assert refuse_faults(*faults[:20]).more_faults == 0


def test_a_misspelt_name_does_not_give_the_refusal_its_code_when_something_else_is_wrong_too() -> None:
    unknown, missing = (
        Fault("nmae", "UNKNOWN_PARAMETER", "There is no nmae."),
        Fault("name", "NO_TITLE", "name is needed."),
    )
    assert refuse_faults(unknown, missing).message == "NO_TITLE"
    assert refuse_faults(unknown).message == "UNKNOWN_PARAMETER"


def test_a_fault_has_the_code_of_its_row_unless_it_brings_its_own() -> None:
    assert Fault("name", "NO_TITLE", "").code == "1F363/2"
    assert Fault("name", "NO_TITLE", "", "1L364/2").code == "1L364/2"
