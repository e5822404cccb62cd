"""Longer texts in a real Chromium: pages in German, and pages on which every text is twice as long as in English."""

from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.admin.conftest import LetIn
from tests.browser import WIDTHS, opened, overflow
from tests.community import Community
from tests.fixture_types import Run
from tests.service_process import Service

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]

_PAGES: Final = (  # of two with the same form, one
    "",
    "/forums",
    "/forums/{forum}",
    "/forums/{forum}/move",
    "/forums/{forum}/delete",
    "/groups/3/access",
    "/keys",
    "/keys/new",
    "/keys/1",
    "/requests",
    "/events",
    "/webhooks",
    "/webhooks/1/edit",
    "/proposals",
    "/structure",
    "/administrators",
    "/account",
    "/alarms",
    "/search?text=new",
    "/keyboard",
)

# Doubles what a reader reads of the panel's own words. Data stays as it is: it is cut or wrapped by itself.
_DOUBLE: Final = """() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) {
        const text = texts.currentNode;
        const isData = text.parentElement.closest("code, pre, kbd, time, script, style, textarea, bdi, .name, [translate=no]");
        if (text.data.trim() && !isData) found.push(text);
    }
    for (const text of found) text.data = `${text.data.trimEnd()} ${text.data.trimStart()}`;
}"""

# Controls that something else lies on, or whose text sticks out of them.
_COVERED: Final = """() => {
    const wrong = [];
    for (const control of document.querySelectorAll("main a, main button, main summary, main label, nav a")) {
        if (!control.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || control.closest(".unseen")) continue;
        control.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
        const box = control.getClientRects()[0];
        if (!box || box.width < 4 || box.height < 4) continue;
        const x = box.left + box.width / 2, y = box.top + box.height / 2;
        const top = document.elementFromPoint(x, y);
        const isOurs = !top || control.contains(top) || top.contains(control);
        const isSeen = x > 0 && y > 0 && x < innerWidth && y < innerHeight;
        const name = control.textContent.trim().slice(0, 60);
        if (isSeen && !isOurs) wrong.push(`${name} is under ${top.outerHTML.slice(0, 80)}`);
        if (control.matches(".button") && control.scrollWidth > control.clientWidth + 1) wrong.push(`${name} sticks out`);
    }
    return wrong;
}"""


# Words that go on in another line, and cells of lists that are not on the screen. Groups may be scrolled to the side.
_BROKEN: Final = """(read) => {
    const wrong = [];
    for (const name of document.querySelectorAll(read)) {
        const texts = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            for (const word of texts.currentNode.data.matchAll(/\\S+/g)) {
                const range = document.createRange();
                range.setStart(texts.currentNode, word.index);
                range.setEnd(texts.currentNode, word.index + word[0].length);
                const lines = [...range.getClientRects()];
                if (new Set(lines.map((line) => Math.round(line.top))).size > 1) wrong.push(`${word[0]} is broken`);
                if (lines.some((line) => line.right > innerWidth)) wrong.push(`${word[0]} is beyond the edge`);
            }
        }
    }
    return wrong;
}"""

# Lines of an operation's name that lie on the link next to it, and labels that touch their value.
_OVERLAID: Final = """() => {
    const wrong = [];
    for (const one of document.querySelectorAll(".others .grant")) {
        const range = document.createRange();
        range.selectNodeContents(one.querySelector(".verb"));
        const edge = one.querySelector(".to-reference svg").getBoundingClientRect();
        if ([...range.getClientRects()].some((line) => line.right > edge.left && line.bottom > edge.top && line.top < edge.bottom))
            wrong.push(`${range} is under its link`);
    }
    const canvas = document.createElement("canvas").getContext("2d");
    for (const one of document.querySelectorAll(".log td[data-label]")) {
        canvas.font = getComputedStyle(one, "::before").font;
        const room = parseFloat(getComputedStyle(one).gridTemplateColumns);
        if (canvas.measureText(one.dataset.label).width > room) wrong.push(one.dataset.label);
    }
    return wrong;
}"""


@pytest.fixture
def places(run: Run, community: Community) -> list[str]:
    """The addresses of the pages, of which there is something to see."""
    run("keys.create", name="Calendar sync", grants=["calendars.list", "calendars.update"], owner="Team")
    run("webhooks.create", url="https://example.com/hook", events=["forum.created"], description="Mirror")
    return [f"/admin{path.format(forum=community.staff)}" for path in _PAGES]


def _look(window: BrowserContext, places: list[str], widths: tuple[int, ...], prepare: str = "") -> Iterator[str]:
    """Say what is wrong at each width. A page is loaded once: its scripts do not ask for the width."""
    page = window.new_page()
    for place in places:
        page.goto(place)
        if prepare:
            page.evaluate(prepare)
        for width in widths:
            page.set_viewport_size({"width": width, "height": 900})
            wide = overflow(page)
            yield from [f"{place} at {width}: {wide} px too wide"] if wide > 0 else []
            yield from (f"{place} at {width}: {wrong}" for wrong in page.evaluate(_COVERED))


def test_twice_as_long_texts_break_no_page(window: BrowserContext, page: Page, places: list[str]) -> None:
    found = "\n".join(_look(window, places, WIDTHS, _DOUBLE))
    assert not found, found


def test_names_and_columns_have_room_on_a_phone(
    chrome: Browser, service: Service, run: Run, let_in: LetIn, places: list[str]
) -> None:
    run("forums.create", name="Announcements of the association")
    run("groups.create", name="Administrators of chapters")
    window = opened(chrome, service.address, width=360)
    page = window.new_page()
    let_in(page)
    let_in(opened(chrome, service.address).new_page())
    window.set_extra_http_headers({"accept-language": "de"})
    found = []
    for place in ("/forums", "/groups", "/administrators", "/account", "/keys", "/webhooks", "/keys/new"):
        page.goto(f"/admin{place}")
        found += [f"{place}: {wrong}" for wrong in page.evaluate(_OVERLAID)]
        found += [f"{place}: {wrong}" for wrong in page.evaluate(_BROKEN, ".node-name, .list th > a, .log th > a, .cards td")]
    run("keys.create", name="K" * 100, grants=["forums.list"])
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto("/admin/keys")
    found += page.evaluate(_BROKEN, "tbody td")
    for place in (places[2], "/admin/requests?method=GET", "/admin/events?changeSet=1"):
        page.goto(place)
        found += [f"{place}: {wrong}" for wrong in page.evaluate(_CUT)]
    page.set_viewport_size({"width": 360, "height": 900})
    assert found == []
    page.goto("/admin/account")
    ending = page.get_by_role("cell").get_by_role("button", name="Abmelden").bounding_box()
    assert ending
    assert ending["x"] + ending["width"] <= 360
    window.close()


# Lists that are scrolled to the side, and what is chosen in a filter where the box is too small for it.
_CUT: Final = """() => {
    const wrong = [...document.querySelectorAll("main .scroll")].filter((one) => one.scrollWidth > one.clientWidth + 1);
    const chosen = [...document.querySelectorAll(".filters select")].filter((select) => {
        if (!select.checkVisibility()) return false;
        const copy = select.cloneNode();
        copy.style.cssText = "width: max-content; position: absolute";
        copy.append(new Option(select.selectedOptions[0].text));
        select.after(copy);
        const needed = copy.offsetWidth;
        copy.remove();
        return needed > select.offsetWidth;
    });
    return [...wrong.map((one) => one.ariaLabel), ...chosen.map((select) => select.name)];
}"""


def test_lists_and_filters_fit_on_a_phone_and_choosing_all_or_none_stays_together(
    chrome: Browser, service: Service, run: Run, let_in: LetIn, places: list[str]
) -> None:
    run("groups.create", name="Stewards", prefix="<strong>", suffix="</strong>")
    window = opened(chrome, service.address, width=360)
    page = window.new_page()
    let_in(page)
    window.set_extra_http_headers({"accept-language": "de"})
    found = []
    for place in ("/groups", "/blogs", "/requests", "/events"):
        page.goto(f"/admin{place}")
        found += [f"{place}: {wrong}" for wrong in page.evaluate(_CUT)]
    assert found == []
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/admin/forums")
    page.locator(".pick input").first.check(force=True)
    everything, nothing = (page.get_by_role("button", name=name).bounding_box() for name in ("Alle auf dieser Seite", "Keine"))
    assert everything
    assert nothing
    assert everything["y"] == nothing["y"]
    window.close()


def test_german_breaks_no_page_on_a_phone(chrome: Browser, service: Service, let_in: LetIn, places: list[str]) -> None:
    window = opened(chrome, service.address)
    let_in(window.new_page())
    window.set_extra_http_headers({"accept-language": "de"})
    found = "\n".join(_look(window, places, WIDTHS[1:]))  # where its long words have least room
    assert not found, found
    window.close()
