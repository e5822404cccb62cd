"""One's own account: the password, and the sessions with a sign-out for each."""

from typing import Final

from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.admins import PASSWORD, end_other_sessions, end_session_of
from trellis.core.fields import Field, Text
from trellis.errors import Refused

_HERE: Final = "/account"
_CURRENT: Final = Field("currentPassword", Text(255), "The one you signed in with.", required=True)
_FIELDS: Final = (_CURRENT, PASSWORD)


def _form(typed: Submitted | None = None) -> Form:
    return Form(
        _FIELDS,
        typed,
        widgets={"currentPassword": "password"},
        labels={"password": "New password"},
    )


async def show(request: PageRequest) -> Response:
    """Show the account."""
    return await _show(request, 200, _form())


async def _show(request: PageRequest, status: int, form: Form) -> Response:
    sessions = await request.fetch("admins.sessions", target=request.signed_in.id)
    rows = [{**session, "device": device_name(session["agent"])} for session in sessions]
    return request.page("account.html", status=status, title="Your account", form=form, sessions=rows)


async def set_password(request: PageRequest) -> Response:
    """Change one's own password; all other sessions end."""
    form = _form(request.form)
    me = request.signed_in
    try:
        raw = form.raw()
        current = raw.pop("currentPassword", "")
        request.require_fresh_form()
        attempt = await request.check_password(me.login, current)
        if attempt.wait:
            return await _show(request, 429, form.add_fault("currentPassword", f"Too many attempts: wait {attempt.wait} seconds."))
        if attempt.admin is None:
            return await _show(request, 400, form.add_fault("currentPassword", "currentPassword is not your password."))
        await request.perform("admins.set_password", raw, me.id)
    except Refused as refused:
        return await _show(request, 400, form.add_refusal(refused))
    await request.begin_session(me.id)
    return request.redirect(_HERE, "Your password is changed, and you are signed out everywhere else.")


async def end_session(request: PageRequest) -> Response:
    """Sign out one of one's own sessions."""
    ended = await request.write(end_session_of, request.signed_in.id, request.http.path_params["session"])
    return request.redirect(_HERE, "That session is signed out." if ended else "That session had ended already.")


async def end_others(request: PageRequest) -> Response:
    """Sign out all of one's own sessions but this one."""
    await request.write(end_other_sessions, request.signed_in)
    return request.redirect(_HERE, "You are signed out everywhere else.")


_BROWSERS: Final = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def device_name(agent: str) -> str:
    """Return what a session's browser runs on, in a few words."""
    browser = next((name for mark, name in _BROWSERS if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    return " on ".join(filter(None, (browser, system))) or agent[:40] or "Unknown browser"


PAGES: Final = (
    Page("GET", _HERE, show, "account"),
    Page("POST", f"{_HERE}/password", set_password, "account"),
    Page("POST", f"{_HERE}/sessions/others", end_others, "account"),
    Page("POST", f"{_HERE}/sessions/{{session}}", end_session, "account"),
)
