"""Passwords that are easy to guess: the common ones, and those made of what everybody here knows."""

import pytest
from zxcvbn import matching

from tests.fixture_types import Events, Run
from trellis.core.admins import create_first_run_token, generate_password
from trellis.core.admins.passwords import find_weakness
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.languages import load_language

_CONTEXT = ("The Lantern", "Mira Holm", "mira@example.com")  # the first is the community of the fixtures


@pytest.mark.parametrize(
    "password",
    [
        *("password1234", "Password1234", "qwertyuiop12", "123456789012", "iloveyou1234", "letmein12345"),
        *("TheLantern2026", "the lantern 2026", "lantern-lantern", "Mira Holm 1!", "mira@example.com", "HolmMira2026!"),
        *("aaaabbbbcccc", "abcabcabcabcabc"),
    ],
)
def test_a_weak_password_is_found(password: str) -> None:
    assert find_weakness(password, *_CONTEXT)


@pytest.mark.parametrize(
    "password",
    ["correct horse battery", "kept in a tin box", "a lantern on every third pier", "x" * 40 + "quartz piano", "made up here"],
)
def test_words_that_do_not_belong_together_are_taken(password: str) -> None:
    assert find_weakness(generate_password() if password == "made up here" else password, *_CONTEXT) == ""


@pytest.mark.parametrize("password", ["P@$$w0rd!+%(", "p@$sw0rd!!!!", "({[<({[<({[<"])
def test_a_weak_word_with_symbols_for_letters_is_found(password: str) -> None:
    assert find_weakness(password)


def test_a_password_of_all_symbols_is_not_read_in_thousands_of_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take zxcvbn seconds, in which it holds up the other threads of the process."""
    readings: list[int] = []
    read = matching.enumerate_l33t_subs

    def count(table: dict[str, list[str]]) -> list[dict[str, str]]:
        found: list[dict[str, str]] = read(table)
        readings.append(len(found))
        return found

    monkeypatch.setattr(matching, "enumerate_l33t_subs", count)
    assert find_weakness("4@8({[<369!1|7$5+0%2" * 4) == ""
    assert 0 < sum(readings) < 100


@pytest.mark.parametrize("password", ["password1234", "The Lantern 26", "Mira Holm 2026"])
def test_weak_passwords_are_refused_wherever_one_is_set(gate: Gate, run: Run, events: Events, password: str) -> None:
    link = create_first_run_token(gate)
    person = {"name": "Mira Holm", "login": "mira@example.com"}
    with pytest.raises(Refused, match=r"^INVALID_VALUE: password is "):
        run("admins.begin", **person, password=password, link=link)
    with pytest.raises(Refused, match=r"^INVALID_VALUE: password is "):
        run("admins.create", **person, password=password)
    mira = run("admins.create", **person, password="kept in a tin box")["id"]
    before = events()
    with pytest.raises(Refused, match=r"^INVALID_VALUE: password is "):
        run("admins.set_password", mira, password=password)
    with pytest.raises(Refused, match=r"^INVALID_VALUE: password is "):
        run("admins.create", name="Ada Byron", login="ada", password=password.replace("Mira Holm", "Ada Byron"), dryRun=True)
    assert events() == before


@pytest.mark.parametrize(
    ("password", "told"),
    [
        ("password1234", "ist leicht zu erraten (es ist ein sehr häufiges Passwort)"),
        ("abcdefghijklmn", "ist leicht zu erraten (Folgen wie „abc“ oder „6543“ sind leicht zu erraten)"),
        ("mira holm mira", "ist wenig mehr als ein Name, den hier jeder kennt"),
    ],
)
def test_why_a_password_is_weak_can_be_said_in_german(password: str, told: str) -> None:
    assert told in load_language("de").sentence(find_weakness(password, "Mira Holm"))
