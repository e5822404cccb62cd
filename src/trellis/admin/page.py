"""A page: a method, a path, and a function from a request to a response.

A new page is a function and one line in its module's PAGES:

    async def show(request: PageRequest) -> Response:
        blog = await request.fetch("blogs.get", target=request.number("id"))
        return request.page("blogs/show.html", title=blog["name"], blog=blog)

    async def rename(request: PageRequest) -> Response:
        form = Form((NAME,), request.form)
        try:
            await request.perform("blogs.update", form.raw(), target=request.number("id"))
        except Refused as refused:
            return request.page("blogs/edit.html", title=say("Rename"), form=form.add_refusal(refused))
        return request.redirect("/blogs", say("Renamed."))

    PAGES = (
        Page("GET", "/blogs/{id:int}", show, section="blogs", needs=("blogs.get",)),
        Page("POST", "/blogs/{id:int}", rename, section="blogs", needs=("blogs.update",)),
    )

A new module's PAGES are listed in `admin/sections.py`, and a new section has an entry in the menu, in `admin/rendering.py`. Before
a page runs, the panel has made sure that there is a session, unless the page is `open`, and that a POST came from this site and is
no larger than the page allows. A POST whose token does not match runs as `request.stale`: its writes raise StaleForm.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from trellis.admin import PREFIX
from trellis.admin.forms import Form
from trellis.admin.live import Watcher
from trellis.admin.runner import PasswordNeeded, Runner
from trellis.admin.sessions import csrf_token, cut_to_cookie, read_cookie, seal, unseal
from trellis.admin.submitted import SentBefore, StaleForm, Submitted, show_typed
from trellis.admin.times import Clock, find_clock
from trellis.core.actor import Actor
from trellis.core.admins import SignedIn, address_lane
from trellis.core.catalogue import Catalogue
from trellis.core.fields import MAX_ID
from trellis.core.gate import Gate, Result
from trellis.core.keys import redact_beginning, tidy_reason
from trellis.core.nodes import NodeKind
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.languages import ENGLISH, Language
from trellis.openid import Provider
from trellis.sentences import say
from trellis.traces import find_traceparent, log_fields

P = ParamSpec("P")
T = TypeVar("T")

_MAX_PARAMETERS: Final = 500
SIGN_IN: Final = "/sign-in"
CONFIRM: Final = "/confirm-password"
CHOOSE: Final = "/new-password"
FACTORS: Final = "/account/second-factor"
FIRST_STEPS: Final = {  # what a session may have to do first: its attribute, with the page for it and the message to scripts
    "must_change_password": (CHOOSE, say("Choose your own password first.")),
    "must_add_factor": (FACTORS, say("Set up a second factor first.")),
}
LANGUAGE: Final = "language"  # the cookie with the language that was chosen before signing in


class Renderer(Protocol):
    """Renders templates: see rendering.py."""

    def render(self, template: str, request: "PageRequest", context: Mapping[str, Any]) -> str:
        """Return the HTML of a template."""

    def may_open(self, request: "PageRequest", path: str) -> bool:
        """Return whether the administrator may open the page at a path."""

    def menu_of(self, request: "PageRequest") -> Any:
        """Return the entries of the menu, by heading."""


@dataclass
class PageRequest:
    """One request for a page, and everything that a page may do.

    `provider` is the OpenID provider for single sign-on, if there is one. `http` is Starlette's request, `form` the form of a POST.
    `me` is None only on pages that are open to all. Texts are in `language`. `cookies` are set on the response. `waiting` is the
    number of things that wait for somebody, by section of the menu. `live` are the topics of the news that keep the page up to
    date, and `position` is the position of the news that it includes.
    """

    runner: Runner
    watcher: Watcher
    provider: Provider | None
    view: Renderer
    http: Request
    request_id: str
    address: str
    token: str
    me: SignedIn | None = None
    form: Submitted = field(default_factory=Submitted)
    stale: bool = False
    section: str = ""
    language: Language = ENGLISH
    cookies: list[tuple[str, str, int | None]] = field(default_factory=list)
    waiting: Mapping[str, int] = field(default_factory=dict)
    live: tuple[str, ...] = ()
    position: str = ""

    def number(self, name: str) -> int:
        """Return a number from the path. Raises Refused (INVALID_ID) if it is too small or too large to be an id."""
        number = int(self.http.path_params[name])
        if not 1 <= number <= MAX_ID:
            raise Refused("INVALID_ID", say("There is no record with the id {id}.", id=number))
        return number

    @cached_property
    def query(self) -> dict[str, str]:
        """The parameters in the address, each with its last value. Raises Refused if there are too many."""
        try:
            return dict(parse_qsl(self.http.url.query, keep_blank_values=True, max_num_fields=_MAX_PARAMETERS))
        except ValueError:
            told = say("The address has more than {max_parameters} parameters.", max_parameters=_MAX_PARAMETERS)
            raise Refused("MALFORMED_REQUEST", told) from None

    @property
    def reason(self) -> str:
        """The reason that was typed beside the button of an action. The event of the action records it."""
        return tidy_reason(self.form.get("_reason", ""))

    @property
    def path(self) -> str:
        """The path and query of this request."""
        url = self.http.url
        return url.path + (f"?{url.query}" if url.query else "")

    def trace(self, call: Call) -> Call:
        """Return a call with the id and the trace of this request, which its event and the log contain."""
        return call._replace(request_id=self.request_id, traceparent=find_traceparent(self.http.headers.raw))

    @property
    def log_fields(self) -> dict[str, str | None]:
        """The fields that identify this request in a line of the log."""
        return log_fields(self.request_id, find_traceparent(self.http.headers.raw))

    @property
    def csrf(self) -> str:
        """The token for this session's forms."""
        return csrf_token(self.token)

    @property
    def wants_json(self) -> bool:
        """Whether one of the panel's scripts sent this, rather than a person."""
        return any(kind in self.http.headers.get("accept", "") for kind in ("application/json", "text/event-stream"))

    @property
    def is_background(self) -> bool:
        """Whether the page sent this by itself: it neither counts as use of the session nor shows the last page's message."""
        return "x-panel-background" in self.http.headers

    @property
    def gate(self) -> Gate:
        """The gate that operations go through."""
        return self.runner.gate

    @property
    def catalogue(self) -> Catalogue:
        """All operations."""
        return self.gate.catalogue

    @property
    def kinds(self) -> tuple[NodeKind, ...]:
        """The kinds of nodes in this community."""
        return self.gate.environment.kinds

    @property
    def now(self) -> str:
        """The time by the gate's clock."""
        return self.gate.now()

    # --- who is signed in -----------------------------------------------------------------------------------------

    @property
    def signed_in(self) -> SignedIn:
        """The administrator who is signed in. Raises Refused (NO_PERMISSION) if nobody is, as on pages that are open to all."""
        if self.me is None:
            raise Refused("NO_PERMISSION", say("Sign in first."))
        return self.me

    @property
    def actor(self) -> Actor:
        """The administrator who acts."""
        return self.signed_in.actor

    @cached_property
    def clock(self) -> Clock:
        """The time zone in which pages show and read times."""
        zone, shows_utc = (self.me.zone, self.me.shows_utc) if self.me else ("", False)
        return find_clock(zone, self.read_cookie("zone"), shows_utc=shows_utc, language=self.language)

    def take_session(self, token: str) -> None:
        """Give this browser the cookie of a session; the forms of this response carry its token."""
        self.token = token
        self.cookies.append(("session", token, None))

    @property
    def agent(self) -> str:
        """The User-Agent header of the browser, shortened to 300 characters, without control characters and keys."""
        return redact_beginning("".join(c for c in self.http.headers.get("user-agent", "") if c.isprintable()), 300)

    def require_recent_password(self) -> None:
        """Require that the password was entered less than 15 minutes ago, on a page that only sometimes `confirms`.

        If it was not, the panel asks for it and then comes back: to a page at once, to a form after showing that it kept what was
        typed.
        """
        if self.me is None or not self.me.has_confirmed(self.now):
            raise PasswordNeeded

    # --- operations -----------------------------------------------------------------------------------------------

    async def perform(
        self,
        operation: str,
        raw: Mapping[str, Any] | None = None,
        target: int | None = None,
        *,
        reason: str | None = None,
        expected: tuple[str, ...] = (),
        actor: Actor | None = None,
        check_plan: Callable[[Any], None] | None = None,
    ) -> Result:
        """Run an operation as this administrator. Raises Refused, and StaleForm for a write by a stale form.

        Before a write is committed, `check_plan` is given what a dry run would return, and may refuse it.
        """
        if self.catalogue.find(operation).writes:
            self.require_fresh_form()
        call = Call(
            operation,
            actor or self.actor,
            raw or {},
            target,
            expected=expected,
            reason=reason or None,
            waits_as="" if self.me else address_lane(self.address),
            check_plan=check_plan,
        )
        return await self.runner.perform(self.trace(call), size=self.form.size)

    async def fetch(
        self, operation: str, raw: Mapping[str, Any] | None = None, target: int | None = None, *, slow: bool = False
    ) -> Any:
        """Return the value of an operation that reads. A `slow` one, of more than about 10 ms, runs in a thread. Raises Refused."""
        call = self.trace(Call(operation, self.actor, raw or {}, target))
        return (await self.runner.perform(call, slow=slow)).value

    async def find(self, operation: str, target: int) -> Any:
        """Return the record that an operation reads; None if there is none, or none for this person. Raises Refused otherwise."""
        try:
            return await self.fetch(operation, target=target)
        except Refused as refused:
            if refused.status < 500:
                return None
            raise

    async def dry_run(self, operation: str, raw: Mapping[str, Any] | None = None, target: int | None = None) -> Any:
        """Return what a write would do, without saving anything. Raises Refused."""
        call = self.trace(Call(operation, self.actor, {**(raw or {}), "dryRun": True}, target))
        return (await self.runner.perform(call, size=self.form.size)).value

    def submission_token(self, *, renew: bool = False) -> str:
        """Return the token of a form that must not take effect twice: that with which it was sent, or a new one if that is used."""
        return ("" if renew or self.form.is_used else self.form.submission) or secrets.token_urlsafe(16)

    async def perform_once(
        self,
        operation: str,
        raw: Mapping[str, Any],
        target: int | None = None,
        *,
        reason: str | None = None,
        check_plan: Callable[[Any], None] | None = None,
    ) -> Result:
        """Run a write that a form must not cause twice; the form has `ui.hidden(once=true)`.

        The same form sent again, or twice at once, gets the first result, `replayed` and without secrets. Raises Refused like
        `perform`, and SentBefore for a form that was sent before with other values.
        """
        self.require_fresh_form()
        call = self._claim(Call(operation, self.actor, raw, target, reason=reason or None, check_plan=check_plan))
        try:
            return await self.runner.perform_once(call, size=self.form.size)
        except SentBefore:
            self.form.is_used = True
            raise

    async def find_done(self, operation: str) -> Any:
        """Return what the operation returned when this form was sent before; None if it was not."""
        return None if self.stale else await self.runner.find_response(self._claim(Call(operation, self.actor, {})))

    def _claim(self, call: Call) -> Call:
        call, sent = self.trace(call), self.form.submission
        return call._replace(token=f"panel/{sent}", fingerprint=self.form.digest(self.path, self.token)) if sent else call

    async def write(self, function: Callable[Concatenate[Gate, P], Future[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that writes bookkeeping: `await request.write(end_session, digest)`. Raises StaleForm."""
        self.require_fresh_form()
        return await self.runner.write(function, *args, **kwargs)

    def require_fresh_form(self) -> None:
        """Refuse a stale form, and a request that is not a POST. Raises StaleForm. `perform` and `write` do this by themselves."""
        if self.stale or self.http.method != "POST":
            raise StaleForm(None if self.me is None else self.me.name, typed=bool(show_typed(self.form.carried())))

    # --- responses ------------------------------------------------------------------------------------------------

    def page(self, template: str, *, status: int | None = None, **context: Any) -> Response:
        """Respond with a template; see templates/layout.html for its context. Unless given, the status is that of its `form`."""
        form = context.get("form")
        status = status or (form.status if isinstance(form, Form) else 200)
        return Response(self.view.render(template, self, context), status, media_type="text/html")

    async def large_page(self, template: str, *, status: int | None = None, **context: Any) -> Response:
        """Respond with a template that may take long to render: other requests do not wait for it."""
        return await asyncio.to_thread(self.page, template, status=status, **context)

    def json(self, value: Any, status: int = 200) -> Response:
        """Respond to a script with a value as JSON."""
        return Response(self.language.encode(value), status, media_type="application/json")

    def redirect(
        self, path: str, message: str = "", tone: str = "good", undo: int | None = None, link: tuple[str, str] | None = None
    ) -> Response:
        """Redirect to another page of the panel, and show a message there. Tones: good, note, bad.

        The message can have a link that undoes the event `undo`, or another `link`, given as a text and a path.
        """
        if message:
            flash = {"text": cut_to_cookie(self.language.sentence(message)), "tone": tone}
            if undo is not None:
                link = say("Undo…"), f"/events/{undo}/undo"
            if link is not None and self.view.may_open(self, link[1]):
                flash |= {"link": self.language.sentence(link[0]), "path": link[1]}
            self.cookies.append(("flash", seal(self.token, flash), 60))
        return RedirectResponse(PREFIX + path, 303)

    def take_flash(self) -> dict[str, str] | None:
        """Return the message that the last page left, and remove it."""
        from_cookie = self.read_cookie("flash")
        if not from_cookie or self.is_background:
            return None
        if not any(name == "flash" for name, _, _ in self.cookies):
            self.cookies.append(("flash", "", 0))
        return unseal(self.token, from_cookie)

    @property
    def is_secure(self) -> bool:
        """Whether the browser reaches the panel over https."""
        return self.http.url.scheme == "https" or self.runner.settings.is_https

    def cookie(self, name: str) -> str:
        """Return the full name of one of the panel's cookies, such as session, visitor, browser or flash."""
        return ("__Host-" if self.is_secure else "") + f"trellis_{name}"

    def read_cookie(self, name: str) -> str:
        """Return one of the panel's cookies; "" if it was not sent."""
        return read_cookie(self.http.headers, self.cookie(name))


@dataclass(frozen=True, slots=True)
class Page:
    """One method of one path, without /admin. `open` pages need no session; `section` is the menu entry that is marked.

    A page comes after the FIRST_STEPS of a session, that is, after a password that somebody else has chosen was changed, and a
    second factor was set up where one is required, unless it comes `before` them. `most_bytes` is how large its forms may be if
    they are sent as multipart/form-data, which other pages do not accept. `live` are the topics of `core.news` that it shows;
    `{id}` in a topic is the id in the path. Scripts call a `background` page on their own. `needs` are the operations without which
    nobody may open it. Before a page that `confirms`, with a form or receiving one, the panel asks for the password.
    A form for a page that `renews` gives the session a new cookie.
    """

    method: str
    path: str
    run: Callable[[PageRequest], Awaitable[Response]]
    section: str = ""
    open: bool = False
    before: Collection[str] = ()
    most_bytes: int = 0
    live: tuple[str, ...] = ()
    background: bool = False
    needs: tuple[str, ...] = ()
    confirms: bool = False
    renews: bool = False
