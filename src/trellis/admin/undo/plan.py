"""Undo as a page tells it: which events offer it, and what it would do, from a dry run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from trellis.admin.events import Change, contrast, standings, told
from trellis.admin.node_names import named, touched
from trellis.admin.nodes import groups_of
from trellis.admin.page import Visit
from trellis.core.events import changed_members, serialize_event
from trellis.core.nodes import NodeKind
from trellis.core.undo import lists_naming
from trellis.core.version import compute_version
from trellis.errors import Refused
from trellis.store import events, snapshots
from trellis.store.engine import Transaction
from trellis.store.nodes import Node
from trellis.store.snapshots import Snapshot

RESTORE: Final = "events.restore"
_NAMED: Final = 8  # of those that come back or stay, the first are named
_LATER: Final = 20  # events since that are looked through
_SHIFTING: Final = frozenset({"position", "path", "url", "updatedAt"})  # what others change in a record, and the act itself
_PLACE: Final = frozenset({"parentId", "position", "path"})


@dataclass(frozen=True, slots=True)
class Lost:
    """A group that is gone, the lists that named it, and in how many of the records that come back."""

    name: str
    lists: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Left:
    """A record that undo leaves as it is."""

    resource: str
    id: int
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What undoing an event would do. `changes` tell what becomes of a record that is there, the rest of one that comes back.

    `gone` is what the event has made. Each tuple names the first few of what the count beside it is of. `version` changes with
    anything that the page tells.
    """

    record: Mapping[str, Any]
    back: bool
    where: str
    count: int
    below: tuple[str, ...]
    gone: tuple[str, ...]
    gone_count: int
    changes: tuple[Change, ...]
    moved: tuple[str, ...]
    moved_count: int
    again: tuple[tuple[str, str, int], ...]
    again_count: int
    left: tuple[Left, ...]
    left_count: int
    lost: tuple[Lost, ...]
    version: str


async def rehearsed(
    visit: Visit, kind: NodeKind, event: Mapping[str, Any], raw: Mapping[str, Any], *, placed: bool = False
) -> tuple[Plan, Mapping[str, Any] | None]:
    """Run it dry; give the plan with the record as it is now, if it is there. Raises Refused as the act itself would.

    `placed` says that the page asks for the parent: its choice makes no other plan.
    """
    answer = await visit.rehearse(RESTORE, raw, event["seq"])
    back = event["after"] is None
    now = None if back else (await visit.perform(kind.operation("get"), target=event["resourceId"])).value
    ids = answer["restored"]["ids"]
    left = answer["left"]["nodes"][:_NAMED]
    again = [(one["resource"], one["id"]) for one in answer["changed"]["nodes"][:_NAMED]]
    plan = Plan(
        record=answer["record"] or now or {},
        back=back,
        where=await _where(visit, kind, answer["record"]) if back and kind.ordered else "",
        count=answer["restored"]["count"],
        below=await _below(visit, kind, event["seq"], ids[: _NAMED + 1]) if back else (),
        gone=tuple([name for _, name in await named(visit, kind, answer["deleted"]["ids"][1 : _NAMED + 1])]),
        gone_count=answer["deleted"]["count"],
        changes=() if now is None else await _changes(visit, kind, event, now, answer, placed=placed),
        moved=tuple([name for _, name in await named(visit, kind, answer["moved"]["ids"][:_NAMED])]),
        moved_count=answer["moved"]["count"],
        again=tuple(await touched(visit, again)),
        again_count=answer["changed"]["count"],
        left=await _left(visit, left),
        left_count=answer["left"]["count"],
        lost=await _lost(visit, kind, event["seq"], answer["lostGroups"], back=back),
        version=_version(answer, now, placed=placed),
    )
    return plan, now


def _version(answer: Mapping[str, Any], now: Mapping[str, Any] | None, *, placed: bool) -> str:
    passing = _SHIFTING | ({"parentId"} if placed else set())
    states = [{name: value for name, value in (state or {}).items() if name not in passing} for state in (answer["record"], now)]
    rest = [answer[name] for name in ("restored", "deleted", "moved", "changed", "left", "lostGroups")]
    return compute_version(orjson.dumps([placed, states, rest], option=orjson.OPT_SORT_KEYS))


async def _where(visit: Visit, kind: NodeKind, record: Mapping[str, Any]) -> str:
    """Say where it would stand: under what, and behind which of those that are there."""
    place = record["position"]
    asked: dict[str, Any] = {"sortBy": "position", "perPage": 1, "page": max(1, place)}
    above = ""
    if kind.tree:
        asked["parentId"] = record["parentId"] or "root"
        path = record["path"].removesuffix(record["name"]).removesuffix(" > ")
        above = f"under {path}, " if path else "at the top level, "
    before = (await visit.perform(kind.operation("list"), asked)).value["results"] if place else []
    return f"{above}after {before[0]['name']}" if before else f"{above}as the first"


async def _below(visit: Visit, kind: NodeKind, seq: int, ids: list[int]) -> tuple[str, ...]:
    """Name the first of those that come back below the first of these ids, by their ways from there."""
    known = await visit.read(lambda tx: snapshots.find_names(tx, seq, kind.name, ids))
    ways: dict[int, str] = {}
    for number in ids[1:]:  # what stands above comes before what stands below it
        parent, name = known.get(number, (None, f"{kind.singular} {number}"))
        ways[number] = f"{ways[parent]} > {name}" if parent in ways else name
    return tuple(ways.values())


async def _changes(
    visit: Visit, kind: NodeKind, event: Mapping[str, Any], now: Mapping[str, Any], answer: Mapping[str, Any], *, placed: bool
) -> tuple[Change, ...]:
    """Tell from what to what each field goes. A password, of which nothing is shown, goes back if the event had changed it."""
    if not answer["restored"]["count"]:
        return ()
    after = answer["record"]
    names = told({"before": now, "after": after, "changed": changed_members(now, after)})
    names += [field.name for field in kind.secrets if field.name in event["changed"]]
    return contrast([n for n in names if not (placed and n in _PLACE)], now, after, kind, await groups_of(visit))


async def _left(visit: Visit, left: Iterable[Mapping[str, Any]]) -> tuple[Left, ...]:
    nodes = [(one["resource"], one["id"]) for one in left]
    names = {(resource, number): name for resource, name, number in await touched(visit, nodes)}

    def read(tx: Transaction) -> dict[tuple[str, int], str]:
        gone = {node: snapshots.find_latest(tx, *node) for node in nodes if node not in names}
        return {node: last.node.name for node, last in gone.items() if last is not None}

    names |= await visit.read(read)
    return tuple(
        Left(one["resource"], one["id"], names.get((one["resource"], one["id"]), str(one["id"])), one["why"]) for one in left
    )


async def _lost(visit: Visit, kind: NodeKind, seq: int, groups: Iterable[int], *, back: bool) -> tuple[Lost, ...]:
    """Say where the groups stood that are gone."""
    if not groups:
        return ()
    is_group = next(other for other in visit.house.gate.environment.kinds if other.is_group)
    gone = "deleted" if back else "changed"

    def read(tx: Transaction) -> tuple[Lost, ...]:
        kept = [one.node for one in snapshots.find_by_event(tx, seq) if one.kind == kind.name and one.change == gone]
        return tuple(_lost_one(kind, kept, group, snapshots.find_latest(tx, is_group.name, group)) for group in groups)

    return await visit.read(read)


def _lost_one(kind: NodeKind, kept: Iterable[Node], group: int, last: Snapshot | None) -> Lost:
    places = [lists_naming(kind, node, group) for node in kept]
    lists = tuple(dict.fromkeys(name for names in places for name in names))
    return Lost(f"with the id {group}" if last is None else last.node.name, lists, sum(map(bool, places)))


# --- why it cannot be done ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why an event cannot be undone, and what can be done instead.

    `purged` is true where what it needs is no longer kept. `differences` tell what has become of the record since; `later` are
    the events of it that can be undone first.
    """

    detail: str
    purged: bool = False
    undone_by: int | None = None
    deleted_by: int | None = None
    differences: tuple[Change, ...] = ()
    later: tuple[Mapping[str, Any], ...] = ()


async def obstacle(visit: Visit, kind: NodeKind | None, event: Mapping[str, Any] | None, refused: Refused) -> Obstacle:
    """Say what stands in the way of an undo that was refused."""
    facts = refused.facts
    if kind is None or event is None or "differences" not in facts:
        return Obstacle(refused.detail, purged=refused.status == 410, undone_by=facts.get("undoneBy"))
    differences = facts.get("differences", ())
    by_fields = differences and differences[0]["field"] != "children"
    return Obstacle(
        "Undoing it now would lose what was done since." if by_fields else refused.detail,
        deleted_by=facts.get("deletedBy"),
        differences=await _since(visit, kind, differences),
        later=() if "deletedBy" in facts else await _later(visit, event),
    )


async def _since(visit: Visit, kind: NodeKind, differences: Iterable[Mapping[str, Any]]) -> tuple[Change, ...]:
    """Draw the differences of a refusal as those of events are drawn."""
    states: dict[str, dict[str, Any]] = {"then": {}, "now": {}}
    names: list[str] = []
    for one in differences:
        name, _, option = one["field"].partition(".")
        names += [] if name in names else [name]
        for side, state in states.items():
            if side in one and option:
                state.setdefault(name, {})[option] = one[side]
            elif side in one:
                state[name] = await _parent(visit, kind, one[side]) if name == "parentId" else one[side]
    return contrast(names, states["then"], states["now"], kind, await groups_of(visit))


async def _parent(visit: Visit, kind: NodeKind, parent: int | None) -> str:
    if parent is None:
        return "the top level"
    found = await named(visit, kind, [parent])
    return found[0][1] if found else f"{kind.singular} {parent}, deleted since"


async def _later(visit: Visit, event: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Give the events that have changed the record since, be it that a delete elsewhere has moved it."""
    resource, node, seq = event["resource"], event["resourceId"], event["seq"]

    def read(tx: Transaction) -> list[Mapping[str, Any]]:
        found = (events.find(tx, later) for later in snapshots.find_later_events(tx, resource, node, seq, _LATER))
        return [serialize_event(one) for one in found if one is not None]

    since = await visit.read(read)
    standing = await standings(visit, since)
    return tuple(one for one in since if one["seq"] in standing and standing[one["seq"]].open)
