"""Sessions as pages list them, and ending them: one's own, and for owners those of others."""

from collections.abc import Sequence
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.page import Page, PageRequest

_BROWSERS: Final = (  # by what they say of themselves, which also names those that they are made like: the first that fits
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
_FACTORS: Final = {"app": "code of an app", "sso": "single sign-on", "mfa": "second factor there"}
_HERE: Final = "/administrators/{id:int}/sessions"
ALL: Final = "all"
_NEEDS: Final = ("admins.sign_out",)


def device_name(agent: str) -> str:
    """Return what a session's browser is and runs on, in a few words."""
    browser = next((name for mark, name in _BROWSERS if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    return " on ".join(filter(None, (browser, system))) or agent[:40] or "Unknown browser"


async def fetch_sessions(request: PageRequest, admin: int) -> list[dict[str, Any]]:
    """Return the live sessions of an administrator, in the words of a page."""
    return [
        {
            **session,
            "device": device_name(session["agent"]),
            "shown": ", ".join(_FACTORS.get(one, one) for one in session["confirmedWith"]),
        }
        for session in await request.fetch("admins.sessions", target=admin)
    ]


async def end_sessions(request: PageRequest, admin: int, sessions: Sequence[str]) -> int:
    """End some sessions of an administrator, once the password was entered lately; return their number."""
    request.require_fresh_form()
    request.require_recent_password()
    if not sessions:
        return 0
    result = await request.perform("admins.sign_out", {"sessions": list(sessions)}, admin)
    return int(result.value["ended"])


async def end_one(request: PageRequest) -> Response:
    """Sign somebody out of one session, or of all."""
    admin, session = request.number("id"), request.http.path_params["session"]
    everywhere = session == ALL
    chosen = [one["id"] for one in await request.fetch("admins.sessions", target=admin)] if everywhere else [session]
    ended = await end_sessions(request, admin, [one for one in chosen if one != request.signed_in.session_id])
    told = "They are signed out everywhere." if everywhere else "That session is signed out."
    return request.redirect(f"/administrators/{admin}", told if ended else "They had been signed out already.")


PAGES: Final = (Page("POST", f"{_HERE}/{{session}}", end_one, "administrators", needs=_NEEDS),)
