"""Suggestions for names that are not known: of the first few only, since looking for each takes long."""

import pytest

from trellis.core.fields import Suggestions, suggestions


def test_the_nearest_name_is_suggested_or_none() -> None:
    found = Suggestions(("name", "description"))
    assert (found.find("nmae"), found.find("xyz")) == ("name", None)


def test_only_the_first_five_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []

    def compare(name: str, *_: object) -> list[str]:
        compared.append(name)
        return ["name"]

    monkeypatch.setattr(suggestions, "get_close_matches", compare)
    found = Suggestions(("name",))
    assert [found.find(f"nam{number}") for number in range(7)] == ["name"] * 5 + [None] * 2
    assert len(compared) == 5
    assert found.are_used_up


def test_a_name_that_is_too_long_to_be_a_misspelt_one_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestions, "get_close_matches", None)
    assert Suggestions(("name",)).find("n" * 100_000) is None
