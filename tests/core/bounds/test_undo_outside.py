"""An undo tells a limited key nothing of records that an event had created or restored, and that are outside by now."""

from collections.abc import Callable

import pytest

from tests.fixture_types import Events, Run
from trellis.core.actor import Actor
from trellis.core.gate import Result
from trellis.errors import Refused

Act = Callable[..., Result]
Refuse = Callable[..., Refused]
Forums = dict[str, int]


@pytest.fixture(params=["copied", "restored"])
def made(request: pytest.FixtureRequest, act: Act, run: Run, bot: Actor, forums: Forums, events: Events) -> tuple[int, int]:
    """An event that has created or restored Inner with Leaf below it, and the id of that Leaf."""
    if request.param == "copied":
        act(bot, "forums.copy", forums["Inner"], withChildren=True)
    else:
        run("forums.delete", forums["Inner"], deleteChildrenOrMove=-1)
        act(bot, "events.restore", events()[-1]["seq"])
    event = events()[-1]
    return event["seq"], event["touched"][0]["id"]


def read_all(refused: Refused) -> str:
    return f"{refused.detail} {[fault.detail for fault in refused.faults]} {dict(refused.facts)}"


def test_it_does_not_tell_what_became_of_one_that_was_moved_out(
    run: Run, refused: Refuse, bot: Actor, forums: Forums, made: tuple[int, int]
) -> None:
    event, leaf = made
    run("forums.update", leaf, parentId=forums["Away"], name="Merger", description="Nobody knows yet")
    refusal = refused(bot, "events.restore", event, deleteCreated=True)
    assert (refusal.message, refusal.facts) == ("CHANGED_SINCE", {"differences": []})
    assert "Merger" not in read_all(refusal)


def test_it_does_not_tell_which_event_deleted_one_that_was_outside(
    run: Run, refused: Refuse, bot: Actor, forums: Forums, events: Events, made: tuple[int, int]
) -> None:
    event, leaf = made
    run("forums.update", leaf, parentId=forums["Away"])
    run("forums.delete", leaf)
    refusal = refused(bot, "events.restore", event, deleteCreated=True)
    assert (refusal.message, refusal.facts) == ("CHANGED_SINCE", {"differences": []})
    assert str(events()[-1]["seq"]) not in refusal.detail


def test_it_tells_what_became_of_one_that_is_inside(
    run: Run, refused: Refuse, bot: Actor, forums: Forums, events: Events, made: tuple[int, int]
) -> None:
    event, leaf = made
    run("forums.delete", leaf)
    refusal = refused(bot, "events.restore", event, deleteCreated=True)
    assert refusal.message == "CHANGED_SINCE"
    assert refusal.facts["deletedBy"] == events()[-1]["seq"]
