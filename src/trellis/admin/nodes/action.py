"""Other operations on a node: a page for each operation whose verb has a button, built from the operation's fields."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.nodes.picker import Picker, build_picker, is_search
from trellis.admin.nodes.tree import tree_address
from trellis.admin.page import PageRequest
from trellis.core.catalogue import Catalogue
from trellis.core.fields import ExternalId, Field, NodeId, ParentId, isolate
from trellis.core.nodes import NodeKind
from trellis.core.operation import Operation
from trellis.core.verbs import Verb
from trellis.errors import Refused
from trellis.sentences import say

_LABELS: Final = {"parentId": say("Under"), "position": say("Place among its siblings")}
_HELP: Final = {"position": say("Leave this empty to put it last; 0 puts it first.")}


class NodeAction(NamedTuple):
    """An operation with a button, and its verb."""

    operation: Operation
    verb: Verb


def find_actions(catalogue: Catalogue, kind: NodeKind) -> tuple[NodeAction, ...]:
    """Return the operations of a kind that have a button of their own on each node's page and row."""
    verbs = ((operation, operation.verb) for operation in catalogue.values() if operation.kind is kind)
    return tuple(NodeAction(operation, one) for operation, one in verbs if one is not None and one.button)


async def show(
    action: NodeAction, kind: NodeKind, request: PageRequest, record: Mapping[str, Any], form: Form | None = None
) -> Response:
    """Show the form for the operation."""
    form = form or Form(_fields(action.operation), {**record, "position": ""}, labels=_LABELS, help=_HELP)
    return request.page(
        "nodes/action.html",
        title=say("{button} {name}", button=say(action.verb.button), name=isolate(record["name"])),
        kind=kind,
        verb=action.verb,
        record=record,
        form=form,
        pickers=await _pickers(kind, request, form, record),
        back=await tree_address(request, kind, record),
    )


async def run(action: NodeAction, kind: NodeKind, request: PageRequest, record: Mapping[str, Any]) -> Response:
    """Run the operation, and show the record that results."""
    form = Form(_fields(action.operation), request.form, labels=_LABELS, help=_HELP)
    if is_search(request.form, _find_parents(form), "save"):
        return await show(action, kind, request, record, form)
    try:
        raw = {name: value for name, value in form.raw().items() if value != "" or form.widget(name) != "number"}
        perform = request.perform_once if action.verb.idempotency_key else request.perform
        result = await perform(action.operation.name, raw, record["id"])
    except Refused as refused:
        if refused.status == 404:
            raise
        return await show(action, kind, request, record, form.add_refusal(refused))
    shown = result.value if isinstance(result.value, Mapping) and "id" in result.value else record
    undo = result.event if action.verb.undone_by_deleting or action.verb.keeps_rows else None
    return request.redirect(
        await tree_address(request, kind, shown),
        say("{name} was {event}.", name=isolate(record["name"]), event=say(action.verb.event)),
        undo=undo,
    )


def _fields(operation: Operation) -> tuple[Field, ...]:
    """Return the fields of the form, without the write-only fields in which a program names nodes by ids."""
    return tuple(f for f in operation.fields if not f.read_only and not (f.write_only and isinstance(f.type, ExternalId | NodeId)))


def _find_parents(form: Form) -> list[str]:
    """Return the fields that name a parent."""
    return [f.name for f in form.fields.values() if isinstance(f.type, ParentId)]


async def _pickers(kind: NodeKind, request: PageRequest, form: Form, record: Mapping[str, Any]) -> dict[str, Picker]:
    """Build a picker for each field that names a parent."""
    typed = request.http.method == "POST"
    return {
        name: await build_picker(
            request,
            kind,
            name,
            request.form.get(name, "") if typed else str(record.get(name) or ""),
            label=_LABELS[name],
            none=say("The top level"),
        )
        for name in _find_parents(form)
    }
