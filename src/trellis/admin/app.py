"""The panel as a web application: the checks before every page, and the headers and cookies of every response.

Order of checks: the session, or the visitor's token → the site that sent the form → the body's size → the form's token → the page.
The body is read only if there is a session or such a token.
"""

import logging
import os
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, compile_path

from trellis.admin import PREFIX
from trellis.admin.admins import ask_for_password, ask_to_sign_in, find_panel_path, show_kept_form, use_language
from trellis.admin.allowed import Allowed
from trellis.admin.form_body import LargeForms, read_form
from trellis.admin.languages import list_languages
from trellis.admin.live import Watcher
from trellis.admin.page import CONFIRM, FIRST_STEPS, SIGN_IN, Page, PageRequest
from trellis.admin.rendering import View
from trellis.admin.runner import PasswordNeeded, Runner, SignInNeeded
from trellis.admin.sections import pages_of
from trellis.admin.sessions import find_signed_in, is_equal, set_cookie
from trellis.admin.static import Static
from trellis.admin.submitted import CSRF, StaleForm, find_status, show_typed
from trellis.core.admins import generate_visitor_token, is_visitor_token
from trellis.core.alarms import count_unread
from trellis.core.filters import PLACES
from trellis.core.gate import Gate
from trellis.core.keys import redact_keys
from trellis.core.news import format_position, read_position
from trellis.core.proposals import count_open
from trellis.errors import Refused, drop_tracebacks, refuse_out_of_memory
from trellis.http.api import PAGE, PAGE_REFUSAL, RequestCounts, accept_request_id
from trellis.http.asgi import Receive, Scope, Send
from trellis.http.problems import problem_headers
from trellis.http.sending import send_body
from trellis.openid import Provider
from trellis.sentences import mark, say
from trellis.settings import Settings

log = logging.getLogger(__name__)


_MAX_PATH: Final = 1000  # characters; no page has a longer path, and Python does not convert numbers of several thousand digits
_GO_ON: Final = say("Then you can continue where you left off.")
_LOST: Final = say("What you typed was too long to be kept: enter it again afterwards.")
_UNREAD: Final = say("What you typed could not be kept: enter it again afterwards.")
_LOST_WITH_SESSION: Final = mark(
    "{why} Nothing has been changed. What you typed is too long to be kept: go back, reload the page and enter it again."
)
_STALE_PAGE: Final = say("This page belongs to an earlier session. Nothing was changed. Reload the page and try again.")
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


def build_routes(pages: tuple[Page, ...]) -> list[Route]:
    """Return the routes of pages. Each request finds the panel that it is for in its application, so that panels can share them."""
    return [Route(PREFIX + page.path, _endpoint(page), methods=[page.method]) for page in pages]


def _endpoint(page: Page) -> Callable[[Request], Awaitable[Response]]:
    path = PREFIX + (compile_path(page.path)[1] or "/")

    async def serve(http: Request) -> Response:
        panel: Panel = http.app.state.panel
        return await panel.serve(page, path, http)

    return serve


class Panel:
    """The panel, served under /admin."""

    def __init__(self, gate: Gate, settings: Settings, counts: RequestCounts | None = None, runner: Runner | None = None) -> None:
        self.counts = counts
        self.runner = runner or Runner(gate, settings)
        self.headers = (*_HEADERS, *settings.transport_headers)
        self.provider = Provider(settings) if settings.sso_issuer else None
        self.watcher = Watcher(self.runner)
        self.large_forms = LargeForms()
        self.static = Static(f"{PREFIX}/static")
        self.pages = pages_of(gate.catalogue, gate.environment.kinds)
        allowed = Allowed(self.pages)
        self.view = View(gate.catalogue, gate.environment.kinds, gate.environment.community_name, self.static, allowed)
        self.app = Starlette(
            routes=[
                Route(f"{PREFIX}/static/{{digest}}/{{name}}", self.static.serve, methods=["GET"]),
                *build_routes(self.pages),
            ],
            exception_handlers={HTTPException: self._no_such_page},
        )
        self.app.state.panel = self
        self.app.router.redirect_slashes = False

    def end(self) -> None:
        """End the streams of news, which would otherwise stay open: the process is about to end."""
        self.watcher.end()

    async def __call__(self, outer: Scope, receive: Receive, send: Send) -> None:
        started, answered, status = time.perf_counter_ns(), 0, 0

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            nonlocal answered, status
            if message["type"] == "http.response.start":
                answered, status = time.perf_counter_ns(), message["status"]  # a stream of news can stay open for hours
                headers = message["headers"]
                present = {name.lower() for name, _ in headers}
                headers.extend(pair for pair in self.headers if pair[0] not in present)
                if b"cache-control" not in present:
                    headers.append((b"cache-control", b"no-store"))
                await send(message)
            elif message["type"] == "http.response.body" and not message.get("more_body"):
                await send_body(send, message.get("body", b""))
            else:
                await send(message)

        scope = outer
        if outer["type"] == "http" and (outer["path"].endswith("/") or len(outer["path"]) > _MAX_PATH):
            scope = {**outer, "path": outer["path"][:_MAX_PATH].rstrip("/"), "raw_path": None}
        try:
            await self.app(scope, receive, send_with_headers)
        finally:
            self.large_forms.release(scope)
            page = outer[PAGE] = scope.get(PAGE, "")
            if self.counts is not None and status:
                duration = (answered - started) // 1000
                self.counts.count(PREFIX[1:], page.removeprefix(PREFIX), status, duration, scope.get(PAGE_REFUSAL), None)

    # --- one page -------------------------------------------------------------------------------------------------

    async def serve(self, page: Page, path: str, http: Request) -> Response:
        """Respond to a request for a page; `path` is that of its route, as it is counted."""
        http.scope[PAGE] = path
        request = self._page_request(http, page.section)
        try:
            response = await self._run(page, request)
        except Refused as refused:
            response = self._refusal(request, refused)
        except ClientDisconnect:
            response = Response(status_code=400)
        except MemoryError:
            log.error("Request %s to the panel failed: there was too little memory.", request.request_id, extra=request.log_fields)  # noqa: TRY400
            response = self._refusal(request, refuse_out_of_memory())
        except Exception:
            log.exception("Request %s to the panel failed.", request.request_id, extra=request.log_fields)
            response = self._refusal(request, Refused("INTERNAL_ERROR", say("The panel ran into an error. Nothing was changed.")))
        return _finish(request, response)

    def _page_request(self, http: Request, section: str = "") -> PageRequest:
        sent = http.headers.get("x-request-id", "").encode("latin-1")
        return PageRequest(
            runner=self.runner.serving(http.receive),
            watcher=self.watcher,
            provider=self.provider,
            view=self.view,
            http=http,
            request_id=accept_request_id(sent) or os.urandom(12).hex(),
            address=http.client.host if http.client else "-",
            token="",
            section=section,
        )

    async def _run(self, page: Page, request: PageRequest) -> Response:
        is_known = await self._find_session(request, records=not (page.background or request.is_background))
        await use_language(request)
        if page.method == "POST":
            _require_same_site(request)
            if is_known:
                self.large_forms.hold(request.http, None if request.me is None else request.me.id)
                request.form = await read_form(request.http, page.most_bytes, signed_in=request.me is not None)
            sent = request.form.get(CSRF) or request.http.headers.get("x-csrf-token", "")
            request.stale = not is_equal(sent, request.csrf)
        if request.me is None and not page.open:
            return self._sign_in_first(page, request)
        if not page.open and (response := self._find_first_step(page, request)):
            return response
        self._require_role(page, request)
        if request.me is not None and not request.wants_json:
            await self._prepare(page, request)
        return await self._run_page(page, request)

    async def _run_page(self, page: Page, request: PageRequest) -> Response:
        """Run a page, or ask first for what it turns out to need: a fresh form, the password or a new session."""
        try:
            if page.confirms:
                request.require_recent_password()
            return await page.run(request)
        except StaleForm as stale:
            if request.wants_json:
                raise Refused(stale.message, _STALE_PAGE) from None
            if request.me is None:  # before signing in, only what was typed into this one page can be lost
                lost = {"title": say("Send it again"), "back": request.path, "shown": show_typed(request.form.carried())}
                return request.page("error.html", status=find_status(stale), refused=stale, **lost)
            return self._resend(request, stale)
        except PasswordNeeded:
            return self._confirm_first(request)
        except SignInNeeded:
            await self._welcome_visitor(request)
            return self._sign_in_first(page, request)

    def _require_role(self, page: Page, request: PageRequest) -> None:
        """Refuse a page that needs an operation which the role does not have. Raises Refused (ROLE_NEEDED)."""
        for name in page.needs:
            self.runner.gate.authorise(name, request.actor, request.http.path_params.get("id"))

    async def _prepare(self, page: Page, request: PageRequest) -> None:
        """Read what the layout shows, and the position from which the page is kept up to date.

        This comes before the page, which may show later changes as well.
        """
        request.waiting = {"alarms": await self.runner.read(count_unread, request.actor)}
        request.waiting |= {"proposals": await self.runner.read(count_open)} if request.actor.may("proposals.list") else {}
        if page.live and PLACES.isdisjoint(request.query):  # nothing is added to an older part of a list
            request.live = tuple(topic.format_map(request.http.path_params) for topic in page.live)
            request.position = format_position(await self.runner.read(read_position, request.actor))

    async def _find_session(self, request: PageRequest, *, records: bool = True) -> bool:
        """Find the session of the cookie and record its use, or give the visitor a token for the forms that are open to all.

        Return whether the request came with a session or such a token.
        """
        if token := request.read_cookie("session"):
            request.me = await find_signed_in(self.runner, token, request.address, records=records)
            request.token = token
        return request.me is not None or await self._welcome_visitor(request)

    async def _welcome_visitor(self, request: PageRequest) -> bool:
        """Give a visitor without a session a token for the forms that are open to all; return whether they had one already."""
        request.me = None
        visitor = request.read_cookie("visitor")
        is_known: bool = visitor != "" and await self.runner.read(is_visitor_token, visitor)
        if is_known:
            request.token = visitor
            return True
        request.token = await self.runner.read(generate_visitor_token)
        request.cookies.append(("visitor", request.token, None))
        return False

    # --- pages that come before another ---------------------------------------------------------------------------

    def _sign_in_first(self, page: Page, request: PageRequest) -> Response:
        if request.wants_json:
            return request.json({"message": "NO_SESSION", "detail": say("You are signed out. Sign in again in another tab.")}, 401)
        if request.http.method != "POST":
            back = "" if request.path == PREFIX else f"?next={quote(redact_keys(request.path), safe='/')}"
            return RedirectResponse(f"{PREFIX}{SIGN_IN}{back}", 303)
        if page.renews and request.form.size and request.form.get("replay") != "1":  # it carries nothing that would be lost
            # If the form was sent twice, the browser may have the cookie of the first response by the time of the redirect.
            return request.redirect(find_panel_path(request.form.get("next", request.path)))
        carried = request.form.carried()
        is_unread = not request.form.size  # this browser has lost its cookies, and forms of unknown visitors are not read
        is_lost = is_unread or request.form.is_too_large_to_carry
        lost = _UNREAD if is_unread else _LOST
        then = lost if is_lost else say("What you typed is kept.") if show_typed(carried) else _GO_ON
        note = say("Your session has ended. Sign in again. {then}", then=then)
        return ask_to_sign_in(request, request.path, carried, replay=not is_lost, note=note, status=401)

    def _find_first_step(self, page: Page, request: PageRequest) -> Response | None:
        """Return a response that leads to what has to be done before this page; None if there is nothing."""
        for must, (path, detail) in FIRST_STEPS.items():
            if getattr(request.me, must) and must not in page.before:
                return (
                    request.json({"message": "NEEDS_PASSWORD", "detail": detail}, 403)
                    if request.wants_json
                    else request.redirect(path)
                )
        return None

    def _confirm_first(self, request: PageRequest) -> Response:
        if request.wants_json:
            return request.json({"message": "NEEDS_PASSWORD", "detail": say("Enter your password again first.")}, 403)
        if request.http.method != "POST":
            return RedirectResponse(f"{PREFIX}{CONFIRM}?next={quote(request.path, safe='/')}", 303)
        is_lost = request.form.is_too_large_to_carry
        fault = _LOST if is_lost else ""
        return ask_for_password(request, request.path, request.form.carried(), replay=not is_lost, fault=fault, status=403)

    def _resend(self, request: PageRequest, stale: StaleForm) -> Response:
        if request.form.is_too_large_to_carry:
            return self._refusal(request, Refused(stale.message, say(_LOST_WITH_SESSION, why=stale.why)))
        title, carried = say("Send it again"), request.form.carried()
        return show_kept_form(request, title, request.path, carried, stale.detail, with_token=True, status=find_status(stale))

    # --- refusals -------------------------------------------------------------------------------------------------

    def _refusal(self, request: PageRequest, refused: Refused, title: str = "") -> Response:
        drop_tracebacks(refused)
        request.http.scope[PAGE_REFUSAL] = refused.message
        if request.wants_json:
            faults = [{"field": fault.field, "detail": fault.detail} for fault in refused.faults]
            told = {"message": refused.message, "detail": refused.detail, "faults": faults, "moreFaults": refused.more_faults}
            return request.json(told, refused.status)
        try:
            shown = show_typed(request.form.carried()) if request.me is not None else []
            title = title or say(refused.refusal.title)
            response = request.page("error.html", status=find_status(refused), title=title, refused=refused, back="", shown=shown)
        except Exception:  # whatever broke the layout must not hide the refusal
            log.exception("The error page of request %s failed.", request.request_id, extra=request.log_fields)
            response = Response(request.language.sentence(refused.detail), refused.status, media_type="text/plain")
        response.headers.update(problem_headers(refused))
        return response

    async def _no_such_page(self, http: Request, error: Exception) -> Response:
        """Respond to an address or a method for which there is no page."""
        request = self._page_request(http)
        try:
            await self._find_session(request)
        except Refused:
            request.me = None
        await use_language(request)
        if isinstance(error, HTTPException) and error.headers and (methods := error.headers.get("Allow")):
            detail = say("This address does not accept this kind of request. Go back and try again from the page.")
            refused = Refused("BAD_METHOD", detail, facts={"allow": methods})
            return _finish(request, self._refusal(request, refused))
        detail = say("This page does not exist. It may have been deleted, or the address may be incomplete.")
        # The usual title of this refusal mentions endpoints, but the reader is looking for a page.
        return _finish(request, self._refusal(request, Refused("NO_ENDPOINT", detail), title=say("Page not found")))


def _finish(request: PageRequest, response: Response) -> Response:
    response.headers["x-request-id"] = request.request_id
    if len(list_languages()) > 1 and response.media_type == "text/html":
        response.headers["content-language"] = request.language.code
        response.headers["vary"] = "Accept-Language"
    for name, value, age in request.cookies:
        set_cookie(response, request.cookie(name), value, age, secure=request.is_secure)
    return response


def _require_same_site(request: PageRequest) -> None:
    """Refuse a form that another site has sent, judged by Fetch Metadata if the browser sends them, otherwise by Origin."""
    headers = request.http.headers
    site = headers.get("sec-fetch-site")
    if site is not None:
        same = site in {"same-origin", "none"}
    elif (origin := headers.get("origin")) is not None:
        public = urlsplit(request.runner.settings.public_url or "").netloc
        same = _find_host(origin) in {headers.get("host", "-"), public or "-"}
    else:
        same = True  # an old browser; the token decides
    if not same:
        raise Refused(
            "NO_PERMISSION", say("This form came from another site. Nothing was changed. Open the panel and do it there.")
        )


def _find_host(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None
