"""Answers kept in memory: never stale, never another's, never more than there is room for."""

from tests.cast import MakeKey
from tests.doors import MakeCaller
from trellis.rest.cache import Answers, Kept
from trellis.settings import Settings


def kept(size: int) -> Kept:
    return Kept(b"x" * size, b"tag", ())


def test_an_answer_is_found_again_under_the_same_version_only() -> None:
    answers = Answers(1_000_000)
    assert answers.find(1, ("a",)) is None
    answers.keep(1, ("a",), kept(10))
    assert answers.find(1, ("a",)) == kept(10)
    assert answers.find(2, ("a",)) is None
    assert answers.find(1, ("a",)) is None


def test_an_answer_that_was_made_under_a_version_that_has_passed_is_not_kept() -> None:
    answers = Answers(1_000_000)
    answers.find(2, ("a",))
    answers.keep(1, ("a",), kept(10))
    assert answers.find(2, ("a",)) is None


def test_the_least_recently_used_is_forgotten_when_the_room_is_used_up() -> None:
    answers = Answers(20_000)
    answers.find(1, ())
    for name in "abcdefgh":
        answers.keep(1, (name,), kept(1_000))
        answers.find(1, ("a",))
    for name in "ijklmnop":
        answers.keep(1, (name,), kept(1_000))
        answers.find(1, ("a",))
    assert answers.find(1, ("a",)) is not None
    assert answers.find(1, ("b",)) is None
    assert answers.find(1, ("p",)) is not None


def test_an_answer_that_would_fill_the_room_alone_is_not_kept() -> None:
    answers = Answers(20_000)
    answers.find(1, ())
    answers.keep(1, ("a",), kept(19_000))
    assert answers.find(1, ("a",)) is None


def test_what_is_kept_is_not_given_to_a_key_without_the_grant(caller: MakeCaller, key: MakeKey) -> None:
    api = caller()
    assert api.get("/forums/forums").status_code == 200
    assert api.get("/forums/forums", key=key("calendars.list")).status_code == 403


def test_the_setting_turns_it_off(settings: Settings) -> None:
    assert settings.answer_cache > 0
    assert Settings.load({"TRELLIS_ANSWER_CACHE": "0"}, None).answer_cache == 0
