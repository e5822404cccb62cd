"""Signing in and out, and entering the password again."""

from typing import Final

from starlette.responses import Response

from trellis.admin.page import CONFIRM, SIGN_IN, Page, Submitted, Visit, within
from trellis.store.admins import administrators

_WRONG: Final = "That login and password do not belong together. Look for a slip and try again."


async def show(visit: Visit) -> Response:
    """Ask for login and password."""
    if visit.me is not None:
        return visit.redirect(within(visit.query.get("next", "")))
    nobody = not await visit.read(administrators.count)
    template = "nobody_yet.html" if nobody else "sign_in.html"
    return visit.page(
        template, title="Sign in", next=visit.query.get("next", ""), carried=(), replay=False, login="", said="", fault=""
    )


async def sign_in(visit: Visit) -> Response:
    """Judge login and password, and begin a session."""
    form = visit.form
    login, password = form.get("login", ""), form.get("password", "")
    after, replay = form.get("next", ""), form.get("replay") == "1"
    carried = _unpacked(form)
    again = {"title": "Sign in", "next": after, "carried": carried, "replay": replay, "login": login, "said": ""}
    if visit.stale:
        return visit.page("sign_in.html", status=409, **again | {"fault": "This page was open for a long time. Sign in once more."})
    browser = visit.request.cookies.get(visit.cookie("browser"), "")
    attempt = await visit.sessions.attempt(login, password, visit.address, browser)
    if attempt.admin is None:
        return _turned_away(visit, attempt.wait, again)
    old = visit.me
    token = await visit.sessions.begin(attempt.admin.id, visit.address, visit.request.headers.get("user-agent", ""))
    known = await visit.sessions.remember(login, browser)
    if old is not None:
        await visit.sessions.end(old.session.digest)
    visit.remember_session(token)
    visit.cookies += [("browser", known, 90 * 86_400), ("visitor", "", 0)]
    if replay:
        return visit.page(
            "again.html",
            title="Welcome back",
            to=f"/admin{within(after)}",
            carried=carried,
            said="You are signed in again, and what you typed is still here.",
            sealed=False,
        )
    return visit.redirect(within(after))


def _turned_away(visit: Visit, wait: int, again: dict[str, object]) -> Response:
    if not wait:
        return visit.page("sign_in.html", status=403, **again | {"fault": _WRONG})
    said = f"There were too many attempts. Wait {wait} seconds, then try again; nothing is locked."
    response = visit.page("sign_in.html", status=429, **again | {"fault": said})
    response.headers["retry-after"] = str(wait)
    return response


async def sign_out(visit: Visit) -> Response:
    """End this session."""
    if visit.me is not None:
        digest = visit.me.session.digest
        await visit.write(lambda: visit.sessions.end(digest))
    visit.cookies += [("session", "", 0), ("flash", "", 0)]
    visit.me = None
    return visit.redirect(SIGN_IN)


async def ask_again(visit: Visit) -> Response:
    """Ask for the password once more."""
    return visit.page(
        "confirm_password.html",
        title="Enter your password",
        next=visit.query.get("next", ""),
        carried=(),
        replay=False,
        fault="",
    )


async def confirm(visit: Visit) -> Response:
    """Judge the password of whoever is signed in, and go on."""
    me, form = visit.me, visit.form
    after, replay, carried = form.get("next", ""), form.get("replay") == "1", _unpacked(form)
    again = {"title": "Enter your password", "next": after, "carried": carried, "replay": replay}
    if me is None or visit.stale:
        return visit.page(
            "confirm_password.html", status=409, **again, fault="This page was open for a long time. Enter it once more."
        )
    browser = visit.request.cookies.get(visit.cookie("browser"), "")
    attempt = await visit.sessions.attempt(me.login, form.get("password", ""), visit.address, browser)
    if attempt.admin is None:
        said = f"There were too many attempts. Wait {attempt.wait} seconds." if attempt.wait else "That is not your password."
        response = visit.page("confirm_password.html", status=429 if attempt.wait else 403, **again, fault=said)
        if attempt.wait:
            response.headers["retry-after"] = str(attempt.wait)
        return response
    await visit.write(lambda: visit.sessions.confirm(me.session.digest))
    if replay:
        return visit.page(
            "again.html",
            title="Go on",
            to=f"/admin{within(after)}",
            carried=carried,
            said="Thank you. What you were about to do is ready to be sent.",
            sealed=True,
        )
    return visit.redirect(within(after))


def _unpacked(form: Submitted) -> tuple[tuple[str, str], ...]:
    """Give what an earlier form had sent, from the pairs that this one carries."""
    return Submitted(tuple(zip(form.all("carried-name"), form.all("carried-value"), strict=False))).carried()


PAGES: Final = (
    Page("GET", SIGN_IN, show, open=True),
    Page("POST", SIGN_IN, sign_in, open=True),
    Page("POST", "/sign-out", sign_out, open=True),
    Page("GET", CONFIRM, ask_again),
    Page("POST", CONFIRM, confirm),
)
