"""What else can be done to a node: a page for each operation whose verb has a button, drawn from what the operation takes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.nodes.form import DO
from trellis.admin.nodes.node import gone
from trellis.admin.nodes.outline import shown_at
from trellis.admin.page import Visit
from trellis.admin.picker import Picker, pick
from trellis.core.catalogue import Catalogue
from trellis.core.fields import Field, NodeId, ParentId
from trellis.core.nodes import NodeKind
from trellis.core.operation import Operation
from trellis.core.verbs import Verb
from trellis.errors import Refused


class Action(NamedTuple):
    """An operation with a button, and its verb."""

    operation: Operation
    verb: Verb


def actions_of(catalogue: Catalogue, kind: NodeKind) -> tuple[Action, ...]:
    """Give the operations of a kind that have a button of their own on each node's page and row."""
    verbs = ((operation, operation.verb) for operation in catalogue.values() if operation.kind is kind)
    return tuple(Action(operation, verb) for operation, verb in verbs if verb is not None and verb.button)


async def ask(action: Action, kind: NodeKind, visit: Visit) -> Response:
    """Ask how it is to be done."""
    if (record := await _found(kind, visit)) is None:
        return await gone(kind, visit)
    form = Form(_fields(action.operation), {**record, "position": ""}, labels=_LABELS)
    return await _asked(kind, action.verb, visit, record, form)


async def act(action: Action, kind: NodeKind, visit: Visit) -> Response:
    """Do it, and show the record that comes of it."""
    if (record := await _found(kind, visit)) is None:
        return await gone(kind, visit)
    form = Form(_fields(action.operation), visit.form, labels=_LABELS)
    pickers = await _pickers(kind, visit, form, record)
    if visit.form.get(DO, "") != "save" and any(picker.changed for picker in pickers.values()):
        return await _asked(kind, action.verb, visit, record, form)
    try:
        raw = {name: value for name, value in form.raw().items() if value != "" or form.widget(name) != "number"}
        run = visit.perform_once if action.verb.idempotency_key else visit.perform
        answer = await run(action.operation.name, raw, record["id"])
    except Refused as refused:
        if refused.status == 404:
            return await gone(kind, visit)
        return await _asked(kind, action.verb, visit, record, form.at_fault(refused), 400)
    now = answer.value if isinstance(answer.value, Mapping) and "id" in answer.value else record
    undo = answer.event if action.verb.undone_by_deleting or action.verb.keeps_rows else None
    return visit.redirect(await shown_at(visit, kind, now), f"{record['name']} was {action.verb.event}.", undo=undo)


_LABELS: Final = {"parentId": "Under", "position": "Place among its siblings"}


def _fields(operation: Operation) -> tuple[Field, ...]:
    """Choose the fields that a form asks for: not the siblings that a program names by their ids."""
    return tuple(f for f in operation.fields if not f.read_only and not (f.write_only and isinstance(f.type, NodeId)))


async def _found(kind: NodeKind, visit: Visit) -> Mapping[str, Any] | None:
    try:
        record: Mapping[str, Any] = (await visit.perform(kind.operation("get"), target=visit.number("id"))).value
    except Refused as refused:
        if refused.message != "INVALID_ID":
            raise
        return None
    return record


async def _pickers(kind: NodeKind, visit: Visit, form: Form, record: Mapping[str, Any]) -> dict[str, Picker]:
    """Make a search for each field that names a parent."""
    names = [f.name for f in form.fields.values() if isinstance(f.type, ParentId)]
    typed = visit.request.method == "POST"
    return {
        name: await pick(
            visit,
            kind,
            name,
            visit.form.get(name, "") if typed else str(record.get(name) or ""),
            label=_LABELS[name],
            nothing="The top level",
        )
        for name in names
    }


async def _asked(kind: NodeKind, verb: Verb, visit: Visit, record: Mapping[str, Any], form: Form, status: int = 200) -> Response:
    pickers = await _pickers(kind, visit, form, record)
    for fault in form.faults:
        if (name := form.place(fault)) in pickers:
            pickers[name] = replace(pickers[name], fault=form.sentence(fault))
    return visit.page(
        "nodes/action.html",
        status=status,
        title=f"{verb.button} {record['name']}",
        kind=kind,
        verb=verb,
        record=record,
        form=form,
        pickers=pickers,
        once=visit.once(),
        back=await shown_at(visit, kind, record),
    )
