"""An overview of an administrator's own second factor, and the recovery codes that can replace it."""

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from trellis.admin.page import FACTORS, Page, PageRequest
from trellis.sentences import say

_SECTION: Final = "account"
BEFORE_FACTOR: Final = ("must_add_factor",)  # for the pages by which somebody sets up a second factor who has to
_RENEWED_BEFORE: Final = say(
    "New recovery codes were generated, and shown once. The form was sent twice: if you have not seen them, generate new ones."
)


async def show(request: PageRequest) -> Response:
    """Show the second factors that are set up."""
    factors = await request.fetch("admins.factors", target=request.signed_in.id)
    return request.page("factors/index.html", title=say("Second factor"), factors=factors)


async def renew_recovery_codes(request: PageRequest) -> Response:
    """Create new recovery codes."""
    made = await request.perform_once("admins.renew_recovery_codes", {}, request.signed_in.id)
    if made.replayed:
        return request.redirect(FACTORS, _RENEWED_BEFORE, "note")
    return conclude(request, say("Your new recovery codes"), made.value["recoveryCodes"])


def conclude(request: PageRequest, done: str, codes: Sequence[str]) -> Response:
    """Show new recovery codes, or return to the overview if there are none."""
    if not codes:
        return request.redirect(FACTORS, done)
    return request.page("factors/recovery_codes.html", title=say("Recovery codes"), done=done, codes=codes)


PAGES: Final = (
    Page("GET", FACTORS, show, _SECTION, before=BEFORE_FACTOR),
    Page("POST", f"{FACTORS}/recovery-codes", renew_recovery_codes, _SECTION, confirms=True),
)
