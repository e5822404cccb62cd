"""Plans for changing many nodes: a dry run of the batch that changes them, compared with the nodes as they are."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from starlette.responses import Response

from trellis.admin import PREFIX
from trellis.admin.conflicts import PLACE
from trellis.admin.forms import Form
from trellis.admin.nodes import GroupNames, format_groups, format_value, node_version
from trellis.admin.page import PageRequest
from trellis.admin.submitted import ACTION, find_status
from trellis.core.fields import EVERYONE, isolate, parse_whole_number
from trellis.core.nodes import NodeKind
from trellis.core.version import compute_version, record_version
from trellis.errors import Refused
from trellis.sentences import Sentence, join, say, say_many

MOST: Final = 500  # nodes that are changed at once: undoing this takes up to twice as long, and has to fit into one write, too
BATCH: Final = "core.batch"
FROM: Final = "_from"  # the address of the page that the form was on
PLAN: Final = "_plan"  # the name of the version of a plan in its form
COUNT: Final = "_count"  # the name of the number of nodes in a plan, in its form
OUTDATED: Final = say(
    "What would be done has changed since this page was loaded. Nothing was changed. Check again: this is the current state."
)
_SHOWN: Final = 100  # rows
_LISTED: Final = 50  # nodes that are listed in a row
_PRECONDITION: Final = 412  # the status of a change of a record that is no longer as it was read
_LONGEST: Final = 80  # characters of a value
_LONGEST_ADDRESS: Final = 2000
_CHILDREN: Final = "children"  # in a record that was read with its tree: its version is not that of the node
_DELETED: Final = ("deleted", "changed")  # in the result of a delete: the nodes that it deletes or changes
_NAMED: Final = 4  # groups that are named in one difference

Record = Mapping[str, Any]
Bodies = Sequence[tuple[Record, Mapping[str, Any]]]  # nodes, each with the body of the operation that runs on it


@dataclass(frozen=True, slots=True)
class RecordItem:
    """One operation of a batch, with the record on which it runs as it is before the batch."""

    operation: str
    record: Record
    body: Mapping[str, Any]

    def serialize(self) -> dict[str, Any]:
        """Serialise the item as a batch accepts it."""
        whole = {"operation": self.operation, "id": self.record["id"], "body": dict(self.body)}
        return whole | ({"ifMatch": record_version(self.record)} if self._stays_as_read else {})

    @property
    def moves(self) -> bool:
        """Whether the item moves its record, and thereby siblings, which other items may be about."""
        return self._updates and not PLACE.isdisjoint(self.body)

    @property
    def _stays_as_read(self) -> bool:
        """Whether no other item can change the record: any change is then somebody else's."""
        return self._updates and not self.moves and _CHILDREN not in self.record

    @property
    def _updates(self) -> bool:
        return self.operation.endswith(".update")


Changes = tuple[tuple[str, str], ...]  # the differences of a record, by label


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """The changes that `count` records have in common, and the first of these records by path and address."""

    changes: Changes
    nodes: tuple[tuple[str, str], ...]
    count: int


@dataclass(frozen=True, slots=True)
class Write:
    """The operation that carries out plans: each of its `results` has an `event`. `is_undone`: these events can be undone.

    `form` has the labels by which faults name fields.
    """

    operation: str
    is_undone: bool = True
    form: Form | None = None


BATCHED: Final = Write(BATCH)


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What a batch would do to `count` nodes. `with_them` is how many other nodes are deleted with them.

    `rows` are the first `PlannedRow`s, or what the page of another operation lists, and `more` is the number of others. `version`
    differs if any of the nodes or what is done to them does. `items` are what is needed for this. An operation other than a batch
    is sent `raw`. `reason` is recorded in the events. `check` refuses results of the items that differ from those of the dry run.
    """

    items: tuple[RecordItem, ...]
    rows: tuple[Any, ...]
    count: int
    with_them: int
    version: str
    more: int = 0
    raw: Mapping[str, Any] | None = None
    reason: str = ""
    check: Callable[[Any], None] | None = None

    def serialize(self) -> dict[str, Any]:
        """Serialise the plan as the operation that carries it out accepts it."""
        return dict(self.raw) if self.raw is not None else _serialize_items(self.items)

    @property
    def all_count(self) -> int:
        """The number of nodes that change, including the nodes below deleted ones."""
        return self.count + self.with_them


def _serialize_items(items: Sequence[RecordItem]) -> dict[str, Any]:
    """Serialise items as a batch accepts them. Records that are moved are read at the end, when the others are in their places."""
    moved = [{"operation": f"{item.operation.partition('.')[0]}.get", "id": item.record["id"]} for item in items if item.moves]
    return {"operations": [*(item.serialize() for item in items), *moved]}


async def plan_batch(
    request: PageRequest, kind: NodeKind, verb: str, bodies: Bodies, groups: GroupNames, seen: str = ""
) -> BatchPlan:
    """Return what the operation with a verb would change if it ran on some nodes, from a dry run as one batch. Raises Refused.

    `seen` is part of the plan's version.
    """
    require_few(kind, len(bodies))
    if not bodies:
        return BatchPlan((), (), 0, 0, "")
    items = [RecordItem(kind.operation(verb), record, body) for record, body in bodies]
    results = (await request.dry_run(BATCH, _serialize_items(items)))["results"]
    plan = await asyncio.to_thread(_build_plan, kind, items, results, groups, seen)
    require_few(kind, plan.all_count)

    def check(done: Mapping[str, Any]) -> None:
        if _build_plan(kind, plan.items, done["results"], groups, seen).version != plan.version:
            raise Refused("PRECONDITION_FAILED", OUTDATED)

    return replace(plan, check=check)


def _build_plan(kind: NodeKind, items: Sequence[RecordItem], results: Sequence[Record], groups: GroupNames, seen: str) -> BatchPlan:
    rows: dict[Changes, list[tuple[str, str]]] = {}
    needed: list[RecordItem] = []
    parts: list[Any] = [seen]
    with_them = count = 0
    moved = iter(results[len(items) :])
    for item, own in zip(items, results, strict=False):
        result = (next(moved) if item.moves else own)["result"]
        changes, others = _describe(kind, item, result, groups)
        if changes or item.moves:  # without one of the moves, the others would end up elsewhere
            needed.append(item)
        if not changes:
            continue
        with_them += others
        count += 1
        parts.append([node_version(item.record), item.operation, item.body, changes, [result.get(name) for name in _DELETED]])
        path = str(item.record.get("path", item.record["name"]))
        rows.setdefault(changes, []).append((path, f"/{kind.name}/{item.record['id']}"))
    version = compute_version(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS))
    shown = tuple(PlannedRow(changes, tuple(nodes[:_LISTED]), len(nodes)) for changes, nodes in list(rows.items())[:_SHOWN])
    return BatchPlan(tuple(needed), shown, count, with_them, version, len(rows) - len(shown))


def require_few(kind: NodeKind, count: int) -> None:
    """Refuse more nodes than can be changed at once."""
    if count > MOST:
        raise Refused("BATCH_TOO_LARGE", tell_limit(kind))


def tell_limit(kind: NodeKind) -> Sentence:
    """Return a sentence that more nodes would change than can be changed at once."""
    return say(
        "More than {most:,} {title} would change, including those below them. That is the limit, so that a change can be "
        "undone in one step. Choose fewer.",
        most=MOST,
        title=kind.plural,
    )


def _describe(kind: NodeKind, item: RecordItem, result: Record, groups: GroupNames) -> tuple[Changes, int]:
    """Return the differences that an item makes, and how many other nodes are deleted with it."""
    return _DESCRIPTIONS.get(item.operation.rpartition(".")[2], _describe_update)(kind, item, result, groups)


def _describe_delete(_kind: NodeKind, _item: RecordItem, result: Record, _groups: GroupNames) -> tuple[Changes, int]:
    below = int(result["deleted"]["count"]) - 1
    changed = int(result["changed"]["count"])
    extent = say("with {below:,} below it", below=below) if below else say("deleted")
    if changed:
        extent = say_many(
            changed,
            "{told}; removed from the permissions of {count:,} node",
            "{told}; removed from the permissions of {count:,} nodes",
            told=extent,
        )
    return ((say("Delete"), extent),), below


def _describe_copy(_kind: NodeKind, _item: RecordItem, result: Record, _groups: GroupNames) -> tuple[Changes, int]:
    return ((say("Copy"), say("as {path}", path=isolate(str(result.get("path", result["name"]))))),), 0


def _describe_update(kind: NodeKind, item: RecordItem, result: Record, groups: GroupNames) -> tuple[Changes, int]:
    before = item.record
    changes = list(compare_permissions(kind, before, result, groups))
    old, new = str(before.get("path", before["name"])), str(result.get("path", result["name"]))
    if old != new:
        changes.append((say("Path"), f"{isolate(old)} → {isolate(new)}"))
    if before.get("position") != result.get("position") and before.get("parentId") == result.get("parentId"):
        changes.append((say("Place"), say("{old:,} → {new:,}", old=before["position"], new=result["position"])))
    elif before.get("parentId") != result.get("parentId") and old == new:
        changes.append((say("Place"), say("under another parent of the same name")))
    fields = (*kind.fields, kind.external_id_field)
    other = [f for f in fields if f.name in before and before[f.name] != result.get(f.name)]
    changes += [
        (say(f.label), join((_shorten(format_value(f, one.get(f.name), groups)) for one in (before, result)), " → ")) for f in other
    ]
    return tuple(changes), 0


_DESCRIPTIONS: Final[Mapping[str, Callable[[NodeKind, RecordItem, Record, GroupNames], tuple[Changes, int]]]] = {
    "delete": _describe_delete,
    "copy": _describe_copy,
}


def _shorten(text: str) -> str:
    return isolate(text) if len(text) <= _LONGEST else isolate(text[:_LONGEST] + "…")


def compare_permissions(kind: NodeKind, before: Record, after: Record, groups: GroupNames) -> list[tuple[str, str]]:
    """Return the differences in permissions in words, as (label of the option, difference)."""
    found: list[tuple[str, str]] = []
    for option in kind.options:
        old, new = before["permissions"].get(option, ()), after["permissions"].get(option, ())
        if old == new or (EVERYONE not in (old, new) and set(old) == set(new)):
            continue
        found.append((kind.option_label(option), _tell(old, new, groups)))
    return found


def _tell(old: Any, new: Any, groups: GroupNames) -> str:
    if EVERYONE in (old, new):
        return say("{new}; was: {old}", new=_name(new, groups), old=_name(old, groups))
    had, has = frozenset(old), frozenset(new)
    parts = (("+", [one for one in new if one not in had]), ("\N{MINUS SIGN}", [one for one in old if one not in has]))
    groups_changed = join((join((sign, _name(who, groups))) for sign, who in parts if who), "  ")
    return groups_changed if new else say("{told} (nobody is left)", told=groups_changed)


def _name(who: Any, groups: GroupNames) -> str:
    if who == EVERYONE or len(who) <= _NAMED + 1:
        return format_groups(who, groups)
    return say("{names} and {more:,} more", names=format_groups(who[:_NAMED], groups), more=len(who) - _NAMED)


async def leave_out_nested(request: PageRequest, kind: NodeKind, records: Sequence[Record]) -> list[Record]:
    """Return the given nodes without nodes that are below another one of them."""
    if not kind.tree or not records:
        return list(records)
    own = {record["id"] for record in records}
    paths = await request.fetch(f"{kind.name}.ancestors", {"ids": sorted(own)})
    return [record for record in records if own.isdisjoint(one["id"] for one in paths[record["id"]][:-1])]


async def fetch_below(request: PageRequest, kind: NodeKind, node: int) -> Iterator[Record]:
    """Return all nodes below a node, in the order of the tree. Raises Refused if there are too many."""
    tree = await request.fetch(f"{kind.name}.tree", {"root": node}, slow=True)
    return _walk(tree["children"])


def _walk(children: Sequence[Record]) -> Iterator[Record]:
    waiting = list(reversed(children))
    while waiting:
        one = waiting.pop()
        waiting += reversed(one["children"])
        yield one


# --- carrying it out ----------------------------------------------------------------------------------------------


async def plan_or_carry_out(
    request: PageRequest,
    make_plan: Callable[[], Awaitable[BatchPlan | None]],
    describe: Callable[[int], str],
    back: str,
    template: str,
    context: Mapping[str, Any],
    write: Write = BATCHED,
) -> Response:
    """Make a plan, and carry it out if the form confirms it; otherwise show it in a template, with the reason for any failure.

    The plan is carried out by one operation, as one change set. The response then redirects to `back`, with a link that undoes it.
    """
    plan, problem, status = None, "", 200
    try:
        plan = await make_plan()
        if plan is not None and plan.count and request.form.get(ACTION, "") == "do":
            if request.form.get(PLAN, "") == plan.version:
                result = await request.perform_once(write.operation, plan.serialize(), reason=plan.reason, check_plan=plan.check)
                return _respond(request, back, describe(plan.all_count), result.change_set, write)
            problem, status = OUTDATED, 409
    except Refused as refused:
        problem, status = explain(refused, write.form), find_status(refused)
        if plan is not None and problem == OUTDATED:
            with suppress(Refused):
                plan = await make_plan()
    return await request.large_page(
        template,
        status=status,
        plan=plan,
        problem=problem,
        back=back,
        **context,
    )


async def find_done(request: PageRequest, describe: Callable[[int], str], back: str, write: Write = BATCHED) -> Response | None:
    """Return the response again if this form was sent before and its plan was carried out then; otherwise None."""
    kept = await request.find_done(write.operation) if request.form.get(ACTION, "") == "do" else None
    if kept is None:
        return None
    last = max((one["event"] or 0 for one in kept["results"]), default=0)
    event = await request.fetch("events.get", target=last) if last else {}
    return _respond(request, back, describe(parse_whole_number(request.form.get(COUNT, "")) or 0), event.get("changeSet"), write)


def _respond(request: PageRequest, back: str, message: str, change_set: int | None, write: Write) -> Response:
    undo = None if change_set is None or not write.is_undone else (say("Undo…"), f"/change-sets/{change_set}/undo")
    return request.redirect(back, message, link=undo)


def read_former_address(request: PageRequest) -> str:
    """Return the address of the page that the form was on, as it was sent."""
    return request.form.get(FROM, "")[:_LONGEST_ADDRESS]


def find_way_back(request: PageRequest, path: str) -> str:
    """Return a path of the panel, with the query of the page that had the form if that page has the same path."""
    try:
        came = urlsplit(read_former_address(request))
    except ValueError:
        return path
    return f"{path}?{came.query}" if came.path == PREFIX + path and came.query and not came.netloc else path


def explain(refused: Refused, form: Form | None) -> str:
    """Return why a batch was refused: what was wrong with the operation in it that was refused."""
    inner = refused.facts.get("problem")
    if not isinstance(inner, Refused):
        return refused.detail
    if inner.status == _PRECONDITION:
        return OUTDATED  # its detail is about ETag and If-Match, which pages do not have
    return join(form.text_of(fault) for fault in inner.faults) if form and inner.faults else inner.detail
