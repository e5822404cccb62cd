"""A tree has a hundred levels: whatever would make it deeper is refused, since each record has the names of all above it."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.community import Community
from tests.database_state import DatabaseState
from tests.few_levels import FEW, limit_levels
from tests.fixture_types import Run, RunForEvent
from tests.node_rows import insert_below
from trellis.core.gate import Gate
from trellis.core.nodes import tree
from trellis.errors import Refused

DEEPEST = 100


@pytest.fixture
def few_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a tree has a few levels and no more, what may be moved where is the same."""
    limit_levels(monkeypatch)


def grow(run: Run, levels: int, parent: int | None = None) -> list[int]:
    """Make forums, each under the one before, by copying what there is under itself; return their ids."""
    made = [int(run("forums.create", name="F", **({} if parent is None else {"parentId": parent}))["id"])]
    while len(made) < levels:
        part = min(len(made), levels - len(made))
        if part < len(made):
            made.append(int(run("forums.create", name="F", parentId=made[-1])["id"]))
            continue
        first = int(run("forums.copy", made[0], withChildren=True, parentId=made[-1])["id"])
        made += range(first, first + part)
    return made


def refuse(database: DatabaseState, operation: Callable[[], Any], message: str, field: str | None = "parentId") -> Refused:
    with database.unchanged(), pytest.raises(Refused) as refusal:
        operation()
    assert refusal.value.message == message, refusal.value
    assert [fault.field for fault in refusal.value.faults] == ([field] if field else [])
    assert f"more than {tree.DEEPEST} levels" in refusal.value.detail
    return refusal.value


def test_a_hundred_levels_and_no_more_are_made(run: Run, community: Community, database: DatabaseState) -> None:
    line = grow(run, DEEPEST)
    assert run("forums.get", line[-1])["path"] == " > ".join(["F"] * DEEPEST)
    assert run("forums.tree", root=line[0])["total"] == DEEPEST - 1
    refuse(database, lambda: run("forums.create", name="F", parentId=line[-1]), "INVALID_PARENT")
    refuse(database, lambda: run("forums.copy", community.help, parentId=line[-1]), "INVALID_PARENT")
    refuse(database, lambda: run("forums.update", community.help, parentId=line[-1]), "INVALID_PARENT")
    entry = {"externalId": "new", "name": "New"}
    run("forums.update", line[-1], externalId="deepest")
    document = {"format": "trellis/1", "name": "site", "under": "deepest", "forums": [entry]}
    refuse(database, lambda: run("structure.apply", document=document), "INVALID_DOCUMENT", "forums[0]")


@pytest.mark.usefixtures("few_levels")
def test_what_is_below_a_node_counts_wherever_it_goes(run: Run, community: Community, database: DatabaseState) -> None:
    line, part = grow(run, FEW - 10), grow(run, 11)
    refuse(database, lambda: run("forums.update", part[0], parentId=line[-1]), "INVALID_PARENT")
    refuse(database, lambda: run("forums.copy", part[0], withChildren=True, parentId=line[-1]), "INVALID_PARENT")
    assert run("forums.copy", part[0], parentId=line[-1])["path"].count(" > ") == FEW - 10
    assert run("forums.update", part[1], parentId=line[-1])["path"].count(" > ") == FEW - 10
    assert run("forums.get", part[-1])["path"].count(" > ") == FEW - 1


# Moves that are made before, those of a batch, and which of these is refused; ">" stands for "below". A chain, "deep", is there.
MOVES: Final = (
    ("", "a>deep b>a c>b", None),
    ("", "a>deep b>a c>b d>c", 3),
    ("b>a c>b", "a>deep d>e", None),
    ("b>a c>b", "a>deep d>c", 1),
    ("b>a c>b", "d>c a>deep", 1),
    ("b>a c>b d>c", "a>deep c>top", 0),
    ("b>a c>b d>c", "c>top a>deep", None),
    ("b>a c>b d>c", "d>e e>f a>deep f>b", 3),
    ("c>a d>c e>d", "a>deep c>top", 0),
    ("c>a d>c e>d f>b", "a>deep d>top d2>f c>f", 0),
    ("c>b d>c b>a", "a>deep b>top c>e", 0),
    ("c>b d>c b>a e>f", "a>deep b>top c>e", 0),
    ("d>c b>a c>b", "a>e b>top c>f", None),
    ("deep>a", "b>deep c>b d>c", 2),
    ("deep>a", "deep>top b>deep c>b d>c", None),
    ("deep>a", "b>deep a>b", 1),
)


@pytest.mark.usefixtures("few_levels")
def test_nodes_that_move_in_one_batch_are_as_deep_as_one_after_the_other(run: Run, database: DatabaseState) -> None:
    top, *_, last = grow(run, FEW - 3)
    for before, moves, refused in MOVES:
        steps = [{"operation": "forums.create", "body": {"name": name}} for name in ("a", "b", "c", "d", "d2", "e", "f")]
        made = [one["result"] for one in run("core.batch", operations=steps)["results"]]
        ids = {one["name"]: int(one["id"]) for one in made}

        for move in list_moves(before, ids, top, last):
            run("core.batch", operations=[move])
        batch = list_moves(moves, ids, top, last)
        if refused is None:
            run("core.batch", operations=batch)
            assert max(one["path"].count(" > ") for one in run("forums.list", perPage=1000)["results"]) < FEW, (before, moves)
        else:
            with database.unchanged(), pytest.raises(Refused) as refusal:
                run("core.batch", operations=batch)
            assert f"Operation {refused} of the batch" in refusal.value.detail, (before, moves)
        run("core.batch", operations=[move_to(node, None) for node in (top, *ids.values())])
        run("core.batch", operations=[{"operation": "forums.delete", "id": node} for node in ids.values()])


def list_moves(wanted: str, ids: dict[str, int], top: int, last: int) -> list[dict[str, Any]]:
    pairs = (move.split(">") for move in wanted.split())
    into = {**ids, "deep": last, "top": None}
    return [move_to({**ids, "deep": top}[name], into[to]) for name, to in pairs]


def move_to(node: int, parent: int | None) -> dict[str, Any]:
    return {"operation": "forums.update", "id": node, "body": {"parentId": parent}}


@pytest.mark.usefixtures("few_levels")
def test_children_that_a_delete_moves_may_come_too_deep(run: Run, community: Community, database: DatabaseState) -> None:
    line, part = grow(run, FEW - 10), grow(run, 12)
    refuse(
        database,
        lambda: run("forums.delete", part[0], deleteChildrenOrMove=line[-1]),
        "INVALID_TARGET",
        "deleteChildrenOrMove",
    )
    run("forums.delete", part[0], deleteChildrenOrMove=line[-2])
    assert run("forums.get", part[-1])["path"].count(" > ") == FEW - 1


@pytest.mark.usefixtures("few_levels")
def test_undo_brings_nothing_back_that_would_be_too_deep(
    run: Run, community: Community, database: DatabaseState, do: RunForEvent
) -> None:
    line, part = grow(run, FEW - 10), grow(run, 12)
    deleted = do("forums.delete", part[1], deleteChildrenOrMove=-1)
    run("forums.update", part[0], parentId=line[-1])
    refuse(database, lambda: run("forums.restore", deleted), "PARENT_NEEDED", None)
    refuse(database, lambda: run("forums.restore", deleted, parentId=line[-1]), "INVALID_PARENT")
    assert run("forums.restore", deleted, parentId=line[-2])["restored"]["count"] == 11


@pytest.mark.usefixtures("few_levels")
def test_undo_moves_nothing_back_that_would_be_too_deep(
    run: Run, community: Community, database: DatabaseState, do: RunForEvent
) -> None:
    line, part = grow(run, FEW - 10), grow(run, 12)
    moved = do("forums.update", part[1], parentId=None)
    run("forums.update", part[0], parentId=line[-1])
    refuse(database, lambda: run("forums.restore", moved), "PARENT_NEEDED", None)
    run("forums.restore", moved, parentId=line[-2])
    assert run("forums.get", part[-1])["path"].count(" > ") == FEW - 1


@pytest.mark.usefixtures("few_levels")
def test_undo_of_an_undo_moves_no_children_too_deep(
    run: Run, community: Community, database: DatabaseState, do: RunForEvent
) -> None:
    line, part, target = grow(run, FEW - 10), grow(run, 12), community.help
    deleted = do("forums.delete", part[0], deleteChildrenOrMove=target)
    restored = do("forums.restore", deleted)
    run("forums.update", target, parentId=line[-1])
    with database.unchanged(), pytest.raises(Refused) as refusal:
        run("forums.restore", restored, deleteCreated=True)
    assert refusal.value.message == "CHANGED_SINCE"


@pytest.mark.usefixtures("few_levels")
def test_what_was_deeper_before_there_was_a_limit_can_be_put_right(gate: Gate, run: Run, community: Community) -> None:
    line = grow(run, FEW)
    added = insert_below(gate, line[-1], 20)
    assert run("forums.update", added[-1], name="Renamed")["path"].count(" > ") == FEW + 19
    sibling = run("forums.get", added[3])["parentId"]
    run("forums.update", added[5], parentId=sibling)  # higher than it was
    assert run("forums.get", added[-1])["path"].count(" > ") == FEW + 17
    run("forums.delete", added[4], deleteChildrenOrMove=-1)
    run("forums.update", added[5], parentId=None)
    assert run("forums.get", added[-1])["path"].count(" > ") == 14
