"""The closed set of refusals."""

import re
from collections import Counter

import pytest

from trellis.errors import REASONS, Fault, Reason, Refused, refuse_faults


def test_each_message_and_each_code_stands_for_one_reason_only() -> None:
    codes = Counter(reason.code for reason in REASONS.values())
    titles = Counter(reason.title for reason in REASONS.values())
    assert [code for code, times in codes.items() if times > 1] == []
    assert [title for title, times in titles.items() if times > 1] == []


@pytest.mark.parametrize("reason", REASONS.values(), ids=list(REASONS))
def test_a_reason_is_well_formed(reason: Reason) -> None:
    assert REASONS[reason.message] is reason
    assert re.fullmatch(r"[A-Z]+(_[A-Z]+)*", reason.message)
    assert re.fullmatch(r"[0-9][A-Z][0-9]{3}/[0-9A-Z]", reason.code)
    assert reason.title[0].isupper()
    assert not reason.title.endswith(".")


def test_the_codes_of_the_contract_are_kept() -> None:
    told = {
        "NO_API_KEY": "2S290/6",
        "INVALID_API_KEY": "3S290/7",
        "IP_ADDRESS_NOT_ALLOWED": "2S290/8",
        "CANNOT_USE_KEY_AS_URL_PARAM": "2S290/B",
        "NO_PERMISSION": "2S291/3",
        "NO_ENDPOINT": "2S291/1",
        "BAD_METHOD": "3S291/2",
        "NO_REDIRECT_URL": "1F363/3",
        "INVALID_TYPE": "1F363/4",
        "CANNOT_DELETE": "2C358/3",
        "INVALID_TARGET": "1S359/2",
        "HAS_CHILDREN": "1S359/3",
        "TOO_MANY_REQUESTS_WITH_BAD_KEY": "1S290/D",
    }
    assert {message: REASONS[message].code for message in told} == told


def test_the_set_is_closed() -> None:
    with pytest.raises(KeyError):
        Refused("OUT_OF_TEA", "There is none left.")
    with pytest.raises(TypeError):
        REASONS["OUT_OF_TEA"] = REASONS["BUSY"]  # type: ignore[index]  # that is the point


def test_a_refusal_says_its_message_and_its_detail() -> None:
    assert str(Refused("BUSY", "Try again.")) == "BUSY: Try again."


def test_a_refusal_has_its_reasons_code_unless_it_brings_its_own() -> None:
    assert Refused("INVALID_ID", "").reason.code == "1S359/1"
    assert Refused("INVALID_ID", "", code="1F363/1").reason == Reason("INVALID_ID", "1F363/1", "There is no such record")


def test_one_fault_is_told_as_it_is() -> None:
    refused = refuse_faults((Fault("color", "INVALID_VALUE", "color must be a colour."),))
    assert (refused.message, refused.detail) == ("INVALID_VALUE", "color must be a colour.")


def test_several_faults_are_counted_and_all_told() -> None:
    faults = (
        Fault("name", "NO_TITLE", "name is needed.", "1L364/2"),
        Fault("color", "INVALID_VALUE", "color must be a colour."),
    )
    refused = refuse_faults(faults)
    assert refused.detail == "2 fields are at fault: name is needed. color must be a colour."
    assert (refused.message, refused.reason.code, refused.faults) == ("NO_TITLE", "1L364/2", faults)


def test_a_misspelt_name_does_not_give_the_refusal_its_code_when_something_else_is_wrong_too() -> None:
    unknown, missing = (
        Fault("nmae", "UNKNOWN_PARAMETER", "There is no nmae."),
        Fault("name", "NO_TITLE", "name is needed."),
    )
    assert refuse_faults((unknown, missing)).message == "NO_TITLE"
    assert refuse_faults((unknown,)).message == "UNKNOWN_PARAMETER"


def test_the_fault_of_a_field_has_its_reasons_code_unless_it_brings_its_own() -> None:
    assert Fault("name", "NO_TITLE", "").coded() == "1F363/2"
    assert Fault("name", "NO_TITLE", "", "1L364/2").coded() == "1L364/2"
