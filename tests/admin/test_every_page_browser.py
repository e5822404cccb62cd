"""What axe finds on every page of the panel that a link leads to and in every dialog: at each width and zoom, in both themes.

It is asked for everything at one end, the widest in one theme or the narrowest in the other one, and on the way to the other end
for what the width decides; there for what the theme decides, too, or for everything if something is seen that was not before. The
next page is looked at on the way back. Kinds of nodes have the same pages with other fields: of these it is asked at one end, but
for the first kind. So it is of a page that has nothing but what was on others before it: the same elements in the same ones; if it
is one of them with another query or of another kind, too, it is only looked at whether it fits.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import pytest
from playwright.sync_api import Page

from tests.admin.everything import UNLINKED, fill, shape_of
from tests.browser import COLOURS, PLACES, Theme, bring_axe, overflow, violations
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from trellis.core.gate import Gate
from trellis.kinds import KINDS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]

# What is drawn differs between the first and the last; 640 is what a window of 1280 has at a zoom of 200 %.
_WIDTHS: Final = (1440, 768, 640, 360)
_THEMES: Final[dict[int, Theme]] = {_WIDTHS[0]: "light", _WIDTHS[-1]: "dark"}
_ASKED: Final = ((), PLACES, None, (*COLOURS, *PLACES))  # of axe at each: everything at the first, nothing at the third
_ASKED_AGAIN: Final = ((), None)  # at the ends, of a page with nothing new
_NOT_ASKED: Final = (None, None)  # of one that is put together as another one before it, too
_KIND: Final = re.compile(rf"/admin/({'|'.join(kind.name for kind in KINDS if not kind.is_group)})(?=[/?])")
# Each sort of element there is: with its attributes, whether it has a text of its own and can be seen, and what it is in.
_SORTS: Final = """() => {
    const hasText = element => [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.nodeValue.trim());
    const nameOf = element => element === null ? "" : [element.tagName, ...element.classList].join(".");
    const sortOf = element => [
        nameOf(element), element.getAttributeNames().sort(), element.type, element.role, element.disabled, hasText(element),
        element.checkVisibility(), nameOf(element.parentElement), nameOf(element.parentElement.parentElement),
    ].join(" ");
    return [...new Set([...document.querySelectorAll("body *")].map(sortOf))];
}"""
_NO_PAGE: Final = ("/admin/sign-out", "/admin/static/", "/export")


def _is_new(page: Page, sorts: set[str]) -> bool:
    """Say whether there is something to be seen that is not among the sorts of elements yet, and put it there."""
    new = set(page.evaluate(_SORTS)) - sorts
    sorts.update(new)
    return bool(new)


def _show(page: Page, width: int) -> None:
    if width in _THEMES:
        page.emulate_media(color_scheme=_THEMES[width], reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})


def _look(page: Page, where: str, widths: Sequence[int], asked: Sequence[tuple[str, ...] | None], sorts: set[str]) -> Iterator[str]:
    """Say what is wrong at each width. The window has the first one already."""
    for width, about in zip(widths, asked, strict=True):
        if width != widths[0]:
            _show(page, width)
        if (wide := overflow(page)) > 0:
            yield f"{where} at {width}: {wide} px too wide"
        if about is not None:
            in_full = about == _ASKED[-1] and _is_new(page, sorts)
            yield from (f"{where} at {width}: {wrong}" for wrong in violations(page, () if in_full else about))


def _alike(address: str) -> str:
    """Return what pages and dialogs have in common: kinds of nodes have the same ones."""
    return _KIND.sub("/admin/nodes", shape_of(address))


def _links(page: Page, selector: str) -> list[str]:
    found: list[str] = page.eval_on_selector_all(selector, "links => links.map(link => link.getAttribute('href'))")
    return [link for link in found if link.startswith("/admin") and not any(part in link for part in _NO_PAGE)]


def _visit(page: Page) -> Iterator[str]:
    """Open a page of each shape; at last those that no link leads to, which have little that is not on others."""
    seen = set[str]()
    for first in ("/admin", *UNLINKED):
        waiting = [first]
        while waiting:
            address = waiting.pop(0)
            if shape_of(address) not in seen:
                seen.add(shape_of(address))
                page.goto(address)
                waiting += _links(page, "a[href]")
                yield address


def test_axe_finds_nothing_on_any_page_or_dialog(page: Page, community: Community, gate: Gate, run: Run, key: MakeKey) -> None:
    fill(gate, run, key)
    alike, sorts = set[str](), set[str]()
    found: list[str] = []
    widths = list(_WIDTHS)

    def look(where: str, name: str) -> None:
        is_new, path = _is_new(page, sorts), name.partition("?")[0]
        if is_new and name not in alike:
            found.extend(_look(page, where, widths, _ASKED, sorts))
        else:
            asked = _ASKED_AGAIN if is_new or path not in alike else _NOT_ASKED
            found.extend(_look(page, where, (widths[0], widths[-1]), asked, sorts))
        widths.reverse()
        alike.update((name, path))

    bring_axe(page)
    _show(page, widths[0])
    for address in _visit(page):
        look(address, _alike(address))
        for link in _links(page, "a[data-dialog]"):
            name = f"dialog {_alike(link)}"
            if name in alike:
                continue
            if widths[0] != _WIDTHS[0]:  # where more of these links are to be seen
                widths.reverse()
                _show(page, widths[0])
            if not (opening := page.locator(f'a[data-dialog][href="{link}"]:visible')).count():
                continue
            opening.first.click()
            page.get_by_role("dialog").wait_for()
            look(f"the dialog {link}", name)
            page.keyboard.press("Escape")
            page.get_by_role("dialog").wait_for(state="detached")
    assert not found, "\n".join(found)
