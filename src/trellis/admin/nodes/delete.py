"""Deleting a node: the dry run first, what becomes of its children, and then the act."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.conflicts import own, whole
from trellis.admin.node_names import named, touched
from trellis.admin.nodes.form import DO
from trellis.admin.nodes.outline import shown_at
from trellis.admin.page import CSRF, StaleForm, Visit
from trellis.admin.picker import Picker, pick
from trellis.core.nodes import NodeKind
from trellis.core.version import compute_version, encode_json
from trellis.errors import Refused
from trellis.store import siblings

_FATE: Final = "deleteChildrenOrMove"
_NAMED: Final = 8  # of those that go or move, the first are named
_TAKEN: Final = frozenset({"fate", "to"})
_CHANGED: Final = "What would go has changed since this page was made. Look again: this is how it is now."


@dataclass(frozen=True, slots=True)
class Plan:
    """What deleting a node would do. `gone` are those below it, `children` those that could move, `changed` name the group."""

    gone: tuple[str, ...]
    gone_count: int
    children: tuple[str, ...]
    children_count: int
    changed: tuple[tuple[str, str, int], ...]
    changed_count: int
    version: str


async def ask(kind: NodeKind, visit: Visit) -> Response:
    """Show what goes and what moves."""
    number = visit.number("id")
    try:
        record = (await visit.perform(kind.operation("get"), target=number)).value
    except Refused as refused:
        if refused.status != 404:
            raise
        return _over(kind, visit)
    return await _asked(kind, visit, record, 200)


def _over(kind: NodeKind, visit: Visit) -> Response:
    if visit.stale:
        raise StaleForm
    return visit.redirect(f"/{kind.name}", f"This {kind.singular} has been deleted already.", "note")


async def _asked(kind: NodeKind, visit: Visit, record: Mapping[str, Any], status: int, said: str = "", fault: str = "") -> Response:
    number = record["id"]
    plan = None if number in kind.built_in else await _planned(kind, visit, record)
    picker: Picker | None = None
    if plan is not None and plan.children_count:
        chosen = visit.form.get("to", "")
        label = f"The {kind.singular} that they move to"
        picker = await pick(visit, kind, "to", chosen, label=label, without=number, fault=fault)
    return visit.page(
        "nodes/delete.html",
        status=status,
        title=f"Delete {record['name']}",
        kind=kind,
        record=record,
        plan=plan,
        picker=picker,
        fate=visit.form.get("fate", ""),
        seen=own(record),
        said=said,
        back=await shown_at(visit, kind, record),
    )


async def _planned(kind: NodeKind, visit: Visit, record: Mapping[str, Any]) -> Plan:
    """Run it dry, with everything below."""
    number = record["id"]
    plan = await visit.rehearse(kind.operation("delete"), {_FATE: -1} if kind.tree else {}, number)
    direct = await visit.read(lambda tx: siblings.find_children(tx, kind.name, number)) if kind.tree else []
    below = [one for one in plan["deleted"]["ids"] if one != number]
    changed = [(one["resource"], one["id"]) for one in plan["changed"]["nodes"]]
    told = {"gone": plan["deleted"], "children": direct, "changed": plan["changed"]}
    above = f"{record.get('path', '')} > "
    return Plan(
        gone=tuple([name.removeprefix(above) for _, name in await named(visit, kind, below[:_NAMED])]),
        gone_count=plan["deleted"]["count"] - 1,
        children=tuple([name.removeprefix(above) for _, name in await named(visit, kind, direct[:_NAMED])]),
        children_count=len(direct),
        changed=tuple(await touched(visit, changed[:_NAMED])),
        changed_count=plan["changed"]["count"],
        version=compute_version(encode_json(told)),
    )


async def delete(kind: NodeKind, visit: Visit) -> Response:
    """Delete it, if what goes is still what the page showed."""
    number, form = visit.number("id"), visit.form
    try:
        record = (await visit.perform(kind.operation("get"), target=number)).value
        if number in kind.built_in or form.get(DO, "delete") != "delete":
            return await _asked(kind, visit, record, 403 if number in kind.built_in else 200)
        plan = await _planned(kind, visit, record)
        if problem := _unsettled(kind, visit, record, plan):
            return await _asked(kind, visit, record, 409 if problem == _CHANGED else 400, problem)
        return await _deleted(kind, visit, record, plan)
    except Refused as refused:
        if refused.status != 404:
            raise
        return _over(kind, visit)


async def _deleted(kind: NodeKind, visit: Visit, record: Mapping[str, Any], plan: Plan) -> Response:
    form = visit.form
    raw = {} if not plan.children_count else {_FATE: -1 if form.get("fate") == "delete" else form.get("to", "")}
    try:
        answer = await visit.perform(kind.operation("delete"), raw, record["id"], expected=(whole(record),))
    except Refused as refused:
        if refused.status == 404:
            raise
        if refused.status == 412 and not visit.stale:
            return await _asked(kind, visit, record, 409, _CHANGED)
        fault = next((fault.detail for fault in refused.faults if fault.field == _FATE), "")
        return await _asked(kind, visit, record, 400, refused.detail, fault)
    said = _done(kind, record, plan, moved=form.get("fate") == "move")
    return visit.redirect(await _where_to(kind, visit, record), said, undo=answer.event)


def _unsettled(kind: NodeKind, visit: Visit, record: Mapping[str, Any], plan: Plan) -> str:
    """Say why it cannot be done yet."""
    form = visit.form
    strange = [name for name in form if name not in _TAKEN and name != CSRF and not name.startswith("_")]
    if strange:
        return f"This form has no field '{strange[0][:60]}'. Nothing was deleted."
    if form.get("_plan", "") != f"{own(record)}.{plan.version}":
        return _CHANGED
    if plan.children_count and form.get("fate") not in {"delete", "move"}:
        return "Choose what becomes of its children."
    if plan.children_count and form.get("fate") == "move" and not form.get("to"):
        return f"Choose the {kind.singular} that the children move to."
    return ""


def _done(kind: NodeKind, record: Mapping[str, Any], plan: Plan, *, moved: bool) -> str:
    said = f"{record['name']} is deleted."
    if plan.children_count and moved:
        said = f"{record['name']} is deleted; what stood under it has moved."
    elif plan.gone_count:
        said = f"{record['name']} and {plan.gone_count:,} below it are deleted."
    if kind.is_group and plan.changed_count:
        said += f" It was taken out of {plan.changed_count:,} nodes."
    return said


async def _where_to(kind: NodeKind, visit: Visit, record: Mapping[str, Any]) -> str:
    parent = record.get("parentId")
    if parent is None:
        return f"/{kind.name}"
    try:
        above = (await visit.perform(kind.operation("get"), target=parent)).value
    except Refused:
        return f"/{kind.name}"
    return await shown_at(visit, kind, above)
