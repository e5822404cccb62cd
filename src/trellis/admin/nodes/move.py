"""Moving a node: by a form that works everywhere, and by dragging or the keyboard, for which a script asks here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.conflicts import SEEN, Conflict, guarded, last_change, own
from trellis.admin.nodes.form import DO
from trellis.admin.nodes.node import gone
from trellis.admin.nodes.outline import shown_at
from trellis.admin.page import CSRF, Visit
from trellis.admin.picker import Picker, pick
from trellis.core.nodes import NodeKind
from trellis.errors import Fault, Refused, refuse_faults

_SIBLINGS: Final = 500  # that are offered to stand before or after
_TAKEN: Final = frozenset({"parentId", "before", "after", "position", "place", "sibling"})
_PLACES: Final = frozenset({"first", "last", "before", "after", "at"})


@dataclass(frozen=True, slots=True)
class Where:
    """What the form says: the parent, and the place among its children."""

    parent: str
    place: str
    sibling: str
    position: str


async def ask(kind: NodeKind, visit: Visit) -> Response:
    """Ask where to."""
    record = await _found(kind, visit)
    if record is None:
        return await gone(kind, visit)
    return await _asked(kind, visit, record, _standing(record), 200)


async def move(kind: NodeKind, visit: Visit) -> Response:
    """Move it. A script gets the node as it stands now."""
    if (record := await _found(kind, visit)) is None:
        if visit.wants_json:
            raise Refused("INVALID_ID", f"This {kind.singular} has been deleted meanwhile. Load the page again.")
        return await gone(kind, visit)
    where = _wished(visit, record)
    try:
        _no_strangers(visit)
        if not visit.wants_json and await _looks(kind, visit, record, where):
            return await _asked(kind, visit, record, where, 200)
        raw = _asked_by_script(visit) if visit.wants_json else _raw(kind, where)
        answer = await guarded(visit, kind, record["id"], raw, place=True)
    except Conflict as conflict:
        return await _changed(kind, visit, conflict.theirs, where)
    except Refused as refused:
        if visit.wants_json:
            raise
        return await _asked(kind, visit, record, where, 400, refused=refused)
    now = answer.value
    said = f"{now['name']} has moved." if answer.event else f"{now['name']} stands there already."
    if visit.wants_json:
        told = {"id": now["id"], "parentId": now.get("parentId"), "position": now["position"]}
        return visit.json(told | {"version": own(now), "said": said, "moved": answer.event is not None})
    return visit.redirect(await shown_at(visit, kind, now), said)


async def _found(kind: NodeKind, visit: Visit) -> Mapping[str, Any] | None:
    try:
        record: Mapping[str, Any] = (await visit.perform(kind.operation("get"), target=visit.number("id"))).value
    except Refused as refused:
        if refused.status != 404:
            raise
        return None
    return record


async def _changed(kind: NodeKind, visit: Visit, theirs: Mapping[str, Any], where: Where) -> Response:
    change = await last_change(visit, kind, theirs["id"])
    who = f" by {change.who}" if change is not None else ""
    detail = f"{theirs['name']} was changed{who} since this page was made. Nothing was moved."
    if visit.wants_json:
        raise Refused("PRECONDITION_FAILED", f"{detail} Load the page again to see where it stands.")
    at = (
        f"It stands at “{theirs['path']}” now, as number {theirs['position']}"
        if kind.tree
        else f"It is number {theirs['position']} now"
    )
    refused = Refused("PRECONDITION_FAILED", f"{detail} {at}: look again, and move it if you still want to.")
    return await _asked(kind, visit, theirs, where, 409, refused=refused)


# --- what was typed -----------------------------------------------------------------------------------------------


def _standing(record: Mapping[str, Any]) -> Where:
    parent = record.get("parentId")
    return Where("" if parent is None else str(parent), "", "", "")


def _wished(visit: Visit, record: Mapping[str, Any]) -> Where:
    form = visit.form
    parent = form.get("parentId", _standing(record).parent)
    return Where(parent, form.get("place", ""), form.get("sibling", ""), form.get("position", ""))


async def _looks(kind: NodeKind, visit: Visit, record: Mapping[str, Any], where: Where) -> bool:
    """Say whether the form was sent to look for a parent or at its children, rather than to move."""
    asked = visit.form.get(DO, "")
    picked = None if asked else await _picker(kind, visit, record, where)
    return asked not in {"", "save"} or (picked is not None and picked.changed)


def _no_strangers(visit: Visit) -> None:
    strange = [name for name in visit.form if name not in _TAKEN and name != CSRF and not name.startswith("_")]
    if strange:
        faults = (Fault(name[:60], "UNKNOWN_PARAMETER", f"This form has no field '{name[:60]}'.") for name in strange)
        raise refuse_faults(tuple(faults))


def _asked_by_script(visit: Visit) -> dict[str, Any]:
    return {name: visit.form[name] for name in ("parentId", "before", "after", "position") if name in visit.form}


def _raw(kind: NodeKind, where: Where) -> dict[str, Any]:
    if where.place not in _PLACES:
        raise refuse_faults((Fault("place", "INVALID_VALUE", "Choose where it shall stand."),))
    raw: dict[str, Any] = {"parentId": where.parent} if kind.tree else {}
    if where.place in {"before", "after"}:
        if not where.sibling:
            raise refuse_faults((Fault("sibling", "INVALID_POSITION", f"Choose the {kind.singular} to stand {where.place}."),))
        raw[where.place] = where.sibling
    else:
        raw["position"] = {"first": 0, "last": 2**31 - 1}.get(where.place, where.position)
    return raw


# --- the form -----------------------------------------------------------------------------------------------------


async def _picker(kind: NodeKind, visit: Visit, record: Mapping[str, Any], where: Where, fault: str = "") -> Picker | None:
    if not kind.tree:
        return None
    return await pick(
        visit, kind, "parentId", where.parent, label="Under", nothing="The top level", without=record["id"], fault=fault
    )


async def _asked(
    kind: NodeKind, visit: Visit, record: Mapping[str, Any], where: Where, status: int, refused: Refused | None = None
) -> Response:
    faults = {fault.field: fault.detail for fault in refused.faults} if refused is not None else {}
    asked: dict[str, Any] = {"sortBy": "position", "perPage": _SIBLINGS + 1}
    if kind.tree:
        asked["parentId"] = where.parent or "root"
    try:
        found = (await visit.perform(kind.operation("list"), asked)).value
    except Refused:  # the parent makes no sense, which its fault says
        found = {"results": [], "totalResults": 0}
    siblings = [one for one in found["results"] if one["id"] != record["id"]][:_SIBLINGS]
    others = found["totalResults"] - (record["id"] in {one["id"] for one in found["results"]})
    return visit.page(
        "nodes/move.html",
        status=status,
        title=f"Move {record['name']}",
        kind=kind,
        record=record,
        where=where,
        picker=await _picker(kind, visit, record, where, faults.get("parentId", "")),
        siblings=siblings,
        others=others,
        seen_name=SEEN,
        seen=own(record),
        refused=refused,
        faults=faults,
        elsewhere=[fault.detail for fault in refused.faults if fault.field != "parentId"] if refused is not None else [],
        back=await shown_at(visit, kind, record),
    )
