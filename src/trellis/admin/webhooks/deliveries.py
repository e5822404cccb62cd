"""Deliveries to webhooks: searching them, one with its attempts, and resending one or all failed ones."""

from datetime import timedelta
from typing import Any, Final

import orjson
from starlette.responses import Response

from trellis.admin.filters import fetch_filtered
from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import Submitted
from trellis.admin.webhooks.names import fetch_webhooks, webhook_name
from trellis.admin.webhooks.webhook import fetch_webhook
from trellis.core.fields import Field, Text, isolate, parse_whole_number, shift_timestamp
from trellis.core.webhooks import FAILED_SINCE, FILTERS, TEST
from trellis.errors import Refused
from trellis.sentences import say, say_many

_HERE: Final = "/deliveries"
_RESEND: Final = "/webhooks/{id:int}/redeliver"
_SECTION: Final = "webhooks"
_BEFORE: Final = Field("before", Text(20), "")
_STATES: Final = (("", say("Any state")), ("waiting", say("Waiting")), ("delivered", say("Delivered")), ("failed", say("Failed")))
_MAX_BODY: Final = 65_536  # characters shown


async def index(request: PageRequest) -> Response:
    """Search the deliveries."""
    names = {webhook["id"]: webhook["name"] for webhook in await fetch_webhooks(request)}
    listed = await fetch_filtered(
        request,
        "deliveries.list",
        (*FILTERS, _BEFORE),
        choices={
            "webhook": [("", say("Any webhook")), *((number, f"{isolate(name)} ({number})") for number, name in names.items())],
            "state": _STATES,
            "type": [("", say("Anything")), *((name, name) for name in (*request.gate.environment.event_types, TEST))],
        },
        labels={"type": say("Event type"), "event": say("Event number"), "from": say("From"), "to": say("To")},
    )
    webhook = number if (number := parse_whole_number(listed["query"].get("webhook", ""))) in names else None
    return request.page("deliveries/index.html", title=say("Deliveries"), names=names, webhook=webhook, **listed)


async def show(request: PageRequest) -> Response:
    """Show one delivery."""
    delivery = await request.fetch("deliveries.get", target=request.number("id"))
    webhook = await request.find("webhooks.get", delivery["webhookId"])  # None if it was deleted; its deliveries are purged later
    body = orjson.dumps(delivery["request"], option=orjson.OPT_INDENT_2).decode() if delivery["request"] else ""
    return request.page(
        "deliveries/show.html",
        title=say("Delivery {id:,}", id=delivery["id"]),
        delivery=delivery,
        webhook=webhook and {**webhook, "name": webhook_name(webhook)},
        body=body[:_MAX_BODY],
        cut=max(0, len(body) - _MAX_BODY),
    )


async def resend(request: PageRequest) -> Response:
    """Send one delivery again."""
    delivery = await request.fetch("deliveries.get", target=request.number("id"))
    await request.perform_once("webhooks.redeliver", {"delivery": delivery["id"]}, delivery["webhookId"])
    return request.redirect(f"{_HERE}/{delivery['id']}", say("The message is being sent again. Reload this page in a moment."))


# --- all failed ones ----------------------------------------------------------------------------------------------


async def ask_resend_failed(request: PageRequest) -> Response:
    """Ask since when, and count the deliveries that have failed since then."""
    webhook = await fetch_webhook(request)
    if not webhook["enabled"]:
        return request.redirect(
            f"/webhooks/{webhook['id']}", say("Nothing is sent while the webhook is off. Switch it on first."), "note"
        )
    given = Submitted.filters(request.query, request.clock).get(FAILED_SINCE.name, "")
    day_ago = shift_timestamp(request.now, timedelta(days=-1))
    typed = Submitted([(FAILED_SINCE.name, given or webhook["failingSince"] or day_ago)])
    return await _show_count(request, webhook, typed)


async def _show_count(request: PageRequest, webhook: dict[str, Any], typed: Submitted, refused: Refused | None = None) -> Response:
    form = Form((FAILED_SINCE,), typed, labels={FAILED_SINCE.name: say("Since")}, help={FAILED_SINCE.name: ""}, clock=request.clock)
    count = None
    try:
        count = (await request.dry_run("webhooks.redeliver", form.raw(), webhook["id"]))["count"]
    except Refused as wrong:
        refused = refused or wrong
    if refused is not None:
        form.add_refusal(refused)
    return request.page(
        "deliveries/resend.html",
        title=say("Send failed deliveries again"),
        webhook=webhook,
        form=form,
        count=count,
        since=typed.get(FAILED_SINCE.name, ""),
    )


async def resend_failed(request: PageRequest) -> Response:
    """Send all deliveries that have failed since a given time again."""
    webhook = await fetch_webhook(request)
    typed = Submitted([(FAILED_SINCE.name, request.form.get(FAILED_SINCE.name, ""))])
    try:
        sent = await request.perform_once("webhooks.redeliver", dict(typed), webhook["id"])
    except Refused as refused:
        return await _show_count(request, webhook, typed, refused)
    count = sent.value["count"]
    message = (
        say_many(count, "{count:,} message is being sent again.", "{count:,} messages are being sent again.")
        if count
        else say("Nothing has failed since then.")
    )
    return request.redirect(f"{_HERE}?webhook={webhook['id']}", message, "good" if count else "note")


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION, live=("deliveries",), needs=("deliveries.list",)),
    Page("GET", f"{_HERE}/{{id:int}}", show, _SECTION, needs=("deliveries.get",)),
    Page("POST", f"{_HERE}/{{id:int}}/again", resend, _SECTION, needs=("webhooks.redeliver",)),
    Page("GET", _RESEND, ask_resend_failed, _SECTION, needs=("webhooks.redeliver",)),
    Page("POST", _RESEND, resend_failed, _SECTION, needs=("webhooks.redeliver",)),
)
