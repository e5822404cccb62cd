"""Entering the password again, with the second factor if there is one. Every page that requires this leads here."""

from typing import Final

from starlette.responses import Response

from trellis.admin.admins.checking import check_again, clear_failed_attempts, read_evidence
from trellis.admin.admins.resuming import Carried, go_on, turn_away, way_back
from trellis.admin.page import CONFIRM, FIRST_STEPS, Page, PageRequest
from trellis.admin.runner import SignInNeeded
from trellis.errors import Refused
from trellis.sentences import say

_FORM: Final = "confirm_password.html"
_TITLE: Final = say("Enter your password")
_TITLE_ELSEWHERE: Final = say("Confirm that it is you")  # for administrators without a password
_WRONG: Final = say("That is not your password.")
_WRONG_TOGETHER: Final = say("Password or code is incorrect, or the code was already used.")
_WRONG_PASSKEY: Final = say("That is not one of your passkeys, or this page was open for too long. Try again.")


async def ask_password(request: PageRequest) -> Response:
    """Ask for the password again."""
    return ask_for_password(request, request.query.get("next", ""))


def ask_for_password(
    request: PageRequest, back: str, carried: Carried = (), *, replay: bool = False, fault: str = "", status: int = 200
) -> Response:
    """Ask for the password again, and lead `back` to a page; to `replay` a form that was sent there, its fields are `carried`."""
    title = _TITLE if request.signed_in.has_password else _TITLE_ELSEWHERE
    return request.page(_FORM, status=status, title=title, next=back, carried=carried, replay=replay, fault=fault)


async def confirm_password(request: PageRequest) -> Response:
    """Check the password of the administrator who is signed in, and continue."""
    me = request.signed_in
    if request.stale and me.has_confirmed(request.now):  # most likely the form was sent twice
        return _go_on(request, with_token=False)
    context = {"title": _TITLE, **way_back(request.form)}
    if request.stale:
        fault = say("This page was open for too long. Enter your password again.")
        return request.page(_FORM, status=409, **context, fault=fault)
    evidence = read_evidence(request)
    wrong = _WRONG_PASSKEY if evidence.passkey else _WRONG_TOGETHER if me.has_factor else _WRONG
    attempt = await check_again(request)
    if attempt.proven is None:
        return turn_away(request, _FORM, context, wrong, attempt.wait)
    try:
        raw = {"session": me.session_id, "address": request.address, "agent": request.agent, **evidence.raw}
        confirmed = await request.perform("admins.confirm_password", raw, me.id)
    except Refused as refused:
        if refused.status == 403:
            return turn_away(request, _FORM, context, wrong)  # the same code was used at the same time
        if refused.status != 404:
            raise
        raise SignInNeeded from None  # the session has ended meanwhile
    await clear_failed_attempts(request, me.login)
    request.take_session(confirmed.value["token"])
    return _go_on(request, with_token=True)


def _go_on(request: PageRequest, *, with_token: bool) -> Response:
    note = say("Thank you. The form that you were about to send is ready.")
    return go_on(request, say("Continue"), note, with_token=with_token)


PAGES: Final = (
    Page("GET", CONFIRM, ask_password, before=FIRST_STEPS),
    Page("POST", CONFIRM, confirm_password, before=FIRST_STEPS, renews=True),
)
