"""One API key: its usage and grants, changing it, rotating it, removing grants, revoking it."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from starlette.responses import Response

from trellis.admin.chart import build_chart
from trellis.admin.confirm import Confirmation
from trellis.admin.conflicts import VERSION, carry_version, compare_settings, find_saved
from trellis.admin.forms import Form
from trellis.admin.keys.clients import build_snippets
from trellis.admin.keys.form import KeyForm, build_reason_form, pressed_button
from trellis.admin.keys.grants import GrantGrid
from trellis.admin.keys.index import find_base, show_secret
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import Submitted
from trellis.admin.webhooks import fetch_made_webhooks
from trellis.core.fields import Field, IpAddress, Text, isolate
from trellis.core.gate import Result
from trellis.core.hello import HELLO
from trellis.core.keys import (
    KEEP_WEBHOOKS,
    MOST_OVERLAP,
    OVERLAP,
    REASON,
    WHY_PAUSED,
    describe_bounds,
    is_key_widened,
    key_version,
    list_bounds,
    settle_spans,
)
from trellis.errors import Refused
from trellis.sentences import join, mark, say

_HERE: Final = "/keys/{id:int}"
_SECTION: Final = "keys"
_MAX_ROWS: Final = 10
_REFUSED: Final = 403
_NEW: Final = timedelta(days=1)  # for how long a new key's first call is shown
RESTORE_OF_KEY: Final = "events.restore_of_key"
_DAYS: Final = (
    ("0", say("Immediately")),
    ("1", say("After a day")),
    *((str(n), say("After {n} days", n=n)) for n in range(2, MOST_OVERLAP + 1)),
)
_GRANT: Final = "grant"  # in the address of a key's form: an operation to tick
_MAY: Final = (
    Field("operation", Text(100, 1), ""),
    Field("address", IpAddress(), ""),
    Field("when", Text(10), "", default="now"),
)


_SELECTION: Final = {
    "since": (
        "Since",
        say("Everything the key did at this time or later is undone, newest first. You see all of it before anything happens."),
    ),
    "after": (say("After event"), say("An event number: only later events are undone. Empty: all of them.")),
}


async def _fetch(request: PageRequest) -> dict[str, Any]:
    key: dict[str, Any] = await request.fetch("keys.get", target=request.number("id"))
    return key


async def show(request: PageRequest) -> Response:
    """Show a key with all its data."""
    key, grid = await _fetch(request), GrantGrid(request.catalogue)
    summary = await request.fetch("requests.summary", {"key": key["id"], "zone": request.clock.name}, slow=True)
    latest = await request.fetch("requests.list", {"key": key["id"], "limit": _MAX_ROWS}, slow=True)
    events = await request.fetch("events.search", {"resource": "keys", "resourceId": key["id"], "limit": _MAX_ROWS})
    first = _find_first_call(request, key, latest)
    days = [request.clock.at(day["at"]) for day in summary["days"]]
    may_form, answer = await _ask_may(request, key, grid)
    return request.page(
        "keys/show.html",
        title=key["name"],
        key=key,
        bounds=describe_bounds(key["bounds"], request.clock.short),
        grid=grid,
        chart=build_chart(summary["days"], [(request.language.day(day), request.language.date(day)) for day in days]),
        uses=summary["lastUses"],
        refused=_list_refused(grid, key, summary["operations"]),
        unused=summary["unused"],
        requests=latest["results"],
        first=first,
        events=events["results"],
        may=may_form,
        missing=_find_missing_grant(grid, key, request.query.get("operation")),
        first_missing=find_refused_grant(grid, key, first),
        answer=answer,
        selection=build_selection_form(request, RESTORE_OF_KEY),
        address=f"{find_base(request)}/mcp",
        snippets=build_snippets(find_base(request)),
    )


def _find_first_call(request: PageRequest, key: Mapping[str, Any], latest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first request of a key that was created recently; None if it is yet to come, empty if there is nothing to show."""
    if latest["results"]:
        is_new = key["createdAt"] > request.gate.ago(_NEW) and latest["next"] is None
        return dict(latest["results"][-1]) if is_new else {}
    waits = key["state"] == "active" and key["logRequests"] and not key["lastUsedAt"]
    return None if waits else {}


def build_selection_form(request: PageRequest, operation: str, typed: Submitted | None = None) -> Form:
    """Build the form that selects the events that an operation undoes: those since a time, or after an event."""
    fields = [field for field in request.catalogue.find(operation).fields if field.name in _SELECTION]
    labels = {name: label for name, (label, _) in _SELECTION.items()}
    notes = {name: note for name, (_, note) in _SELECTION.items()}
    return Form(fields, typed, labels=labels, help=notes, id="since", clock=request.clock)


async def _ask_may(request: PageRequest, key: Mapping[str, Any], grid: GrantGrid) -> tuple[Form, Mapping[str, Any] | None]:
    """Return the form of 'May this key …?', and the answer; None if the form was not sent or is refused."""
    typed = Submitted(pair for pair in request.query.items() if pair[0] in {field.name for field in _MAY})
    times = (("now", say("Now")), ("end", say("When it expires"))) if key["expiresAt"] else (("now", say("Now")),)
    form = Form(
        _MAY,
        typed or None,
        choices={"operation": [(box.name, box.name) for box in grid.boxes] + [(HELLO.name, HELLO.name)], "when": times},
        labels={"operation": say("Operation"), "address": say("From address"), "when": say("When")},
        id="may",
    )
    if not typed.get("operation"):
        return form, None
    raw = {"operation": typed["operation"], "address": typed.get("address", "")}
    if typed.get("when") == "end" and key["expiresAt"]:
        raw["at"] = key["expiresAt"]
    try:
        return form, await request.fetch("access.check", raw | {"holder": str(key["id"])})
    except Refused as refused:
        return form.add_refusal(refused), None


# --- changing -----------------------------------------------------------------------------------------------------


async def edit(request: PageRequest) -> Response:
    """Show the form with the key's settings."""
    key = await _fetch(request)
    if key["state"] == "revoked":
        return request.redirect(f"/keys/{key['id']}", say("A revoked key cannot be changed. Create a new one."), "note")
    grid, wanted = GrantGrid(request.catalogue), request.query.get(_GRANT, "")
    if wanted not in grid.names:
        return _show_form(request, key, KeyForm(grid, key=key, clock=request.clock))
    filled = {**key, "grants": sorted({*key["grants"], wanted})}
    return _show_form(request, key, KeyForm(grid, key=filled, clock=request.clock), wanted=wanted)


class MissingGrant(NamedTuple):
    """An operation that a key has not been granted, and the path of the key's form in which it is ticked."""

    operation: str
    path: str


def find_refused_grant(grid: GrantGrid, key: Mapping[str, Any], logged: Mapping[str, Any] | None) -> MissingGrant | None:
    """Return the grant that a refused request lacked; None if it was not refused for that, or the key has the grant by now."""
    return _find_missing_grant(grid, key, logged["operation"]) if logged and logged["status"] == _REFUSED else None


def _find_missing_grant(grid: GrantGrid, key: Mapping[str, Any], operation: str | None) -> MissingGrant | None:
    """Return a grant that an operation needs, and that the key lacks and can be given; None if there is none."""
    missing = grid.find_missing(operation, key["grants"]) if key["state"] != "revoked" else ""
    return MissingGrant(missing, f"/keys/{key['id']}/edit?{_GRANT}={missing}") if missing else None


def _list_refused(grid: GrantGrid, key: Mapping[str, Any], uses: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the grants that refused requests lacked, each with the number of these requests and the time of the last one."""
    found: dict[str, dict[str, Any]] = {}
    for use in uses:
        if use["refused"] and (missing := grid.find_missing(use["operation"], key["grants"])):
            one = found.setdefault(missing, {"operation": missing, "refused": 0, "refusedAt": ""})
            one["refused"] += use["refused"]
            one["refusedAt"] = max(one["refusedAt"], use["refusedAt"])
    return [found[name] for name in sorted(found)]


async def update(request: PageRequest) -> Response:
    """Change the key. Changes that allow it more require the password first."""
    key = await _fetch(request)
    form = KeyForm(GrantGrid(request.catalogue), key=key, typed=request.form, clock=request.clock)
    if pressed_button(request.form) is not None:
        return _show_form(request, key, form)
    expected = (request.form.get(VERSION, "") or "-",)
    try:
        raw = form.settings()
        planned = await request.perform("keys.update", raw | {"dryRun": "1"}, key["id"], expected=expected)
        if is_key_widened(key, planned.value):
            request.require_recent_password()
        result = await request.perform("keys.update", raw, key["id"], expected=expected)
    except Refused as refused:
        if refused.status == 412 and not request.stale:
            saved = await find_saved(request, key, form.settings(), _SECTION, key_version, settle_spans)
            if saved is not None:
                return _go_back(request, saved)
            return _show_form(request, key, form, theirs=await _compare(request, form, key))
        return _show_form(request, key, form.add_refusal(refused))
    return _go_back(request, result)


def _go_back(request: PageRequest, result: Result) -> Response:
    message = say("Saved. Changes apply from the next request.") if result.event else say("Nothing was changed.")
    return request.redirect(f"/keys/{request.number('id')}", message, undo=result.event)


def _show_form(
    request: PageRequest,
    key: Mapping[str, Any],
    form: KeyForm,
    theirs: tuple[tuple[str, str, str], ...] | None = None,
    wanted: str = "",
) -> Response:
    return request.page(
        "keys/edit.html",
        status=None if theirs is None else 409,
        title=say("Change {name}", name=isolate(key["name"])),
        key=key,
        form=form,
        theirs=theirs,
        wanted=wanted,
        version=carry_version(request, key_version(key), is_conflict=theirs is not None),
    )


async def _compare(request: PageRequest, form: KeyForm, key: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Compare what another administrator has saved meanwhile with what was typed; expiry and bounds in words, as they would be."""
    clock = request.clock

    def tell(one: Mapping[str, Any]) -> dict[str, str]:
        expires = clock.exact(one["expiresAt"]) if one["expiresAt"] else ""
        return {"expires": expires, "bounds": join(list_bounds(one["bounds"], clock.exact))}

    typed, planned = dict[str, Any](), key
    with suppress(Refused):
        typed = form.settings()
        planned = await request.dry_run("keys.update", typed, key["id"])
    return compare_settings(form, {**key, **tell(key)}, {**typed, **tell(planned)}, _format)


def _format(name: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in (sorted(value) if name == "grants" else value)) or say("none")
    if value in (None, "", "never"):
        return say("none")
    return value if isinstance(value, str) else str(value)  # a translatable sentence stays one


# --- rotating and revoking ----------------------------------------------------------------------------------------


def _overlap_form(typed: Submitted | None) -> Form:
    name, note = OVERLAP.name, say("Until then, both keys work, so nothing stops while you replace the old one.")
    return Form((OVERLAP,), typed, choices={name: _DAYS}, labels={name: say("The old key expires")}, help={name: note})


def _find_objection(key: Mapping[str, Any]) -> str:
    """Return why there is nothing to confirm: somebody may have revoked the key while its page was open. "" if there is."""
    return say("This key has already been revoked. Create a new one.") if key["state"] == "revoked" else ""


async def _fetch_with_webhooks(request: PageRequest) -> dict[str, Any]:
    """Return the key with the webhooks that it has made and that are on."""
    return {**await _fetch(request), "webhooks": await fetch_made_webhooks(request, "key", request.number("id"))}


_ROTATE: Final = Confirmation(
    section=_SECTION,
    action="rotate",
    operation="keys.rotate",
    title=mark("Rotate {name}"),
    button=say("Rotate and show the new key"),
    fetch=_fetch,
    build_form=_overlap_form,
    confirms=True,
    respond=lambda request, _, result: show_secret(request, result.value, "rotated"),
    find_objection=_find_objection,
)
_REVOKE: Final = Confirmation(
    section=_SECTION,
    action="revoke",
    operation="keys.revoke",
    title=mark("Revoke {name}"),
    button=say("Revoke the key"),
    tone="danger",
    fetch=_fetch_with_webhooks,
    build_form=partial(
        build_reason_form,
        (REASON, KEEP_WEBHOOKS),
        keeps=(say("Keep its webhooks on"), say("The webhooks continue to send events to the addresses set by the key.")),
    ),
    tell=lambda _, __: say("The key is revoked permanently. Its requests are refused from now on."),
    find_objection=_find_objection,
)

_PAUSE: Final = Confirmation(
    section=_SECTION,
    action="pause",
    operation="keys.pause",
    title=mark("Pause {name}"),
    button=say("Pause the key"),
    tone="danger",
    fetch=_fetch,
    build_form=partial(build_reason_form, (WHY_PAUSED,)),
    tell=lambda _, __: say("The key is paused. Its requests are refused from now on."),
    is_undone=True,
    find_objection=_find_objection,
)
_RESUME: Final = Confirmation(
    section=_SECTION,
    action="resume",
    operation="keys.resume",
    title=mark("Resume {name}"),
    button=say("Resume the key"),
    fetch=_fetch,
    confirms=True,
    tell=lambda _, __: say("The key may be used again."),
    is_undone=True,
    find_objection=_find_objection,
)

PAGES: Final = (
    Page("GET", _HERE, show, _SECTION, live=("requests/{id}", "events/keys/{id}"), needs=("keys.get", "requests.list")),
    Page("GET", f"{_HERE}/edit", edit, _SECTION, needs=("keys.update",)),
    Page("POST", f"{_HERE}/edit", update, _SECTION, needs=("keys.update",)),
    *_ROTATE.pages,
    *_REVOKE.pages,
    *_PAUSE.pages,
    *_RESUME.pages,
)
