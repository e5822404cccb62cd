"""One's own account: the password, and the sessions with a sign-out for each."""

from typing import Final

from starlette.responses import Response

from trellis.admin.admins.appearance import build_view_form
from trellis.admin.admins.checking import check_own_password, settle
from trellis.admin.admins.sessions import end_sessions, fetch_sessions
from trellis.admin.forms import Form
from trellis.admin.page import CHOOSE, Page, PageRequest
from trellis.admin.sessions import Attempt
from trellis.admin.submitted import Submitted
from trellis.core.admins import PASSWORD
from trellis.core.fields import Field, Text
from trellis.errors import Refused

_HERE: Final = "/account"
_CURRENT: Final = Field("currentPassword", Text(255), "The one you signed in with.", required=True)
_FIELDS: Final = (_CURRENT, PASSWORD)


def _form(request: PageRequest, typed: Submitted | None = None) -> Form:
    return Form(
        _FIELDS if request.signed_in.has_password else (PASSWORD,),
        typed,
        widgets={"currentPassword": "password"},
        labels={"password": "New password"},
    )


async def show(request: PageRequest) -> Response:
    """Show the account."""
    return await _show(request, 200, _form(request))


async def _show(request: PageRequest, status: int, form: Form) -> Response:
    me = request.signed_in
    sessions = await fetch_sessions(request, me.id)
    identities = (await request.fetch("admins.get", target=me.id))["identities"] if request.sessions.provider else []
    told = {"form": form, "sessions": sessions, "identities": identities, "view": build_view_form(request)}
    return request.page("account.html", status=status, title="Your account", **told)


async def set_password(request: PageRequest) -> Response:
    """Change one's own password; all other sessions end."""
    form = _form(request, request.form)
    me = request.signed_in
    try:
        raw = form.raw()
        current = raw.pop("currentPassword", "")
        request.require_fresh_form()
        if me.has_factor or not me.has_password:
            request.require_recent_password()
        attempt = await check_own_password(request, current) if me.has_password else Attempt(me.id)
        if attempt.wait:
            return await _show(request, 429, form.add_fault("currentPassword", f"Too many attempts: wait {attempt.wait} seconds."))
        if attempt.admin is None:
            return await _show(request, 400, form.add_fault("currentPassword", "currentPassword is not your password."))
        await request.perform("admins.set_password", raw, me.id)
        if not me.has_factor:
            await settle(request, me.login)
    except Refused as refused:
        return await _show(request, 400, form.add_refusal(refused))
    await request.go_on_after_change()
    return request.redirect(_HERE, "Your password is changed, and you are signed out everywhere else.")


async def ask_password_first(request: PageRequest) -> Response:
    """Ask for the password and the second factor before one's own password is changed."""
    request.require_recent_password()
    return request.redirect(_HERE)


async def end_session(request: PageRequest) -> Response:
    """Sign out one of one's own sessions."""
    ended = await end_sessions(request, request.signed_in.id, [request.http.path_params["session"]])
    return request.redirect(_HERE, "That session is signed out." if ended else "That session had ended already.")


async def end_others(request: PageRequest) -> Response:
    """Sign out all of one's own sessions but this one."""
    me = request.signed_in
    sessions = await request.fetch("admins.sessions", target=me.id)
    await end_sessions(request, me.id, [session["id"] for session in sessions if session["id"] != me.session_id])
    return request.redirect(_HERE, "You are signed out everywhere else.")


# --- a password that somebody else has chosen ---------------------------------------------------------------------


def _new_form(typed: Submitted | None = None) -> Form:
    return Form((PASSWORD,), typed, labels={"password": "New password"})


def _ask_new_password(request: PageRequest, form: Form, status: int = 200) -> Response:
    return request.page("new_password.html", status=status, title="Choose your own password", form=form)


async def new_password(request: PageRequest) -> Response:
    """Ask for a password in place of the one that somebody else has chosen."""
    if not request.signed_in.must_change_password:
        return request.redirect("")
    request.require_recent_password()
    return _ask_new_password(request, _new_form())


async def set_new_password(request: PageRequest) -> Response:
    """Take it, and go on to the panel."""
    request.require_fresh_form()
    if not request.signed_in.must_change_password:
        return request.redirect("")
    request.require_recent_password()
    form = _new_form(request.form)
    try:
        await request.perform("admins.set_password", form.raw(), request.signed_in.id)
    except Refused as refused:
        return _ask_new_password(request, form.add_refusal(refused), 400)
    await request.go_on_after_change()
    return request.redirect("", "Your password is set. Nobody else knows it.")


PAGES: Final = (
    Page("GET", CHOOSE, new_password, first=True),
    Page("POST", CHOOSE, set_new_password, first=True),
    Page("GET", _HERE, show, "account"),
    Page("GET", f"{_HERE}/password", ask_password_first, "account"),
    Page("POST", f"{_HERE}/password", set_password, "account"),
    Page("POST", f"{_HERE}/sessions/others", end_others, "account"),
    Page("POST", f"{_HERE}/sessions/{{session}}", end_session, "account"),
)
