"""What undoing an event would do, from a dry run, as the page describes it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from trellis.admin.events import MemberChange, compare_states, shown_members
from trellis.admin.nodes import fetch_groups, fetch_names, fetch_record_names, path_above
from trellis.admin.page import PageRequest
from trellis.core.events import changed_members
from trellis.core.fields import isolate
from trellis.core.nodes import NodeKind
from trellis.core.version import compute_version
from trellis.sentences import join, say

RESTORE: Final = "events.restore"
OUTDATED: Final = say("What would be undone has changed since this page was loaded. Check the updated preview below.")
_MAX_NAMES: Final = 8  # records that are named for each count
_CHANGED_BY_OTHERS: Final = frozenset({"position", "path", "url", "updatedAt"})  # and by undo itself
_PLACE: Final = frozenset({"parentId", "position", "path"})


@dataclass(frozen=True, slots=True)
class LostGroup:
    """A group that no longer exists, the permissions that named it, and the number of restored records in which they did."""

    name: str
    lists: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """A record that undo leaves as it is."""

    resource: str
    id: int
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What undoing an event would do: `changes` of an existing record, or, if `restores`, a restored record.

    Each tuple names the first few records of the count next to it: nodes `below` the record, nodes `deleted` because the event
    created them, children `moved` back under the record, nodes whose `permissions` get the group back, and `skipped` records.
    `version` changes with anything that the page shows.
    """

    record: Mapping[str, Any]
    restores: bool
    where: str
    count: int
    below: tuple[str, ...]
    deleted: tuple[str, ...]
    deleted_count: int
    changes: tuple[MemberChange, ...]
    moved: tuple[str, ...]
    moved_count: int
    permissions: tuple[tuple[str, str, int], ...]
    permissions_count: int
    skipped: tuple[SkippedRecord, ...]
    skipped_count: int
    lost: tuple[LostGroup, ...]
    version: str


async def plan_undo(
    request: PageRequest, kind: NodeKind, event: Mapping[str, Any], raw: Mapping[str, Any], *, asks_parent: bool = False
) -> tuple[UndoPlan, Mapping[str, Any] | None]:
    """Return the plan from a dry run of undo, and the record as it is now, if it exists. Raises Refused as undo itself would.

    `asks_parent`: the page asks for the parent, and the plan's version stays the same if another parent is chosen.
    """
    result = await request.dry_run(RESTORE, raw, event["seq"])
    restores = event["after"] is None
    now = None if restores else await request.fetch(kind.operation("get"), target=event["resourceId"])
    permissions = [(one["resource"], one["id"]) for one in result["changed"]["nodes"][:_MAX_NAMES]]
    moved = await fetch_names(request, kind, result["moved"]["ids"][:_MAX_NAMES])
    deleted = await fetch_names(request, kind, result["deleted"]["ids"][1 : _MAX_NAMES + 1])
    plan = UndoPlan(
        record=result["record"] or now or {},
        restores=restores,
        where=await _describe_place(request, kind, result["record"]) if restores and kind.ordered else "",
        count=result["restored"]["count"],
        below=await _names_below(request, kind, event["seq"], result["restored"]["ids"]) if restores else (),
        deleted=tuple(name for _, name in deleted),
        deleted_count=result["deleted"]["count"],
        changes=() if now is None else await _changes(request, kind, event, now, result, asks_parent=asks_parent),
        moved=tuple(name for _, name in moved),
        moved_count=result["moved"]["count"],
        permissions=tuple(await fetch_record_names(request, permissions)),
        permissions_count=result["changed"]["count"],
        skipped=await _describe_skipped(request, result["left"]["nodes"][:_MAX_NAMES]),
        skipped_count=result["left"]["count"],
        lost=await _lost_groups(request, event["seq"], result["lostGroups"]),
        version=_version(result, now, asks_parent=asks_parent),
    )
    return plan, now


def _version(result: Mapping[str, Any], now: Mapping[str, Any] | None, *, asks_parent: bool) -> str:
    ignored = _CHANGED_BY_OTHERS | ({"parentId"} if asks_parent else set())
    states = [{name: value for name, value in (state or {}).items() if name not in ignored} for state in (result["record"], now)]
    rest = [result[name] for name in ("restored", "deleted", "moved", "changed", "left", "lostGroups")]
    return compute_version(orjson.dumps([asks_parent, states, rest], option=orjson.OPT_SORT_KEYS))


async def _describe_place(request: PageRequest, kind: NodeKind, record: Mapping[str, Any]) -> str:
    """Describe where a record would be: under which node, and after which sibling."""
    position = record["position"]
    raw: dict[str, Any] = {"sortBy": "position", "perPage": 1, "page": max(1, position)}
    above = ""
    if kind.tree:
        raw["parentId"] = record["parentId"] or "root"
        path = path_above(record)
        above = say("under {path}, ", path=isolate(path)) if path else say("at the top level, ")
    before = (await request.fetch(kind.operation("list"), raw))["results"] if position else []
    if before:
        return say("{above}after {name}", above=above, name=isolate(before[0]["name"]))
    return say("{above}in first position", above=above)


async def _names_below(request: PageRequest, kind: NodeKind, seq: int, restored: list[int]) -> tuple[str, ...]:
    """Return the paths of the first few nodes that are restored below the first restored node, relative to that node."""
    ids = restored[: _MAX_NAMES + 1]
    deleted = await request.fetch("events.deleted_names", {"ids": ids}, seq)
    paths: dict[int, str] = {}
    for number in ids[1:]:  # parents come before their children
        node = deleted.get(number, {"parentId": None, "name": join((say(kind.singular), str(number)))})
        paths[number] = f"{paths[node['parentId']]} > {node['name']}" if node["parentId"] in paths else node["name"]
    return tuple(paths.values())


async def _changes(
    request: PageRequest,
    kind: NodeKind,
    event: Mapping[str, Any],
    now: Mapping[str, Any],
    result: Mapping[str, Any],
    *,
    asks_parent: bool,
) -> tuple[MemberChange, ...]:
    """Return how each field changes. A password, whose value is never shown, is restored if the event had changed it."""
    if not result["restored"]["count"]:
        return ()
    after = result["record"]
    names = shown_members({"before": now, "after": after, "changed": changed_members(now, after)})
    names += [field.name for field in kind.secrets if field.name in event["changed"]]
    shown = [name for name in names if not (asks_parent and name in _PLACE)]
    return compare_states(shown, now, after, kind, await fetch_groups(request))


async def _describe_skipped(request: PageRequest, left: Iterable[Mapping[str, Any]]) -> tuple[SkippedRecord, ...]:
    records = [(one["resource"], one["id"], one["why"]) for one in left]
    found = await fetch_record_names(request, [(resource, number) for resource, number, _ in records])
    names = {(resource, number): name for resource, name, number in found}
    for resource, number, _ in records:
        if (resource, number) not in names:
            names[resource, number] = await _last_name(request, resource, number) or str(number)
    return tuple(SkippedRecord(resource, number, names[resource, number], why) for resource, number, why in records)


async def _last_name(request: PageRequest, resource: str, number: int) -> str:
    last = await request.fetch("events.last_state", {"resource": resource, "resourceId": number})
    return "" if last is None else str(last["name"])


async def _lost_groups(request: PageRequest, seq: int, groups: list[int]) -> tuple[LostGroup, ...]:
    """Describe the groups that no longer exist, and the permissions that named them."""
    if not groups:
        return ()
    is_group = next(kind for kind in request.kinds if kind.is_group)
    lists = await request.fetch("events.lists_naming", {"ids": groups}, seq)
    names = {group: await _last_name(request, is_group.name, group) or say("with the id {id}", id=group) for group in groups}
    return tuple(LostGroup(names[group], tuple(lists[group]["lists"]), lists[group]["count"]) for group in groups)
