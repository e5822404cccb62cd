"""One API key: what it does and may do, changing it, rotating it, taking grants away, revoking it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.chart import chart
from trellis.admin.forms import Form
from trellis.admin.keys.form import VERSION, KeyForm, tick
from trellis.admin.keys.grants import Grid
from trellis.admin.keys.index import shown_once
from trellis.admin.page import Page, Submitted, Visit
from trellis.core.fields import Field, IpAddress, Text
from trellis.core.hello import HELLO
from trellis.core.keys import OVERLAP, REASON, SETTINGS, is_key_widened, key_version
from trellis.errors import Refused

_HERE: Final = "/keys/{id:int}"
_SECTION: Final = "keys"
_FEW: Final = 10
_DAYS: Final = (("0", "At once"), ("1", "After a day"), *((str(n), f"After {n} days") for n in range(2, 8)))
_MAY: Final = (
    Field("operation", Text(100, 1), ""),
    Field("address", IpAddress(), ""),
    Field("when", Text(10), "", default="now"),
)


async def show(visit: Visit) -> Response:
    """Show a key with everything that is known of it."""
    number = visit.number("id")
    key = (await visit.perform("keys.get", target=number)).value
    grid = Grid(visit.house.gate.catalogue)
    summary = (await visit.perform("requests.summary", {"key": number}, slow=True)).value
    latest = await visit.perform("requests.list", {"key": number, "limit": _FEW}, slow=True)
    events = await visit.perform("events.search", {"resource": "keys", "resourceId": number, "limit": _FEW})
    days = [datetime.fromisoformat(day["at"]) for day in summary["days"]]
    uses = {use["operation"]: use for use in summary["operations"]}
    may, answer = await _may(visit, key, grid)
    return visit.page(
        "keys/show.html",
        title=key["name"],
        key=key,
        grid=grid,
        chart=chart(summary["days"], [(f"{day:%d}", f"{day.day} {day:%b %Y}") for day in days]),
        uses=uses,
        refused=[use for use in summary["operations"] if use["refused"] and use["operation"] in grid.names - set(key["grants"])],
        unused=summary["unused"],
        requests=latest.value["results"],
        events=events.value["results"],
        may=may,
        answer=answer,
    )


async def _may(visit: Visit, key: Mapping[str, Any], grid: Grid) -> tuple[Form, Mapping[str, Any] | None]:
    """Draw the form of 'may this key …?', and answer it if it was asked."""
    asked = Submitted(pair for pair in visit.query.items() if pair[0] in {field.name for field in _MAY})
    times = (("now", "Now"), ("end", "When it ends")) if key["expiresAt"] else (("now", "Now"),)
    form = Form(
        _MAY,
        asked or None,
        choices={"operation": [(box.name, box.name) for box in grid.boxes] + [(HELLO.name, HELLO.name)], "when": times},
        labels={"operation": "May it run", "address": "From the address", "when": "At what time"},
        id="may",
    )
    if not asked.get("operation"):
        return form, None
    raw = {"operation": asked["operation"], "address": asked.get("address", "")}
    if asked.get("when") == "end" and key["expiresAt"]:
        raw["at"] = key["expiresAt"]
    try:
        return form, (await visit.perform("keys.may", raw, key["id"])).value
    except Refused as refused:
        return form.at_fault(refused), None


# --- changing -----------------------------------------------------------------------------------------------------


async def edit(visit: Visit) -> Response:
    """Show the form with what the key is."""
    key = (await visit.perform("keys.get", target=visit.number("id"))).value
    if key["state"] == "revoked":
        return visit.redirect(f"/keys/{key['id']}", "A revoked key cannot be changed. Make a new one.", "note")
    return _form(visit, 200, key, KeyForm(Grid(visit.house.gate.catalogue), key=key))


async def update(visit: Visit) -> Response:
    """Change the key; whatever lets it do more asks for the password first."""
    number = visit.number("id")
    key = (await visit.perform("keys.get", target=number)).value
    form = KeyForm(Grid(visit.house.gate.catalogue), key=key, typed=visit.form)
    if tick(visit.form) is not None:
        return _form(visit, 200, key, form, seen=visit.form.get(VERSION, ""))
    seen = (visit.form.get(VERSION, "-"),)
    try:
        raw = form.settings()
        planned = await visit.perform("keys.update", raw | {"dryRun": "1"}, number, expected=seen)
        if is_key_widened(key, planned.value):
            visit.require_recent_password()
        answer = await visit.perform("keys.update", raw, number, expected=seen)
    except Refused as refused:
        if refused.status == 412 and not visit.stale:
            return _form(visit, 409, key, form, theirs=_theirs(form, key))
        return _form(visit, 400, key, form.at_fault(refused), seen=visit.form.get(VERSION, ""))
    return visit.redirect(
        f"/keys/{number}", "Saved. It holds from the next request on." if answer.event else "Nothing was changed."
    )


def _form(  # what can differ between showing it first, again, and after a conflict
    visit: Visit,
    status: int,
    key: Mapping[str, Any],
    form: KeyForm,
    *,
    theirs: tuple[tuple[str, str, str], ...] = (),
    seen: str = "",
) -> Response:
    return visit.page(
        "keys/edit.html",
        status=status,
        title=f"Change {key['name']}",
        key=key,
        form=form,
        grid=form.grid,
        theirs=theirs,
        version=seen or key_version(key),
    )


def _theirs(form: KeyForm, key: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Set what another administrator has saved meanwhile beside what was typed, where the two differ."""
    try:
        typed = form.settings()
    except Refused:
        typed = {}
    found: list[tuple[str, str, str]] = []
    for field in SETTINGS:
        saved = key["expiresAt" if field.name == "expires" else field.name]
        mine = typed.get(field.name, saved)
        if field.name == "grants":
            mine = sorted(mine)
        if _said(saved) != _said(mine):
            found.append((form[field.name].label, _said(saved), _said(mine)))
    return tuple(found)


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value) or "none"
    if value in (True, "1"):
        return "yes"
    if value in (False, "0"):
        return "no"
    return "none" if value in (None, "", "never") else str(value)


async def ungrant(visit: Visit) -> Response:
    """Take some grants away: those that the page has listed, and no others."""
    number, names = visit.number("id"), visit.form.all("operation")
    answer = await visit.perform("keys.update", {"ungrant": list(names)}, number, reason="Not used for 30 days")
    said = f"{len(names)} unused operations were taken away." if len(names) > 1 else "An unused operation was taken away."
    return visit.redirect(f"/keys/{number}", said if answer.event else "Nothing was changed.")


# --- a new secret, and the end ------------------------------------------------------------------------------------


async def ask_rotate(visit: Visit) -> Response:
    """Ask for how long the old secret shall live on."""
    visit.require_recent_password()
    return await _rotation(visit, 200, _overlap())


def _overlap(typed: Submitted | None = None) -> Form:
    return Form(
        (OVERLAP,),
        typed,
        choices={"overlapDays": _DAYS},
        labels={"overlapDays": "The old key ends"},
        help={"overlapDays": "Until then both work, so that nothing stops while you put the new one in its place."},
    )


async def _rotation(visit: Visit, status: int, form: Form) -> Response:
    key = (await visit.perform("keys.get", target=visit.number("id"))).value
    return visit.page(
        "keys/rotate.html",
        status=status,
        title=f"Rotate {key['name']}",
        key=key,
        form=form,
        once=visit.once(),
    )


async def rotate(visit: Visit) -> Response:
    """Make a new secret and show it, once."""
    visit.require_recent_password()
    form = _overlap(visit.form)
    try:
        rotated = await visit.perform_once("keys.rotate", form.raw(), visit.number("id"))
    except Refused as refused:
        return await _rotation(visit, 400, form.at_fault(refused))
    return shown_once(visit, rotated.value, "rotated")


async def ask_revoke(visit: Visit) -> Response:
    """Ask why the key shall end."""
    return await _revocation(visit, 200, _why())


def _why(typed: Submitted | None = None) -> Form:
    help_text = "For the others: it stands in the list of keys and in the event log."
    return Form((REASON,), typed, labels={"reason": "Why"}, help={"reason": help_text})


async def _revocation(visit: Visit, status: int, form: Form) -> Response:
    key = (await visit.perform("keys.get", target=visit.number("id"))).value
    return visit.page("keys/revoke.html", status=status, title=f"Revoke {key['name']}", key=key, form=form)


async def revoke(visit: Visit) -> Response:
    """End the key for good."""
    form, number = _why(visit.form), visit.number("id")
    try:
        raw = form.raw()
        await visit.perform("keys.revoke", raw, number, reason=raw.get("reason"))
    except Refused as refused:
        return await _revocation(visit, 400, form.at_fault(refused))
    return visit.redirect(f"/keys/{number}", "The key is revoked. Its next request will be refused.")


PAGES: Final = (
    Page("GET", _HERE, show, _SECTION),
    Page("GET", f"{_HERE}/edit", edit, _SECTION),
    Page("POST", f"{_HERE}/edit", update, _SECTION),
    Page("POST", f"{_HERE}/ungrant", ungrant, _SECTION),
    Page("GET", f"{_HERE}/rotate", ask_rotate, _SECTION),
    Page("POST", f"{_HERE}/rotate", rotate, _SECTION),
    Page("GET", f"{_HERE}/revoke", ask_revoke, _SECTION),
    Page("POST", f"{_HERE}/revoke", revoke, _SECTION),
)
