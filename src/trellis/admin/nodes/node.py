"""One node: creating it, showing it, changing it, and what happens when two administrators change it at once."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.conflicts import Conflict, fetch_last_event, fetch_last_events, update_if_unchanged
from trellis.admin.nodes.form import NodeForm, build_form, build_new_form
from trellis.admin.nodes.names import fetch_line
from trellis.admin.nodes.tree import tree_address
from trellis.admin.nodes.versions import ComparedField, LastChange, compare_versions, content_version, last_change
from trellis.admin.page import PageRequest
from trellis.core.fields import isolate
from trellis.core.nodes import NodeKind
from trellis.errors import Refused
from trellis.sentences import join, say

_MAX_EVENTS: Final = 6

KindPage = Callable[[NodeKind, PageRequest], Awaitable[Response]]
NodePage = Callable[[NodeKind, PageRequest, Mapping[str, Any]], Awaitable[Response]]


async def new(kind: NodeKind, request: PageRequest, node_form: NodeForm | None = None) -> Response:
    """Show the form of a new node."""
    node_form = node_form or await build_new_form(request, kind)
    node_form.ask_for_secrets()
    title = say("New {singular}", singular=kind.singular)
    return request.page("nodes/new.html", status=node_form.form.status, title=title, kind=kind, node_form=node_form)


async def create(kind: NodeKind, request: PageRequest) -> Response:
    """Create a node."""
    node_form = await build_new_form(request, kind, request.form)
    if node_form.is_search:
        return await new(kind, request, node_form)
    try:
        record = (await request.perform_once(kind.operation("create"), node_form.raw())).value
    except Refused as refused:
        node_form.form.add_refusal(refused)
        return await new(kind, request, node_form)
    message = say("{name} was created.", name=isolate(record["name"]))
    if kind.options and not any(record["permissions"].values()):
        message = join((message, say("Nobody can see it yet: its permissions are empty.")))
    return request.redirect(await tree_address(request, kind, record), message)


async def show(kind: NodeKind, request: PageRequest, record: Mapping[str, Any]) -> Response:
    """Show a node with its form; a script gets the record."""
    if request.wants_json:
        return request.json(record)
    return await _show(kind, request, record, await build_form(request, kind, record))


async def _show(
    kind: NodeKind,
    request: PageRequest,
    record: Mapping[str, Any],
    node_form: NodeForm,
    conflict: Sequence[ComparedField] | None = None,
    change: LastChange | None = None,
) -> Response:
    node_form.ask_for_secrets()
    return request.page(
        "nodes/show.html",
        status=node_form.form.status if conflict is None else 409,
        title=record["name"],
        kind=kind,
        record=record,
        line=await fetch_line(request, kind, record),
        node_form=node_form,
        version=content_version(record),
        tree_address=await tree_address(request, kind, record),
        events=await fetch_last_events(request, kind.name, record["id"], _MAX_EVENTS),
        conflict=conflict,
        change=change,
    )


async def update(kind: NodeKind, request: PageRequest, record: Mapping[str, Any]) -> Response:
    """Change a node."""
    node_form = await build_form(request, kind, record, request.form)
    if node_form.is_search:
        return await _show(kind, request, record, node_form)
    try:
        result = await update_if_unchanged(request, record, node_form.raw(), kind.name, content_version)
    except Conflict as conflict:
        return await _show_conflict(kind, request, conflict.record, node_form)
    except Refused as refused:
        if refused.status == 404:
            raise
        node_form.form.add_refusal(refused)
        return await _show(kind, request, record, node_form)
    return request.redirect(f"/{kind.name}/{record['id']}", say("Saved.") if result.event else say("Nothing was changed."))


async def _show_conflict(kind: NodeKind, request: PageRequest, theirs: Mapping[str, Any], node_form: NodeForm) -> Response:
    """Show both versions; the form below contains the typed values, and saving it overwrites the other version."""
    node_form.ask_for_secrets()
    change = await last_change(request, kind, theirs["id"])
    rows = compare_versions(node_form.compare(None if change is None else change.base, theirs))
    return await _show(kind, request, theirs, node_form, rows, change)


# --- a node that does not exist -----------------------------------------------------------------------------------


async def show_missing(kind: NodeKind, request: PageRequest, *, keeps: bool = False) -> Response:
    """Show that a node does not exist (any more), and who deleted it. Scripts get a refusal.

    `keeps`: what was typed describes a whole node, and another one can be created from it.
    """
    if request.wants_json:
        raise Refused(
            "INVALID_ID", say("This {singular} does not exist or has been deleted. Reload the page.", singular=kind.singular)
        )
    number = request.number("id")
    event = await fetch_last_event(request, kind.name, number)
    last = await request.fetch("events.last_state", {"resource": kind.name, "resourceId": number})
    return request.page(
        "nodes/missing.html",
        status=404,
        title=say("There is no such {singular}", singular=kind.singular),
        kind=kind,
        number=number,
        event=event if event is not None and event["after"] is None else None,
        undo=last["event"] if last and last["how"] == "deleted" else None,
        kept=[(name, value) for name, value in request.form.carried() if not name.startswith("_")] if keeps else [],
    )


def of_node(run: NodePage, when_missing: KindPage = show_missing) -> KindPage:
    """Return a page about the node that the path names, which runs with the node's record.

    `when_missing` runs instead if there is no such node, or if it is deleted while the page runs.
    """

    async def run_with_record(kind: NodeKind, request: PageRequest) -> Response:
        try:
            return await run(kind, request, await request.fetch(kind.operation("get"), target=request.number("id")))
        except Refused as refused:
            if refused.status != 404:
                raise
        return await when_missing(kind, request)

    return run_with_record
