"""Removes from a page every link, button and form that would be refused to an administrator because of their role.

Pages name the operations that they need, and the rest follows from that: links in a row of buttons and forms without fields are
left out, other links are replaced by their text, and other forms show their values but are disabled. Templates call `allows(…)`
only for what is neither a link nor a form.

A page is read tag by tag, with each quoted value as a whole, so that text and values stay unchanged: templates escape them. The
standard library's parser would need a quarter of a second for a tree of a thousand nodes.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from html import escape, unescape
from typing import Final
from urllib.parse import unquote

from starlette.routing import compile_path

from trellis.admin import PREFIX
from trellis.admin.page import Page, PageRequest
from trellis.core.operation import is_allowed
from trellis.core.roles import OWN

_ATTRIBUTES: Final = r"""((?:[^"'<>]++|"[^"]*"|'[^']*')*+)"""
_INNER: Final = r"((?:[^<]++|<(?!/{0}>))*+)</{0}>"
_ATTRIBUTE: Final = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+)))?""")
_SPACED: Final = re.compile(rf"\s*{_ATTRIBUTE.pattern}")
_START: Final = re.compile(rf"<([a-z][a-z0-9-]*){_ATTRIBUTES}>", re.IGNORECASE)
_TAG: Final = re.compile(rf"</?[a-z]{_ATTRIBUTES}>", re.IGNORECASE)
_LINK: Final = re.compile(rf"<a(?=[\s>]){_ATTRIBUTES}>{_INNER.format('a')}")
_HREF: Final = re.compile(r"""(?:\s+(?!href=)[^\s"'<>/=]++(?:="[^"]*")?+)*+\s+href="([^"]*)\"""")  # as templates write it
_ALONE: Final = re.compile(rf"<p(?=[\s>]){_ATTRIBUTES}>\s*(<a(?=[\s>]){_ATTRIBUTES}>(?:(?!</a>|</p>).)*</a>)\s*</p>", re.DOTALL)
_FORM: Final = re.compile(rf"<form(?=[\s>]){_ATTRIBUTES}>{_INNER.format('form')}")
_BUTTON: Final = re.compile(rf"<button(?=[\s>]){_ATTRIBUTES}>{_INNER.format('button')}")
_OUTER: Final = re.compile(rf'<(input|select|textarea)(?=[^<>]*\sform="){_ATTRIBUTES}>')  # outside its form
_CONTROLS: Final = frozenset(
    ("input", "select", "textarea", "button")
)  # each is disabled: a disabled fieldset would do for browsers, but not for axe
# Those that may stay: scripts add no controls for them.
_PLAIN: Final = frozenset(("data-row", "data-part", "data-time", "data-ago", "data-due"))
_PATH: Final = re.compile(rf'"({PREFIX}[^"<>?#\s]*)')  # templates put every address in double quotes
_NUMBER: Final = re.compile(r"(?<=/)[0-9]+(?=[/\n]|$)")
_MOST_SHAPES: Final = 2000  # of paths, whose pages are kept in memory
_LONGEST: Final = 1000  # characters of a path: no page has a longer one, but what somebody has typed into a form can look like one
_MOST_SUSPECTED: Final = 100


class Allowed:
    """Judges addresses by the operations that their pages need."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._routes = [(page.method, compile_path(PREFIX + page.path)[0], page.needs) for page in pages]
        self._match_once = lru_cache(_MOST_SHAPES)(self._match)

    def may(self, request: PageRequest, operation: str, target: int | None = None) -> bool:
        """Return whether the administrator who is signed in may run an operation, on the record `target` if one is given."""
        return request.me is not None and is_allowed(request.catalogue.find(operation), request.me.actor, target)

    def may_open(self, request: PageRequest, path: str, method: str = "GET") -> bool:
        """Return whether the administrator may open the page at an address, given without /admin. True if there is no such page."""
        path = _clean(path)
        route, needs = self._find(method, path)
        if route is None or not needs:
            return True
        found = route.match(path)
        number = found.groupdict().get("id") if found else None
        target = int(number) if number and number.isdecimal() and len(number) < 20 else None
        return all(self.may(request, name, target) for name in needs)

    def is_page(self, path: str) -> bool:
        """Return whether there is a page at an address, given without /admin, that can be opened without sending a form."""
        return self._find("GET", _clean(path))[0] is not None

    def asks_whose(self, path: str, method: str) -> bool:
        """Return whether it matters whose record an address is about: everybody may run some operations on their own account."""
        return not OWN.isdisjoint(self._find(method, _clean(path))[1])

    def _find(self, method: str, path: str) -> tuple[re.Pattern[str] | None, tuple[str, ...]]:
        """Return the route of a path and the operations that its page needs; None and no operations if there is no such page."""
        return self._match_once(method, _NUMBER.sub("0", path)) if len(path) <= _LONGEST else (None, ())

    def _match(self, method: str, path: str) -> tuple[re.Pattern[str] | None, tuple[str, ...]]:
        """Return the first route that matches a path, as the panel does. No route has a fixed number, so 0 stands for any."""
        found = ((route, needs) for one, route, needs in self._routes if one == method and route.match(path))
        return next(found, (None, ()))

    def leave_out(self, html: str, request: PageRequest) -> str:
        """Return a page without the parts that would be refused. Owners see the whole page."""
        return html if request.me is None or request.me.permit is None else _Rewriter(self, request).rewrite(html)


def _clean(path: str) -> str:
    """Return the path of an address, with /admin, as the panel matches it."""
    return PREFIX + unquote(path.partition("#")[0].partition("?")[0]).rstrip("/")


class _Rewriter:
    """Rewrites one page for one role."""

    def __init__(self, allowed: Allowed, request: PageRequest) -> None:
        self._allowed = allowed
        self._request = request
        self._judged: frozenset[str] = frozenset()
        self._suspected: list[str] = []  # paths that may not be opened with GET, with 0 for any number
        self._closed: dict[str, set[str]] = {"GET": set(), "POST": set()}
        self._forms: dict[str, tuple[str, str, bool]] = {}  # by id: its action, its method, and whether it is disabled

    def rewrite(self, html: str) -> str:
        self._judge(html)
        if not any(self._closed.values()):
            return html
        html = _FORM.sub(self._change_form, html)
        if self._forms and ("formaction" in html or any(is_shut for _, _, is_shut in self._forms.values())):
            html = _OUTER.sub(self._change_outer_control, _BUTTON.sub(self._change_outer_button, html))
        return self._find_links().sub(self._change_link, _ALONE.sub(self._change_alone, html))

    def _judge(self, html: str) -> None:
        """Judge every address on the page. Those that differ only by a number are judged together, since a tree has thousands."""
        paths = [*_PATH.findall(html), self._request.http.url.path]
        alike = _NUMBER.sub("0", "\n".join(paths)).split("\n")
        self._judged = frozenset(paths)
        for method, closed in self._closed.items():
            one_by_one = {path for path in set(alike) if self._allowed.asks_whose(path.removeprefix(PREFIX), method)}
            shut = {path for path in set(alike) - one_by_one if not self._may_open(path, method)}
            both = [(path, like) for path, like in zip(paths, alike, strict=True) if like in shut or like in one_by_one]
            closed.update(path for path, like in both if like in shut or not self._may_open(path, method))
            if method == "GET":
                self._suspected = sorted(shut | (one_by_one & {like for path, like in both if path in closed}))

    def _find_links(self) -> re.Pattern[str]:
        """Return a pattern for the links that may have to be removed: judging each of thousands of links would take too long."""
        if len(self._suspected) > _MOST_SUSPECTED:
            return _LINK
        paths = "|".join(re.escape(path).replace("/0", "/[0-9]+") for path in self._suspected)
        return re.compile(rf"""<a(?=[^<]*?"(?:{paths})[?#"])(?=[\s>]){_ATTRIBUTES}>{_INNER.format("a")}""")

    def _leads(self, to: str, method: str = "GET") -> bool:
        """Return whether an address may be opened."""
        path = to.partition("#")[0].partition("?")[0]
        if path in self._judged and method in self._closed:
            return path not in self._closed[method]
        return self._may_open(path, method)

    def _may_open(self, path: str, method: str) -> bool:
        """Return whether a path may be opened. Paths outside the panel always may."""
        is_ours = path == PREFIX or path.startswith(f"{PREFIX}/")
        return not is_ours or self._allowed.may_open(self._request, path.removeprefix(PREFIX), method)

    # --- links ----------------------------------------------------------------------------------------------------

    def _change_link(self, found: re.Match[str]) -> str:
        href = _HREF.match(found[1])
        if self._leads(href[1] if href and "&" not in href[1] else _read(found[1]).get("href", "")):
            return found[0]
        return "" if _read(found[1]).get("class", "").startswith("button") else found[2]

    def _change_alone(self, found: re.Match[str]) -> str:
        return found[0] if self._leads(_read(found[3]).get("href", "")) else ""

    # --- forms ----------------------------------------------------------------------------------------------------

    def _change_form(self, found: re.Match[str]) -> str:
        attributes, inner = _read(found[1]), found[2]
        action = attributes.get("action") or self._request.http.url.path
        method = attributes.get("method", "GET").upper()
        is_open = self._leads(action, method)
        buttons = [
            one for one in map(_read, (found[1] for found in _BUTTON.finditer(inner))) if _is_submit(one) and "form" not in one
        ]
        is_shut = not (is_open or any(self._is_open(one, action, method) for one in buttons))
        if name := attributes.get("id"):
            self._forms[name] = action, method, is_shut
        shown = self._leave_out_buttons(inner, action, method) if buttons else inner
        if not is_shut:
            return f"<form{found[1]}>{shown}</form>"
        shown = _LINK.sub(lambda link: "" if "data-cancel" in _read(link[1]) else link[0], shown)
        if not (_has_control(shown) or _TAG.sub("", shown).strip()):
            return ""
        return f'<div class="locked {escape(attributes.get("class", ""))}">{_START.sub(_shut, shown)}</div>'

    def _is_open(self, button: dict[str, str], action: str, method: str) -> bool:
        return self._leads(button.get("formaction") or action, (button.get("formmethod") or method).upper())

    def _leave_out_buttons(self, html: str, action: str, method: str) -> str:
        """Leave out the buttons that would send the form to an address that is not allowed."""

        def change(found: re.Match[str]) -> str:
            button = _read(found[1])
            is_its = _is_submit(button) and "form" not in button
            return "" if is_its and not self._is_open(button, action, method) else found[0]

        return _BUTTON.sub(change, html)

    def _change_outer_button(self, found: re.Match[str]) -> str:
        button = _read(found[1])
        form = self._forms.get(button.get("form", ""))
        return "" if form and _is_submit(button) and not self._is_open(button, form[0], form[1]) else found[0]

    def _change_outer_control(self, found: re.Match[str]) -> str:
        form = self._forms.get(_read(found[2]).get("form", ""))
        return _shut(found) if form and form[2] else found[0]


def _read(attributes: str) -> dict[str, str]:
    """Read the attributes of a tag. If a name occurs twice, the first one counts."""
    found: dict[str, str] = {}
    for name, double, single, bare in _ATTRIBUTE.findall(attributes):
        found.setdefault(name.lower(), unescape(double or single or bare))
    return found


def _is_submit(button: dict[str, str]) -> bool:
    return button.get("type", "submit") not in {"button", "reset"}


def _has_control(html: str) -> bool:
    tags = ((found[1].lower(), _read(found[2])) for found in _START.finditer(html))
    return any(name in _CONTROLS - {"button"} and tag.get("type") != "hidden" for name, tag in tags)


def _shut(found: re.Match[str]) -> str:
    """Disable a control, and remove the attributes of any tag that scripts act on."""
    name, attributes = found[1], found[2]
    is_control = name.lower() in _CONTROLS

    def change(one: re.Match[str]) -> str:
        its = one[1].lower()
        is_scripted = its.startswith("data-") and its not in _PLAIN
        return "" if is_scripted or (is_control and its in {"disabled", "form"}) else one[0]

    return f"<{name}{' disabled' if is_control else ''}{_SPACED.sub(change, attributes)}>"
