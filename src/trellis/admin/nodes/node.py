"""One node: making it, showing it, changing it, and what happens when two change it at once."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.conflicts import Conflict, compare, content, guarded, last_change
from trellis.admin.events import deletion
from trellis.admin.nodes.form import NodeForm, blank, filled
from trellis.admin.nodes.outline import shown_at
from trellis.admin.page import Visit
from trellis.core.nodes import NodeKind
from trellis.errors import Refused

_FEW: Final = 6
_AGAIN: Final = "again"  # a form that was sent to a node that is gone, to be drawn as the form of a new one


async def new(kind: NodeKind, visit: Visit) -> Response:
    """Show the form of a new one."""
    return _new(kind, visit, await blank(visit, kind))


async def create(kind: NodeKind, visit: Visit) -> Response:
    """Make one."""
    made = await blank(visit, kind, visit.form)
    if made.searched:
        return _new(kind, visit, made)
    try:
        record = (await visit.perform(kind.operation("create"), made.raw())).value
    except Refused as refused:
        made.at_fault(refused)
        return _new(kind, visit, made, 400)
    said = f"{record['name']} is there now."
    if kind.options and not any(record["permissions"].values()):
        said += " Nobody can see it yet: its permissions are empty."
    return visit.redirect(await shown_at(visit, kind, record) if kind.ordered else f"/{kind.name}/{record['id']}", said)


def _new(kind: NodeKind, visit: Visit, made: NodeForm, status: int = 200) -> Response:
    return visit.page("nodes/new.html", status=status, title=f"New {kind.singular}", kind=kind, made=made)


async def show(kind: NodeKind, visit: Visit) -> Response:
    """Show one with its form; a script gets the record."""
    try:
        record = (await visit.perform(kind.operation("get"), target=visit.number("id"))).value
    except Refused as refused:
        if visit.wants_json or refused.status != 404:
            raise
        return await gone(kind, visit)
    if visit.wants_json:
        return visit.json(record)
    return await _shown(kind, visit, record, await filled(visit, kind, record), 200)


async def _shown(kind: NodeKind, visit: Visit, record: Mapping[str, Any], made: NodeForm, status: int, **more: Any) -> Response:
    asked = {"resource": kind.name, "resourceId": record["id"], "order": "newest", "limit": _FEW}
    events = (await visit.perform("events.list", asked)).value["results"]
    place = await shown_at(visit, kind, record)
    return visit.page(
        "nodes/show.html",
        status=status,
        title=record["name"],
        kind=kind,
        record=record,
        made=made,
        seen=content(record),
        place=place,
        events=events,
        **{"conflict": None, "change": None} | more,
    )


async def update(kind: NodeKind, visit: Visit) -> Response:
    """Change one."""
    number = visit.number("id")
    try:
        record = (await visit.perform(kind.operation("get"), target=number)).value
    except Refused as refused:
        if refused.status != 404:
            raise
        return await gone(kind, visit)
    made = await filled(visit, kind, record, visit.form)
    if made.searched:
        return await _shown(kind, visit, record, made, 200)
    try:
        answer = await guarded(visit, kind, number, made.raw())
    except Conflict as conflict:
        return await _side_by_side(kind, visit, conflict.theirs, made)
    except Refused as refused:
        if refused.status == 404:
            return await gone(kind, visit)
        made.at_fault(refused)
        return await _shown(kind, visit, record, made, 400)
    return visit.redirect(f"/{kind.name}/{number}", "Saved." if answer.event else "Nothing was changed.")


async def _side_by_side(kind: NodeKind, visit: Visit, theirs: Mapping[str, Any], made: NodeForm) -> Response:
    """Show both versions; the form below holds what was typed, and saving it goes over theirs."""
    change = await last_change(visit, kind, theirs["id"])
    rows = compare(made.compared(None if change is None else change.base, theirs))
    return await _shown(kind, visit, theirs, made, 409, conflict=rows, change=change)


async def gone(kind: NodeKind, visit: Visit) -> Response:
    """Say that a node is not there (any more), who deleted it, and keep what was typed for it."""
    number = visit.number("id")
    asked = {"resource": kind.name, "resourceId": number, "order": "newest", "limit": 1}
    events = (await visit.perform("events.list", asked)).value["results"]
    kept = [(name, value) for name, value in visit.form.carried() if not name.startswith("_")]
    return visit.page(
        "nodes/gone.html",
        status=404,
        title=f"This {kind.singular} is not there",
        kind=kind,
        number=number,
        event=events[0] if events and events[0]["after"] is None else None,
        deletion=await deletion(visit, kind, number),
        kept=kept,
        again=_AGAIN,
    )
