"""Removing unused grants from a key, with the form on its page."""

from typing import Final

from starlette.responses import Response

from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import SentBefore
from trellis.core.requests import DAYS
from trellis.sentences import say

_REASON: Final = f"Not used for {DAYS} days"


async def ungrant(request: PageRequest) -> Response:
    """Remove the grants that are ticked, and no others."""
    number, names = request.number("id"), request.form.all("operation")
    try:
        result = await request.perform_once("keys.update", {"ungrant": list(names)}, number, reason=request.reason or _REASON)
    except SentBefore as sent:
        return request.redirect(f"/keys/{number}", sent.detail, "note")
    if not names or not (result.event or result.replayed):
        return request.redirect(f"/keys/{number}", say("Nothing was changed."))
    message = (
        say("{count} unused grants were removed.", count=len(names)) if len(names) > 1 else say("An unused grant was removed.")
    )
    return request.redirect(f"/keys/{number}", message, undo=result.event)


PAGES: Final = (Page("POST", "/keys/{id:int}/ungrant", ungrant, "keys", needs=("keys.update",)),)
