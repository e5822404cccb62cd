"""The operations that check the whole community for inconsistencies, and repair what can be repaired safely."""

import itertools
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, Final

import orjson

from trellis.core.check.names import check_names, walk_pages
from trellis.core.check.soundness import Examination, Problem, ProblemGroup, build_finding, examine
from trellis.core.check.steps import Steps
from trellis.core.check.unreadable import list_unreadable, tell_unreadable
from trellis.core.fields import MAX_ID, Field, Integer, Text, parse_whole_number
from trellis.core.nodes import DEEPEST, NodeKind
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.verbs import STANDARD
from trellis.errors import refuse_fault
from trellis.sentences import join, say, say_many
from trellis.store import check, events, keys, lists, nodes, requests, siblings, snapshots
from trellis.store.check import UnreadableValue
from trellis.store.counters import read_counters, set_counter
from trellis.store.nodes import Node, deleted_ids

_KEYS: Final = "keys"
_EVENTS: Final = "events"
_SEARCH: Final = "search"
_MAX_TOLD: Final = 10  # the most gaps in the event log, or kinds of damage, that are reported one by one
_MAX_REPAIRS: Final = 10_000  # problems that one repair, and so one event, is about
_MAX_RANGES: Final = 1_000_000  # counts of deleted ids that a repair writes: enough for 256 million deleted nodes
_HISTORY: Final = frozenset({"counters", "events", "snapshots"})  # tables that a repair writes to, so that undo knows of it

_LIMIT: Final = Field(
    "limit", Integer(1, 1_000_000), "The number of problems to list at most; the counts include all.", default=10_000
)
_AFTER: Final = Field("after", Text(), "The `next` of the repair before this one, which this one continues.", default=None)


def operations() -> tuple[Operation, ...]:
    """Return the operations that check and repair the community."""
    return (
        Operation(
            name="check.list",
            summary="Check the community",
            doc="Examines every row: trees, order, fields, permissions, counters, keys, names and the log.",
            run=_list,
            fields=(_LIMIT,),
        ),
        Operation(
            name="check.repair",
            summary="Repair the community",
            doc="Repairs what can be repaired safely. Unreachable nodes move to the end of the top level; invalid fields "
            "get their defaults, and invisible characters are removed from names. One event records the old values. After 10,000 "
            "problems, it ends: if `more` is true, run it again, with its `next`, if it has one, as `after`.",
            run=_repair,
            fields=(_AFTER,),
            writes=True,
        ),
    )


def _list(context: Context) -> Outcome:
    most = context.input.get(_LIMIT.name, _LIMIT.default)
    count = repairable = 0
    listed: list[dict[str, Any]] = []
    with context.tx.reading_everything():
        steps = Steps.count(context)
        unreadable = [*check.find_unreadable(context.tx, steps.scan)]
        is_recordable = _HISTORY.isdisjoint(list_unreadable(unreadable))
        for problem in (problem for finding in _findings(context, unreadable, steps) for problem in finding.problems):
            is_repairable = problem.repairable and is_recordable
            count += 1
            repairable += is_repairable
            if len(listed) < most:
                listed.append(problem._replace(repairable=is_repairable)._asdict())
        checked = {kind: size for kind, (size, _) in steps.sizes.items()}
        kept = _retention(context, is_readable=is_recordable)
    return Outcome({"checked": checked, "kept": kept, "count": count, "repairable": repairable, "problems": listed})


def _retention(context: Context, *, is_readable: bool) -> dict[str, Any]:
    """Report how far back the event log and undo reach, and how much of each was purged, as far as that can be read."""
    oldest, newest = events.find_span(context.tx) if is_readable else (1, 0)
    first = snapshots.find_oldest_event(context.tx) if is_readable else None
    undoable = [kind.operation(one.name) for kind in context.environment.kinds for one in STANDARD if one.keeps_rows]
    lost = events.count(context.tx, newest + 1 if first is None else first, undoable)
    return {
        "events": {
            "count": events.count(context.tx),
            "from": events.find_timestamp(context.tx, oldest) if is_readable else None,
            "purged": oldest - 1,
            "days": context.environment.keep_events,
        },
        "snapshots": {
            "count": snapshots.count(context.tx),
            "from": None if first is None else events.find_timestamp(context.tx, first),
            "purged": lost,
            "days": context.environment.keep_snapshots,
        },
    }


def _repair(context: Context) -> Outcome:
    repaired: list[Problem] = []
    more = False
    after = _parse_after(context)
    with context.tx.reading_everything():
        steps = Steps.count(context, after)
        unreadable = [*check.find_unreadable(context.tx, steps.scan)] if after is None else []
    is_recordable = _HISTORY.isdisjoint(list_unreadable(unreadable))
    with context.tx.reading_everything(), closing(_findings(context, unreadable, steps, after)) as findings:
        for finding in findings if is_recordable else ():
            if finding.repair is None:
                continue
            if more := len(repaired) >= _MAX_REPAIRS:
                break
            finding.repair()
            repaired.extend(problem for problem in finding.problems if problem.repairable)
    listed = [problem._asdict() for problem in repaired]
    # Where something cannot be read, the next repair has to find that as well, and begins anew.
    further = f"{steps.kind}:{steps.node}" if more and steps.kind and not unreadable else None
    result = {"repaired": len(repaired), "problems": listed, "more": more, "next": further}
    if not repaired:
        return Outcome(result, happened=False)
    lists.note_everything(context.tx)
    touched = dict.fromkeys((problem.resource, problem.id) for problem in repaired if problem.id is not None)
    return Outcome(
        result,
        before={"problems": listed},
        after={"repaired": len(repaired)},
        touched=tuple({"resource": resource, "id": node, "how": "repaired"} for resource, node in touched),
    )


def _parse_after(context: Context) -> tuple[str, int] | None:
    """Return the kind and the id after which a repair continues. Raises Refused."""
    if (text := context.input.get(_AFTER.name)) is None:
        return None
    kind, _, node = text.partition(":")
    number = parse_whole_number(node)
    if kind not in context.environment.kinds_by_name or number is None or not 0 <= number <= MAX_ID:
        raise refuse_fault(_AFTER.name, "INVALID_VALUE", say("after must be the `next` of a repair."))
    return kind, number


def _findings(
    context: Context, unreadable: Sequence[UnreadableValue], steps: Steps, after: tuple[str, int] | None = None
) -> Generator[ProblemGroup]:
    """Find all problems, part by part, each after the repairs before it; skip checks that would read `unreadable` values.

    With `after`, a kind and an id, only those from that node on, which cannot be about tables as a whole.
    """
    without = list_unreadable(unreadable)
    if after is None:
        yield from _check_file(context)
        yield from tell_unreadable(unreadable)
        # These keep no other check from reading the rest.
        yield from tell_unreadable([*check.find_wrong_json(context.tx, steps.scan)])
    kinds = [kind for kind in context.environment.kinds if kind.name not in without]
    group_kind = context.environment.group_kind
    groups = nodes.find_all_ids(context.tx, group_kind.name) if group_kind in kinds else None
    for kind in itertools.dropwhile(lambda kind: after is not None and kind.name != after[0], kinds):
        free = _list_free_offsets(context, kind)
        yield from _check_rows(context, kind, groups, steps, None if after is None or kind.name != after[0] else after[1], free)
        yield from _check_tree(context, kind, free)
        yield from _check_order(context, kind)
    yield from _check_counters(context, steps.sizes, without)
    if without.isdisjoint({"counters", "deleted_id_counts"}):
        yield from _check_deleted_ids(context, kinds)
    for part, tables in _PARTS.items():
        if without.isdisjoint(tables):
            yield from part(context)
    yield from check_names(context, without)


def _check_file(context: Context) -> Iterator[ProblemGroup]:
    if (bug := check.find_library_bug(context.tx)) is not None:
        yield build_finding("database", None, "library", bug)
    for what in check.check_file(context.tx, _MAX_TOLD):
        yield build_finding("database", None, "damage", say("the file is damaged: {what}", what=what))


# --- nodes --------------------------------------------------------------------------------------------------------


def _check_rows(
    context: Context, kind: NodeKind, groups: set[int] | None, steps: Steps, after: int | None, free: Iterator[int]
) -> Iterator[ProblemGroup]:
    unnamed: dict[str, int] = {}  # built-in nodes without an external id, by the one by which documents know them
    for batch in check.read_batches(context.tx, kind.name, after):
        unnamed |= {kind.built_in[one.id]: one.id for one in batch if one.id in kind.built_in and one.external_id is None}
        examinations = [examine(kind, stored, groups) for stored in batch]
        for examination in examinations:
            if examination.problems:
                yield ProblemGroup(
                    tuple(examination.problems),
                    partial(_save_repaired, context, kind, examination) if examination.repairable else None,
                )
        leaf_only = [examination.repaired.id for examination in examinations if kind.leaf_only(examination.repaired.fields)]
        for child, parent in check.find_children(context.tx, kind.name, leaf_only):
            detail = say("its parent is {parent}, {leaf}, which cannot have children", parent=parent, leaf=kind.leaf.one)
            yield _misplacement(context, kind, free, child, "leaf only", detail)
        steps.examine(kind, batch[-1].id, len(batch))
    for gone in sorted(kind.built_in.keys() - nodes.find_existing(context.tx, kind.name, kind.built_in)):
        yield build_finding(kind.name, gone, "built in", say("this built-in {singular} is missing", singular=kind.singular))
    yield from _check_external_ids(context, kind, unnamed)


def _check_external_ids(context: Context, kind: NodeKind, unnamed: Mapping[str, int]) -> Iterator[ProblemGroup]:
    """Find nodes with an external id by which documents know a built-in node that has none.

    That is refused today, but older records may still have one.
    """
    for external_id, node in sorted(nodes.find_by_external_ids(context.tx, kind.name, unnamed).items()):
        detail = say(
            "its external id is '{external_id}', by which structure documents know the {singular} {number}. Give it another: "
            "trellis run {name}.update id={node} externalId=…",
            external_id=external_id,
            singular=kind.singular,
            number=unnamed[external_id],
            name=kind.name,
            node=node,
        )
        yield build_finding(kind.name, node, "external id", detail)


def _save_repaired(context: Context, kind: NodeKind, examination: Examination) -> None:
    repaired = replace(examination.repaired, updated_at=context.at) if examination.changes else examination.repaired
    save = partial(snapshots.save, context.tx, kind.name, repaired, "changed")  # the repair cannot be undone, but undo must see it
    if examination.is_readable:
        save()
    nodes.update(context.tx, kind.name, repaired)
    if not examination.is_readable:  # only now: a snapshot with what cannot be read would fail its readers
        save()


def _list_free_offsets(context: Context, kind: NodeKind) -> Iterator[int]:
    """Yield offsets at the top level for nodes that move there; nothing is looked for until the first does."""
    yield from itertools.count(siblings.find_free_offset(context.tx, kind.name))


def _misplacement(context: Context, kind: NodeKind, free: Iterator[int], node: int, problem: str, detail: str) -> ProblemGroup:
    return build_finding(kind.name, node, problem, detail, partial(_move_to_top, context, kind, free, node))


def _move_to_top(context: Context, kind: NodeKind, free: Iterator[int], node: int) -> None:
    if (found := _find_readable(context, kind, node)) is not None:
        snapshots.save(context.tx, kind.name, found, "changed")
    siblings.move_to_top_level(context.tx, kind.name, node, next(free), context.at)


def _find_readable(context: Context, kind: NodeKind, node: int) -> Node | None:
    """Read a node; return None if its fields or permissions are not JSON objects, for which it is repaired later."""
    try:
        found = nodes.find(context.tx, kind.name, node)
    except orjson.JSONDecodeError:
        return None
    return found if found is not None and all(isinstance(one, dict) for one in (found.fields, found.permissions)) else None


def _check_tree(context: Context, kind: NodeKind, free: Iterator[int]) -> Iterator[ProblemGroup]:
    if not kind.tree:
        for node, parent in check.find_nested(context.tx, kind.name):
            detail = say("its parent is {parent}, but {kinds} have no parents", parent=parent, kinds=kind.plural)
            yield _misplacement(context, kind, free, node, "nested", detail)
        return
    for node, parent in check.find_orphans(context.tx, kind.name):
        yield _misplacement(context, kind, free, node, "orphan", say("its parent {parent} does not exist", parent=parent))
    for cycle in find_cycles(check.find_unreachable(context.tx, kind.name)):
        path = " under ".join(str(node) for node in (*cycle, cycle[0]))
        yield _misplacement(context, kind, free, cycle[0], "cycle", say("it is below itself: {path}", path=path))
    for node in check.find_deepest(context.tx, kind.name, DEEPEST):
        detail = say(
            "there are {kinds} below it, though it is on level {deepest}, the last that a tree can have. Move what is below it: "
            "trellis run {name}.update id=… parentId=…",
            kinds=kind.plural,
            deepest=DEEPEST,
            name=kind.name,
        )
        yield build_finding(kind.name, node, "deep", detail)


def find_cycles(parents: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Find the cycles among nodes, given id → the parent's id. Each cycle begins with its lowest id and continues upwards."""
    found: list[tuple[int, ...]] = []
    met: set[int] = set()
    for start in parents:
        path: dict[int, int] = {}  # node → its index on the path
        at = start
        while at in parents and at not in met:
            met.add(at)
            path[at] = len(path)
            at = parents[at]
        if at in path:
            ring = list(path)[path[at] :]
            lowest = ring.index(min(ring))
            found.append(tuple(ring[lowest:] + ring[:lowest]))
    return found


def _check_order(context: Context, kind: NodeKind) -> Iterator[ProblemGroup]:
    for parent, count in siblings.check(context.tx, kind.name):
        where = say("at the top level") if parent is None else say("under {parent}", parent=parent)
        detail = say(
            "the {count:,} {kinds} {where} are not numbered from 0 to {last:,}",
            count=count,
            kinds=kind.plural,
            where=where,
            last=count - 1,
        )
        if not count:
            detail = say("there are blocks for {kinds} {where}, but no {kinds}", kinds=kind.plural, where=where)
        yield build_finding(kind.name, parent, "order", detail, partial(siblings.repair, context.tx, kind.name, parent))


# --- everything but nodes -----------------------------------------------------------------------------------------


def _check_counters(context: Context, sizes: Mapping[str, tuple[int, int]], without: AbstractSet[str]) -> Iterator[ProblemGroup]:
    known = context.environment.kinds_by_name.keys()
    for kind in sorted(sizes.keys() - known):
        detail = say_many(
            sizes[kind][0],
            "{count:,} row is of a kind that is not declared",
            "{count:,} rows are of a kind that is not declared",
        )
        yield build_finding(kind, None, "kind", detail)
    if "counters" in without:
        return
    counters = read_counters(context.tx)
    highest = {_KEYS: check.find_highest_key, _EVENTS: check.find_last_event}
    for name in (name for name in (*sorted(known), *highest) if name not in without):
        last, total = counters.get(name, (0, 0))
        count, most = (total, highest[name](context.tx)) if name in highest else sizes.get(name, (0, 0))
        wrong = [say("the stored count is {total:,}, but there are {count:,}", total=total, count=count)] if total != count else []
        wrong += [say("the last id assigned is {last}, but there is a {most}", last=last, most=most)] if last < most else []
        if wrong:
            told = say("{first} and {last}", first=wrong[0], last=wrong[1]) if len(wrong) > 1 else join(wrong)
            yield build_finding(name, None, "counter", told, partial(set_counter, context.tx, name, max(last, most), count))


def _check_log_size(context: Context) -> Iterator[ProblemGroup]:
    counted, found = requests.check_size(context.tx)
    if counted != found:
        detail = say("the request log is recorded as {counted} bytes, but has {found}", counted=counted, found=found)
        yield build_finding("requests", None, "counter", detail, partial(requests.repair_size, context.tx))


def _check_deleted_ids(context: Context, kinds: Iterable[NodeKind]) -> Iterator[ProblemGroup]:
    for kind in kinds:
        if wrong := deleted_ids.check(context.tx, kind.name):
            detail = say_many(
                wrong,
                "the count of deleted ids is wrong in {count:,} range of ids; later pages of lists are wrong",
                "the counts of deleted ids are wrong in {count:,} ranges of ids; later pages of lists are wrong",
            )
            repair = partial(deleted_ids.repair, context.tx, kind.name) if wrong <= _MAX_RANGES else None
            yield build_finding(kind.name, None, "gaps", detail, repair)


def _check_search(context: Context) -> Iterator[ProblemGroup]:
    if wrong := lists.check_search_index(context.tx):
        detail = say_many(
            wrong,
            "{count:,} name in the search index is missing or wrong",
            "{count:,} names in the search index are missing or wrong",
        )
        yield build_finding(_SEARCH, None, "index", detail, partial(lists.rebuild_search_index, context.tx))


def _check_log(context: Context) -> Iterator[ProblemGroup]:
    for first, last in check.find_missing_events(context.tx, _MAX_TOLD):
        detail = (
            say("event {first} is missing from the log", first=first)
            if first == last
            else say("events {first} to {last} are missing from the log", first=first, last=last)
        )
        yield build_finding(_EVENTS, None, "gap", detail)


def _check_grants(context: Context) -> Iterator[ProblemGroup]:
    for key in walk_pages(context, keys.read_page):
        gone = [grant for grant in key.grants if grant not in context.environment.grantable]
        if gone and not key.revoked_at:
            kept = [grant for grant in key.grants if grant in context.environment.grantable]
            detail = say("it is granted operations that no longer exist: {names}", names=", ".join(gone))
            bounds = {name: bound for name, bound in key.bounds.items() if name in kept}
            new = replace(key, grants=kept, bounds=bounds, updated_at=context.at)
            yield build_finding(_KEYS, key.id, "grant", detail, partial(keys.update, context.tx, new))


_PARTS: Final = {  # what is neither about kinds nor about names, and the tables that it reads
    _check_log_size: ("counters", "logged_requests", "request_shapes"),
    _check_search: ("counters", "nodes", "node_changes", "search_names"),
    _check_log: (_EVENTS,),
    _check_grants: (_KEYS,),
}
