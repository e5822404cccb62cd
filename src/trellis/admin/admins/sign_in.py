"""Signing in and out, and entering the password again."""

from typing import Any, Final

from starlette.responses import Response

from trellis.admin import PREFIX
from trellis.admin.page import CONFIRM, SIGN_IN, Page, PageRequest
from trellis.admin.submitted import Submitted
from trellis.core.admins import SignedIn, has_administrators, remember_browser
from trellis.core.operation import Call
from trellis.errors import Refused

_WRONG: Final = "That login and password do not belong together. Check both and try again."
_BROWSER_KNOWN_FOR: Final = 90 * 86_400  # seconds


async def show(request: PageRequest) -> Response:
    """Ask for login and password."""
    if request.me is not None:
        return request.redirect(_find_panel_path(request.query.get("next", "")))
    template = "sign_in.html" if await request.runner.read(has_administrators) else "no_administrator.html"
    return request.page(
        template, title="Sign in", next=request.query.get("next", ""), carried=(), replay=False, login="", note="", fault=""
    )


async def sign_in(request: PageRequest) -> Response:
    """Check login and password, and begin a session."""
    form = request.form
    login, carried = form.get("login", ""), _unpack(form)
    context = {"title": "Sign in", **_way_back(form, carried), "login": login, "note": ""}
    if request.stale:
        fault = "This page was open for a long time. Sign in once more."
        return request.page("sign_in.html", status=409, **context, fault=fault)
    attempt = await request.check_password(login, form.get("password", ""))
    if attempt.admin is None:
        wait = f"There were too many attempts. Wait {attempt.wait} seconds, then try again; nothing is locked."
        return _turn_away(request, "sign_in.html", attempt.wait, context, wait if attempt.wait else _WRONG)
    old = request.me
    await start_session(request, attempt.admin, login)
    if old is not None:
        await request.runner.perform(end_session(request, old))
    return _go_on(request, "Welcome back", "You are signed in again, and what you typed is still here.", with_token=False)


async def start_session(request: PageRequest, admin: int, login: str) -> None:
    """Begin a session, and recognise this browser from now on."""
    await request.sign_in(admin)
    known = request.read_cookie("browser")
    browser = await request.runner.write(remember_browser, login, known)
    request.cookies.append(("browser", browser, _BROWSER_KNOWN_FOR))


async def sign_out(request: PageRequest) -> Response:
    """End this session."""
    if request.me is not None:
        request.require_fresh_form()
        await request.runner.perform(end_session(request, request.me))
    request.cookies += [("session", "", 0), ("flash", "", 0)]
    request.me = None
    return request.redirect(SIGN_IN)


def end_session(request: PageRequest, me: SignedIn) -> Call:
    """Return the call that ends a session of this browser."""
    return request.trace(Call("admins.sign_out", me.actor, {"sessions": [me.session_id]}, me.id))


async def ask_password(request: PageRequest) -> Response:
    """Ask for the password again."""
    return request.page(
        "confirm_password.html",
        title="Enter your password",
        next=request.query.get("next", ""),
        carried=(),
        replay=False,
        fault="",
    )


async def confirm_password(request: PageRequest) -> Response:
    """Check the password of whoever is signed in, and go on."""
    me, form = request.me, request.form
    context = {"title": "Enter your password", **_way_back(form, _unpack(form))}
    if me is None or request.stale:
        fault = "This page was open for a long time. Enter it once more."
        return request.page("confirm_password.html", status=409, **context, fault=fault)
    attempt = await request.check_password(me.login, form.get("password", ""))
    if attempt.admin is None:
        wait = f"There were too many attempts. Wait {attempt.wait} seconds."
        fault = wait if attempt.wait else "That is not your password."
        return _turn_away(request, "confirm_password.html", attempt.wait, context, fault)
    try:
        raw = {"session": me.session_id, "address": request.address, "agent": request.agent}
        confirmed = await request.perform("admins.confirm_password", raw, me.id)
    except Refused as refused:
        if refused.status != 404:
            raise
        return request.redirect(SIGN_IN)  # the session has ended meanwhile
    request.take_session(confirmed.value["token"])
    return _go_on(request, "Continue", "Thank you. The form that you were about to send is ready.", with_token=True)


def _way_back(form: Submitted, carried: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return {"next": form.get("next", ""), "carried": carried, "replay": form.get("replay") == "1"}


def _turn_away(request: PageRequest, template: str, wait: int, context: dict[str, Any], fault: str) -> Response:
    response = request.page(template, status=429 if wait else 403, **context, fault=fault)
    if wait:
        response.headers["retry-after"] = str(wait)
    return response


def _go_on(request: PageRequest, title: str, note: str, *, with_token: bool) -> Response:
    """Go to the page that was asked for first; or show the form that was sent to it, to be sent again."""
    to = _find_panel_path(request.form.get("next", ""))
    if request.form.get("replay") != "1":
        return request.redirect(to)
    carried = _unpack(request.form)
    return request.page("resend.html", title=title, to=PREFIX + to, carried=carried, note=note, with_token=with_token)


def _unpack(form: Submitted) -> tuple[tuple[str, str], ...]:
    """Return what an earlier form had sent, from the pairs that this one carries."""
    return Submitted(tuple(zip(form.all("carried-name"), form.all("carried-value"), strict=False))).carried()


def _find_panel_path(path: str) -> str:
    """Return a path to go back to, without /admin, if it is one of the panel; otherwise that of the overview."""
    inside = path == PREFIX or path.startswith((PREFIX + "/", PREFIX + "?"))
    plain = path.isascii() and path.isprintable() and "\\" not in path and "//" not in path.partition("?")[0]
    return path.removeprefix(PREFIX) if inside and plain else ""


PAGES: Final = (
    Page("GET", SIGN_IN, show, open=True),
    Page("POST", SIGN_IN, sign_in, open=True),
    Page("POST", "/sign-out", sign_out, open=True),
    Page("GET", CONFIRM, ask_password, first=True),
    Page("POST", CONFIRM, confirm_password, first=True),
)
