"""Deleting a node: first the dry run and the choice for its children, then the delete itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.conflicts import fetch_last_event
from trellis.admin.nodes.names import fetch_names, fetch_record_names
from trellis.admin.nodes.picker import Picker, build_picker, is_search
from trellis.admin.nodes.tree import tree_address
from trellis.admin.nodes.versions import node_version
from trellis.admin.page import PageRequest
from trellis.admin.submitted import find_status
from trellis.core.fields import isolate
from trellis.core.nodes import NodeKind
from trellis.core.version import record_version
from trellis.errors import Refused
from trellis.sentences import join, say, say_many

_CHILDREN: Final = "deleteChildrenOrMove"
_MAX_NAMES: Final = 8  # deleted, moved or changed nodes that are named
_FIELDS: Final = frozenset({"children", "to"})
_OUTDATED: Final = say("What would be deleted has changed since this page was loaded. Check again: this is the current state.")


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """What deleting a node would do, with the first few names for each count.

    `below` are the nodes below it, `children` the nodes that could be moved, `changed` the nodes whose permissions name the group.
    `all` is what the `version` is computed from: all that is deleted, could be moved, or is changed.
    """

    below: tuple[str, ...]
    below_count: int
    children: tuple[str, ...]
    children_count: int
    changed: tuple[tuple[str, str, int], ...]
    changed_count: int
    version: str
    all: Mapping[str, Any] = field(default_factory=dict)


async def show(
    kind: NodeKind, request: PageRequest, record: Mapping[str, Any], status: int = 200, problem: str = "", fault: str = ""
) -> Response:
    """Show what would be deleted and moved."""
    number = record["id"]
    plan = None if number in kind.built_in else await _plan(kind, request, record)
    picker: Picker | None = None
    if plan is not None and plan.children_count:
        label = say("The {singular} to move them to", singular=kind.singular)
        chosen = request.form.get("to", "")
        picker = await build_picker(request, kind, "to", chosen, label=label, exclude=(number,), fault=fault)
    return request.page(
        "nodes/delete.html",
        status=status,
        title=say("Delete {name}", name=isolate(record["name"])),
        kind=kind,
        record=record,
        plan=plan,
        picker=picker,
        children=request.form.get("children", ""),
        problem=problem,
        back=await tree_address(request, kind, record),
    )


async def redirect_if_deleted(kind: NodeKind, request: PageRequest) -> Response:
    """Redirect from a node that does not exist (any more) to where it was, and say so."""
    if request.stale:
        request.require_fresh_form()
    last = await fetch_last_event(request, kind.name, request.number("id")) if request.form else None
    if last is not None and last["after"] is None and request.actor.is_named(last["actor"]):  # the same form was sent twice
        told = say("{name} was deleted.", name=isolate(last["before"]["name"]))
        return request.redirect(await _address_after(kind, request, last["before"]), told, undo=last["seq"])
    return request.redirect(f"/{kind.name}", say("This {singular} has already been deleted.", singular=kind.singular), "note")


async def _plan(kind: NodeKind, request: PageRequest, record: Mapping[str, Any]) -> DeletePlan:
    """Return the plan from a dry run that deletes the node with everything below it."""
    number = record["id"]
    result = await request.dry_run(kind.operation("delete"), {_CHILDREN: -1} if kind.tree else {}, number)
    children = await request.fetch(f"{kind.name}.children", target=number) if kind.tree else []
    all_ids = {"deleted": result["deleted"], "children": children, "changed": result["changed"]}
    plan = await describe_deletion(request, kind, record, result, children, len(children))
    return replace(plan, version=f"{node_version(record)}.{record_version(all_ids)}", all=all_ids)


def _check_plan(plan: DeletePlan, done: Mapping[str, Any]) -> None:
    """Refuse a delete if somebody has changed meanwhile what is deleted, moved or changed. `done` is its dry run."""
    moved, children = done["moved"], plan.all["children"]
    is_other = done["deleted"] != plan.all["deleted"] if moved["to"] is None else moved["count"] != len(children)
    if is_other or moved["ids"] != children[: len(moved["ids"])] or done["changed"] != plan.all["changed"]:
        raise Refused("PRECONDITION_FAILED", _OUTDATED)


async def describe_deletion(
    request: PageRequest,
    kind: NodeKind,
    record: Mapping[str, Any],
    result: Mapping[str, Any],
    children: Sequence[int],
    children_count: int,
) -> DeletePlan:
    """Describe what deleting a node does, from the result of a dry run. `children` are the nodes that could be, or are, moved."""
    below = [one for one in result["deleted"]["ids"] if one != record["id"]]
    changed = [(one["resource"], one["id"]) for one in result["changed"]["nodes"]]
    path = f"{record.get('path', '')} > "
    return DeletePlan(
        below=tuple([name.removeprefix(path) for _, name in await fetch_names(request, kind, below[:_MAX_NAMES])]),
        below_count=result["deleted"]["count"] - 1,
        children=tuple([name.removeprefix(path) for _, name in await fetch_names(request, kind, children[:_MAX_NAMES])]),
        children_count=children_count,
        changed=tuple(await fetch_record_names(request, changed[:_MAX_NAMES])),
        changed_count=result["changed"]["count"],
        version="",
    )


async def delete(kind: NodeKind, request: PageRequest, record: Mapping[str, Any]) -> Response:
    """Delete a node, unless what would be deleted has changed since the page showed it."""
    if record["id"] in kind.built_in or is_search(request.form, ("to",), "delete"):
        return await show(kind, request, record, 403 if record["id"] in kind.built_in else 200)
    plan = await _plan(kind, request, record)
    if problem := _find_problem(kind, request, plan):
        return await show(kind, request, record, 409 if problem == _OUTDATED else 400, problem)
    return await _delete(kind, request, record, plan)


async def _delete(kind: NodeKind, request: PageRequest, record: Mapping[str, Any], plan: DeletePlan) -> Response:
    form = request.form
    raw = {} if not plan.children_count else {_CHILDREN: -1 if form.get("children") == "delete" else form.get("to", "")}
    try:
        expected, check_plan = (record_version(record),), partial(_check_plan, plan)
        result = await request.perform(
            kind.operation("delete"), raw, record["id"], expected=expected, reason=request.reason, check_plan=check_plan
        )
    except Refused as refused:
        if refused.status == 404:
            raise
        problem = _OUTDATED if refused.status == 412 and not request.stale else refused.detail
        fault = next((fault.detail for fault in refused.faults if fault.field == _CHILDREN), "")
        return await show(kind, request, record, find_status(refused), problem, fault)
    message = _describe(kind, record, plan, moved=form.get("children") == "move")
    return request.redirect(await _address_after(kind, request, record), message, undo=result.event)


def _find_problem(kind: NodeKind, request: PageRequest, plan: DeletePlan) -> str:
    """Return why the node cannot be deleted yet; "" if it can."""
    form = request.form
    if unknown := form.unknown(_FIELDS):
        return say("This form has no field '{unknown}'. Nothing was deleted.", unknown=unknown[0][:60])
    if form.get("_plan", "") != plan.version:
        return _OUTDATED
    if plan.children_count and form.get("children") not in {"delete", "move"}:
        return say("Choose what happens to its children.")
    if plan.children_count and form.get("children") == "move" and not form.get("to"):
        return say("Choose the {singular} to move the children to.", singular=kind.singular)
    return ""


def _describe(kind: NodeKind, record: Mapping[str, Any], plan: DeletePlan, *, moved: bool) -> str:
    message = say("{name} was deleted.", name=isolate(record["name"]))
    if plan.children_count and moved:
        message = say("{name} was deleted, and its children were moved.", name=isolate(record["name"]))
    elif plan.below_count:
        message = say(
            "{name} and {below_count:,} below it were deleted.", name=isolate(record["name"]), below_count=plan.below_count
        )
    if kind.is_group and plan.changed_count:
        removed = say_many(
            plan.changed_count,
            "It was removed from the permissions of {count:,} node.",
            "It was removed from the permissions of {count:,} nodes.",
        )
        return join((message, removed))
    return message


async def _address_after(kind: NodeKind, request: PageRequest, record: Mapping[str, Any]) -> str:
    parent = record.get("parentId")
    try:
        above = None if parent is None else await request.find(kind.operation("get"), parent)
    except Refused:  # it cannot be read now: the delete is told in any case
        above = None
    return f"/{kind.name}" if above is None else await tree_address(request, kind, above)
