"""What is done to many nodes in one transaction: it leaves the same behind together and one by one, with few statements."""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final

import pytest

from tests.conftest import NewSettings, runner
from tests.database_state import DatabaseState
from tests.few_levels import FEW, limit_levels
from tests.fixture_types import Clock, Run
from tests.node_rows import read_rows
from tests.statement_meter import StatementMeter
from trellis.compose import compose
from trellis.core import batch
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.nodes import ordering
from trellis.core.operation import Call, together
from trellis.core.passwords import digests
from trellis.core.undo import many
from trellis.errors import Refused
from trellis.store.siblings import check

_RUNS_TOGETHER: Final = (batch, ordering, many)
Step = dict[str, Any]


def create(run: Run, count: int, **raw: Any) -> list[int]:
    operations = [{"operation": "forums.create", "body": {"name": f"Forum {n}", **raw}} for n in range(count)]
    return [one["result"]["id"] for one in run("core.batch", operations=operations)["results"]]


def order(run: Run, parent: int | str = "root") -> list[int]:
    return [one["id"] for one in run("forums.list", parentId=parent, sortBy="position", perPage=1000)["results"]]


def update(node: int, **body: Any) -> Step:
    return {"operation": "forums.update", "id": node, "body": body}


def newest_change_set(run: Run) -> int:
    return int(run("events.list", order="newest", limit=1)["results"][0]["changeSet"])


def test_few_statements_move_many_nodes(run: Run) -> None:
    counts: list[tuple[int, ...]] = []
    for size in (5, 25):
        parent, other = create(run, 2)
        ids = create(run, size, parentId=parent)
        with StatementMeter() as ordered:
            assert run("forums.order", parentId=parent, ids=ids[::-1])["moved"] == size - 1
        assert order(run, parent) == ids[::-1]
        with StatementMeter() as moved:
            run("core.batch", operations=[update(node, parentId=other) for node in ids])
        assert (order(run, other), order(run, parent)) == (ids, [])
        counts.append((ordered.count, moved.count))
    assert all(many < few + 10 for few, many in zip(*counts, strict=True)), counts  # of 20 more nodes


def test_few_statements_create_and_delete_many_nodes_and_bring_them_back(run: Run) -> None:
    counts: list[tuple[int, ...]] = []
    for size in (5, 25):
        steps: list[Step] = [{"operation": "forums.create", "as": "top", "body": {"name": "Top"}}]
        steps += [
            {"operation": "forums.create", "body": {"name": f"Forum {n}", "parentId": {"$ref": "top.id"}}} for n in range(size)
        ]
        with StatementMeter() as made:
            ids = [one["result"]["id"] for one in run("core.batch", operations=steps)["results"]]
        assert order(run, ids[0]) == ids[1:]
        with StatementMeter() as deleted:
            body = {"deleteChildrenOrMove": -1}  # as the panel sends it
            run("core.batch", operations=[{"operation": "forums.delete", "id": node, "body": body} for node in ids[1:]])
        assert order(run, ids[0]) == []
        with StatementMeter() as restored:
            assert run("changesets.restore", newest_change_set(run))["undoneCount"] == size
        assert order(run, ids[0]) == ids[1:]
        counts.append((made.count, deleted.count, restored.count))
    assert all(many < few + 10 for few, many in zip(*counts, strict=True)), counts  # of 20 more nodes


@pytest.mark.slow
def test_few_statements_create_many_nodes_behind_very_many(run: Run) -> None:
    there = create(run, 200)
    counts: list[int] = []
    for size in (5, 25):
        with StatementMeter() as meter:
            there += create(run, size)
        assert order(run) == there
        counts.append(meter.count)
    assert run("check.list")["problems"] == []
    assert counts[1] < counts[0] + 15, counts  # of 20 more nodes


def test_nodes_with_very_long_texts_are_changed_one_by_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "_MOST_BYTES", 10_000)
    parent, other = create(run, 2)
    ids = create(run, 20, parentId=parent)
    moves, edits = [update(node, parentId=other) for node in ids], [update(node, name="Edited") for node in ids]
    for steps in (moves, edits, [{"operation": "forums.delete", "id": node} for node in ids]):
        with StatementMeter() as meter:
            run("core.batch", operations=steps)
        assert meter.count > 3 * len(ids)
    assert order(run, parent) == order(run, other) == []


@pytest.mark.slow
def test_few_statements_undo_many_moves(run: Run) -> None:
    counts: list[tuple[int, ...]] = []
    for size in (5, 25):
        parent, other = create(run, 2)
        ids = create(run, size, parentId=parent)
        run("forums.order", parentId=parent, ids=ids[::-1])
        with StatementMeter() as ordered:
            run("changesets.restore", newest_change_set(run))
        run("core.batch", operations=[update(node, parentId=other, position=0) for node in ids])
        with StatementMeter() as moved:
            assert run("changesets.restore", newest_change_set(run))["undoneCount"] == size
        assert (order(run, parent), order(run, other)) == (ids, [])
        counts.append((ordered.count, moved.count))
    assert all(many < few + 10 for few, many in zip(*counts, strict=True)), counts


def test_few_statements_edit_many_nodes_and_undo_that_and_the_undo(run: Run) -> None:
    counts: list[tuple[int, ...]] = []
    for size in (5, 25):
        group = run("groups.create", name=f"Crew {size}")["id"]
        ids = create(run, size)
        bodies = [{"name": f"New {node}", "externalId": f"forum-{node}", "permissions": {"view": [group]}} for node in ids]
        with StatementMeter() as edited:
            run("core.batch", operations=[update(node, **body) for node, body in zip(ids, bodies, strict=True)])
        with StatementMeter() as undone:
            assert run("changesets.restore", newest_change_set(run))["undoneCount"] == size
        assert run("forums.get", ids[0])["name"] == "Forum 0"
        with StatementMeter() as redone:
            assert run("changesets.restore", newest_change_set(run))["undoneCount"] == size
        assert run("forums.get", ids[-1])["name"] == f"New {ids[-1]}"
        counts.append((edited.count, undone.count, redone.count))
    assert all(many < few + 10 for few, many in zip(*counts, strict=True)), counts  # of 20 more nodes


def test_few_statements_undo_the_undo_of_many_deletes(run: Run) -> None:
    counts: list[int] = []
    for size in (5, 25):
        parent, *ids = create(run, 1) + create(run, size, description="Once more")
        run("core.batch", operations=[update(node, name="Changed before", parentId=parent) for node in ids])
        run("core.batch", operations=[{"operation": "forums.delete", "id": node} for node in ids])
        run("changesets.restore", newest_change_set(run))
        with StatementMeter() as deleted:
            assert run("changesets.restore", newest_change_set(run))["undoneCount"] == size
        assert order(run, parent) == []
        run("changesets.restore", newest_change_set(run))
        assert order(run, parent) == ids
        counts.append(deleted.count)
    assert counts[1] < counts[0] + 10, counts  # of 20 more nodes


def test_few_statements_bring_many_branches_back(run: Run) -> None:
    counts: list[int] = []
    for size in (5, 25):
        parent, *ids = create(run, 1 + size)
        run("core.batch", operations=[update(node, parentId=parent) for node in ids])
        below = [create(run, 1, parentId=node)[0] for node in ids]
        steps = [{"operation": "forums.delete", "id": node, "body": {"deleteChildrenOrMove": -1}} for node in ids]
        run("core.batch", operations=steps)
        with StatementMeter() as meter:
            assert run("changesets.restore", newest_change_set(run))["undoneCount"] == size
        assert (order(run, parent), [order(run, node) for node in ids]) == (ids, [[node] for node in below])
        counts.append(meter.count)
    assert counts[1] < counts[0] + 10, counts  # of 20 more branches


def test_what_came_back_and_was_changed_is_not_deleted_again(run: Run) -> None:
    ids = create(run, 3)
    run("core.batch", operations=[{"operation": "forums.delete", "id": node} for node in ids])
    run("changesets.restore", newest_change_set(run))
    back = newest_change_set(run)
    run("forums.update", ids[1], name="Changed since")
    undone = run("changesets.restore", back, skipConflicts=True)
    assert (undone["undoneCount"], [one["message"] for one in undone["conflicts"]]) == (2, ["CHANGED_SINCE"])
    assert order(run)[-1] == ids[1]


@pytest.mark.slow
@pytest.mark.parametrize("act", ["change", "nest", "edit", "lean", "bring_back", "branches"])
def test_together_the_same_is_left_as_one_by_one(
    act: str, new_settings: NewSettings, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of changes, moves, creations and deletions, some of them refused, orders, and the undo of each."""
    monkeypatch.setattr(digests, "hash_password", lambda password, _: f"digest of {password}")  # the same each time
    limit_levels(monkeypatch)
    run_act, share = _ACTS[act]
    at_once, counts = zip(*play(run_act, new_settings, clock), strict=True)
    for module in _RUNS_TOGETHER:
        monkeypatch.setattr(module, "run_together", lambda _context, _calls: None)
    singly, more = zip(*play(run_act, new_settings, clock), strict=True)
    for index, (one, other) in enumerate(zip(at_once, singly, strict=True)):
        assert one == other, index
    assert sum(counts) < sum(more) * share


Seen = Iterator[tuple[Any, int]]  # what something returned, or left behind, and the number of statements


def play(act: Callable[[Gate], Seen], new_settings: NewSettings, clock: Clock) -> Seen:
    """Do something in a new database; yield what it yields, and then what it has left behind."""
    gate = compose(settings := new_settings(), clock=clock)
    try:
        yield from act(gate)
        state = DatabaseState(gate).stored()
        yield (read_rows(gate), state["events"], state["snapshots"]), 0
        with gate.store.reading() as tx:
            assert not check(tx, "forums")
    finally:
        gate.store.close()
        new_settings.drop(settings)


def change(gate: Gate) -> Seen:
    """Change forums at random, always the same ones."""
    choose = Random(7)  # noqa: S311  # it chooses what to move
    parents = [{"$ref": f"n{n // 3}.id"} if n else None for n in range(9)] + [{"$ref": "n1.id"}] * 70
    bodies = [{"name": f"Forum {n}", "parentId": parent} for n, parent in enumerate(parents)]
    steps: list[Step] = [{"operation": "forums.create", "as": f"n{n}", "body": body} for n, body in enumerate(bodies)]
    ids = [one["result"]["id"] for one in gate.run(Call("core.batch", TERMINAL, {"operations": steps})).value["results"]]
    for moves in ([(1, 2), (10, 2)], [(3, 4), (5, 3)], [(6, 7), (7, 6)]):  # out of, into and below one that has moved
        yield try_to(gate, "core.batch", operations=[update(ids[node], parentId=ids[to]) for node, to in moves])
    for turn in range(4):
        steps = [build_move(choose, ids[:70]) for _ in range(8)]
        steps += [{"operation": "forums.order", "body": {"parentId": ids[1], "ids": choose.sample(ids[9:20], 4)}}] * (turn % 3 == 0)
        yield try_to(gate, "core.batch", operations=steps)
        yield try_to(gate, "core.batch", operations=build_new(choose, ids))
        yield try_to(gate, "core.batch", operations=build_deletes(choose, ids))
        last = gate.run(Call("events.list", TERMINAL, {"order": "newest", "limit": 1})).value["results"][0]
        if turn % 2 or last["operation"] == "forums.delete":
            yield try_to(gate, "changesets.restore", last["changeSet"], skipConflicts=turn % 4 == 1)


def nest(gate: Gate) -> Seen:
    """Move forums below others that move too, at random, always the same ones: some go below themselves, or are too deep."""
    choose = Random(5)  # noqa: S311  # it chooses what to move
    run = runner(gate)
    steps: list[Step] = [{"operation": "forums.create", "as": "0", "body": {"name": "Deep 0"}}]
    bodies = [{"name": f"Deep {n}", "parentId": {"$ref": f"{n - 1}.id"}} for n in range(1, FEW - 4)]
    steps += [{"operation": "forums.create", "as": f"{n}", "body": body} for n, body in enumerate(bodies, 1)]
    deep = run("core.batch", operations=steps)["results"][-1]["result"]["id"]
    ids, outcomes = create(run, 14), list[str]()
    for turn in range(8):
        moved = choose.sample(ids, 9)
        steps = []
        for n, node in enumerate(moved):
            before = [None, None, deep] * (n == 0) + moved[max(0, n - 2) : n]
            place: dict[str, Any] = choose.choice([{}, {"position": choose.randrange(3)}, {"name": f"Forum {turn}"}])
            steps.append(update(node, parentId=choose.choice(ids if turn % 4 == 3 else before), **place))
        yield (tried := try_to(gate, "core.batch", operations=steps))
        outcomes.append(str(tried[0]))
        if turn % 3:
            yield try_to(gate, "changesets.restore", newest_change_set(run))
            yield try_to(gate, "changesets.restore", newest_change_set(run))
    for kind in ("'event': None", "under itself", "which is below it", f"more than {FEW} levels"):
        assert any(kind in outcome for outcome in outcomes), kind


def edit(gate: Gate) -> Seen:
    """Edit forums at random, always the same ones: some are refused, or move too."""
    choose = Random(11)  # noqa: S311  # it chooses what to edit
    run = runner(gate)
    groups = [run("groups.create", name=f"Crew {n}", externalId=f"crew-{n}")["id"] for n in range(3)]
    top, other = create(run, 2, permissions={"view": groups[:2]})
    ids = [top, other, *create(run, 6, parentId=top), *create(run, 6, parentId=other)]
    ids += create(run, 3, parentId=ids[2])
    for turn in range(6):
        yield try_to(gate, "core.batch", operations=[build_edit(choose, node, ids, groups, turn) for node in choose.sample(ids, 9)])
        if turn == 5:
            yield try_to(gate, "groups.delete", groups[1])
        last = run("events.list", order="newest", limit=1)["results"][0]["changeSet"]
        if turn % 2 and last is not None:
            yield try_to(gate, "changesets.restore", last, skipConflicts=True)
            yield try_to(gate, "changesets.restore", newest_change_set(run))


def lean(gate: Gate) -> Seen:
    """Edit forums in batches of which one edit makes another one possible, or impossible; then undo each, one way or another."""
    run = runner(gate)
    crew = run("groups.create", name="Crew")["id"]
    a, b, c, below = [*create(run, 3), *create(run, 1)]
    run("forums.update", below, parentId=c)
    redirect = {"type": "redirect", "redirectUrl": "https://forum.example/"}
    for steps, meanwhile in (
        ([update(a, **redirect), update(b, parentId=a)], update(b, name="B")),
        ([update(b, name="Away"), update(a, **redirect)], update(b, name="B")),
        ([update(b, parentId=a), update(a, type="discussions")], update(b, name="B")),
        ([update(a, type="discussions"), update(b, name="Back")], update(below, parentId=a)),
        ([update(c, **redirect), update(below, parentId=b)], update(below, parentId=c)),
        ([update(below, parentId=b), update(c, **redirect)], update(below, name="Below")),
        ([update(a, externalId="x"), update(b, externalId="x")], update(c, name="C")),
        ([update(a, externalId="x"), update(b, externalId="y")], update(c, name="D")),
        ([update(a, externalId="x"), update(b, externalId="y")], update(c, externalId="z")),
        ([update(a, externalId=None), update(b, externalId="x")], update(c, name="E")),
        ([update(b, externalId="y"), update(a, externalId="x")], update(c, name="F")),
        ([update(a, externalId="v"), update(b, externalId="w")], update(c, externalId="x")),
        ([update(b, permissions={"view": [crew]}), update(a, copyPermissionsFrom=b)], update(c, name="G")),
        ([update(a, externalId="new"), update(below, parentExternalId="new")], update(c, name="H")),
        ([update(a, externalId=None), update(below, parentExternalId="new")], update(c, name="I")),
        ([update(a, externalId="old"), update(b, externalId="new"), update(below, parentExternalId="new")], update(c, name="J")),
    ):
        yield try_to(gate, "core.batch", operations=[update(c, description=f"Before {len(steps)}")])
        before = newest_change_set(run)
        yield try_to(gate, "core.batch", operations=steps)
        done = newest_change_set(run)
        yield try_to(gate, "core.batch", operations=[meanwhile])
        if done != before:
            yield try_to(gate, "changesets.restore", done)
            yield try_to(gate, "changesets.restore", done, skipConflicts=True)
            yield try_to(gate, "changesets.restore", newest_change_set(run), skipConflicts=True)


def bring_back(gate: Gate) -> Seen:
    """Delete forums together, change what they need, and undo that: some cannot come back, or only without a group."""
    run = runner(gate)
    group, top, other = run("groups.create", name="Crew")["id"], *create(run, 2)
    ids = create(run, 8, parentId=top, permissions={"view": [group]}) + create(run, 8, parentId=other)
    run("core.batch", operations=[update(node, externalId=f"forum-{node}") for node in ids])
    for meanwhile in (
        [],
        [{"operation": "forums.create", "body": {"name": "Taken", "externalId": f"forum-{ids[2]}"}}],
        [{"operation": "forums.update", "id": other, "body": {"type": "redirect", "redirectUrl": "https://forum.example/"}}],
        [{"operation": "groups.delete", "id": group}],
        [{"operation": "forums.delete", "id": top, "body": {"deleteChildrenOrMove": -1}}],
    ):
        there = order(run, top) + order(run, other)
        doomed = [node for node in ids[:8:2] + ids[8:] if node in there]
        yield try_to(gate, "core.batch", operations=[{"operation": "forums.delete", "id": node} for node in doomed])
        deleted = newest_change_set(run)
        for step in meanwhile:
            yield try_to(gate, "core.batch", operations=[step])
        yield try_to(gate, "changesets.restore", deleted)
        yield try_to(gate, "changesets.restore", deleted, skipConflicts=True)


def bring_back_branches(gate: Gate) -> Seen:
    """Delete forums with all below them, change what they need, and undo that: some cannot come back, or only without a group."""
    run = runner(gate)
    group, top, deep = run("groups.create", name="Crew")["id"], *create(run, 2)
    ids = create(run, 8, parentId=top)
    below = [node for parent in ids for node in create(run, 3, parentId=parent)]
    leaves = create(run, 9, parentId=below[0]) + create(run, 2, parentId=below[4], permissions={"view": [group]})
    run("core.batch", operations=[update(node, externalId=f"forum-{node}") for node in leaves])
    for _ in range(FEW - 4):
        deep = run("forums.create", name="Deep", parentId=deep)["id"]
    for meanwhile in (
        [],
        [{"operation": "groups.delete", "id": group}],
        [{"operation": "forums.create", "body": {"name": "Taken", "externalId": f"forum-{leaves[-1]}"}}],
        [update(top, parentId=deep)],
        [update(top, parentId=None)],
        [{"operation": "forums.delete", "id": top, "body": {"deleteChildrenOrMove": -1}}],
    ):
        steps = [{"operation": "forums.delete", "id": node, "body": {"deleteChildrenOrMove": -1}} for node in order(run, top)[:6]]
        yield try_to(gate, "core.batch", operations=steps)
        deleted = newest_change_set(run)
        for step in meanwhile:
            yield try_to(gate, "core.batch", operations=[step])
        yield try_to(gate, "changesets.restore", deleted)
        yield try_to(gate, "changesets.restore", deleted, skipConflicts=True)


_ACTS: Final = {  # and the share of statements that are left of them, at most
    "change": (change, 2 / 3),
    "nest": (nest, 1 / 3),
    "edit": (edit, 2 / 3),
    "lean": (lean, 1),  # two or three at a time spare little
    "bring_back": (bring_back, 2 / 3),
    "branches": (bring_back_branches, 9 / 10),
}


def build_move(choose: Random, ids: Sequence[int]) -> Step:
    """Return a move, which is refused if the forum goes below itself, or beside one that is elsewhere."""
    node = choose.choice(ids[1:])
    place: dict[str, int] = choose.choice([{}, {"position": choose.randrange(90)}, {"position": choose.randrange(3)}])
    parent = {"parentId": choose.choice(ids[:9])} if node in ids[9:] and choose.random() < 0.5 else {}
    if choose.random() < 0.05:
        return update(node, **choose.choice([{"parentId": choose.choice(ids[:9])}, {"before": choose.choice(ids)}]))
    return update(node, **(parent | place or {"position": 1}))


def build_edit(choose: Random, node: int, ids: Sequence[int], groups: Sequence[int], turn: int) -> Step:
    """Return an edit of a forum: of three turns one has edits that may be refused, or that lean on others beside them."""
    edits: list[Step] = [
        {"name": f"Forum {choose.randrange(5)}", "description": "<p>Edited</p>"},
        {"permissions": {"view": choose.sample(groups, 2), "reply": "*"}},
        {"permissions": {"view": [{"externalId": "crew-0"}]}},
        {"externalId": f"forum-{node}-{turn}"},
        {"externalId": None, "name": "Nameless"},
        {"name": "Moved", "position": choose.randrange(4)},
        {"parentId": choose.choice(ids[:2]), "description": ""},
        {"password": choose.choice(["sesame", ""])},
        {},
    ]
    edits += [
        {"externalId": f"x{choose.randrange(3)}"},
        {"permissions": {"view": [groups[0], 10**6]}},
        {"copyPermissionsFrom": choose.choice(ids)},
        {"parentExternalId": f"x{choose.randrange(3)}"},
        {"parentId": choose.choice(ids)},
        {"type": choose.choice(["redirect", "discussions"]), "redirectUrl": "https://forum.example/"},
        {"name": ""},
    ] * (turn % 3 == 2)
    return update(node, **choose.choice(edits))


def build_new(choose: Random, ids: Sequence[int]) -> list[Step]:
    """Return creations below some forums and below the first of themselves, some of which are refused."""
    steps: list[Step] = []
    for parents in ([None, *ids[:2]], [ids[1], {"$ref": "0.id"}], [ids[1], {"$ref": "0.id"}, {"$ref": "3.id"}, 10**6]):
        parent = choose.choice(parents)
        for _ in range(choose.randrange(2, 6)):
            more: Step = choose.choice([{}] * 10 + [{"position": 1}, {"externalId": f"x{choose.randrange(4)}"}])
            body = {"name": f"New {choose.random()}", "parentId": parent, **more}
            steps.append({"operation": "forums.create", "as": str(len(steps)), "body": body})
    return steps


def build_deletes(choose: Random, ids: Sequence[int]) -> list[Step]:
    """Return deletes of forums, one of which may have been deleted, or has children."""
    doomed = [*choose.sample(ids[60:], 4), *([ids[1]] if choose.random() < 0.2 else [])]
    fate = {"deleteChildrenOrMove": choose.choice([-1, ids[0]])} if choose.random() < 0.5 else {}
    return [{"operation": "forums.delete", "id": node, "body": fate} for node in doomed]


def try_to(gate: Gate, operation: str, target: int | None = None, **raw: Any) -> tuple[Any, int]:
    """Run an operation; return what it returned, or why it was refused, and the number of statements."""
    with StatementMeter() as meter:
        try:
            found = gate.run(Call(operation, TERMINAL, raw, target)).value
        except Refused as refused:
            found = refused.message, refused.detail, [one.detail for one in refused.faults]
    return found, meter.count
