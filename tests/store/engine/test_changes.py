"""What commits have changed: an answer is right for as long as nothing has that it shows."""

import pytest

from trellis.store.engine import changes
from trellis.store.engine.changes import Changes, NodeChange, Shown

FORUM = Shown("forums", rows=(5,), above=(2, 1), orders=(2,))
BY_ID = Shown("forums", rows=(5, 6), orders=(2,), members=True)
CHILDREN = Shown("forums", rows=(2, 5, 6), orders=(2,), children=(2,))
WHOLE = Shown("forums", whole=True)


def inserted(id: int, parent: int = 9) -> NodeChange:
    return NodeChange("forums", id, parent, "insert")


def updated(id: int, kind: str = "forums") -> NodeChange:
    return NodeChange(kind, id, 9, "update")


def edited(id: int) -> NodeChange:
    return NodeChange("forums", id, 9, "edit")


def deleted(id: int, parent: int = 9) -> NodeChange:
    return NodeChange("forums", id, parent, "delete")


def ordered(parent: int) -> NodeChange:
    return NodeChange("forums", 0, parent, "order")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (updated(5), {FORUM, BY_ID, CHILDREN, WHOLE}),
        (updated(1), {FORUM, WHOLE}),  # a name above it
        (edited(1), {WHOLE}),
        (edited(5), {FORUM, BY_ID, CHILDREN, WHOLE}),
        (updated(6), {BY_ID, CHILDREN, WHOLE}),
        (updated(7), {WHOLE}),
        (updated(5, "calendars"), set()),
        (inserted(7), {BY_ID, WHOLE}),
        (inserted(7, parent=2), {BY_ID, CHILDREN, WHOLE}),
        (deleted(7), {BY_ID, WHOLE}),
        (deleted(7, parent=2), {BY_ID, CHILDREN, WHOLE}),
        (deleted(5, parent=2), {FORUM, BY_ID, CHILDREN, WHOLE}),
        (ordered(2), {FORUM, BY_ID, CHILDREN, WHOLE}),
        (ordered(9), {WHOLE}),
        (NodeChange("", 0, 0, "all"), {FORUM, BY_ID, CHILDREN, WHOLE}),
    ],
)
def test_an_answer_is_wrong_once_something_has_changed_that_it_shows(change: NodeChange, wrong: set[Shown]) -> None:
    learnt = Changes()
    before = learnt.stamp
    learnt.add([change])
    assert {shown for shown in (FORUM, BY_ID, CHILDREN, WHOLE) if learnt.has_changed((shown,), before)} == wrong
    assert learnt.has_changed(None, before), "it may show anything"
    assert not any(learnt.has_changed((shown,), learnt.stamp) for shown in (FORUM, BY_ID, CHILDREN, WHOLE)), "read since"


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        (inserted(7), True),
        (deleted(7), True),
        (inserted(6), False),  # it was deleted, and is back
        (deleted(4), False),  # on a page before
        (updated(5), False),
        (ordered(2), False),
        (NodeChange("", 0, 0, "all"), False),
    ],
)
def test_a_page_by_id_is_right_but_for_its_total_until_something_up_to_its_end_has_changed(
    change: NodeChange, is_right: bool
) -> None:
    learnt, page = Changes(), BY_ID._replace(up_to=6)
    learnt.add([deleted(3)])
    before = learnt.stamp
    learnt.add([inserted(8), change, inserted(9)])
    assert learnt.has_changed((page,), before)
    assert learnt.has_changed((page,), before, but_total=True) is not is_right
    assert learnt.has_changed((BY_ID,), before, but_total=True), "it may have room for more"
    learnt.add([inserted(number) for number in range(10, 1100)])
    assert learnt.has_changed((page,), before, but_total=True), "too many to look at"


def test_of_several_kinds_one_that_has_changed_is_enough() -> None:
    learnt = Changes()
    before = learnt.stamp
    learnt.add([updated(5)])
    assert learnt.has_changed((Shown("groups", whole=True), FORUM), before)
    assert not learnt.has_changed((Shown("groups", whole=True), Shown("forums", rows=(7,))), before)


def test_a_commit_that_changes_no_node_leaves_what_shows_nodes() -> None:
    learnt = Changes()
    before = learnt.stamp
    learnt.add([])
    assert not learnt.has_changed((WHOLE,), before)
    assert learnt.has_changed(None, before)


def test_everything_is_wrong_once_too_much_has_changed_to_be_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_REMEMBERED", 10)
    learnt = Changes()
    before = learnt.stamp
    for id in range(100, 110):
        learnt.add([updated(id)])
    assert not learnt.has_changed((FORUM,), before)
    learnt.add([updated(110)])
    assert learnt.has_changed((FORUM,), before)
    assert learnt.has_changed((Shown("groups", rows=(1,)),), before)


def test_no_stamp_comes_back_whichever_database_it_is() -> None:
    one, other = Changes(), Changes()
    stamps = [one.stamp, other.stamp]
    for learnt in (one, other, one):
        learnt.add([updated(1)])
        stamps.append(learnt.stamp)
    assert len(set(stamps)) == 5
    assert other.has_changed((FORUM,), one.stamp - 100), "what was read under an older stamp was never looked at here"
