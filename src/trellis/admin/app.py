"""The panel as a web application: what is seen to before and after every page.

Order of judgement: the body's size → the session → where the request came from → the form's token → the page.
"""

import logging
import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from trellis.admin.house import House
from trellis.admin.page import CONFIRM, CSRF, PREFIX, SIGN_IN, NeedsPassword, Page, StaleForm, Submitted, Visit
from trellis.admin.sections import pages_of
from trellis.admin.sessions import Sessions, new_token, same
from trellis.admin.static import Static
from trellis.admin.view import View
from trellis.core.gate import Gate
from trellis.core.keys import redact_keys
from trellis.errors import Refused
from trellis.http.problems import problem_headers
from trellis.settings import Settings

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_LARGEST: Final = 1_048_576  # bytes of a form
_SWALLOWED: Final = 33_554_432  # bytes of a larger one that are read and forgotten, so that the browser sees the answer
_MOST_FIELDS: Final = 20_000
_FORM: Final = "application/x-www-form-urlencoded"
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._~+/=:-]{1,128}")
_HEADERS: Final = (
    (
        b"content-security-policy",
        b"; ".join(
            (
                b"default-src 'none'",
                b"script-src 'self'",
                b"style-src 'self'",
                b"img-src 'self' data:",
                b"connect-src 'self'",
                b"form-action 'self'",
                b"base-uri 'none'",
                b"frame-ancestors 'none'",
            )
        ),
    ),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


class Panel:
    """The panel, served under /admin."""

    def __init__(self, gate: Gate, settings: Settings, pages: tuple[Page, ...] | None = None) -> None:
        self.house = House(gate, settings)
        self.sessions = Sessions(self.house)
        self.static = Static(f"{PREFIX}/static")
        self.view = View(gate.catalogue, gate.environment.kinds, gate.environment.community_name, self.static)
        self.pages = pages_of(gate.catalogue, gate.environment.kinds) if pages is None else pages
        self.app = Starlette(
            routes=[
                Route(f"{PREFIX}/static/{{digest}}/{{name}}", self.static.serve, methods=["GET"]),
                *(Route(PREFIX + page.path, self._served(page), methods=[page.method]) for page in self.pages),
            ],
            exception_handlers={HTTPException: self._astray},
        )
        self.app.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def dressed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                there = {name.lower() for name, _ in headers}
                headers.extend(pair for pair in _HEADERS if pair[0] not in there)
                if b"cache-control" not in there:
                    headers.append((b"cache-control", b"no-store"))
            await send(message)

        if scope["type"] == "http" and scope["path"].endswith("/"):
            scope = {**scope, "path": scope["path"].rstrip("/"), "raw_path": None}
        await self.app(scope, receive, dressed)

    # --- one page -------------------------------------------------------------------------------------------------

    def _served(self, page: Page) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            visit = self._visit(request, page.section)
            try:
                response = await self._answer(page, visit)
            except Refused as refused:
                response = self._refusal(visit, refused)
            except ClientDisconnect:
                response = Response(status_code=400)
            except Exception:
                log.exception("Request %s to the panel failed.", visit.request_id)
                response = self._refusal(visit, Refused("INTERNAL_ERROR", "The panel made a mistake. Nothing of this was kept."))
            response.headers["x-request-id"] = visit.request_id
            return visit.dress(response)

        return serve

    def _visit(self, request: Request, section: str = "") -> Visit:
        sent = request.headers.get("x-request-id", "")
        good = _REQUEST_ID.fullmatch(sent) and redact_keys(sent) == sent
        return Visit(
            house=self.house,
            sessions=self.sessions,
            view=self.view,
            request=request,
            request_id=sent if good else os.urandom(12).hex(),
            address=request.client.host if request.client else "-",
            token="",
            section=section,
        )

    async def _answer(self, page: Page, visit: Visit) -> Response:
        if page.method == "POST":
            visit.form = await _form(visit.request)
        await self._recognise(visit)
        if page.method == "POST":
            _demand_same_site(visit)
            sent = visit.form.get(CSRF) or visit.request.headers.get("x-csrf-token", "")
            visit.stale = not same(sent, visit.csrf)
        if visit.me is None and not page.open:
            return self._sign_in_first(visit)
        try:
            return await page.run(visit)
        except StaleForm as stale:
            if visit.wants_json:
                raise
            if visit.me is None:  # on the way in there is nothing to lose but what was typed into this page
                return visit.page("error.html", status=409, title="Send it again", refused=stale, back=visit.path)
            return self._again(visit, str(stale.detail))
        except NeedsPassword:
            return self._confirm_first(visit)

    async def _recognise(self, visit: Visit) -> None:
        """Find the session of the cookie, or give the visitor a token of their own for the forms on the way in."""
        cookies = visit.request.cookies
        if token := cookies.get(visit.cookie("session"), ""):
            visit.me = await self.sessions.find(token, visit.address)
            visit.token = token
        if visit.me is None:
            visit.token = cookies.get(visit.cookie("visitor"), "")
            if len(visit.token) < 43:
                visit.token = new_token()
                visit.cookies.append(("visitor", visit.token, None))

    # --- what stands before a page --------------------------------------------------------------------------------

    def _sign_in_first(self, visit: Visit) -> Response:
        if visit.wants_json:
            return visit.json({"message": "NO_SESSION", "detail": "You are signed out. Sign in again in another tab."}, 401)
        if visit.request.method != "POST":
            back = "" if visit.path == PREFIX else f"?next={quote(visit.path, safe='/')}"
            return RedirectResponse(f"{PREFIX}{SIGN_IN}{back}", 303)
        carried = visit.form.carried()
        said = "Your session has ended. Sign in again; " + (
            "what you typed is kept meanwhile." if carried else "then you can go on where you were."
        )
        return visit.page(
            "sign_in.html",
            status=401,
            title="Sign in",
            next=visit.path,
            carried=carried,
            replay=True,
            login="",
            said=said,
            fault="",
        )

    def _confirm_first(self, visit: Visit) -> Response:
        if visit.wants_json:
            return visit.json({"message": "NEEDS_PASSWORD", "detail": "Enter your password again first."}, 403)
        if visit.request.method != "POST":
            return RedirectResponse(f"{PREFIX}{CONFIRM}?next={quote(visit.path, safe='/')}", 303)
        return visit.page(
            "confirm_password.html",
            status=403,
            title="Enter your password",
            next=visit.path,
            carried=visit.form.carried(),
            replay=True,
            fault="",
        )

    def _again(self, visit: Visit, said: str) -> Response:
        return visit.page(
            "again.html", status=409, title="Send it again", to=visit.path, carried=visit.form.carried(), said=said, sealed=True
        )

    # --- refusals -------------------------------------------------------------------------------------------------

    def _refusal(self, visit: Visit, refused: Refused) -> Response:
        if visit.wants_json:
            faults = [{"field": fault.field, "detail": fault.detail} for fault in refused.faults]
            return visit.json({"message": refused.message, "detail": refused.detail, "faults": faults}, refused.status)
        try:
            response = visit.page("error.html", status=refused.status, title=refused.refusal.title, refused=refused, back="")
        except Exception:  # whatever broke the layout must not hide the refusal
            log.exception("The error page of request %s failed.", visit.request_id)
            response = Response(refused.detail, refused.status, media_type="text/plain")
        response.headers.update(problem_headers(refused))
        return response

    async def _astray(self, request: Request, error: Exception) -> Response:
        """Answer for an address or a method that no page has."""
        visit = self._visit(request)
        try:
            await self._recognise(visit)
        except Refused:
            visit.me = None
        if isinstance(error, HTTPException) and error.headers and (methods := error.headers.get("Allow")):
            detail = "This address takes no such request. Go back and try again from the page."
            refused = Refused("BAD_METHOD", detail, facts={"allow": methods})
        else:
            refused = Refused("NO_ENDPOINT", "There is no such page. It may have been deleted, or the address was cut short.")
        response = self._refusal(visit, refused)
        response.headers["x-request-id"] = visit.request_id
        return visit.dress(response)


async def _form(request: Request) -> Submitted:
    """Read a form, of at most 1 MiB; what is larger is read to its end, within reason, and refused."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body, size = bytearray(), 0
    async for part in request.stream():
        size += len(part)
        if size <= _LARGEST:
            body += part
        elif size > _SWALLOWED:
            break
    if size > _LARGEST:
        raise Refused(
            "BODY_TOO_LARGE",
            "What was sent is larger than 1 MiB, the most that a form of the panel takes. Nothing was changed: "
            "go back, and what you typed is still there to be shortened.",
        )
    if not body:
        return Submitted()
    if kind != _FORM:
        raise Refused("UNSUPPORTED_MEDIA_TYPE", "The panel reads forms as browsers send them, and nothing else.")
    try:
        return Submitted(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise Refused("MALFORMED_REQUEST", "The form could not be read. Go back and send it again.") from error


def _demand_same_site(visit: Visit) -> None:
    """Refuse a write that another site has sent (Fetch Metadata where the browser tells, or else the Origin)."""
    headers = visit.request.headers
    site = headers.get("sec-fetch-site")
    if site is not None:
        good = site in {"same-origin", "none"}
    elif (origin := headers.get("origin")) is not None:
        public = urlsplit(visit.house.settings.public_url or "").netloc
        good = urlsplit(origin).netloc in {headers.get("host", "-"), public or "-"}
    else:
        good = True  # an old browser; the token decides
    if not good:
        raise Refused("NO_PERMISSION", "This form came from another site. Nothing was changed. Open the panel and do it there.")
