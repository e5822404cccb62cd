"""Sessions as pages list them, and ending them: one's own, and, for owners, the sessions of others."""

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.confirm import Confirmation
from trellis.admin.page import Page, PageRequest
from trellis.sentences import join, mark, say

_BROWSERS: Final = (  # by a part of the User-Agent, which also names the browsers that it imitates: the first match counts
    ("Edg/", "Edge"),
    ("EdgA/", "Edge"),
    ("EdgiOS/", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_FACTORS: Final = {
    "password": say("password"),
    "passkey": say("passkey"),
    "recovery code": say("recovery code"),
    "app": say("code from an app"),
    "sso": say("single sign-on"),
    "mfa": say("second factor at the provider"),
}
_IS_OWN: Final = say("To sign yourself out elsewhere, go to Your account.")
_WERE_OUT: Final = say("They were already signed out.")
_HERE: Final = "/administrators/{id:int}/sessions"
_NEEDS: Final = ("admins.sign_out",)


def device_name(agent: str) -> str:
    """Return a short name for the browser and system of a session, from its User-Agent."""
    browser = next((name for mark, name in _BROWSERS if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    if browser and system:
        return say("{browser} on {system}", browser=browser, system=system)
    return browser or system or agent[:40] or say("Unknown browser")


async def fetch_admin(request: PageRequest) -> dict[str, Any]:
    """Return the administrator whom a path names. Raises Refused."""
    admin: dict[str, Any] = await request.fetch("admins.get", target=request.number("id"))
    return admin


async def fetch_sessions(request: PageRequest, admin: int) -> list[dict[str, Any]]:
    """Return the live sessions of an administrator, with the texts that a page shows: the device, and how it was confirmed."""
    return [
        {
            **session,
            "device": device_name(session["agent"]),
            "shown": join((_FACTORS.get(one, one) for one in session["confirmedWith"]), ", "),
        }
        for session in await request.fetch("admins.sessions", target=admin)
    ]


async def end_session(request: PageRequest, admin: int, session: str) -> int:
    """End a session of an administrator, and return how many ended. Requires that the password was entered recently."""
    request.require_fresh_form()
    request.require_recent_password()
    result = await request.perform("admins.sign_out", {"sessions": [session]}, admin)
    return int(result.value["ended"])


async def end_one(request: PageRequest) -> Response:
    """End one session of an administrator, unless it is the current session."""
    admin, session = request.number("id"), request.http.path_params["session"]
    if session == request.signed_in.session_id:
        return request.redirect(f"/administrators/{admin}", _IS_OWN, "note")
    ended = await end_session(request, admin, session)
    told = say("That session is signed out.") if ended else _WERE_OUT
    return request.redirect(f"/administrators/{admin}", told)


async def _fetch_with_sessions(request: PageRequest) -> dict[str, Any]:
    admin = await fetch_admin(request)
    return {**admin, "sessions": await fetch_sessions(request, admin["id"]), "isMe": admin["id"] == request.signed_in.id}


def _find_objection(admin: Mapping[str, Any]) -> str:
    if admin["isMe"]:
        return _IS_OWN
    return "" if admin["sessions"] else _WERE_OUT


_EVERYWHERE: Final = Confirmation(
    section="administrators",
    action="sign-out",
    operation="admins.sign_out",
    title=mark("Sign {name} out everywhere"),
    button=say("Sign out everywhere"),
    tone="danger",
    fetch=_fetch_with_sessions,
    tell=lambda _, result: say("They are signed out everywhere.") if result.value["ended"] else _WERE_OUT,
    raw={"everywhere": True},
    confirms=True,
    find_objection=_find_objection,
)
PAGES: Final = (
    Page("POST", f"{_HERE}/{{session}}", end_one, "administrators", needs=_NEEDS),
    *_EVERYWHERE.pages,
)
