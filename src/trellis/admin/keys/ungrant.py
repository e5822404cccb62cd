"""Removing unused grants from a key."""

from typing import Final

from starlette.responses import Response

from trellis.admin.keys.grants import Grid
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import SentBefore
from trellis.core.fields import isolate
from trellis.sentences import say

_HERE: Final = "/keys/{id:int}/ungrant"
_SECTION: Final = "keys"
_REASON: Final = "Not used for 30 days"


async def ask(request: PageRequest) -> Response:
    """Ask which of the unused grants to remove."""
    key = await request.fetch("keys.get", target=request.number("id"))
    summary = await request.fetch("requests.summary", {"key": key["id"]}, slow=True)
    return request.page(
        "keys/ungrant.html",
        title=say("Remove unused grants from {name}", name=isolate(key["name"])),
        key=key,
        grid=Grid(request.catalogue),
        unused=summary["unused"] or [],
    )


async def ungrant(request: PageRequest) -> Response:
    """Remove the grants that are ticked, and no others."""
    number, names = request.number("id"), request.form.all("operation")
    try:
        result = await request.perform_once("keys.update", {"ungrant": list(names)}, number, reason=request.reason or _REASON)
    except SentBefore as sent:
        return request.redirect(f"/keys/{number}/ungrant", sent.detail, "note")
    if not names or not (result.event or result.replayed):
        return request.redirect(f"/keys/{number}", say("Nothing was changed."))
    message = (
        say("{count} unused grants were removed.", count=len(names)) if len(names) > 1 else say("An unused grant was removed.")
    )
    return request.redirect(f"/keys/{number}", message, undo=result.event)


PAGES: Final = (
    Page("GET", _HERE, ask, _SECTION, needs=("keys.update",)),
    Page("POST", _HERE, ungrant, _SECTION, needs=("keys.update",)),
)
