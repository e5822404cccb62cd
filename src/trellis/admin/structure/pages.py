"""The page for structure documents: export as a file; plan a document, and apply exactly that plan."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import orjson
from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.admin.structure.plan import MAX_ROWS, describe_plan, list_problems
from trellis.admin.submitted import ACTION, Submitted, find_status
from trellis.core.fields import Field, Text, isolate
from trellis.core.keys import tidy_reason
from trellis.core.operation import RawText
from trellis.errors import Refused
from trellis.http.large import run_by_size
from trellis.sentences import drop_advice, join, mark, say

_SECTION: Final = "structure"
_HERE: Final = "/structure"
_PLAN: Final = "structure.plan"
_APPLY: Final = "structure.apply"
_EXPORT: Final = "structure.export"
_TOKEN: Final = "_plan"  # noqa: S105  # the name of the plan's token in the form
_MOST_BYTES: Final = 17 * 2**20  # of a form: a document may have 8 MiB, and a browser sends each line end as two bytes
_REASON: Final = Field("reason", Text(500), say("Other administrators see it in the event log."))
_DONE: Final = {
    "create": mark("{count:,} created"),
    "update": mark("{count:,} changed"),
    "move": mark("{count:,} moved"),
    "delete": mark("{count:,} deleted"),
}
_FORMATS: Final = (("yaml", "YAML", "application/yaml"), ("json", "JSON", "application/json"))
_LABELS: Final = {
    "document": say("Document"),
    "prune": say("Delete what is not in the document"),
    "maxDeletes": say("Delete at most"),
    "allowEmpty": say("Allow an empty document or section"),
    "adopt": say("Take over existing nodes"),
    "reason": say("Why"),
}
_HELP: Final = {
    "document": say("YAML or JSON, at most 8 MiB."),
    "prune": say("Only in the sections that the document has. What another document manages is kept."),
    "maxDeletes": say("Nodes. If more would be deleted, nothing is changed."),
    "allowEmpty": say("Otherwise an empty one is refused: files are often empty by mistake."),
    "adopt": say("Nodes without an external id whose path matches an entry, and nodes that other documents manage."),
}


async def show(
    request: PageRequest,
    form: Form | None = None,
    *,
    status: int | None = None,
    plan: Mapping[str, Any] | None = None,
    refused: Refused | None = None,
    outdated: Refused | None = None,
    export_refused: Refused | None = None,
) -> Response:
    """Show what can be exported, and the form for a document, with its plan or why there is none."""
    form = form or _build_form(request)
    if refused is not None:
        form.add_refusal(refused)
    return await request.large_page(
        "structure/index.html",
        status=status,
        title=say("Structure"),
        form=form,
        typed=bool(request.form),
        plan=plan,
        most_rows=MAX_ROWS,
        refused=refused and drop_advice(refused.detail),
        has_option=refused is not None and drop_advice(refused.detail) is not refused.detail,
        problems=() if refused is None else list_problems(refused),
        more_problems=0 if refused is None else refused.more_faults,
        outdated=outdated,
        events_since=() if outdated is None else outdated.facts.get("changes", ()),
        formats=_FORMATS,
        export_refused=export_refused,
        chosen=_read_sections(request),
        under=request.query.get("under", ""),
        chosen_format=request.query.get("format", _FORMATS[0][0]),
    )


async def export(request: PageRequest) -> Response:
    """Send the chosen sections, or everything below one node, as a file."""
    known = {kind.name for kind in request.kinds}
    form = request.query.get("format", "yaml")
    name, _, media_type = next((one for one in _FORMATS if one[0] == form), _FORMATS[0])
    chosen = _read_sections(request)
    every = not chosen or known <= set(chosen)
    under = request.query.get("under", "").strip()
    raw = {"format": name} | ({} if every else {"sections": chosen}) | ({"under": under} if under else {})
    try:
        value = await request.fetch(_EXPORT, raw, slow=True)
    except Refused as refused:
        return await show(request, status=refused.status, export_refused=refused)
    file = f"structure-{request.now[:10]}.{name}"
    return Response(
        await asyncio.to_thread(_encode, value),
        media_type=media_type,
        headers={"content-disposition": f'attachment; filename="{file}"'},
    )


def _read_sections(request: PageRequest) -> list[str]:
    return [value for name, value in request.http.query_params.multi_items() if name == "sections"]


def _encode(value: Any) -> bytes:
    return value.text.encode() if isinstance(value, RawText) else orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"


async def submit(request: PageRequest) -> Response:
    """Plan the document, or apply the plan that the page has shown."""
    form = _build_form(request, request.form)
    try:
        raw = await run_by_size(request.form.size, form.raw)
        reason = tidy_reason(raw.pop(_REASON.name, ""))
    except Refused as refused:
        return await show(request, form, refused=refused)
    token = request.form.get(_TOKEN, "")
    if request.form.get(ACTION) != "apply" or not token:
        return await _show_plan(request, form, raw)
    return await _apply(request, form, {**raw, "plan": token}, reason)


async def _apply(request: PageRequest, form: Form, raw: Mapping[str, Any], reason: str) -> Response:
    try:
        request.require_fresh_form()
        raw = await run_by_size(request.form.size, _parse_document, request, raw)
        if raw["document"].keys:
            request.require_recent_password()
        result = await request.perform(_APPLY, raw, reason=reason)
    except Refused as refused:
        if refused.faults or request.stale:
            return await show(request, form, refused=refused)
        return await _show_plan(request, form, {name: value for name, value in raw.items() if name != "plan"}, refused)
    if result.event is None:
        return request.redirect(_HERE, say("Nothing was changed: the community already matches the document."), "note")
    message = _tell(result.value)
    address = f"/events?changeSet={result.change_set}"
    if result.value.get("secrets"):
        return request.page(
            "structure/keys.html", title=say("The new keys"), keys=result.value["secrets"], told=message, address=address
        )
    return request.redirect(address, message)


def _parse_document(request: PageRequest, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the typed values with the document parsed, so that the password can be required if it contains keys.

    Raises Refused if a value is invalid.
    """
    given = request.catalogue.find(_APPLY).form.read(raw)
    given.raise_faults()
    return {**raw, "document": given.get("document")}


def _tell(result: Mapping[str, Any]) -> str:
    counts = {**result["counts"], "delete": result["deletes"]}
    listed = join((say(text, count=counts[action]) for action, text in _DONE.items() if counts[action]), ", ")
    return say("{name} was applied: {listed}.", name=isolate(result["name"]), listed=listed)


# --- responses ----------------------------------------------------------------------------------------------------


async def _show_plan(request: PageRequest, form: Form, raw: Mapping[str, Any], outdated: Refused | None = None) -> Response:
    """Show what would be done now; `outdated` is the reason why an earlier plan was not carried out."""
    try:
        result = (await request.perform(_PLAN, raw)).value
    except Refused as refused:
        return await show(request, form, refused=refused, outdated=outdated)
    if outdated is not None and not result["changes"] and (change_set := await _find_applied(request, outdated)) is not None:
        return request.redirect(f"/events?changeSet={change_set}", _tell_applied(request, result["name"], outdated))
    if any(kind not in {one.name for one in request.kinds} for kind in {change["resource"] for change in result["changes"]}):
        request.require_recent_password()
    plan = await describe_plan(request, result)
    return await show(request, form, status=None if outdated is None else find_status(outdated), plan=plan, outdated=outdated)


async def _find_applied(request: PageRequest, outdated: Refused) -> int | None:
    """Return the change set with all changes since a plan, if this administrator made it: the form was sent twice."""
    changes = outdated.facts.get("changes", ())
    if not changes:
        return None
    first, last = [await request.fetch("events.get", target=changes[index]["event"]) for index in (0, -1)]
    return first["changeSet"] if request.actor.is_named(first["actor"]) and first["changeSet"] == last["changeSet"] else None


def _tell_applied(request: PageRequest, name: str, outdated: Refused) -> str:
    message = say("{name} was applied: the community matches the document.", name=isolate(name))
    if any(one["resource"] not in {kind.name for kind in request.kinds} for one in outdated.facts["changes"]):
        return join((message, say("New keys were shown once and cannot be shown again: rotate those that you did not copy.")))
    return message


def _build_form(request: PageRequest, typed: Submitted | None = None) -> Form:
    fields = [field for field in request.catalogue.find(_PLAN).fields if field.name in _LABELS]
    return Form((*fields, _REASON), typed, labels=_LABELS, help={**_HELP, "reason": _REASON.doc})


PAGES: Final = (
    Page("GET", _HERE, show, _SECTION, needs=("structure.export",)),
    Page("POST", _HERE, submit, _SECTION, most_bytes=_MOST_BYTES, needs=("structure.plan",)),
    Page("GET", f"{_HERE}/export", export, _SECTION, needs=("structure.export",)),
)
