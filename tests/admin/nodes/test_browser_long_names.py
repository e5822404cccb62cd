"""Names that are one long word, such as an address, on a phone: no page becomes wider than its window."""

import pytest
from playwright.sync_api import Page

from tests.browser import overflow
from tests.fixture_types import Events, Run

pytestmark = [pytest.mark.browser, pytest.mark.parametrize("engine", ["sqlite"], indirect=True)]
_WORD = "https://community.example.org/" + "W" * 200
_SQUEEZED = "[...document.querySelectorAll('.options label')].filter((one) => one.scrollHeight > one.clientHeight + 1).length"


def test_a_long_word_makes_no_page_wider_than_a_phone(page: Page, run: Run, events: Events) -> None:
    group = run("groups.create", name=_WORD)["id"]
    forum = run("forums.create", name=_WORD, permissions={"view": [group]})["id"]
    run("forums.create", name=_WORD, parentId=forum)
    run("forums.update", forum, description=_WORD)
    run("webhooks.create", url=_WORD, events=["*"])
    run("keys.create", name="K" * 100, grants=["forums.list"])
    last = events()[-1]["seq"]
    page.set_viewport_size({"width": 360, "height": 800})
    paths = [f"/forums/{forum}{action}" for action in ("", "/move", "/copy", "/delete")]
    paths += [f"/groups/{group}{action}" for action in ("", "/access?all=1", "/delete")]
    paths += [f"/events/{seq}{action}" for seq in range(last - 5, last + 1) for action in ("", "/undo")]
    paths += ["", "/forums", "/forums/2/delete", "/events", "/keys/1", "/keys/1/revoke", "/webhooks/1", "/webhooks/1/delete"]
    wide = {}
    for path in paths:
        page.goto(f"/admin{path}")
        if pixels := overflow(page) or page.evaluate(_SQUEEZED):
            wide[path] = pixels
    assert wide == {}
