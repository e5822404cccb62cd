"""The list of alarms, and marking them as read."""

from typing import Any, Final

from starlette.responses import Response

from trellis.admin.admins import device_name
from trellis.admin.forms import read_id
from trellis.admin.page import Page, PageRequest
from trellis.core.alarms import mark_read
from trellis.sentences import say

_HERE: Final = "/alarms"
_NEEDS: Final = ("alarms.view",)
_MOST_UNREAD: Final = 5  # on the overview


async def show(request: PageRequest) -> Response:
    """Show the newest alarms, or those before a given one."""
    before = request.query.get("before", "")
    asked = {"before": before} if before else {}
    page = await request.fetch("alarms.view", asked)
    return request.page(
        "alarms/index.html", title=say("Alarms"), alarms=_describe(page["results"]), next=page["next"], before=before
    )


async def fetch_unread(request: PageRequest) -> list[dict[str, Any]]:
    """Return the newest alarms that the administrator has not read, as a page shows them."""
    return _describe((await request.fetch("alarms.view", {"limit": _MOST_UNREAD, "unread": True}))["results"])


def _describe(alarms: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**alarm, "device": device_name(alarm["agent"]) if alarm["agent"] else ""} for alarm in alarms]


async def read(request: PageRequest) -> Response:
    """Mark the alarms that were shown as read."""
    request.require_fresh_form()
    if (until := read_id(request.form.get("until", ""))) is not None:
        await request.write(mark_read, request.signed_in.id, until)
    return request.redirect(_HERE, say("All alarms were marked as read."))


PAGES: Final = (
    Page("GET", _HERE, show, "alarms", live=("events",), needs=_NEEDS),
    Page("POST", f"{_HERE}/read", read, "alarms", needs=_NEEDS),
)
