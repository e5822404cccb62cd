"""The check of the whole community: what is not as it should be, and the repair of what can be repaired safely."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from trellis.core.check.soundness import Problem, Verdict, judge
from trellis.core.fields import Field, Integer
from trellis.core.nodes import NodeKind
from trellis.core.operation import Act, Operation, Outcome
from trellis.core.verbs import Verb
from trellis.store import check, events, keys, nodes, snapshots
from trellis.store.lists import search
from trellis.store.nodes import deleted_ids

_KEYS: Final = "keys"
_EVENTS: Final = "events"
_SEARCH: Final = "search"
_SOME: Final = 10  # gaps in the event log, or kinds of damage, that are told one by one
_PAGE: Final = 1000
_UNDOABLE: Final[tuple[Verb, ...]] = ("update", "delete")  # the verbs of changes that undo keeps rows for


@dataclass(frozen=True, slots=True)
class Finding:
    """Problems that one mend repairs, or that none does."""

    problems: tuple[Problem, ...]
    mend: Callable[[], None] | None = None


_LIMIT: Final = Field("limit", Integer(1, 1_000_000), "How many problems are listed at most; all are counted.", default=10_000)


def operations() -> tuple[Operation, ...]:
    """Give the two operations of the check."""
    return (
        Operation(
            name="check.list",
            summary="Check the community",
            doc="Looks at every row: trees, order, fields, permissions, counters, keys and the log.",
            run=_list,
            fields=(_LIMIT,),
        ),
        Operation(
            name="check.repair",
            summary="Repair the community",
            doc="Mends what can be mended safely. What nothing leads to goes to the end of the top level; a field that "
            "is not allowed gets its default. One event tells what there was before.",
            run=_repair,
            writes=True,
        ),
    )


def _list(act: Act) -> Outcome:
    act.given.demand()
    most = act.given.get(_LIMIT.name, _LIMIT.default)
    count = repairable = 0
    listed: list[dict[str, Any]] = []
    for problem in (problem for finding in _findings(act) for problem in finding.problems):
        count += 1
        repairable += problem.repairable
        if len(listed) < most:
            listed.append(problem.written())
    checked = {kind: size for kind, (size, _) in check.sizes(act.tx).items()}
    kept = _kept(act)
    return Outcome({"checked": checked, "kept": kept, "count": count, "repairable": repairable, "problems": listed})


def _kept(act: Act) -> dict[str, Any]:
    """Tell how far the log and undo reach back, and how much was purged of each."""
    oldest, newest = events.reach(act.tx)
    first = snapshots.oldest(act.tx)
    undoable = [kind.operation(verb) for kind in act.world.kinds for verb in _UNDOABLE]
    lost = events.count(act.tx, newest + 1 if first is None else first, undoable)
    return {
        "events": {
            "count": events.count(act.tx),
            "from": events.moment_of(act.tx, oldest),
            "purged": oldest - 1,
            "days": act.world.keep_events,
        },
        "snapshots": {
            "count": snapshots.total(act.tx),
            "from": None if first is None else events.moment_of(act.tx, first),
            "purged": lost,
            "days": act.world.keep_snapshots,
        },
    }


def _repair(act: Act) -> Outcome:
    act.given.demand()
    repaired: list[Problem] = []
    for finding in _findings(act):
        if finding.mend is not None:
            finding.mend()
            repaired.extend(problem for problem in finding.problems if problem.repairable)
    listed = [problem.written() for problem in repaired]
    result = {"repaired": len(repaired), "problems": listed}
    if not repaired:
        return Outcome(result, happened=False)
    touched = dict.fromkeys((problem.resource, problem.id) for problem in repaired if problem.id is not None)
    return Outcome(
        result,
        before={"problems": listed},
        after={"repaired": len(repaired)},
        touched=tuple({"resource": resource, "id": node, "how": "repaired"} for resource, node in touched),
    )


def _findings(act: Act) -> Iterator[Finding]:
    """Find everything, one thing after the other: each part sees what was mended before it."""
    yield from _damage(act)
    sizes = check.sizes(act.tx)
    audience = next((kind for kind in act.world.kinds if kind.audience), None)
    groups = check.ids_of(act.tx, audience.name) if audience else set()
    done, total = 0, sum(size for size, _ in sizes.values())
    for kind in act.world.kinds:
        yield from _rows(act, kind, groups, done, total)
        done += sizes.get(kind.name, (0, 0))[0]
        yield from _shape(act, kind)
        yield from _order(act, kind)
    yield from _counters(act, sizes)
    yield from _lists(act)
    yield from _log(act)
    yield from _grants(act)


def _damage(act: Act) -> Iterator[Finding]:
    for what in check.damage(act.tx, _SOME):
        yield Finding((Problem("database", None, "damage", f"the file is damaged: {what}", repairable=False),))


# --- nodes --------------------------------------------------------------------------------------------------------


def _rows(act: Act, kind: NodeKind, groups: set[int], done: int, total: int) -> Iterator[Finding]:
    for batch in check.batches(act.tx, kind.name):
        verdicts = [judge(kind, stored, groups, act.now) for stored in batch]
        for verdict in verdicts:
            if verdict.problems:
                yield Finding(tuple(verdict.problems), partial(_keep, act, kind, verdict) if verdict.repairable else None)
        barren = [verdict.mended.id for verdict in verdicts if kind.barren(verdict.mended.fields)]
        for child, parent in check.children_of(act.tx, kind.name, barren):
            yield _misplaced(act, kind, child, "barren", f"it stands under {parent}, which is a redirect and has no children")
        done += len(batch)
        act.call.progress(done, total)
    for gone in sorted(kind.built_in - nodes.existing(act.tx, kind.name, kind.built_in)):
        yield Finding((Problem(kind.name, gone, "built in", f"this {kind.singular} is built in and not there", repairable=False),))


def _keep(act: Act, kind: NodeKind, verdict: Verdict) -> None:
    snapshots.keep(act.tx, kind.name, verdict.mended, "changed")  # not to be undone, but undo must see that it was changed
    nodes.update(act.tx, kind.name, verdict.mended)


def _misplaced(act: Act, kind: NodeKind, node: int, problem: str, detail: str) -> Finding:
    return Finding((Problem(kind.name, node, problem, detail),), partial(_to_top, act, kind, node))


def _to_top(act: Act, kind: NodeKind, node: int) -> None:
    if (found := nodes.find(act.tx, kind.name, node)) is not None:
        snapshots.keep(act.tx, kind.name, found, "changed")
    check.to_top(act.tx, kind.name, node)


def _shape(act: Act, kind: NodeKind) -> Iterator[Finding]:
    if not kind.tree:
        for node, parent in check.nested(act.tx, kind.name):
            yield _misplaced(act, kind, node, "nested", f"it stands under {parent}, and {kind.title.lower()} have no parents")
        return
    for node, parent in check.orphans(act.tx, kind.name):
        yield _misplaced(act, kind, node, "orphan", f"its parent {parent} does not exist")
    for cycle in cycles(check.unreachable(act.tx, kind.name)):
        way = " under ".join(str(node) for node in (*cycle, cycle[0]))
        yield _misplaced(act, kind, cycle[0], "cycle", f"it stands below itself: {way}")


def cycles(parents: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Find the cycles among nodes, given id → the parent's id; each begins with its lowest id and goes upwards."""
    found: list[tuple[int, ...]] = []
    met: set[int] = set()
    for start in parents:
        way: dict[int, int] = {}  # node → its place on the way
        at = start
        while at in parents and at not in met:
            met.add(at)
            way[at] = len(way)
            at = parents[at]
        if at in way:
            ring = list(way)[way[at] :]
            lowest = ring.index(min(ring))
            found.append(tuple(ring[lowest:] + ring[:lowest]))
    return found


def _order(act: Act, kind: NodeKind) -> Iterator[Finding]:
    for parent, count in check.uneven(act.tx, kind.name):
        where = "at the top level" if parent is None else f"under {parent}"
        detail = f"the {count} {kind.title.lower()} {where} are not numbered from 0 to {count - 1}"
        if not count:
            detail = f"there are shelves for {kind.title.lower()} {where}, where none are"
        yield Finding((Problem(kind.name, parent, "order", detail),), partial(check.renumber, act.tx, kind.name, parent))


# --- beside the nodes ---------------------------------------------------------------------------------------------


def _counters(act: Act, sizes: Mapping[str, tuple[int, int]]) -> Iterator[Finding]:
    counters = check.counted(act.tx)
    known = {kind.name for kind in act.world.kinds}
    for kind in sorted(sizes.keys() - known):
        detail = f"{sizes[kind][0]} rows are of a kind that this community does not hold"
        yield Finding((Problem(kind, None, "kind", detail, repairable=False),))
    highest = {_KEYS: check.highest_key(act.tx), _EVENTS: check.last_event(act.tx)}
    for name in (*sorted(known), *highest):
        last, total = counters.get(name, (0, 0))
        count, most = (total, highest[name]) if name in highest else sizes.get(name, (0, 0))
        wrong = [f"{total} are counted where there are {count}"] if total != count else []
        wrong += [f"the last number given out is {last}, though there is a {most}"] if last < most else []
        if wrong:
            problem = Problem(name, None, "counter", " and ".join(wrong))
            yield Finding((problem,), partial(check.count_anew, act.tx, name, max(last, most), count))


def _lists(act: Act) -> Iterator[Finding]:
    """Check what lists are found by: the gaps among ids, and the index for searching."""
    for kind in act.world.kinds:
        if wrong := deleted_ids.wrong(act.tx, kind.name):
            detail = f"the gaps among the ids are counted wrongly in {wrong} blocks of them; pages far from the first are not right"
            yield Finding((Problem(kind.name, None, "gaps", detail),), partial(deleted_ids.count_anew, act.tx, kind.name))
    if wrong := search.wrong(act.tx):
        detail = f"the index for searching does not know {wrong} names as they are"
        yield Finding((Problem(_SEARCH, None, "index", detail),), partial(search.rebuild, act.tx))


def _log(act: Act) -> Iterator[Finding]:
    for first, last in check.missing_events(act.tx, _SOME):
        which = f"event {first} is" if first == last else f"events {first} to {last} are"
        yield Finding((Problem(_EVENTS, None, "gap", f"{which} missing from the log", repairable=False),))


def _grants(act: Act) -> Iterator[Finding]:
    offset = 0
    while True:
        total, page = keys.page(act.tx, _PAGE, offset)
        for key in page:
            gone = [grant for grant in key.grants if grant not in act.world.grantable]
            if gone and not key.revoked_at:
                kept = [grant for grant in key.grants if grant in act.world.grantable]
                problem = Problem(_KEYS, key.id, "grant", f"it was granted operations that are gone: {', '.join(gone)}")
                yield Finding((problem,), partial(keys.update, act.tx, replace(key, grants=kept, updated_at=act.now)))
        offset += _PAGE
        if offset >= total:
            return
