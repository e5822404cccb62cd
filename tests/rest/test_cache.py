"""Answers kept in memory: never stale, never another's, never more than there is room for."""

import random
from collections.abc import Iterator

import pytest

from tests.caller import Caller
from tests.cast import MakeKey, Run
from tests.doors import MakeCaller
from trellis.asgi import Roof
from trellis.rest.cache import Answers, Kept
from trellis.settings import Settings

_PATHS = (
    "/forums/forums",
    "/forums/forums?perPage=3&page=2",
    "/forums/forums?parentId=root&sortBy=position",
    "/forums/forums?search=e",
    "/calendar/calendar",
    "/core/groups",
)


def kept(size: int) -> Kept:
    return Kept(b"x" * size, b"tag")


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


@pytest.fixture
def elsewhere(settings: Settings, key: MakeKey) -> Iterator[Caller]:
    """The API over the same database with connections of its own, as another process has it."""
    door = Caller(Roof(settings), key("*", name="Elsewhere"))
    yield door
    door.close()
    door.roof.gate.store.close()


def test_no_answer_is_stale_whoever_writes(caller: MakeCaller, elsewhere: Caller, run: Run) -> None:
    """Two doors over one database; each answer is compared with that of a door that keeps none."""
    one, other, plain = caller(), elsewhere, caller(answer_cache=0)
    parents = [run("forums.create", name=f"Forum {number}")["id"] for number in range(5)]
    chance = random.Random(4)  # noqa: S311  # the same walk every time
    for step in range(120):
        if chance.random() < 0.3:
            writer = chance.choice((one, other, plain))
            forum = chance.choice(parents)
            assert (
                writer.post(
                    f"/forums/forums/{forum}", json={"name": f"Renamed {step}", "position": chance.randrange(5)}
                ).status_code
                == 200
            )
        path = chance.choice((*_PATHS, f"/forums/forums/{chance.choice(parents)}"))
        for door in (one, other):
            answer, truth = door.get(path), plain.get(path)
            assert answer.content == truth.content
            assert answer.headers["etag"] == truth.headers["etag"]
            assert answer.headers.get("link") == truth.headers.get("link")


def test_what_is_kept_is_not_given_to_a_key_without_the_grant(caller: MakeCaller, key: MakeKey) -> None:
    api = caller()
    assert api.get("/forums/forums").status_code == 200
    assert api.get("/forums/forums", key=key("calendars.list")).status_code == 403


def test_the_setting_turns_it_off(settings: Settings) -> None:
    assert settings.answer_cache > 0
    assert Settings.load({"TRELLIS_ANSWER_CACHE": "0"}, None).answer_cache == 0
