"""The overview: what there is, what is asked of the API, what happened last, and what wants looking at."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.chart import chart
from trellis.admin.page import Page, Visit

_FEW: Final = 8
_SHOWN: Final = 100


async def show(visit: Visit) -> Response:
    """Show everything at once."""
    found: Mapping[str, Any] = (await visit.perform("overview.get", slow=True)).value
    events = await visit.perform("events.list", {"order": "newest", "limit": _FEW})
    hours = [datetime.fromisoformat(hour["at"]) for hour in found["hours"]]
    labels = [(f"{hour:%H}", f"{hour.day} {hour:%b, %H}:00 UTC") for hour in hours]
    return visit.page(
        "overview.html",
        title="Overview",
        found=found,
        events=events.value["results"],
        chart=chart(found["hours"], labels),
    )


async def check(visit: Visit) -> Response:
    """Look at every row, in a thread, and say what is wrong."""
    answer = await visit.perform("check.list", {"limit": _SHOWN}, slow=True)
    return visit.page("check.html", title="Check", found=answer.value, rows=sum(answer.value["checked"].values()))


async def repair(visit: Visit) -> Response:
    """Mend what can be mended safely."""
    visit.require_recent_password()
    mended = (await visit.perform("check.repair")).value["repaired"]
    return visit.redirect("/check", f"{mended:,} problems were repaired." if mended else "There was nothing to repair.")


PAGES: Final = (
    Page("GET", "", show, "overview"),
    Page("GET", "/check", check, "overview"),
    Page("POST", "/check", repair, "overview"),
)
