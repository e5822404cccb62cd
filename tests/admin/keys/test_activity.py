"""What a key did and was refused, day by day; and taking back the last hour."""

import re
from collections.abc import Callable
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.admin.conftest import PASSWORD, MakeVisitor, Visitor, page_text
from tests.admin.html_forms import read_forms
from tests.fixture_types import Clock, MakeKey, Run
from trellis.admin.keys import activity
from trellis.admin.keys.activity import ActivityEntry, Part, merge
from trellis.core.actor import Actor
from trellis.core.bounds import Bound
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.store.requests import Request, log

PLUGIN = Actor("key", 1, "Plugin", None)
Do = Callable[[str], None]


@pytest.fixture
def did(gate: Gate, key: MakeKey) -> Do:
    """Let key 1 make a forum."""
    key(["forums.*"], name="Plugin")

    def create(name: str) -> None:
        gate.run(Call("forums.create", PLUGIN, {"name": name}))

    return create


@pytest.fixture
def was_refused(gate: Gate, clock: Clock) -> Callable[..., None]:
    """Log requests of a key that were refused."""

    def refuse(operation: str, key: int = 1, status: int = 403, times: int = 1) -> None:
        one = Request(format_timestamp(clock.at), "GET", "/api/x", operation, key, "192.0.2.7", status, 500, "r", "2S291/3")
        gate.store.write(lambda tx: log.append(tx, [one] * times)).result(30)

    return refuse


def _days(text: str) -> list[tuple[str, list[str]]]:
    """Return the days of a page with what each says of its entries."""
    found: list[tuple[str, list[str]]] = []
    for part in text.split('<section class="card activity">')[1:]:
        said = re.findall(r'<span class="what">(.*?)</span>\s*<span class="undo', part, re.DOTALL)
        heading = re.search(r"<h2>(.*?)</h2>", part)
        assert heading is not None
        found.append((heading[1], [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", one)).strip() for one in said]))
    return found


def test_it_tells_day_by_day_what_a_key_did_and_was_refused(
    admin: Visitor, did: Do, was_refused: Callable[..., None], run: Run, clock: Clock
) -> None:
    did("News")
    was_refused("forums.get", status=200)
    clock.move(days=1)
    was_refused("blogs.delete")
    clock.move(minutes=1)
    did("More")
    run("forums.create", name="By somebody else")
    was_refused("blogs.get", key=2)
    admin.sign_in()
    page = admin.get("/keys/1/activity")
    assert page.status_code == 200
    assert _days(page.text) == [
        ("Sunday, 1 February 2026", ["Plugin created forum More", "blogs.delete GET /api/x"]),
        ("Saturday, 31 January 2026", ["Plugin created forum News"]),
    ]
    assert "1 request, 1 refused" in page_text(page)
    assert 'href="/admin/keys/1/activity"' in admin.get("/keys/1").text


def test_what_it_proposed_is_told_once_and_about_what(admin: Visitor, gate: Gate, key: MakeKey) -> None:
    """Not by the event that there is a proposal, too."""
    key(["forums.create"], name="Plugin")
    proposing = replace(PLUGIN, grants=frozenset({"forums.create"}), bounds={"forums.create": Bound(level="propose")})
    gate.run(Call("forums.create", proposing, {"name": "Bulletin"}))
    admin.sign_in()
    assert _days(admin.get("/keys/1/activity").text) == [("Saturday, 31 January 2026", ["forums.create Bulletin"])]


def test_a_key_that_did_nothing_yet(admin: Visitor, key: MakeKey) -> None:
    key(["forums.list"], name="Plugin")
    page = page_text(admin.get("/keys/1/activity"))
    assert "Nothing yet" in page
    assert "Older" not in page


def test_pages_have_each_entry_once_and_in_order(
    admin: Visitor, did: Do, was_refused: Callable[..., None], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "_ROWS", 5)
    told: list[str] = []
    for number in range(9):
        clock.move(minutes=1)
        did(f"Forum {number}")
        told.insert(0, f"Plugin created forum Forum {number}")
        if number % 3 == 0:
            was_refused(f"refused.{number}", times=2)
            told[1:1] = [f"refused.{number} GET /api/x"] * 2
    admin.sign_in()
    path, seen = "/keys/1/activity", list[str]()
    pages = 0
    while path:
        page = admin.get(path)
        entries = [entry for _, listed in _days(page.text) for entry in listed]
        assert len(entries) <= 5
        seen += entries
        pages += 1
        older = re.search(r'rel="next" href="/admin([^"]+)"', page.text)
        path = older[1].replace("&amp;", "&") if older else ""
    assert sorted(seen) == sorted(told)
    assert [one for one in seen if "created" in one] == [one for one in told if "created" in one]
    assert pages == 3


def test_behind_the_end_there_is_nothing(admin: Visitor, did: Do) -> None:
    did("News")
    page = admin.get("/keys/1/activity?did=end&refused=end")
    assert "This is the end" in page_text(page)


def test_what_one_source_has_not_been_searched_for_is_left_for_the_next_page() -> None:
    did = Part([ActivityEntry("did", at, at, {}) for at in ("2026-01-09", "2026-01-03")], "end")
    refused = Part([ActivityEntry("refused", "2026-01-08", "8", {})], "5", searched_to="2026-01-05")
    entries, reached = merge({"did": did, "refused": refused})
    assert [entry.at for entry in entries] == ["2026-01-09", "2026-01-08"]
    assert reached == "2026-01-05"


def test_a_search_that_stops_at_an_event_of_which_the_role_sees_nothing_goes_on(
    visitor: MakeVisitor, did: Do, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    did("News")
    run("admins.create", name="Ada Berg", login="ada", password=PASSWORD, mustChangePassword=False, role="approver")
    ada = visitor()
    ada.sign_in("ada", PASSWORD)
    monkeypatch.setattr("trellis.store.events.scan._CHUNK", 1)
    monkeypatch.setattr("trellis.store.log_search.LONGEST", 0.0)
    page, told = ada.get("/keys/1/activity"), list[str]()
    for _ in range(9):
        assert page.status_code == 200
        told += [entry for _, listed in _days(page.text) for entry in listed]
        if (further := re.search(r'rel="next" href="/admin([^"]+)"', page.text)) is None:
            break
        page = ada.get(further[1].replace("&amp;", "&"))
    assert told == ["Plugin created forum News"]


def test_the_last_hour_is_taken_back_after_a_look_at_it(admin: Visitor, did: Do, run: Run, clock: Clock) -> None:
    did("News")
    clock.move(minutes=50)
    did("More")
    clock.move(minutes=30)
    admin.sign_in()
    page = admin.get("/keys/1/activity")
    assert "Undo the last hour" in page_text(page)
    asked = admin.get("/keys/1/undo?last=hour")
    assert asked.status_code == 303
    target = urlsplit(asked.headers["location"])
    assert parse_qs(target.query) == {"since": ["2026-01-31T09:50:00.000Z"]}
    path = f"{target.path.removeprefix('/admin')}?{target.query}"
    preview = admin.get(path)
    assert "More" not in page_text(admin.get("/keys/1/undo?last=year"))
    form = next(form for form in read_forms(preview) if any(name == "_plan" for name, _ in form.pairs))
    admin.post(path, form.filled())
    assert [one["name"] for one in run("forums.list")["results"]] == ["News"]
    day = admin.get("/keys/1/undo?last=day")
    assert parse_qs(urlsplit(day.headers["location"]).query) == {"since": ["2026-01-30T10:50:00.000Z"]}
