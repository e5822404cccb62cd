"""One's own account: the password, and the sessions with a sign-out for each."""

from functools import partial
from typing import Final

from starlette.responses import Response

from trellis.admin.forms import Form
from trellis.admin.page import Page, Submitted, Visit
from trellis.core.admins import PASSWORD
from trellis.core.fields import Field, Text
from trellis.errors import Refused
from trellis.store.admins import Session

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


async def show(visit: Visit) -> Response:
    """Show the account."""
    return await _shown(visit, 200, _form())


async def _shown(visit: Visit, status: int, form: Form) -> Response:
    me = visit.actor
    sessions = await visit.sessions.of_admin(me.id or 0)
    rows = [(session, session.digest[:16], device(session)) for session in sessions]
    return visit.page("account.html", status=status, title="Your account", form=form, sessions=rows)


async def set_password(visit: Visit) -> Response:
    """Change one's own password; all other sessions end."""
    form = _form(visit.form)
    me = visit.signed_in
    try:
        raw = form.raw()
        current = raw.pop("currentPassword", "")
        visit.demand_fresh()
        browser = visit.request.cookies.get(visit.cookie("browser"), "")
        attempt = await visit.sessions.attempt(me.login, current, visit.address, browser)
        if attempt.wait:
            return await _shown(visit, 429, form.fail("currentPassword", f"Too many attempts: wait {attempt.wait} seconds."))
        if attempt.admin is None:
            return await _shown(visit, 400, form.fail("currentPassword", "currentPassword is not your password."))
        await visit.perform("admins.set_password", raw, me.id)
    except Refused as refused:
        return await _shown(visit, 400, form.at_fault(refused))
    visit.remember_session(await visit.sessions.begin(me.id, visit.address, visit.request.headers.get("user-agent", "")))
    return visit.redirect(_HERE, "Your password is changed, and you are signed out everywhere else.")


async def end_session(visit: Visit) -> Response:
    """Sign out one of one's own sessions."""
    visit.demand_fresh()
    me = visit.actor
    start = visit.request.path_params["start"]
    mine = [session for session in await visit.sessions.of_admin(me.id or 0) if session.digest[:16] == start]
    for session in mine:
        await visit.write(partial(visit.sessions.end, session.digest))
    return visit.redirect(_HERE, "That session is signed out." if mine else "That session had ended already.")


async def end_others(visit: Visit) -> Response:
    """Sign out all of one's own sessions but this one."""
    me = visit.signed_in
    await visit.write(lambda: visit.sessions.end_others(me.id, me.session.digest))
    return visit.redirect(_HERE, "You are signed out everywhere else.")


_BROWSERS: Final = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def device(session: Session) -> str:
    """Say in two words what a session's browser runs on."""
    browser = next((name for mark, name in _BROWSERS if mark in session.agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in session.agent), "")
    return " on ".join(filter(None, (browser, system))) or session.agent[:40] or "Unknown browser"


PAGES: Final = (
    Page("GET", _HERE, show, "account"),
    Page("POST", f"{_HERE}/password", set_password, "account"),
    Page("POST", f"{_HERE}/sessions/others", end_others, "account"),
    Page("POST", f"{_HERE}/sessions/{{start}}", end_session, "account"),
)
