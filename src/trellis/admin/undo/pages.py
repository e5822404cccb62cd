"""Undoing an event: a preview, or why it cannot be undone; and then the undo itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.nodes import Picker, build_picker, is_search, tree_address
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import find_status
from trellis.admin.undo.obstacle import Obstacle, find_obstacle
from trellis.admin.undo.of_key import KEYS, KeyPlan, plan_undo_of_key
from trellis.admin.undo.plan import OUTDATED, RESTORE, UndoPlan, plan_undo
from trellis.core.fields import isolate
from trellis.core.keys import key_version
from trellis.core.nodes import NodeKind
from trellis.core.version import record_version
from trellis.errors import Refused
from trellis.sentences import drop_advice, join, mark_many, say, say_many

_PARENT: Final = "parentId"
_PLACE: Final = frozenset({"parentId", "position"})
_ALSO: Final = {  # what else a restored node brings about, by the member of the result that counts it
    "moved": mark_many(
        "{count:,} node that had been moved away was moved back under it.",
        "{count:,} nodes that had been moved away were moved back under it.",
    ),
    "changed": mark_many(
        "It was added back to the permissions of {count:,} node.", "It was added back to the permissions of {count:,} nodes."
    ),
    "left": mark_many(
        "{count:,} has changed since and was left as it is.", "{count:,} have changed since and were left as they are."
    ),
}


@dataclass(frozen=True, slots=True)
class UndoPreview:
    """An event that may be undone, with a plan (`of_key` if the event is about a key) or with an obstacle.

    `picker` is set if a parent must be chosen: `why_parent` is the reason, and `parent_deleted_by` is the event that deleted the
    old parent.
    """

    event: Mapping[str, Any] | None
    kind: NodeKind | None
    plan: UndoPlan | None = None
    now: Mapping[str, Any] | None = None
    picker: Picker | None = None
    why_parent: str = ""
    parent_deleted_by: int | None = None
    obstacle: Obstacle | None = None
    of_key: KeyPlan | None = None


async def show(request: PageRequest) -> Response:
    """Show what undoing an event would do."""
    preview = await _preview(request)
    if preview.of_key is not None and preview.of_key.widens:
        request.require_recent_password()
    return await _show(request, preview, 200)


async def undo(request: PageRequest) -> Response:
    """Undo an event, if the plan is still the one that the page showed."""
    preview, form = await _preview(request), request.form
    if preview.event is not None and preview.of_key is not None:
        return await _undo_of_key(request, preview, preview.event, preview.of_key)
    if preview.event is None or preview.plan is None:
        return await _refuse(request, preview)
    if (problem := _find_problem(request, preview, preview.plan)) is not None:
        return await _show(request, preview, *problem)
    raw = {} if preview.picker is None else {_PARENT: form.get(_PARENT, "")}
    expected = () if preview.now is None else (record_version(preview.now),)
    try:
        result = (await request.perform(RESTORE, raw, preview.event["seq"], expected=expected)).value
    except Refused as refused:  # a stale form, or somebody else was faster
        return await _refuse(request, await _preview(request), refused)
    return request.redirect(await _address_after(request, preview, result), _describe(preview, result))


async def _undo_of_key(request: PageRequest, preview: UndoPreview, event: Mapping[str, Any], plan: KeyPlan) -> Response:
    """Undo a change of a key, if the plan is still the one that the page showed.

    If the key may do more afterwards, the password is required first.
    """
    if plan.widens:
        request.require_recent_password()
    if request.form.get("_plan", "") != plan.version:
        return await _show(request, preview, 409, OUTDATED)
    try:
        result = await request.perform(RESTORE, target=event["seq"], expected=(key_version(plan.record),))
    except Refused as refused:  # a stale form, or somebody else was faster
        return await _refuse(request, await _preview(request), refused)
    message = _describe_change(isolate(plan.record["name"]), event["seq"] if result.event else None)
    return request.redirect(f"/{KEYS}/{plan.record['id']}", message, undo=result.event)


async def _refuse(request: PageRequest, preview: UndoPreview, refused: Refused | None = None) -> Response:
    """Show why the event cannot be undone, unless this administrator has undone it: then the form was sent twice."""
    event, by = preview.event, None if preview.obstacle is None else preview.obstacle.undone_by
    done = None if by is None or request.stale else await request.fetch("events.get", target=by)
    if event is None or done is None or not request.actor.is_named(done["actor"]):
        if refused is None:
            return await _show(request, preview, 409)
        problem = OUTDATED if refused.status == 412 and not request.stale else refused.detail
        return await _show(request, preview, find_status(refused), problem)
    told = say("Event {event:,} was undone.", event=event["seq"])
    if preview.kind is None:
        return request.redirect(f"/{event['resource']}/{event['resourceId']}", told, undo=by)
    record = await request.find(preview.kind.operation("get"), event["resourceId"])
    return request.redirect(await _address_after(request, preview, {"record": record}), told)


def _find_problem(request: PageRequest, preview: UndoPreview, plan: UndoPlan) -> tuple[int, str] | None:
    """Return the status and the reason why the event cannot be undone yet; None if it can.

    The reason is "" if a parent is being searched for, or if the picker shows its own fault.
    """
    form, picker = request.form, preview.picker
    if is_search(form, () if picker is None else (picker.name,), "undo"):
        return 200, ""
    if unknown := form.unknown({_PARENT}):
        return 400, say("This form has no field '{unknown}'. Nothing was undone.", unknown=unknown[0][:60])
    if picker is not None and picker.fault:
        return 400, ""
    return None if form.get("_plan", "") == plan.version else (409, OUTDATED)


# --- the preview --------------------------------------------------------------------------------------------------


async def _preview(request: PageRequest) -> UndoPreview:
    number = request.number("id")
    try:
        event = await request.fetch("events.get", target=number)
    except Refused as refused:
        if refused.status != 404:
            raise
        return await _preview_purged(request, number)
    kind = next((kind for kind in request.kinds if kind.name == event["resource"]), None)
    if kind is not None:
        request.gate.authorise(kind.operation("restore"), request.actor)
    try:
        if event["resource"] == KEYS:
            return UndoPreview(event, None, of_key=await plan_undo_of_key(request, event))
        if kind is None:  # undo refuses it, with the reason
            await request.dry_run(RESTORE, target=number)
            raise LookupError(f"event {number} is of no kind, and could be undone")
        return await _preview_plan(request, kind, event)
    except Refused as refused:
        if refused.status >= 500:
            raise
        return UndoPreview(event, kind, obstacle=await find_obstacle(request, kind, event, refused))


async def _preview_purged(request: PageRequest, number: int) -> UndoPreview:
    """Preview a purged event; an event that never existed is refused as unknown."""
    try:
        await request.dry_run(RESTORE, target=number)
    except Refused as refused:
        if refused.status != 410:
            raise
        return UndoPreview(None, None, obstacle=await find_obstacle(request, None, None, refused))
    raise LookupError(f"event {number} does not exist, and could be undone")


async def _preview_plan(request: PageRequest, kind: NodeKind, event: Mapping[str, Any]) -> UndoPreview:
    try:
        plan, now = await plan_undo(request, kind, event, {})
    except Refused as refused:
        if "parentId" not in refused.facts:
            raise
        return await _preview_with_parent(request, kind, event, refused)
    return UndoPreview(event, kind, plan, now)


async def _preview_with_parent(request: PageRequest, kind: NodeKind, event: Mapping[str, Any], needed: Refused) -> UndoPreview:
    """Preview the undo for the parent that is chosen in the form; at first, the top level."""
    chosen, fault = request.form.get(_PARENT, ""), ""
    try:
        plan, now = await plan_undo(request, kind, event, {_PARENT: chosen}, asks_parent=True)
    except Refused as refused:
        fault = next((fault.detail for fault in refused.faults if fault.field == _PARENT), "")
        if not fault:
            raise
        plan, now = await plan_undo(request, kind, event, {_PARENT: None}, asks_parent=True)
    exclude = () if now is None else (event["resourceId"],)
    label, none = say("New parent"), say("The top level")
    picker = await build_picker(request, kind, _PARENT, chosen, label=label, none=none, exclude=exclude, fault=fault)
    last = await request.fetch("events.last_state", {"resource": kind.name, "resourceId": needed.facts["parentId"]})
    deleted = last if last is not None and last["how"] == "deleted" else None
    why = (
        drop_advice(needed.detail)
        if deleted is None
        else say("Its parent, {name}, has been deleted.", name=isolate(deleted["name"]))
    )
    return UndoPreview(event, kind, plan, now, picker, why, deleted and deleted["event"])


# --- responses ----------------------------------------------------------------------------------------------------


async def _show(request: PageRequest, preview: UndoPreview, status: int, problem: str = "") -> Response:
    event, record_path = preview.event, ""
    if event is not None and preview.kind is not None:
        is_there = await request.find(preview.kind.operation("get"), event["resourceId"]) is not None
        record_path = f"/{preview.kind.name}/{event['resourceId']}" if is_there else ""
    elif event is not None and event["resource"] == KEYS:
        record_path = f"/{KEYS}/{event['resourceId']}"
    seq = request.number("id")
    return request.page(
        "events/undo.html",
        status=status,
        title=say("Undo event {seq:,}", seq=seq),
        seq=seq,
        preview=preview,
        record_path=record_path,
        problem=problem,
    )


async def _address_after(request: PageRequest, preview: UndoPreview, result: Mapping[str, Any]) -> str:
    kind, event, record = preview.kind, preview.event, result["record"]
    if kind is None or event is None:
        raise LookupError("what was undone had no plan")
    if record is None:
        return f"/{kind.name}"
    moved = event["after"] is None or not _PLACE.isdisjoint(event["changed"])
    return await tree_address(request, kind, record) if moved else f"/{kind.name}/{record['id']}"


def _describe(preview: UndoPreview, result: Mapping[str, Any]) -> str:
    if preview.now is not None and (deleted := result["deleted"]["count"]):
        name = isolate(preview.now["name"])
        if deleted == 1:
            return say("{name} was deleted again.", name=name)
        return say("{name} and {deleted:,} below it were deleted again.", name=name, deleted=deleted - 1)
    name, count = isolate(result["record"]["name"]), result["restored"]["count"]
    if preview.now is not None:
        return _describe_change(name, result["event"] if count else None)
    restored = (
        say("{name} was restored.", name=name)
        if count == 1
        else say("{name} and {count:,} below it were restored.", name=name, count=count - 1)
    )
    return join((restored, *(say_many(count, *texts) for one, texts in _ALSO.items() if (count := result[one]["count"]))))


def _describe_change(name: str, event: int | None) -> str:
    """Return that a record was changed back to before an event, or, for None, that nothing was changed."""
    if event is None:
        return say("{name} was already like that.", name=name)
    return say("{name} is as it was before event {event:,}.", name=name, event=event)


PAGES: Final = (
    Page("GET", "/events/{id:int}/undo", show, "events", needs=("events.restore",)),
    Page("POST", "/events/{id:int}/undo", undo, "events", needs=("events.restore",)),
)
