"""Every page in one time zone: what it shows, what is typed into it, the days of a chart, and the switch to UTC and back."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.keys.test_index import _form
from tests.fixture_types import Clock, Events, Run
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.store import requests
from trellis.store.requests import Request


def _log(gate: Gate, *moments: datetime) -> None:
    made = [
        Request(format_timestamp(at), "GET", "/api/x", "forums.list", 1, "192.0.2.7", 200, 1500, f"r{n}", None)
        for n, at in enumerate(moments)
    ]
    gate.store.write(lambda tx: requests.append(tx, made)).result(30)


@pytest.mark.either_engine
def test_what_is_wrong_with_a_time_is_told_in_the_zone_in_which_it_was_typed(admin: Visitor) -> None:
    assert admin.post("/account/view", {"zone": "Europe/Berlin", "theme": "dark"}).status_code == 303
    bounds: dict[str, Any] = {"grants": ["", "forums.list"], "bounds.forums.list.until": "2026-01-07T12:00"}
    page = page_text(admin.post("/keys/new", _form(admin, expires="date", until="2026-01-07T12:00", **bounds)))
    assert "Expires is in the past: 2026-01-07 12:00:00 UTC+1. To end a key now, revoke it." in page
    assert "is in the past: 2026-01-07 12:00:00 UTC+1. To end a grant now, take it away." in page
    assert "11:00:00.000Z" not in page


def test_every_page_shows_and_takes_the_chosen_zone(admin: Visitor, gate: Gate, clock: Clock, run: Run, events: Events) -> None:
    run("keys.create", name="Calendar sync")
    clock.at = datetime(2026, 10, 26, 9, 30, tzinfo=UTC)
    day = datetime(2026, 10, 25, tzinfo=UTC)
    _log(gate, day - timedelta(hours=2, minutes=30), day - timedelta(hours=1, minutes=30), day + timedelta(hours=22, minutes=45))
    admin.sign_in()
    before = events()
    account = admin.get("/account")
    assert "Same as browser: UTC" in page_text(account)
    assert admin.post("/account/view", {"zone": "Europe/Berlin", "theme": "dark"}).status_code == 303
    assert events() == before
    shown = page_text(admin.get("/requests"))
    assert "2026-10-24 23:30:00 UTC+2" in shown
    assert "2026-10-25 23:45:00 UTC+1" in shown
    assert "Times in Europe/Berlin Show UTC" in shown
    key = admin.get("/keys/1")
    table = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr><th scope=\"row\"><a.*?</tr>", key.text)]
    assert ["25", "Oct", "2026", "2", "0", "0", "0"] in table  # 25 hours: the first and the last of them
    assert ["24", "Oct", "2026", "1", "0", "0", "0"] in table
    links = re.findall(r'href="/admin(/requests[?]key=1&amp;from[^"]*)"', key.text)
    link = unescape(next(one for one in links if "from=2026-10-24T22" in one))
    opened = admin.get(link)
    assert page_text(opened).count("Calendar sync 192.0.2.7") == 2
    assert 'value="2026-10-25T00:00"' in opened.text
    typed = admin.get("/requests?from=2026-10-25T23:40&_zone=Europe/Berlin")
    assert page_text(typed).count("Calendar sync 192.0.2.7") == 1
    activity = page_text(admin.get("/keys/1/activity"))
    assert "in the time zone Europe/Berlin" in activity

    back = admin.post("/account/zone", {"utc": "1", "next": "/admin/requests?key=1"})
    assert back.headers["location"] == "/admin/requests?key=1"
    shown = page_text(admin.get("/requests"))
    assert "2026-10-25 22:45:00 UTC" in shown
    assert "Times in UTC Show Europe/Berlin" in shown
    again = admin.get("/requests?from=2026-10-25T23:40&_zone=Europe/Berlin")  # as it was typed
    assert page_text(again).count("Calendar sync 192.0.2.7") == 1
    assert 'value="2026-10-25T22:40"' in again.text
    admin.post("/account/zone", {"utc": "0", "next": "https://elsewhere.example/"})
    assert "Show UTC" in page_text(admin.get("/events"))


@pytest.mark.either_engine
def test_the_browser_tells_its_zone_and_nothing_else_is_believed(admin: Visitor) -> None:
    admin.client.cookies.set("trellis_zone", "Asia/Kathmandu", path="/admin")
    page = admin.get("/account")
    assert "Times in Asia/Kathmandu" in page_text(page)
    assert "Same as browser: Asia/Kathmandu" in page_text(page)
    admin.client.cookies.set("trellis_zone", "../../etc/passwd", path="/admin")
    assert "Times in UTC" in page_text(admin.get("/account"))
    assert "no such time zone" in page_text(_follow(admin, admin.post("/account/view", {"zone": "Mars/Base", "theme": ""})))


def _follow(admin: Visitor, response: Any) -> Any:
    return admin.get(response.headers["location"].removeprefix("/admin"))


def test_a_key_expires_at_the_moment_that_was_typed(admin: Visitor, run: Run) -> None:
    run("keys.create", name="Calendar sync")
    admin.sign_in()
    admin.post("/account/view", {"zone": "Asia/Kolkata", "theme": ""})
    sent = _form(admin, "/keys/1/edit", name="Calendar sync", expires="date", until="2026-07-01T00:00")
    assert sent["_zone"] == "Asia/Kolkata"
    assert admin.post("/keys/1/edit", sent).status_code == 303
    assert run("keys.get", 1)["expiresAt"] == "2026-06-30T18:30:00.000Z"
    assert "1 Jul 2026, 00:00 UTC+5:30" in page_text(admin.get("/keys/1"))


@pytest.mark.either_engine
def test_a_theme_is_in_the_page_itself(admin: Visitor) -> None:
    def sheets() -> list[str]:
        return re.findall(r'<link rel="stylesheet" href="[^"]*/dark\.css"[^>]*>', admin.get("/account").text)

    assert [sheet.partition("media=")[2] for sheet in sheets()] == ['"screen and (prefers-color-scheme: dark)">']
    admin.post("/account/view", {"zone": "", "theme": "dark"})
    assert [sheet.partition("media=")[2] for sheet in sheets()] == ['"screen">']
    assert '<meta name="color-scheme" content="dark">' in admin.get("/account").text
    admin.post("/account/view", {"zone": "", "theme": "light"})
    assert sheets() == []


def test_a_key_that_expires_at_the_end_of_9999_is_shown_in_every_zone(admin: Visitor, run: Run) -> None:
    """As programs write it that know no 'never': in a zone east of UTC, that moment would be in the year 10000."""
    end = "9999-12-31T23:59:59Z"
    run("keys.create", name="Importer", grants=["forums.list"], expires=end, bounds={"forums.list": {"until": end}})
    admin.post("/account/view", {"zone": "Europe/Berlin", "theme": ""})
    for path in ("/keys", "/keys/1", "/keys/1/edit", "/keys/new?copy=1"):
        page = admin.get(path)
        assert page.status_code == 200, path
        assert "31 Dec 9999, 23:59 UTC" in page.text or "9999-12-31T23:59:59+00:00" in page.text, path
    saved = admin.post("/keys/1/edit", _form(admin, "/keys/1/edit", name="Importer", expires="keep", grants=["", "forums.list"]))
    assert saved.status_code == 303
    key = run("keys.get", 1)
    assert (key["expiresAt"], key["bounds"]["forums.list"]["until"]) == ("9999-12-31T23:59:59.000Z",) * 2


def test_a_day_is_the_same_where_keys_are_listed_and_where_they_are_revoked(
    admin: Visitor, gate: Gate, clock: Clock, run: Run
) -> None:
    run("keys.create", name="Calendar sync")
    clock.at = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)  # the next day in Berlin
    _log(gate, clock.at - timedelta(hours=2))
    admin.sign_in()
    admin.post("/account/view", {"zone": "Europe/Berlin", "theme": ""})
    assert "1 request in 14 days, 0 today" in page_text(admin.get("/keys"))
    assert "1 request in 30 days, 0 today" in page_text(admin.post("/keys/many/revoke", {"ids": "1"}))
