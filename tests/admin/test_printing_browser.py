"""A printed page has the colours of the light theme, whichever theme is on the screen: paper is white."""

from typing import Final

import pytest
from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]

_COLOURS: Final = """() => [...document.querySelectorAll("main a, main h1, main .icon, main .badge")].map(
  (one) => getComputedStyle(one).color)"""


@pytest.mark.usefixtures("community")
def test_a_page_is_printed_in_light_colours(page: Page) -> None:
    for path in ("forums", "groups", "keys"):
        page.goto(f"/admin/{path}")
        page.emulate_media(media="print", color_scheme="light")
        light = page.evaluate(_COLOURS)
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate(_COLOURS) == light
        assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
