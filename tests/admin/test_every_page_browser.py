"""What axe finds on every page of the panel that a link leads to and in every dialog: at each width and zoom, in both themes.

It is asked for everything at the widest in one theme and at the narrowest in the other one, and between them for what the width
decides: by turns, so that each page is looked at in one of two widths, and each style at each end in both themes. Kinds of nodes
have the same pages with other fields: of these it is asked for everything at one end, but for the first kind. So it is of a page
that has nothing but what was on others before it: the same elements in the same ones.
"""

import re
from collections.abc import Iterator
from itertools import cycle, product
from typing import Final

import pytest
from playwright.sync_api import Page

from tests.admin.everything import UNLINKED, fill, shape_of
from tests.browser import PLACES, THEMES, Theme, bring_axe, overflow, violations
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from trellis.core.gate import Gate
from trellis.kinds import KINDS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]

# What is drawn differs between the first and the last; 640 is what a window of 1280 has at a zoom of 200 %.
_WIDTHS: Final = (1440, 768, 640, 360)
_ENDS: Final = (_WIDTHS[0], _WIDTHS[-1])
_BETWEEN: Final = _WIDTHS[1:-1]
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


def _look(page: Page, where: str, themes: tuple[Theme, ...], asked: set[int]) -> Iterator[str]:
    """Say what is wrong in each look, at the `asked` widths by axe, too. One end is light and the other one dark.

    Themes differ in colours alone, and widths between the ends in where things are.
    """
    for width in _WIDTHS:
        theme = themes[0] if width == _WIDTHS[0] else themes[1]
        if width in _WIDTHS[:2]:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        page.set_viewport_size({"width": width, "height": 900})
        if (wide := overflow(page)) > 0:
            yield f"{where} at {width}: {wide} px too wide"
        if width in asked:
            about = () if width in _ENDS else PLACES
            yield from (f"{where} at {width}, {theme}: {wrong}" for wrong in violations(page, about))


def _alike(address: str) -> str:
    """Return what pages and dialogs have in common: kinds of nodes have the same ones."""
    return _KIND.sub("/admin/nodes", shape_of(address))


def _links(page: Page, selector: str) -> list[str]:
    found: list[str] = page.eval_on_selector_all(selector, "links => links.map(link => link.getAttribute('href'))")
    return [link for link in found if link.startswith("/admin") and not any(part in link for part in _NO_PAGE)]


def test_axe_finds_nothing_on_any_page_or_dialog(page: Page, community: Community, gate: Gate, run: Run, key: MakeKey) -> None:
    fill(gate, run, key)
    waiting, seen, alike, sorts = ["/admin", *UNLINKED], set[str](), set[str](), set[str]()
    found: list[str] = []
    both = (THEMES, THEMES[::-1])
    looks = cycle((themes, {*_ENDS, between}) for themes, between in zip(both, _BETWEEN, strict=True))
    looks_again = cycle((themes, {end}) for themes, end in product(both, _ENDS))

    def choose_looks(name: str) -> tuple[tuple[Theme, ...], set[int]]:
        new = set(page.evaluate(_SORTS)) - sorts
        chosen = next(looks if new and name not in alike else looks_again)
        sorts.update(new)
        alike.add(name)
        return chosen

    bring_axe(page)
    while waiting:
        address = waiting.pop(0)
        if shape_of(address) in seen:
            continue
        seen.add(shape_of(address))
        page.goto(address)
        waiting += _links(page, "a[href]")
        found += _look(page, address, *choose_looks(_alike(address)))
        for link in _links(page, "a[data-dialog]:visible"):
            if f"dialog {_alike(link)}" in alike:
                continue
            page.locator(f'a[data-dialog][href="{link}"]:visible').first.click()
            page.get_by_role("dialog").wait_for()
            found += _look(page, f"the dialog {link}", *choose_looks(f"dialog {_alike(link)}"))
            page.keyboard.press("Escape")
            page.get_by_role("dialog").wait_for(state="detached")
    assert not found, "\n".join(found)
