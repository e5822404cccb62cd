"""The overview: counts, requests, the latest events, and what needs attention; and the check of the database."""

from datetime import timedelta
from typing import Final

from starlette.responses import Response

from trellis.admin.alarms import fetch_unread
from trellis.admin.chart import build_chart
from trellis.admin.overview.concerns import find_concerns
from trellis.admin.page import Page, PageRequest
from trellis.core.admins import lacks_local_owner
from trellis.core.events import TookTooLong
from trellis.core.fields import shift_timestamp
from trellis.sentences import join, say, say_many

_MAX_EVENTS: Final = 8


async def show(request: PageRequest) -> Response:
    """Show the overview."""
    found = await request.fetch("overview.get", slow=True)
    found |= {"lacksLocalOwner": request.signed_in.permit is None and await request.runner.read(lacks_local_owner)}
    events = await request.fetch("events.search", {"limit": _MAX_EVENTS}, slow=True)  # a role may see only a few of very many
    counted = [{**hour, "to": shift_timestamp(hour["at"], timedelta(hours=1))} for hour in found["hours"] or ()]
    labels = [(f"{request.clock.at(hour['at']):%H:%M}", request.clock.full(hour["at"])) for hour in counted]
    return request.page(
        "overview.html",
        title=say("Overview"),
        found=found,
        concerns=find_concerns(request, found),
        alarms=await fetch_unread(request),
        events=events["results"],
        is_complete=events["complete"],
        chart=build_chart(counted, labels),
    )


async def offer(request: PageRequest) -> Response:
    """Explain the check of the database, with the button that starts it: it reads every row, so no page runs it unasked."""
    return request.page("check.html", title=say("Check"), found=None)


async def check(request: PageRequest) -> Response:
    """Check every row, in a thread, and show what is wrong."""
    request.require_fresh_form()  # it writes nothing, but another site should not make the service read every row
    found = (await request.runner.check()).value
    return request.page("check.html", title=say("Check"), found=found, rows=sum(found["checked"].values()))


async def repair(request: PageRequest) -> Response:
    """Repair what can be repaired safely."""
    try:
        value = (await request.perform_once("check.repair", {})).value
    except TookTooLong as refused:  # its advice is for what can be sent in parts
        refused.detail = say("Nothing was repaired: it takes too long here. Run `trellis check --repair` in a terminal.")
        raise
    if repaired := value["repaired"]:
        told = say_many(repaired, "{count:,} problem was repaired.", "{count:,} problems were repaired.")
    else:
        told = say("There was nothing to repair.")
    if value["more"]:
        told = join((told, say("There are more: check again, and repair them as well.")))
    return request.redirect("/check", told)


PAGES: Final = (
    Page("GET", "", show, "overview", live=("events", "requests"), needs=("overview.get",)),
    Page("GET", "/check", offer, "overview", needs=("check.list",)),
    Page("POST", "/check", check, "overview", needs=("check.list",)),
    Page("POST", "/check/repair", repair, "overview", needs=("check.repair",), confirms=True),
)
