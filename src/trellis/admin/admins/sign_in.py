"""Signing in and out: with a password, with a password and a second factor, or with a passkey alone.

Nobody is signed in, not even partly, before both steps are right: the form of the second step carries a signed note of the first.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.admins.checking import check_both_steps, check_login, check_passkey, clear_failed_attempts, read_evidence
from trellis.admin.admins.resuming import Carried, find_panel_path, go_on, turn_away, way_back
from trellis.admin.page import SIGN_IN, Page, PageRequest
from trellis.admin.sessions import csrf_token, is_equal
from trellis.admin.submitted import CSRF
from trellis.core.actor import Actor
from trellis.core.admins import SET_BY_ANOTHER, Proven, SignedIn, has_administrators, remember_browser
from trellis.core.factors import Evidence, begin_pending, has_second_step, is_expired, load, options_of_passkey, was_taken
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.sentences import mark, say

SIGNED_OUT: Final = "/signed-out"
_FORM: Final = "sign_in.html"
_SIGN_OUT: Final = "/sign-out"
_SECOND_STEP: Final = "second_step.html"
_WRONG: Final = say("Login or password is incorrect. Check both and try again.")
_WRONG_CODE: Final = say("Login, password or code is incorrect, or the code was already used. Try again, or start over.")
_WRONG_PASSKEY: Final = say("This passkey is not known here, or the page was open for too long. Try again, or use your password.")
_WAIT: Final = mark("There were too many attempts. Wait {wait}, then try again; your account is not locked.")
_NOT_HERE: Final = 409  # the status of the refusal of somebody who has to sign in at the provider
_STALE: Final = say("This page was open for too long. Sign in again.")
_BROWSER_KNOWN_FOR: Final = 90 * 86_400  # seconds
_LONGEST_KNOWN: Final = 200  # characters of the cookie by which a browser is recognised


async def show(request: PageRequest) -> Response:
    """Ask for login and password."""
    if request.me is not None:
        return request.redirect(find_panel_path(request.query.get("next", "")))
    may_join = request.gate.environment.sign_on.joins
    if may_join or await request.runner.read(has_administrators):
        return ask_to_sign_in(request, request.query.get("next", ""))
    return request.page("no_administrator.html", title=say("Sign in"))


def ask_to_sign_in(
    request: PageRequest, back: str, carried: Carried = (), *, replay: bool = False, note: str = "", status: int = 200
) -> Response:
    """Ask for login and password, and lead `back` to a page; to `replay` a form that was sent there, its fields are `carried`."""
    context = {"title": say("Sign in"), "next": back, "carried": carried, "replay": replay, "login": "", "note": note}
    return request.page(_FORM, status=status, **context, fault="")


async def sign_in(request: PageRequest) -> Response:
    """Check login and password, and begin a session, or ask for the second factor."""
    login, context = request.form.get("login", ""), _context(request)
    if request.stale:
        return _receive_late(request, context)
    goes_on = await request.runner.read(has_second_step, login)
    attempt = await check_login(request, login, request.form.get("password", ""), counts=not goes_on)
    if attempt.wait:
        return turn_away(request, _FORM, context, _WRONG, attempt.wait, _WAIT)
    if goes_on:
        mark = "" if attempt.proven is None else attempt.proven.mark
        pending = await request.runner.read(begin_pending, request.csrf, mark)
        return request.page(_SECOND_STEP, **context, pending=pending, fault="")
    if attempt.proven is None:
        return turn_away(request, _FORM, context, _WRONG)
    return await _welcome(request, context, attempt.proven, login, Evidence()) or turn_away(request, _FORM, context, _WRONG)


async def take_second_factor(request: PageRequest) -> Response:
    """Check the code that follows the password, and begin a session."""
    login, pending = request.form.get("login", ""), request.form.get("pending", "")
    context = {**_context(request), "pending": pending}
    if request.stale or is_expired(request.now, pending):
        return _receive_late(request, context)
    attempt = await check_both_steps(request, login, pending)
    if attempt.proven is None:
        taken = await request.runner.read(was_taken, login, request.csrf, pending, read_evidence(request))
        if taken and not attempt.wait and not _carries(request):
            return _go_where_the_first_led(request)
        return turn_away(request, _SECOND_STEP, context, _WRONG_CODE, attempt.wait, _WAIT)
    if (response := await _welcome(request, context, attempt.proven, login, read_evidence(request))) is not None:
        return response
    return turn_away(request, _SECOND_STEP, context, _WRONG_CODE) if _carries(request) else _go_where_the_first_led(request)


async def sign_in_with_passkey(request: PageRequest) -> Response:
    """Check a passkey, and begin a session."""
    context = _context(request)
    if request.stale:
        return _receive_late(request, context)
    login, attempt = await check_passkey(request)
    if attempt.proven is None:
        return turn_away(request, _FORM, context, _WRONG_PASSKEY, attempt.wait, _WAIT)
    response = await _welcome(request, context, attempt.proven, login, read_evidence(request), alone=True)
    return response or turn_away(request, _FORM, context, _WRONG_PASSKEY)


async def passkey_options(request: PageRequest) -> Response:
    """Return to a script which passkeys to ask the browser for: those of the administrator who is signed in, or any."""
    await asyncio.to_thread(load)
    admin = request.me.id if request.me else None
    return Response(await request.runner.read(options_of_passkey, admin, request.csrf), media_type="application/json")


def _context(request: PageRequest) -> dict[str, Any]:
    return {"title": say("Sign in"), **way_back(request.form), "login": request.form.get("login", ""), "note": ""}


def _receive_late(request: PageRequest, context: Mapping[str, Any]) -> Response:
    """Continue if this form was sent twice, and the first request has signed this browser in; otherwise ask to sign in again."""
    return _go_on(request) if has_signed_in_before(request) else request.page(_FORM, status=409, **context, fault=_STALE)


def has_signed_in_before(request: PageRequest) -> bool:
    """Return whether a form for signing in was sent twice, and the first request has signed this browser in."""
    visitor = request.read_cookie("visitor")  # forms had the token of this cookie until then
    return request.me is not None and visitor != "" and is_equal(request.form.get(CSRF, ""), csrf_token(visitor))


def _carries(request: PageRequest) -> bool:
    """Return whether a form carries the values of another form, which would be lost by a redirect."""
    return request.form.get("replay") == "1"


def _go_where_the_first_led(request: PageRequest) -> Response:
    """Continue after a form that was sent twice with the same code: the first response may have signed the browser in by now.

    If it has not, the redirect leads to the form for signing in.
    """
    return request.redirect(find_panel_path(request.form.get("next", "")))


def _go_on(request: PageRequest) -> Response:
    return go_on(request, say("Welcome back"), say("You are signed in again."), with_token=False)


async def _welcome(
    request: PageRequest, context: Mapping[str, Any], proven: Proven, login: str, evidence: Evidence, *, alone: bool = False
) -> Response | None:
    """Begin a session, and continue, or say why they have to sign in by other means.

    Return None if what they entered does not count any more: the password was changed, the account was disabled, or the same code
    or passkey was used, all at the same time.
    """
    old = request.me
    try:
        await start_session(request, proven, login, evidence, alone=alone)
    except Refused as refused:
        if refused.status == _NOT_HERE or refused.detail == SET_BY_ANOTHER:
            return turn_away(request, _FORM, context, refused.detail)
        if refused.status not in (403, 404):
            raise
        return None
    if old is not None:
        await request.runner.perform(end_session(request, old))
    return _go_on(request)


async def start_session(request: PageRequest, proven: Proven, login: str, evidence: Evidence, *, alone: bool = False) -> None:
    """Begin a session, and recognise this browser from now on. Raises Refused for a second factor that is missing or wrong.

    A passkey that is `alone` replaces the password as well.
    """
    admin = proven.admin
    name = (await request.runner.perform(Call("admins.get", Actor("admin", admin, ""), target=admin))).value["name"]
    client = {"address": request.address, "agent": request.agent, "browser": read_browser(request)}
    raw = {**client, "passwordMark": proven.mark, "alone": alone, **evidence.raw}
    call = request.trace(Call("admins.sign_in", Actor("admin", admin, name), raw, admin))
    request.take_session((await request.runner.perform(call)).value["token"])
    await clear_failed_attempts(request, login)
    await recognise_browser(request, login)


def read_browser(request: PageRequest) -> str:
    """Return the cookie by which this browser is recognised; "" if nobody has signed in with it."""
    return request.read_cookie("browser")[:_LONGEST_KNOWN]


async def recognise_browser(request: PageRequest, *logins: str) -> None:
    """Recognise this browser from now on as one in which somebody has signed in with these logins."""
    browser = read_browser(request)
    for login in logins:
        browser = await request.runner.write(remember_browser, login, browser)
    request.cookies.append(("browser", browser, _BROWSER_KNOWN_FOR))


async def ask_to_sign_out(request: PageRequest) -> Response:
    """Show the button alone: an address that ends a session could be opened by a page of another site."""
    if request.me is None:
        return request.redirect(SIGN_IN)
    return request.page("ask_to_sign_out.html", title=say("Sign out"))


async def sign_out(request: PageRequest) -> Response:
    """End this session."""
    then = SIGN_IN
    if request.me is not None:
        request.require_fresh_form()
        await request.runner.perform(end_session(request, request.me))
        then = SIGN_IN if request.me.issuer is None else SIGNED_OUT
    request.cookies += [("session", "", 0), ("flash", "", 0)]
    request.me = None
    return request.redirect(then)


def end_session(request: PageRequest, me: SignedIn) -> Call:
    """Return the call that ends a session of this browser, if it has not ended yet."""
    return request.trace(Call("admins.sign_out", replace(me.actor, session=""), {"sessions": [me.session_id]}, me.id))


PAGES: Final = (
    Page("GET", SIGN_IN, show, open=True),
    Page("POST", SIGN_IN, sign_in, open=True),
    Page("POST", f"{SIGN_IN}/code", take_second_factor, open=True),
    Page("POST", f"{SIGN_IN}/passkey", sign_in_with_passkey, open=True),
    Page("GET", f"{SIGN_IN}/passkey/options", passkey_options, open=True, background=True),
    Page("GET", _SIGN_OUT, ask_to_sign_out, open=True),
    Page("POST", _SIGN_OUT, sign_out, open=True),
)
