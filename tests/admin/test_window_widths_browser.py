"""Lists in windows between a phone and a wide screen: their words stay whole, and what is ticked is in view."""

from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.admin.conftest import PASSWORD
from tests.browser import confirm
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.store import requests
from trellis.store.requests import Request

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]

_LONG: Final = "A program of the association that copies what others have written"
_WIDTHS: Final = (648, 768, 840, 1000, 1160, 1280)
_BROKEN: Final = r"""() => {
  const broken = [], texts = document.createTreeWalker(document.querySelector("main table"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (node.parentElement.closest(".unseen")) continue;
    for (const word of node.data.matchAll(/[\p{L}\d.]{2,15}/gu)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) broken.push(word[0]);
    }
  }
  return broken;
}"""
_OUTSIDE: Final = """() => {
  const { left } = document.querySelector("main .scroll").getBoundingClientRect();
  const boxes = [...document.querySelectorAll("main .scroll .pick input")];
  return boxes.filter((box) => box.getBoundingClientRect().left < left + 4).length;
}"""
_CUT: Final = r"""() => {
  const cut = [], pen = document.createElement("canvas").getContext("2d");
  const width = (text, style) => ((pen.font = style.font), pen.measureText(text).width);
  for (const one of document.querySelectorAll("main input[placeholder], main select, main .button")) {
    if (!one.checkVisibility()) continue;
    const style = getComputedStyle(one), room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (one.placeholder && width(one.placeholder, style) > room + 1) cut.push(one.placeholder);
    if (one.name === "copy" && width(one.selectedOptions[0].text, style) > room - 16) cut.push(one.selectedOptions[0].text);
    const card = one.closest(".card");
    if (!card) continue;
    const inner = card.getBoundingClientRect().right - parseFloat(getComputedStyle(card).paddingRight);
    if (one.getBoundingClientRect().right > inner + 1) cut.push(one.textContent.trim());
  }
  for (const one of document.querySelectorAll(".grants tbody th .quiet")) {
    const range = document.createRange();
    range.selectNodeContents(one);
    if (range.getClientRects().length > 1) cut.push(one.textContent);
  }
  return cut;
}"""


@pytest.fixture
def _lists(community: Community, gate: Gate, key: MakeKey, run: Run) -> None:
    text = key(["forums.list", "forums.create"], name=_LONG, bounds={"forums.create": {"level": "propose"}})
    key(["forums.list"], name="Mirror")
    actor = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    gate.run(Call("forums.create", actor, {"name": "Observatory"}))
    run("blogs.create", name="Nestlings", owner="Kassenprüferin der Naturschützer")
    run("webhooks.create", url="https://example.org/", description=_LONG, events=["*"])
    at = gate.now()
    made = [Request(at, "GET", "/api/forums/forums", "forums.list", by, "127.0.0.1", 200, 1500, f"r{by}", None) for by in (1, 2)]
    gate.store.write(lambda tx: requests.append(tx, made)).result(30)


@pytest.mark.usefixtures("_lists")
def test_words_in_lists_stay_whole_and_boxes_to_tick_are_inside(page: Page) -> None:
    broken, outside = {}, {}
    for path in ("keys", "requests", "proposals", "webhooks", "groups", "blogs"):
        page.goto(f"/admin/{path}")
        for width in (360, *_WIDTHS):
            page.set_viewport_size({"width": width, "height": 900})
            if boxes := page.evaluate(_OUTSIDE):
                outside[path, width] = boxes
            if width in _WIDTHS and (words := page.evaluate(_BROKEN)):
                broken[path, width] = words
    assert (broken, outside) == ({}, {})


@pytest.mark.usefixtures("_lists")
def test_nothing_is_cut_off_at_a_zoom_of_400_percent_in_long_words(page: Page) -> None:
    page.goto("/admin/keys/new")
    confirm(page, PASSWORD)
    page.set_extra_http_headers({"Accept-Language": "de"})
    page.set_viewport_size({"width": 320, "height": 256})  # what a window of 1280 by 1024 has then
    cut = {}
    for path in ("forums", "requests?status=4xx", "events?resourceId=9", "deliveries?state=failed", "keys?text=x", "keys/new"):
        page.goto(f"/admin/{path}")
        if found := page.evaluate(_CUT):
            cut[path] = found
    assert cut == {}


def test_at_a_zoom_of_400_percent_nothing_covers_most_of_the_window(page: Page, community: Community) -> None:
    page.set_viewport_size({"width": 320, "height": 256})
    page.goto(f"/admin/forums/{community.help}")
    page.get_by_label("Name", exact=True).fill("Questions")
    assert page.locator(".bar").evaluate("bar => getComputedStyle(bar).position") == "static"
    page.context.set_offline(offline=True)
    page.get_by_role("button", name="Save", exact=True).click()
    message = page.locator("[data-message]")
    expect(message).to_contain_text("There is no network connection.")
    box, text = message.bounding_box(), message.locator("p").bounding_box()
    assert box is not None
    assert text is not None
    assert (box["height"] < 160, text["width"] > 200) == (True, True)
    page.context.set_offline(offline=False)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto("/admin/forums")
    page.get_by_role("checkbox", name="Choose Help").check()
    row = page.locator(".many .row").last
    assert row.evaluate("row => row.scrollWidth - row.clientWidth") == 0  # every button is reached by scrolling down alone
