"""What was sent to webhooks: searched, one delivery with each attempt, and sending again one or all that failed."""

from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from starlette.responses import Response

from trellis.admin.filters import filters
from trellis.admin.forms import Form
from trellis.admin.page import Page, Submitted, Visit
from trellis.admin.view import plural
from trellis.admin.webhooks.form import name_of
from trellis.admin.webhooks.webhook import found
from trellis.core.fields import Field, Text, format_timestamp
from trellis.core.webhooks import FAILED_SINCE, FILTERS, MOST, TEST
from trellis.errors import Refused

_HERE: Final = "/deliveries"
_AGAIN: Final = "/webhooks/{id:int}/redeliver"
_SECTION: Final = "webhooks"
_BEFORE: Final = Field("before", Text(20), "")
_STATES: Final = (("", "Any state"), ("waiting", "Waiting"), ("delivered", "Delivered"), ("failed", "Given up"))
_SHOWN: Final = 65_536  # characters of a body


async def index(visit: Visit) -> Response:
    """Search the deliveries."""
    query = filters(visit)
    names = await _names(visit)
    form = _form(visit, query, names)
    result: dict[str, Any] = {"results": [], "next": None, "complete": True}
    status = 200
    try:
        result = (await visit.perform("deliveries.list", form.raw(), slow=True)).value
    except Refused as refused:
        form.at_fault(refused)
        status = 400
    chosen = query.get("webhook", "")
    return visit.page(
        "deliveries/index.html",
        status=status,
        title="Deliveries",
        form=form,
        found=result,
        names=names,
        webhook=int(chosen) if chosen.isdecimal() and int(chosen) in names else None,
        query=dict(query),
        filtered=bool(set(query) - {"before"}),
    )


async def _names(visit: Visit) -> dict[int, str]:
    """Give the names of all webhooks by id."""
    listed = (await visit.perform("webhooks.list", {"perPage": MOST})).value["results"]
    return {webhook["id"]: name_of(webhook) for webhook in listed}


def _form(visit: Visit, query: Submitted, names: dict[int, str]) -> Form:
    types = (*visit.house.gate.environment.event_types, TEST)
    return Form(
        (*FILTERS, _BEFORE),
        query,
        choices={
            "webhook": [("", "Any webhook"), *((number, f"{name} ({number})") for number, name in names.items())],
            "state": _STATES,
            "type": [("", "Anything"), *((name, name) for name in types)],
        },
        labels={"type": "What it tells", "event": "Number of the event", "from": "From (UTC)", "to": "To (UTC)"},
        help=dict.fromkeys((field.name for field in (*FILTERS, _BEFORE)), ""),
    )


async def show(visit: Visit) -> Response:
    """Show one delivery."""
    delivery = (await visit.perform("deliveries.get", target=visit.number("id"))).value
    body = orjson.dumps(delivery["request"], option=orjson.OPT_INDENT_2).decode() if delivery["request"] else ""
    return visit.page(
        "deliveries/show.html",
        title=f"Delivery {delivery['id']:,}",
        delivery=delivery,
        webhook=await _webhook(visit, delivery["webhookId"]),
        body=body[:_SHOWN],
        cut=max(0, len(body) - _SHOWN),
    )


async def _webhook(visit: Visit, number: int) -> dict[str, Any] | None:
    try:
        webhook = (await visit.perform("webhooks.get", target=number)).value
    except Refused:
        return None  # it was deleted, and its deliveries go with it in a while
    return {**webhook, "name": name_of(webhook)}


async def again(visit: Visit) -> Response:
    """Send one delivery again."""
    delivery = (await visit.perform("deliveries.get", target=visit.number("id"))).value
    await visit.perform("webhooks.redeliver", {"delivery": delivery["id"]}, delivery["webhookId"])
    return visit.redirect(f"{_HERE}/{delivery['id']}", "It is sent again. Look again in a moment.")


# --- all that failed ----------------------------------------------------------------------------------------------


async def ask_again(visit: Visit) -> Response:
    """Ask since when, and count what failed since then."""
    webhook = await found(visit)
    if not webhook["enabled"]:
        return visit.redirect(f"/webhooks/{webhook['id']}", "Nothing is sent to it while it is off. Switch it on first.", "note")
    given = visit.query.get(FAILED_SINCE.name, "").strip()
    day_ago = format_timestamp(datetime.fromisoformat(visit.now) - timedelta(days=1))
    return await _counted(visit, 200, webhook, Submitted([(FAILED_SINCE.name, (given or webhook["failingSince"] or day_ago)[:16])]))


async def _counted(
    visit: Visit, status: int, webhook: dict[str, Any], typed: Submitted, refused: Refused | None = None
) -> Response:
    form = Form((FAILED_SINCE,), typed, labels={FAILED_SINCE.name: "Since (UTC)"}, help={FAILED_SINCE.name: ""})
    count = None
    try:
        count = (await visit.rehearse("webhooks.redeliver", form.raw(), webhook["id"]))["count"]
    except Refused as wrong:
        refused, status = refused or wrong, 400
    if refused is not None:
        form.at_fault(refused)
    return visit.page(
        "deliveries/again.html",
        status=status,
        title="Send again what failed",
        webhook=webhook,
        form=form,
        count=count,
        since=typed.get(FAILED_SINCE.name, ""),
    )


async def all_again(visit: Visit) -> Response:
    """Send again all that failed since a moment."""
    webhook = await found(visit)
    typed = Submitted([(FAILED_SINCE.name, visit.form.get(FAILED_SINCE.name, ""))])
    try:
        sent = await visit.perform("webhooks.redeliver", dict(typed), webhook["id"])
    except Refused as refused:
        return await _counted(visit, 400, webhook, typed, refused)
    count = sent.value["count"]
    said = f"{plural(count, 'message is', 'messages are')} sent again." if count else "Nothing has failed since then."
    return visit.redirect(f"{_HERE}?webhook={webhook['id']}", said, "good" if count else "note")


PAGES: Final = (
    Page("GET", _HERE, index, _SECTION),
    Page("GET", f"{_HERE}/{{id:int}}", show, _SECTION),
    Page("POST", f"{_HERE}/{{id:int}}/again", again, _SECTION),
    Page("GET", _AGAIN, ask_again, _SECTION),
    Page("POST", _AGAIN, all_again, _SECTION),
)
