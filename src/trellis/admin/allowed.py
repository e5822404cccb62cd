"""What a page shows to an administrator whose role has not everything: no link, button or form that would be refused.

Pages name the operations that they need, and everything follows from that: links in a row of buttons and forms without fields are
left out, other links become their text, and other forms show their values and take none. Templates ask `allows(…)` only for
what is neither a link nor a form.
"""

import re
from collections.abc import Iterable
from typing import Final

from trellis.admin import PREFIX
from trellis.admin.page import Page, PageRequest
from trellis.core.operation import is_allowed

_CONVERTER: Final = re.compile(r":\w+(?=\})")  # of a parameter of a route, as in {id:int}
_NUMBER: Final = re.compile(r"/(\d+)(?=/|$)")
_ATTRIBUTE: Final = r'\b{}="([^"]*)"'
_LINK: Final = re.compile(rf'<a\b[^>]*?\bhref="{PREFIX}([^"]*)"[^>]*>(.*?)</a>', re.DOTALL)
_ALONE: Final = re.compile(r"<p\b[^>]*>\s*(<a\b[^>]*>(?:(?!</a>|</p>).)*</a>)\s*</p>", re.DOTALL)
_FORM: Final = re.compile(r"<form\b([^>]*)>(.*?)</form>", re.DOTALL)
_SUBMIT: Final = re.compile(r'<button\b[^>]*\btype="submit"[^>]*>.*?</button>', re.DOTALL)
_CANCEL: Final = re.compile(r"<a\b[^>]*\bdata-cancel\b[^>]*>.*?</a>", re.DOTALL)
_ENABLED: Final = re.compile(r"<(input|select|textarea|button)\b")  # not by a fieldset: axe takes what scrolls in one as shut, too
_SCRIPTED: Final = re.compile(r' data-(?!row|part|time|ago)[a-z-]+(?:="[^"]*")?')  # by which scripts would add buttons
_TAG: Final = re.compile(r"<[^>]*>")
_CONTROL: Final = re.compile(r'<(?:select|textarea|input(?![^>]*\btype="hidden"))\b')


class Allowed:
    """Knows of each address which operations its page needs."""

    def __init__(self, pages: Iterable[Page]) -> None:
        self._needs = {(page.method, _CONVERTER.sub("", page.path)): page.needs for page in pages if page.needs}

    def may(self, request: PageRequest, operation: str, target: int | None = None) -> bool:
        """Return whether whoever is signed in may run an operation, on a record."""
        return request.me is not None and is_allowed(request.catalogue.find(operation), request.me.actor, target)

    def may_open(self, request: PageRequest, path: str, method: str = "GET") -> bool:
        """Return whether an address, without /admin, is of a page that whoever is signed in may open; there may be none."""
        path = path.partition("#")[0].partition("?")[0]
        number = _NUMBER.search(path)
        needs = self._needs.get((method, _NUMBER.sub("/{id}", path)), ())
        return all(self.may(request, name, int(number[1]) if number else None) for name in needs)

    def leave_out(self, html: str, request: PageRequest) -> str:
        """Return a page without what would be refused. Owners see all of it."""
        if request.me is None or request.me.permit is None:
            return html

        def change_link(found: re.Match[str]) -> str:
            if self.may_open(request, found[1]):
                return found[0]
            return "" if _find(found[0].partition(">")[0], "class").startswith("button") else found[2]

        def change_alone(found: re.Match[str]) -> str:
            link = _LINK.fullmatch(found[1])
            return found[0] if link is None or self.may_open(request, link[1]) else ""

        def change_form(found: re.Match[str]) -> str:
            path = _find(found[1], "action").removeprefix(PREFIX) or request.http.url.path.removeprefix(PREFIX)
            if self.may_open(request, path, _find(found[1], "method").upper() or "GET"):
                return found[0]
            shown = _CANCEL.sub("", _SUBMIT.sub("", found[2]))
            if not (_CONTROL.search(shown) or _TAG.sub("", shown).strip()):
                return ""
            shown = _SCRIPTED.sub("", _ENABLED.sub(r"<\1 disabled", shown))
            return f'<div class="locked {_find(found[1], "class")}">{shown}</div>'

        return _LINK.sub(change_link, _ALONE.sub(change_alone, _FORM.sub(change_form, html)))


def _find(attributes: str, name: str) -> str:
    found = re.search(_ATTRIBUTE.format(name), attributes)
    return found[1] if found else ""
