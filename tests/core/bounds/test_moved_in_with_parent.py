"""What a record was while it was outside is hidden, also if it came in by a move of a node above it."""

from collections.abc import Callable

import pytest

from tests.fixture_types import Events, Run
from trellis.core.actor import Actor
from trellis.core.gate import Result
from trellis.errors import Refused
from trellis.store.events import arrivals

Act = Callable[..., Result]
Refuse = Callable[..., Refused]
Forums = dict[str, int]


@pytest.fixture
def bring_in(run: Run, forums: Forums) -> Callable[[], None]:
    """Move Away, with Child below it, into Part."""
    return lambda: run("forums.update", forums["Away"], parentId=forums["Part"])


def read_sides(act: Act, bot: Actor, forum: int) -> list[tuple[str | None, str | None]]:
    """Return the descriptions before and after each event of a forum; None where the feed shows no record."""
    told = [one for one in act(bot, "events.list").value["results"] if one["resourceId"] == forum]
    return [tuple(side and side["description"] for side in (one["before"], one["after"])) for one in told]


def test_the_feed_hides_what_a_record_was_before_its_parent_was_moved_in(
    act: Act, run: Run, bot: Actor, forums: Forums, bring_in: Callable[[], None]
) -> None:
    for text in ("Nobody knows yet", ""):
        run("forums.update", forums["Child"], description=text)
    bring_in()
    run("forums.update", forums["Child"], description="Inside")
    assert read_sides(act, bot, forums["Child"]) == [(None, None)] * 3 + [("", "Inside")]


def test_an_undo_brings_nothing_back_from_before_its_parent_was_moved_in(
    run: Run, refused: Refuse, bot: Actor, forums: Forums, events: Events, bring_in: Callable[[], None]
) -> None:
    run("forums.update", forums["Child"], description="Nobody knows yet")
    run("forums.update", forums["Child"], description="")
    changed = events()[-1]["seq"]
    bring_in()
    assert refused(bot, "events.restore", changed).message == "OUT_OF_BOUNDS"


def test_nor_what_was_deleted_by_then(
    run: Run, refused: Refuse, bot: Actor, forums: Forums, events: Events, bring_in: Callable[[], None]
) -> None:
    run("forums.update", forums["Child"], description="Nobody knows yet")
    run("forums.delete", forums["Child"])
    deleted = events()[-1]["seq"]
    bring_in()
    assert refused(bot, "events.restore", deleted).message == "OUT_OF_BOUNDS"


def test_what_was_inside_all_along_is_shown(act: Act, run: Run, bot: Actor, forums: Forums) -> None:
    """Also below nodes that were below one another by turns, and that were deleted and brought back."""
    run("forums.update", forums["Leaf"], description="First")
    run("forums.update", forums["Inner"], parentId=forums["Other"])
    run("forums.update", forums["Inner"], parentId=forums["Part"])
    run("forums.update", forums["Other"], parentId=forums["Inner"])
    run("forums.delete", forums["Inner"], deleteChildrenOrMove=-1)
    run("events.restore", run("events.list", order="newest", limit=1)["results"][0]["seq"])
    run("forums.update", forums["Leaf"], description="Second")
    assert read_sides(act, bot, forums["Leaf"])[1:] == [("", "First"), ("First", "Second")]


def test_what_went_out_with_its_parent_is_hidden_from_then_on(act: Act, run: Run, bot: Actor, forums: Forums) -> None:
    run("forums.update", forums["Inner"], parentId=forums["Away"])
    run("forums.update", forums["Leaf"], description="Nobody knows yet")
    run("forums.update", forums["Leaf"], description="")
    run("forums.update", forums["Inner"], parentId=forums["Part"])
    assert read_sides(act, bot, forums["Leaf"])[1:] == [(None, None)] * 2


def test_where_too_many_would_have_to_be_looked_at_nothing_is_shown(
    act: Act, run: Run, bot: Actor, forums: Forums, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("forums.update", forums["Leaf"], description="Inside")
    assert read_sides(act, bot, forums["Leaf"])[-1] == ("", "Inside")
    monkeypatch.setattr(arrivals, "_MOST", 0)
    assert read_sides(act, bot, forums["Leaf"])[-1] == (None, None)
