"""All saved filters; saving, opening, changing and deleting one."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.conflicts import VERSION, carry_version, compare_settings
from trellis.admin.filters.saved import OPENED
from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.core.fields import Field, isolate
from trellis.core.filters import LIST, LISTS, NAME, QUERY, SHARED
from trellis.core.version import fields_version
from trellis.errors import Refused
from trellis.sentences import say

_HERE: Final = "/filters"
_ONE: Final = f"{_HERE}/{{id:int}}"
_FIELDS: Final = (NAME, SHARED)
_LABELS: Final = {"name": say("Name"), "shared": say("Shared"), "query": say("Filter")}
_HELP: Final = {"name": "", "shared": say("Other administrators see it too. It shows them only what they may see.")}


async def index(request: PageRequest) -> Response:
    """List the administrator's own filters and those that others share."""
    found = await request.fetch("filters.list")
    return request.page("filters/index.html", title=say("Saved filters"), filters=found)


async def open_list(request: PageRequest) -> Response:
    """Open the list of a filter with that filter."""
    saved = await _fetch(request)
    return request.redirect(f"/{saved['list']}?{saved['query']}&{OPENED}={saved['id']}".replace("?&", "?"))


async def _fetch(request: PageRequest) -> Mapping[str, Any]:
    number = request.number("id")
    for saved in await request.fetch("filters.list"):
        if saved["id"] == number:
            found: Mapping[str, Any] = saved
            return found
    raise Refused(
        "INVALID_ID",
        say("There is no saved filter with the id {number}. It may have been deleted or is no longer shared.", number=number),
    )


async def create(request: PageRequest) -> Response:
    """Save the filter that a list shows."""
    raw = {field.name: request.form.get(field.name, "") for field in (NAME, LIST, QUERY, SHARED)}
    try:
        saved = (await request.perform_once("filters.create", raw | {"shared": raw["shared"] or "0"})).value
    except Refused as refused:
        return request.page(
            "filters/form.html",
            title=say("Save a filter"),
            form=_form(request).add_refusal(refused),
            hidden={name: raw[name] for name in ("list", "query")},
            to=_HERE,
            saved=None,
            version=None,
            theirs=None,
            back=raw["list"] if raw["list"] in LISTS else "",
        )
    return request.redirect(f"{_HERE}/{saved['id']}", say("The filter was saved as {name}.", name=isolate(saved["name"])))


def _form(request: PageRequest, values: Mapping[str, Any] | None = None, fields: Sequence[Field] = _FIELDS) -> Form:
    return Form(fields, request.form if values is None else values, labels=_LABELS, help=_HELP)


async def edit(request: PageRequest, form: Form | None = None, *, is_conflict: bool = False) -> Response:
    """Show the form that renames a filter, shares it, or deletes it."""
    saved = await _fetch(request)
    form = form or _form(request, saved)
    return request.page(
        "filters/form.html",
        status=409 if is_conflict else None,
        title=say("Change a saved filter"),
        form=form,
        hidden={},
        to=f"{_HERE}/{saved['id']}/edit",
        saved=saved,
        version=carry_version(request, fields_version(saved, form.fields), is_conflict=is_conflict),
        theirs=compare_settings(form, saved, form.raw(), lambda _, value: value) if is_conflict else None,
        back="filters",
    )


async def update(request: PageRequest) -> Response:
    """Rename a filter, change whether it is shared, or replace it with the filter that its list shows."""
    saved = await _fetch(request)
    form = _form(request, fields=(QUERY,) if QUERY.name in request.form else _FIELDS)
    try:
        await request.perform("filters.update", form.raw(), saved["id"], expected=tuple(request.form.all(VERSION)))
    except Refused as refused:
        if refused.status == 412 and not request.stale:
            return await edit(request, form, is_conflict=True)
        return await edit(request, form.add_refusal(refused))
    return request.redirect(f"{_HERE}/{saved['id']}" if QUERY.name in form.fields else _HERE, say("The filter was saved."))


async def delete(request: PageRequest) -> Response:
    """Delete a filter. If the form is sent again, the page reports that the filter was deleted."""
    try:
        told = say("The filter {name} was deleted.", name=isolate((await _fetch(request))["name"]))
    except Refused:  # if this form did not delete it, it is refused below
        told = say("It was deleted.")
    await request.perform_once("filters.delete", {}, request.number("id"))
    return request.redirect(_HERE, told)


PAGES: Final = (
    Page("GET", _HERE, index, needs=("filters.list",)),
    Page("POST", _HERE, create, needs=("filters.create",)),
    Page("GET", _ONE, open_list, needs=("filters.list",)),
    Page("GET", f"{_ONE}/edit", edit, needs=("filters.update",)),
    Page("POST", f"{_ONE}/edit", update, needs=("filters.update",)),
    Page("POST", f"{_ONE}/delete", delete, needs=("filters.delete",)),
)
