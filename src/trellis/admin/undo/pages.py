"""Undoing an event: what it would do, or why it cannot be done and what can; and then the act."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.conflicts import whole
from trellis.admin.events import deletion
from trellis.admin.nodes import DO, shown_at
from trellis.admin.page import CSRF, Page, Visit
from trellis.admin.picker import Picker, pick
from trellis.admin.undo.plan import RESTORE, Obstacle, Plan, obstacle, rehearsed
from trellis.core.nodes import NodeKind
from trellis.errors import Refused

_TO: Final = "parentId"
_CHANGED: Final = "What would be undone has changed since this page was made. Look again: this is how it is now."
_PLACE: Final = frozenset({"parentId", "position"})


@dataclass(frozen=True, slots=True)
class Outlook:
    """An event that is to be undone: either with a plan, or with an obstacle.

    `picker` is there where a parent must be chosen: `needed` says why, and `needed_by` is the event that deleted the old one.
    """

    event: Mapping[str, Any] | None
    kind: NodeKind | None
    plan: Plan | None = None
    now: Mapping[str, Any] | None = None
    picker: Picker | None = None
    needed: str = ""
    needed_by: int | None = None
    obstacle: Obstacle | None = None


async def ask(visit: Visit) -> Response:
    """Show what undoing it would do."""
    return await _asked(visit, await _look(visit), 200)


async def undo(visit: Visit) -> Response:
    """Undo it, if that does what the page showed."""
    outlook, form = await _look(visit), visit.form
    if outlook.event is None or outlook.plan is None:
        return await _asked(visit, outlook, 409)
    if (unready := _unready(visit, outlook, outlook.plan)) is not None:
        return await _asked(visit, outlook, *unready)
    raw = {} if outlook.picker is None else {_TO: form.get(_TO, "")}
    expected = () if outlook.now is None else (whole(outlook.now),)
    try:
        answer = await visit.perform(RESTORE, raw, outlook.event["seq"], expected=expected)
    except Refused as refused:  # a stale form, or somebody was quicker by a moment
        said = _CHANGED if refused.status == 412 and not visit.stale else refused.detail
        return await _asked(visit, await _look(visit), 409, said)
    return visit.redirect(await _where_to(visit, outlook, answer.value), _done(outlook, answer.value))


def _unready(visit: Visit, outlook: Outlook, plan: Plan) -> tuple[int, str] | None:
    """Say why it is not done yet: a parent is still looked for, or the form is not what it should be."""
    form, picker = visit.form, outlook.picker
    asked = form.get(DO, "")
    if asked not in {"", "undo"} or (not asked and picker is not None and picker.changed):
        return 200, ""
    strange = [name for name in form if name not in {CSRF, _TO} and not name.startswith("_")]
    if strange:
        return 400, f"This form has no field '{strange[0][:60]}'. Nothing was undone."
    if picker is not None and picker.fault:
        return 400, ""
    return None if form.get("_plan", "") == plan.version else (409, _CHANGED)


# --- looking ------------------------------------------------------------------------------------------------------


async def _look(visit: Visit) -> Outlook:
    number = visit.number("id")
    try:
        event = (await visit.perform("events.get", target=number)).value
    except Refused as refused:
        if refused.status != 404:
            raise
        return await _purged(visit, number)
    kind = next((kind for kind in visit.house.gate.environment.kinds if kind.name == event["resource"]), None)
    try:
        if kind is None:  # refused, with the reason
            await visit.rehearse(RESTORE, target=number)
            raise LookupError(f"event {number} is of no kind, and could be undone")
        return await _planned(visit, kind, event)
    except Refused as refused:
        return Outlook(event, kind, obstacle=await obstacle(visit, kind, event, refused))


async def _purged(visit: Visit, number: int) -> Outlook:
    """Tell an event that is no longer kept from one that never was; the latter is refused as unknown."""
    try:
        await visit.rehearse(RESTORE, target=number)
    except Refused as refused:
        if refused.status != 410:
            raise
        return Outlook(None, None, obstacle=await obstacle(visit, None, None, refused))
    raise LookupError(f"event {number} is not there, and could be undone")


async def _planned(visit: Visit, kind: NodeKind, event: Mapping[str, Any]) -> Outlook:
    try:
        plan, now = await rehearsed(visit, kind, event, {})
    except Refused as refused:
        if "parentId" not in refused.facts:
            raise
        return await _placed(visit, kind, event, refused)
    return Outlook(event, kind, plan, now)


async def _placed(visit: Visit, kind: NodeKind, event: Mapping[str, Any], needed: Refused) -> Outlook:
    """Plan it for the parent that is chosen in the form, the top level at first."""
    chosen, fault = visit.form.get(_TO, ""), ""
    try:
        plan, now = await rehearsed(visit, kind, event, {_TO: chosen}, placed=True)
    except Refused as refused:
        fault = next((fault.detail for fault in refused.faults if fault.field == _TO), "")
        if not fault:
            raise
        plan, now = await rehearsed(visit, kind, event, {_TO: None}, placed=True)
    without = 0 if now is None else event["resourceId"]
    picker = await pick(visit, kind, _TO, chosen, label="Where it goes", nothing="The top level", without=without, fault=fault)
    gone = await deletion(visit, kind, needed.facts["parentId"])
    why = needed.detail.partition(" Say with ")[0] if gone is None else f"{gone.node.name}, under which it stood, is gone."
    return Outlook(event, kind, plan, now, picker, why, None if gone is None else gone.seq)


# --- answering ----------------------------------------------------------------------------------------------------


async def _asked(visit: Visit, outlook: Outlook, status: int, said: str = "") -> Response:
    event, there = outlook.event, ""
    if event is not None and outlook.kind is not None:
        there = await _record_at(visit, outlook.kind, event["resourceId"])
    seq = visit.number("id")
    return visit.page(
        "events/undo.html",
        status=status,
        title=f"Undo event {seq:,}",
        seq=seq,
        outlook=outlook,
        there=there,
        said=said,
    )


async def _record_at(visit: Visit, kind: NodeKind, node: int) -> str:
    try:
        await visit.perform(kind.operation("get"), target=node)
    except Refused:
        return ""
    return f"/{kind.name}/{node}"


async def _where_to(visit: Visit, outlook: Outlook, answer: Mapping[str, Any]) -> str:
    kind, event, record = outlook.kind, outlook.event, answer["record"]
    if kind is None or event is None:
        raise LookupError("what was undone had no plan")
    if record is None:
        return f"/{kind.name}"
    placed = outlook.now is None or not _PLACE.isdisjoint(event["changed"])
    return await shown_at(visit, kind, record) if placed else f"/{kind.name}/{record['id']}"


def _done(outlook: Outlook, answer: Mapping[str, Any]) -> str:
    gone = answer["deleted"]["count"]
    if outlook.now is not None and gone:
        name = outlook.now["name"]
        return f"{name} is gone again." if gone == 1 else f"{name} and {gone - 1:,} below it are gone again."
    name, count = answer["record"]["name"], answer["restored"]["count"]
    if outlook.now is not None:
        return f"{name} is as it was before event {answer['event']:,}." if count else f"{name} was like that already."
    said = f"{name} is back." if count == 1 else f"{name} and {count - 1:,} below it are back."
    if moved := answer["moved"]["count"]:
        said += f" {moved:,} that had moved away {'stands' if moved == 1 else 'stand'} under it again."
    if changed := answer["changed"]["count"]:
        said += f" It stands in the permissions of {changed:,} {'node' if changed == 1 else 'nodes'} again."
    if left := answer["left"]["count"]:
        said += f" {left:,} {'stays' if left == 1 else 'stay'} as changed since."
    return said


PAGES: Final = (
    Page("GET", "/events/{id:int}/undo", ask, "events"),
    Page("POST", "/events/{id:int}/undo", undo, "events"),
)
