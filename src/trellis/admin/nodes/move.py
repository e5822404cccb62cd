"""Moving a node: with a form that works everywhere, or by dragging or the keyboard, where a script sends the request."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.conflicts import Conflict, update_if_unchanged
from trellis.admin.nodes.picker import Picker, build_picker, is_search
from trellis.admin.nodes.tree import tree_address
from trellis.admin.nodes.versions import last_change, node_version
from trellis.admin.page import PageRequest
from trellis.admin.submitted import find_status
from trellis.core.fields import MAX_INTEGER, drop_separators, isolate, parse_whole_number
from trellis.core.nodes import NodeKind
from trellis.errors import Fault, Refused, refuse_fault, refuse_faults
from trellis.sentences import adapt, join, say

_MAX_SIBLINGS: Final = 500  # siblings that are offered to move before or after
_AT_ONCE: Final = 50  # siblings that are read in one request, each with all its texts
_FIELDS: Final = frozenset({"parentId", "before", "after", "position", "place", "sibling"})
_PLACES: Final = frozenset({"first", "last", "before", "after", "at"})


async def show(
    kind: NodeKind, request: PageRequest, record: Mapping[str, Any], status: int = 200, refused: Refused | None = None
) -> Response:
    """Ask where to move a node."""
    faults = {fault.field: fault.detail for fault in refused.faults} if refused is not None else {}
    parent = _read_parent(request, record)
    siblings, others = await _fetch_siblings(kind, request, record, parent)
    picker: Picker | None = None
    if kind.tree:
        label, none, fault = say("Under"), say("The top level"), faults.get("parentId", "")
        picker = await build_picker(request, kind, "parentId", parent, label=label, none=none, exclude=(record["id"],), fault=fault)
    return request.page(
        "nodes/move.html",
        status=status,
        title=say("Move {name}", name=isolate(record["name"])),
        kind=kind,
        record=record,
        picker=picker,
        siblings=siblings,
        others=others,
        version=node_version(record),
        refused=refused,
        faults=join(detail for field, detail in faults.items() if field != "parentId"),
        back=await tree_address(request, kind, record),
    )


async def move(kind: NodeKind, request: PageRequest, record: Mapping[str, Any]) -> Response:
    """Move a node; the response to a script contains its new place."""
    try:
        _refuse_unknown_fields(request)
        if not request.wants_json and is_search(request.form, ("parentId",), "save"):
            return await show(kind, request, record)
        raw = _raw_of_script(request) if request.wants_json else _raw(kind, request, record)
        result = await update_if_unchanged(request, record, raw, kind.name, node_version)
    except Conflict as conflict:
        return await _show_conflict(kind, request, conflict.record)
    except Refused as refused:
        refusal = tell_person(refused)
        if request.wants_json or refused.status == 404:
            raise refusal from None
        return await show(kind, request, record, find_status(refused), refusal)
    moved, is_moved = result.value, result.event is not None
    message = (
        say("{name} has moved.", name=isolate(moved["name"]))
        if is_moved
        else say("{name} is already there.", name=isolate(moved["name"]))
    )
    if request.wants_json:
        place = {"id": moved["id"], "parentId": moved.get("parentId"), "position": moved["position"]}
        note = note_on_manager(kind, moved) if is_moved else ""
        return request.json(place | {"versions": [node_version(moved)], "message": message, "moved": is_moved, "note": note})
    return request.redirect(await tree_address(request, kind, moved), message)


def tell_person(refused: Refused) -> Refused:
    """Return a refusal whose sentences do not begin with the name under which a program sends the field."""
    if not refused.faults:
        return refused
    faults = [replace(fault, detail=adapt(fault.detail, partial(_leave_out, f"{fault.field}: "))) for fault in refused.faults]
    refusal = refuse_faults(*faults)
    refusal.more_faults = refused.more_faults
    return refusal


def _leave_out(name: str, detail: str, _find: Callable[[str], str]) -> str:
    rest = detail.removeprefix(name)
    return rest[:1].upper() + rest[1:]


def note_on_manager(kind: NodeKind, record: Mapping[str, Any]) -> str:
    """Return a sentence that the next apply of a document moves the node back; "" if no document manages it."""
    manager = record["managedBy"]
    return (
        say(
            "This {singular} is managed by the document “{manager}”: the next apply moves it back.",
            singular=kind.singular,
            manager=isolate(manager),
        )
        if manager
        else ""
    )


async def refuse_conflict(kind: NodeKind, request: PageRequest, theirs: Mapping[str, Any]) -> Refused:
    """Return the refusal of a script that moves a node which somebody has changed since its page was loaded."""
    detail = await _describe_conflict(kind, request, theirs)
    return Refused("PRECONDITION_FAILED", say("{detail} Reload the page to see where it is.", detail=detail))


async def _describe_conflict(kind: NodeKind, request: PageRequest, theirs: Mapping[str, Any]) -> str:
    change = await last_change(request, kind, theirs["id"])
    name = isolate(theirs["name"])
    return (
        say("{who} has changed {name} since this page was loaded. Nothing was moved.", name=name, who=isolate(change.who))
        if change is not None
        else say("{name} has been changed since this page was loaded. Nothing was moved.", name=name)
    )


async def _show_conflict(kind: NodeKind, request: PageRequest, theirs: Mapping[str, Any]) -> Response:
    if request.wants_json:
        raise await refuse_conflict(kind, request, theirs)
    detail = await _describe_conflict(kind, request, theirs)
    at = (
        say("It is now at “{path}”, position {position}", path=isolate(theirs["path"]), position=theirs["position"])
        if kind.tree
        else say("It is now at position {position}", position=theirs["position"])
    )
    refused = Refused("PRECONDITION_FAILED", say("{detail} {at}. Check whether you still want to move it.", detail=detail, at=at))
    return await show(kind, request, theirs, 409, refused)


# --- what was typed -----------------------------------------------------------------------------------------------


def _read_parent(request: PageRequest, record: Mapping[str, Any]) -> str:
    """Return the parent that was chosen; at first, the one that the node has."""
    return request.form.get("parentId", str(record.get("parentId") or ""))


def _refuse_unknown_fields(request: PageRequest) -> None:
    if names := [name[:60] for name in request.form.unknown(_FIELDS)]:
        raise refuse_faults(
            *(Fault(name, "UNKNOWN_PARAMETER", say("This form has no field '{name}'.", name=name)) for name in names)
        )


def _raw_of_script(request: PageRequest) -> dict[str, Any]:
    return {name: request.form[name] for name in ("parentId", "before", "after", "position") if name in request.form}


def _raw(kind: NodeKind, request: PageRequest, record: Mapping[str, Any]) -> dict[str, Any]:
    place, sibling = request.form.get("place", ""), request.form.get("sibling", "")
    if place not in _PLACES:
        raise refuse_fault("place", "INVALID_VALUE", say("Choose a place."))
    raw: dict[str, Any] = {"parentId": _read_parent(request, record)} if kind.tree else {}
    if place in {"before", "after"}:
        if not sibling:
            raise refuse_fault(
                "sibling",
                "INVALID_POSITION",
                say("Choose the {singular} to put it {place}.", singular=kind.singular, place=say(place)),
            )
        raw[place] = sibling
    else:
        raw["position"] = {"first": 0, "last": MAX_INTEGER}.get(place, drop_separators(request.form.get("position", "")))
    return raw


# --- its siblings -------------------------------------------------------------------------------------------------


async def _fetch_siblings(
    kind: NodeKind, request: PageRequest, record: Mapping[str, Any], parent: str
) -> tuple[list[dict[str, Any]], int]:
    """Return the first new siblings of a node in their order, each with its id and name only, and how many siblings there are."""
    raw: dict[str, Any] = {"sortBy": "position", "perPage": _AT_ONCE}
    if kind.tree:
        raw["parentId"] = parent or "root"
    siblings: list[dict[str, Any]] = []
    page = pages = 1
    others = 0
    while page <= pages and len(siblings) <= _MAX_SIBLINGS:
        try:
            found = await request.fetch(kind.operation("list"), {**raw, "page": page})
        except Refused:  # the parent is invalid, as its fault reports
            return [], 0
        siblings += [{"id": one["id"], "name": one["name"]} for one in found["results"]]
        page, pages, others = page + 1, found["totalPages"], found["totalResults"]
    is_there = not kind.tree or record["parentId"] == (parse_whole_number(parent) or None)
    return [one for one in siblings if one["id"] != record["id"]][:_MAX_SIBLINGS], others - is_there
