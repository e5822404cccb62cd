"""One webhook: its state, changing it, switching it on and off, a new secret, a test, deleting it."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.confirm import Confirmation
from trellis.admin.conflicts import Conflict, carry_version, compare_settings, update_if_unchanged
from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import Submitted
from trellis.admin.webhooks.form import WebhookForm, describe_events, describe_webhook
from trellis.admin.webhooks.index import show_secret
from trellis.core.fields import isolate
from trellis.core.subscriptions import is_webhook_widened
from trellis.core.webhooks import OVERLAP, SKIP, webhook_version
from trellis.errors import Refused
from trellis.sentences import mark, say

_HERE: Final = "/webhooks/{id:int}"
_SECTION: Final = "webhooks"
_MAX_ROWS: Final = 10
_HOURS: Final = (
    ("0", say("Immediately")),
    ("1", say("After an hour")),
    ("24", say("After a day")),
    ("72", say("After 3 days")),
    ("168", say("After 7 days")),
)
_MISSED: Final = (("0", say("Send them now, in order")), ("1", say("Skip them")))


async def fetch_webhook(request: PageRequest) -> dict[str, Any]:
    """Return the webhook that a path names, with a name, and its events in words. Raises Refused."""
    return describe_webhook(await request.fetch("webhooks.get", target=request.number("id")), request.gate.environment)


async def show(request: PageRequest) -> Response:
    """Show a webhook with the latest messages to it, and its latest events."""
    webhook = await fetch_webhook(request)
    latest = await request.fetch("deliveries.list", {"webhook": webhook["id"], "limit": _MAX_ROWS}, slow=True)
    events = await request.fetch("events.search", {"resource": "webhooks", "resourceId": webhook["id"], "limit": _MAX_ROWS})
    return request.page(
        "webhooks/show.html",
        title=webhook["name"],
        webhook=webhook,
        deliveries=latest["results"],
        events=events["results"],
    )


# --- changing -----------------------------------------------------------------------------------------------------


async def edit(request: PageRequest) -> Response:
    """Show the form with the webhook's settings."""
    webhook = await fetch_webhook(request)
    return _show_form(request, webhook, WebhookForm(request.gate.environment, webhook=webhook))


async def update(request: PageRequest) -> Response:
    """Change the webhook. Changes that send records elsewhere, more of them, or again, require the password first."""
    record = await request.fetch("webhooks.get", target=request.number("id"))
    webhook, form = describe_webhook(record, request.gate.environment), WebhookForm(request.gate.environment, typed=request.form)
    try:
        raw = form.settings()
        planned = await request.perform("webhooks.update", raw | {"dryRun": "1"}, webhook["id"])
        if is_webhook_widened(webhook, planned.value) or planned.value["enabled"] > webhook["enabled"]:
            request.require_recent_password()
        result = await update_if_unchanged(request, record, raw, "webhooks", webhook_version)
    except Conflict as conflict:
        theirs = _compare(request, form, conflict.record)
        return _show_form(request, {**webhook, **conflict.record}, form, theirs=theirs)
    except Refused as refused:
        return _show_form(request, webhook, form.add_refusal(refused))
    return request.redirect(f"/webhooks/{webhook['id']}", say("Saved.") if result.event else say("Nothing was changed."))


def _show_form(
    request: PageRequest,
    webhook: Mapping[str, Any],
    form: WebhookForm,
    *,
    theirs: tuple[tuple[str, str, str], ...] | None = None,
) -> Response:
    return request.page(
        "webhooks/edit.html",
        status=None if theirs is None else 409,
        title=say("Change {name}", name=isolate(webhook["name"])),
        webhook=webhook,
        form=form,
        theirs=theirs,
        version=carry_version(request, webhook_version(webhook), is_conflict=theirs is not None),
    )


def _compare(request: PageRequest, form: WebhookForm, saved: Mapping[str, Any]) -> tuple[tuple[str, str, str], ...]:
    """Compare what was saved in the meantime with what was typed."""

    def format_value(name: str, value: Any) -> str:
        if name == "events":
            return describe_events([value] if isinstance(value, str) else value, request.gate.environment) or say("nothing")
        return str(value) or say("none")

    return compare_settings(form, saved, form.settings(), format_value)


# --- off, and a test ----------------------------------------------------------------------------------------------


async def switch_off(request: PageRequest) -> Response:
    """Switch the webhook off, so that nothing is sent."""
    number = request.number("id")
    await request.perform("webhooks.update", {"enabled": "0"}, number)
    return request.redirect(
        f"/webhooks/{number}", say("The webhook was switched off. New events wait until it is switched on again.")
    )


async def test(request: PageRequest) -> Response:
    """Send a test message."""
    sent = (await request.perform_once("webhooks.test", {}, request.number("id"))).value
    return request.redirect(f"/deliveries/{sent['id']}", say("A test is being sent. Reload this page in a moment."))


# --- on, a new secret, and deleting -------------------------------------------------------------------------------


def _missed_form(typed: Submitted | None) -> Form:
    name, note = SKIP.name, say("Events that occurred while the webhook was off, except those that have been purged.")
    return Form(
        (SKIP,),
        typed or {name: "0"},
        choices={name: _MISSED},
        widgets={name: "radio"},
        labels={name: say("Missed events")},
        help={name: note},
    )


def _overlap_form(typed: Submitted | None) -> Form:
    name, note = (
        OVERLAP.name,
        say("Until then each message has two signatures, so that none is refused while you replace the old secret."),
    )
    return Form((OVERLAP,), typed, choices={name: _HOURS}, labels={name: say("The old secret expires")}, help={name: note})


_SWITCH_ON: Final = Confirmation(
    section=_SECTION,
    action="on",
    operation="webhooks.update",
    title=mark("Switch on {name}"),
    button=say("Switch on"),
    fetch=fetch_webhook,
    build_form=_missed_form,
    raw={"enabled": "1"},
    confirms=True,
    find_objection=lambda webhook: say("The webhook is already switched on.") if webhook["enabled"] else "",
    tell=lambda _, __: say("The webhook was switched on."),
)
_ROTATE: Final = Confirmation(
    section=_SECTION,
    action="rotate",
    operation="webhooks.rotate",
    title=mark("Rotate the secret of {name}"),
    button=say("Rotate and show the new secret"),
    fetch=fetch_webhook,
    build_form=_overlap_form,
    confirms=True,
    respond=lambda request, _, result: show_secret(request, result.value, "rotated"),
)
_DELETE: Final = Confirmation(
    section=_SECTION,
    action="delete",
    operation="webhooks.delete",
    deletes=True,
    title=mark("Delete {name}"),
    button=say("Delete the webhook"),
    tone="danger",
    fetch=fetch_webhook,
    tell=lambda webhook, _: say("{name} was deleted.", name=isolate(webhook["name"])),
)

PAGES: Final = (
    Page("GET", _HERE, show, _SECTION, needs=("webhooks.get",)),
    Page("GET", f"{_HERE}/edit", edit, _SECTION, needs=("webhooks.update",)),
    Page("POST", f"{_HERE}/edit", update, _SECTION, needs=("webhooks.update",)),
    Page("POST", f"{_HERE}/off", switch_off, _SECTION, needs=("webhooks.update",)),
    Page("POST", f"{_HERE}/test", test, _SECTION, needs=("webhooks.test",)),
    *_SWITCH_ON.pages,
    *_ROTATE.pages,
    *_DELETE.pages,
)
