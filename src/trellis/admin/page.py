"""What a page is: a method, a path, and a function from a visit to an answer.

A new page is a function and one line in its module's PAGES:

    async def show(visit: Visit) -> Response:
        answer = await visit.perform("blogs.get", target=visit.number("id"))
        return visit.page("blogs/show.html", title=answer.value["name"], blog=answer.value)

    async def rename(visit: Visit) -> Response:
        form = Form((NAME,), visit.form)
        try:
            await visit.perform("blogs.update", form.raw(), target=visit.number("id"))
        except Refused as refused:
            return visit.page("blogs/edit.html", status=400, title="Rename", form=form.at_fault(refused))
        return visit.redirect("/blogs", "Renamed.")

    PAGES = (
        Page("GET", "/blogs/{id:int}", show, section="blogs"),
        Page("POST", "/blogs/{id:int}", rename, section="blogs"),
    )

and the module's name in `admin/pages/__init__.py`. Paths are written without /admin. What the door has seen to before a page
runs: there is a session (unless the page is `open`), a POST came from this site with the session's token, its body is a form
of at most 1 MiB. A POST whose token is stale still runs, with `visit.stale` set: whatever it wants to write is refused with
StaleForm, so that it shows its form again with what was typed, as after any other refusal.
"""

import base64
import binascii
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import parse_qsl

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from trellis.admin.house import House
from trellis.admin.sessions import Sessions, SignedIn, csrf_token, same, seal
from trellis.core.actor import Actor
from trellis.core.fields import MAX_ID
from trellis.core.gate import Result
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.store.engine import Transaction

T = TypeVar("T")

PREFIX: Final = "/admin"
SIGN_IN: Final = "/sign-in"
CONFIRM: Final = "/confirm-password"
_ONCE: Final = "_once"  # the name of the token in forms that shall not be taken twice
CSRF: Final = "csrf"  # the name of the token in forms; scripts send it as X-CSRF-Token
_CARRIED_MOST: Final = 262_144  # characters of a form that are carried through signing in


class StaleForm(Refused):
    """A form whose token is not, or no longer, that of the session. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__(
            "PRECONDITION_FAILED",
            "This form was open for so long that it belongs to an earlier session. Nothing has been changed yet: "
            "what you typed is still here, so look it over and send it again.",
        )


class NeedsPassword(Exception):
    """A page wants the password to have been entered in the last quarter of an hour; the door asks for it."""


class Renderer(Protocol):
    """Fills in templates: see view.py."""

    def render(self, template: str, visit: "Visit", context: Mapping[str, Any]) -> str:
        """Give the HTML of a template."""


class Submitted(Mapping[str, str]):
    """What a form sent: each name with its last value; `all` gives every value of a name."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self.pairs = tuple(pairs)
        self._last = dict(self.pairs)

    def __getitem__(self, name: str) -> str:
        return self._last[name]

    def __iter__(self) -> Any:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def all(self, name: str) -> tuple[str, ...]:
        """Give every value that was sent under a name."""
        return tuple(value for sent, value in self.pairs if sent == name)

    def digest(self, path: str) -> str:
        """Give a digest of a form sent to a path: the same for the same values."""
        sent = sorted(pair for pair in self.pairs if pair[0] != CSRF)
        return blake2b(orjson.dumps([path, sent]), digest_size=16).hexdigest()

    def carried(self) -> tuple[tuple[str, str], ...]:
        """Give what may be carried through another page: everything but tokens and passwords, if it is not too much."""
        kept = tuple((n, v) for n, v in self.pairs if n != CSRF and "password" not in n.lower())
        return kept if sum(len(n) + len(v) for n, v in kept) <= _CARRIED_MOST else ()


@dataclass
class Visit:
    """One request under way, and everything that a page may do.

    `form` is what a POST sent; `me` is None only on pages that are open to all. `cookies` are set on the answer.
    """

    house: House
    sessions: Sessions
    view: Renderer
    request: Request
    request_id: str
    address: str
    token: str
    me: SignedIn | None = None
    form: Submitted = field(default_factory=Submitted)
    stale: bool = False
    section: str = ""
    cookies: list[tuple[str, str, int | None]] = field(default_factory=list)

    # --- what was asked -------------------------------------------------------------------------------------------

    def number(self, name: str) -> int:
        """Give a number from the path; what is too large to be an id is refused as unknown."""
        number = int(self.request.path_params[name])
        if not 1 <= number <= MAX_ID:
            raise Refused("INVALID_ID", f"There is no record with the id {number}.")
        return number

    @property
    def query(self) -> dict[str, str]:
        """The parameters in the address, each with its last value."""
        return dict(parse_qsl(self.request.url.query, keep_blank_values=True))

    @property
    def path(self) -> str:
        """The path and query of this request."""
        url = self.request.url
        return url.path + (f"?{url.query}" if url.query else "")

    @property
    def now(self) -> str:
        """The moment by the gate's clock."""
        return self.house.gate.now()

    @property
    def csrf(self) -> str:
        """The token for this session's forms."""
        return csrf_token(self.token)

    @property
    def wants_json(self) -> bool:
        """Whether a script of ours asks, rather than a person."""
        return "application/json" in self.request.headers.get("accept", "")

    # --- what is done ---------------------------------------------------------------------------------------------

    @property
    def signed_in(self) -> SignedIn:
        """Who is signed in, on a page that is not open to all."""
        if self.me is None:
            raise Refused("NO_PERMISSION", "Sign in first.")
        return self.me

    @property
    def actor(self) -> Actor:
        """The administrator who acts."""
        return self.signed_in.actor

    async def perform(
        self,
        operation: str,
        raw: Mapping[str, Any] | None = None,
        target: int | None = None,
        *,
        reason: str | None = None,
        expected: tuple[str, ...] = (),
        actor: Actor | None = None,
        slow: bool = False,
    ) -> Result:
        """Run an operation as this administrator. Raises Refused, and StaleForm for a write by a stale form.

        A read that may take more than some 10 ms is `slow`: it does not hold up the other requests of this process.
        """
        given = raw or {}
        if self.house.gate.catalogue.find(operation).writes:
            self.demand_fresh()
        call = Call(
            operation, actor or self.actor, given, target, expected=expected, request_id=self.request_id, reason=reason or None
        )
        return await self.house.perform(call, slow=slow)

    async def rehearse(self, operation: str, raw: Mapping[str, Any] | None = None, target: int | None = None) -> Any:
        """Give what a write would do, by a dry run: nothing of it is kept. Raises Refused."""
        call = Call(operation, self.actor, {**(raw or {}), "dryRun": True}, target, request_id=self.request_id)
        return (await self.house.perform(call)).value

    def once(self, *, again: bool = False) -> str:
        """Give the token of a form that shall not be taken twice: the one it came with, or a new one, as for one shown `again`."""
        return ("" if again else self.form.get(_ONCE, "")) or secrets.token_urlsafe(16)

    async def perform_once(self, operation: str, raw: Mapping[str, Any], target: int | None = None) -> Result:
        """Run a write that a form shall not cause twice. It came with the token that `once` had made for it.

        The same form sent again gets the first answer, `replayed` and without secrets. Raises Refused like `perform`, and
        IDEMPOTENCY_KEY_REUSED for a form that has been sent before with other values.
        """
        self.demand_fresh()
        once, fingerprint = f"panel/{self.form.get(_ONCE, '')[:200]}", self.form.digest(self.path)
        call = Call(operation, self.actor, raw, target, request_id=self.request_id, token=once, fingerprint=fingerprint)
        return await self.house.perform(call)

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Read bookkeeping that no operation gives."""
        return await self.house.read(work)

    async def write(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do bookkeeping that changes something: `await visit.write(lambda: visit.sessions.end(digest))`."""
        self.demand_fresh()
        return await work()

    def demand_fresh(self) -> None:
        """Refuse to go on with a stale form; `perform` and `write` do this by themselves."""
        if self.stale or self.request.method != "POST":
            raise StaleForm

    def require_recent_password(self) -> None:
        """Have the password entered again unless that was less than 15 minutes ago.

        The door asks for it and comes back: to a page at once, to a form after showing that it kept what was typed. Call it
        in the page that shows a form as well as in the one that takes it, so that it is asked for before the typing.
        """
        if self.me is None or not self.me.confirmed(self.now):
            raise NeedsPassword

    # --- what is answered -----------------------------------------------------------------------------------------

    def page(self, template: str, *, status: int = 200, **context: Any) -> Response:
        """Answer with a template; see templates/layout.html for what it is given."""
        return Response(self.view.render(template, self, context), status, media_type="text/html")

    def json(self, value: Any, status: int = 200) -> Response:
        """Answer a script."""
        return Response(orjson.dumps(value), status, media_type="application/json")

    def redirect(self, path: str, said: str = "", tone: str = "good", undo: int | None = None) -> Response:
        """Go to another page of the panel, and say there what happened. Tones: good, note, bad; `undo` is an event to take back."""
        if said:
            told = {"text": said[:1000], "tone": tone} | ({} if undo is None else {"undo": str(undo)})
            text = base64.urlsafe_b64encode(orjson.dumps(told)).decode()
            self.cookies.append(("flash", f"{text}.{seal(self.token, text)}", 60))
        return RedirectResponse(PREFIX + path, 303)

    def take_flash(self) -> dict[str, str] | None:
        """Give what the last page had to say, once."""
        from_cookie = self.request.cookies.get(self.cookie("flash"), "")
        if not from_cookie:
            return None
        if not any(name == "flash" for name, _, _ in self.cookies):
            self.cookies.append(("flash", "", 0))
        text, _, signature = from_cookie.partition(".")
        if not same(seal(self.token, text), signature):
            return None
        try:
            return {str(name): str(value) for name, value in orjson.loads(base64.urlsafe_b64decode(text)).items()}
        except (ValueError, binascii.Error, orjson.JSONDecodeError):
            return None

    # --- cookies --------------------------------------------------------------------------------------------------

    @property
    def secure(self) -> bool:
        """Whether the browser reaches the panel under https."""
        public = self.house.settings.public_url or ""
        behind = public.startswith("https://") and public.partition("://")[2].partition("/")[0] == self.request.headers.get("host")
        return self.request.url.scheme == "https" or behind

    def cookie(self, name: str) -> str:
        """Give the full name of one of the panel's cookies: session, visitor, browser, flash."""
        return ("__Host-" if self.secure else "") + f"trellis_{name}"

    def remember_session(self, token: str) -> None:
        """Set the cookie of a session that has begun; the forms of this answer carry its token."""
        self.token = token
        self.cookies.append(("session", token, None))

    def dress(self, response: Response) -> Response:
        """Put the cookies on an answer."""
        for name, value, age in self.cookies:
            response.set_cookie(
                self.cookie(name),
                value,
                max_age=age,
                path="/" if self.secure else PREFIX,
                secure=self.secure,
                httponly=True,
                samesite="lax",
            )
        return response


Handler = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """One method of one path, without /admin. `open` pages need no session; `section` is the entry of the menu that is lit."""

    method: str
    path: str
    run: Handler
    section: str = ""
    open: bool = False


def within(path: str) -> str:
    """Give a path to come back to, without /admin, if it lies in the panel; the overview otherwise."""
    inside = path == PREFIX or path.startswith((PREFIX + "/", PREFIX + "?"))
    plain = path.isascii() and path.isprintable() and "\\" not in path and "//" not in path.partition("?")[0]
    return path.removeprefix(PREFIX) if inside and plain else ""
