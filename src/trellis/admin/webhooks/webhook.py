"""One webhook: how it does, changing it, switching it on and off, a new secret, a test, deleting it."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.conflicts import Conflict, whole
from trellis.admin.forms import Form
from trellis.admin.page import Page, Submitted, Visit
from trellis.admin.webhooks.form import WebhookForm, name_of, words_of
from trellis.admin.webhooks.index import shown_once
from trellis.core.gate import Result
from trellis.core.webhooks import OVERLAP, SETTINGS, SKIP, is_webhook_widened, webhook_version
from trellis.errors import Refused

_HERE: Final = "/webhooks/{id:int}"
_SECTION: Final = "webhooks"
_VERSION: Final = "_version"
_FEW: Final = 10
_TRIES: Final = 5
_HOURS: Final = (
    ("0", "At once"),
    ("1", "After an hour"),
    ("24", "After a day"),
    ("72", "After 3 days"),
    ("168", "After 7 days"),
)
_MISSED: Final = (("0", "Send it now, in its order"), ("1", "Pass over it"))


async def found(visit: Visit) -> dict[str, Any]:
    """Give the webhook that a path names, with a name and what it wants in words. Raises Refused."""
    webhook = (await visit.perform("webhooks.get", target=visit.number("id"))).value
    words = words_of(webhook["events"], visit.house.gate.environment)
    return {**webhook, "name": name_of(webhook), "words": words}


async def show(visit: Visit) -> Response:
    """Show a webhook with what was sent to it last."""
    webhook = await found(visit)
    latest = (await visit.perform("deliveries.list", {"webhook": webhook["id"], "limit": _FEW}, slow=True)).value
    events = await visit.perform("events.search", {"resource": "webhooks", "resourceId": webhook["id"], "limit": _FEW})
    return visit.page(
        "webhooks/show.html",
        title=webhook["name"],
        webhook=webhook,
        deliveries=latest["results"],
        events=events.value["results"],
    )


# --- changing -----------------------------------------------------------------------------------------------------


async def edit(visit: Visit) -> Response:
    """Show the form with what the webhook is."""
    webhook = await found(visit)
    return _form(visit, 200, webhook, WebhookForm(visit.house.gate.environment, webhook=webhook))


async def update(visit: Visit) -> Response:
    """Change the webhook; whatever sends records elsewhere, or more of them, asks for the password first."""
    webhook = await found(visit)
    form = WebhookForm(visit.house.gate.environment, typed=visit.form)
    seen = visit.form.get(_VERSION, "")
    try:
        raw = form.settings()
        planned = await visit.perform("webhooks.update", raw | {"dryRun": "1"}, webhook["id"])
        if is_webhook_widened(webhook, planned.value):
            visit.require_recent_password()
        answer = await _saved(visit, raw, seen)
    except Conflict as conflict:
        return _form(visit, 409, {**webhook, **conflict.theirs}, form, theirs=_theirs(visit, form, conflict.theirs))
    except Refused as refused:
        return _form(visit, 400, webhook, form.at_fault(refused), seen=seen)
    return visit.redirect(f"/webhooks/{webhook['id']}", "Saved." if answer.event else "Nothing was changed.")


async def _saved(visit: Visit, raw: Mapping[str, Any], seen: str) -> Result:
    """Save, if the settings are still those that the form showed. How delivery is may change meanwhile."""
    number = visit.number("id")
    for _ in range(_TRIES):
        record = (await visit.perform("webhooks.get", target=number)).value
        if webhook_version(record) != seen:
            raise Conflict(record)
        try:
            return await visit.perform("webhooks.update", raw, number, expected=(whole(record),))
        except Refused as refused:
            if refused.status != 412 or visit.stale:
                raise
    raise Refused("BUSY", "This webhook changes all the time. Nothing was saved: send it again.")


def _form(
    visit: Visit,
    status: int,
    webhook: Mapping[str, Any],
    form: WebhookForm,
    *,
    theirs: tuple[tuple[str, str, str], ...] = (),
    seen: str = "",
) -> Response:
    return visit.page(
        "webhooks/edit.html",
        status=status,
        title=f"Change {webhook['name']}",
        webhook=webhook,
        form=form,
        theirs=theirs,
        version=seen or webhook_version(webhook),
    )


def _theirs(visit: Visit, form: WebhookForm, saved: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Set what was saved meanwhile beside what was typed, where the two differ."""
    typed, environment = form.settings(), visit.house.gate.environment

    def said(name: str, value: Any) -> str:
        if name == "events":
            return words_of([value] if isinstance(value, str) else value, environment) or "nothing"
        if name == "enabled":
            return "yes" if value in (True, "1") else "no"
        return str(value) or "none"

    pairs = ((field.name, said(field.name, saved[field.name])) for field in SETTINGS)
    rows = ((form[name].label, text, said(name, typed.get(name, saved[name]))) for name, text in pairs)
    return tuple(row for row in rows if row[1] != row[2])


# --- on and off ---------------------------------------------------------------------------------------------------


async def ask_on(visit: Visit) -> Response:
    """Ask what shall become of what has happened since it was switched off."""
    return await _switching(visit, 200, _missed())


def _missed(typed: Submitted | None = None) -> Form:
    help_text = "What happened while it was off, as far as events are kept."
    return Form(
        (SKIP,),
        typed or {SKIP.name: "0"},
        choices={SKIP.name: _MISSED},
        widgets={SKIP.name: "radio"},
        labels={SKIP.name: "What it missed"},
        help={SKIP.name: help_text},
    )


async def _switching(visit: Visit, status: int, form: Form) -> Response:
    webhook = await found(visit)
    if webhook["enabled"]:
        return visit.redirect(f"/webhooks/{webhook['id']}", "It is switched on already.", "note")
    return visit.page("webhooks/on.html", status=status, title=f"Switch on {webhook['name']}", webhook=webhook, form=form)


async def switch_on(visit: Visit) -> Response:
    """Switch it on again."""
    form = _missed(visit.form)
    try:
        await visit.perform("webhooks.update", {**form.raw(), "enabled": "1"}, visit.number("id"))
    except Refused as refused:
        return await _switching(visit, 400, form.at_fault(refused))
    return visit.redirect(f"/webhooks/{visit.number('id')}", "It is switched on.")


async def switch_off(visit: Visit) -> Response:
    """Send nothing any more."""
    number = visit.number("id")
    await visit.perform("webhooks.update", {"enabled": "0"}, number)
    return visit.redirect(f"/webhooks/{number}", "It is switched off. What happens from now on waits.")


# --- a new secret, a test, the end --------------------------------------------------------------------------------


async def ask_rotate(visit: Visit) -> Response:
    """Ask for how long messages shall be signed with the old secret too."""
    visit.require_recent_password()
    return await _rotation(visit, 200, _overlap())


def _overlap(typed: Submitted | None = None) -> Form:
    return Form(
        (OVERLAP,),
        typed,
        choices={OVERLAP.name: _HOURS},
        labels={OVERLAP.name: "The old secret ends"},
        help={OVERLAP.name: "Until then each message has two signatures, so that nothing is refused while you put the new one in."},
    )


async def _rotation(visit: Visit, status: int, form: Form) -> Response:
    webhook = await found(visit)
    return visit.page(
        "webhooks/rotate.html",
        status=status,
        title=f"Rotate the secret of {webhook['name']}",
        webhook=webhook,
        form=form,
        once=visit.once(),
    )


async def rotate(visit: Visit) -> Response:
    """Make a new secret and show it, once."""
    visit.require_recent_password()
    form = _overlap(visit.form)
    try:
        rotated = await visit.perform_once("webhooks.rotate", form.raw(), visit.number("id"))
    except Refused as refused:
        return await _rotation(visit, 400, form.at_fault(refused))
    return shown_once(visit, rotated.value, "rotated")


async def test(visit: Visit) -> Response:
    """Send a message that says nothing."""
    sent = (await visit.perform("webhooks.test", target=visit.number("id"))).value
    return visit.redirect(f"/deliveries/{sent['id']}", "A test is on its way. Look again in a moment.")


async def ask_delete(visit: Visit) -> Response:
    """Say what goes with it."""
    webhook = await found(visit)
    return visit.page("webhooks/delete.html", title=f"Delete {webhook['name']}", webhook=webhook)


async def delete(visit: Visit) -> Response:
    """Delete it."""
    webhook = await found(visit)
    await visit.perform("webhooks.delete", target=webhook["id"])
    return visit.redirect("/webhooks", f"{webhook['name']} is deleted.")


PAGES: Final = (
    Page("GET", _HERE, show, _SECTION),
    Page("GET", f"{_HERE}/edit", edit, _SECTION),
    Page("POST", f"{_HERE}/edit", update, _SECTION),
    Page("GET", f"{_HERE}/on", ask_on, _SECTION),
    Page("POST", f"{_HERE}/on", switch_on, _SECTION),
    Page("POST", f"{_HERE}/off", switch_off, _SECTION),
    Page("GET", f"{_HERE}/rotate", ask_rotate, _SECTION),
    Page("POST", f"{_HERE}/rotate", rotate, _SECTION),
    Page("POST", f"{_HERE}/test", test, _SECTION),
    Page("GET", f"{_HERE}/delete", ask_delete, _SECTION),
    Page("POST", f"{_HERE}/delete", delete, _SECTION),
)
