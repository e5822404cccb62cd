"""The API log in the panel: filters in the address, page after page, one request with its error and what it did."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.fixture_types import Clock, Events, MakeKey, Run
from trellis.admin.keys import index as keys_index
from trellis.core.actor import Actor
from trellis.core.fields import format_timestamp
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call
from trellis.store import requests
from trellis.store.requests import KeylessCount, Request

Log = Callable[..., None]


@pytest.fixture
def log(gate: Gate, clock: Clock) -> Log:
    """Write a request to the log: `log(2, status=404)`; the number says how many seconds ago."""

    def write(ago: int = 0, /, **values: Any) -> None:
        at = format_timestamp(clock.at - timedelta(seconds=ago))
        one = Request(at, "GET", "/api/forums/forums", "forums.list", 1, "192.0.2.7", 200, 1500, f"r{ago}", None)._replace(**values)
        gate.store.write(lambda tx: requests.append(tx, [one])).result(30)

    return write


def _shown(page: Any) -> list[str]:
    """Return the paths of the requests on a page."""
    cells = re.findall(r'<td role="cell" class="what">(.*?)</td>', page.text)
    return [re.sub(r"<[^>]+>", "", cell).partition(" ")[2] for cell in cells]


@pytest.mark.either_engine
def test_an_empty_log_says_how_to_begin(admin: Visitor) -> None:
    page = admin.get("/requests")
    assert page.status_code == 200
    assert "No requests yet" in page_text(page)


def test_a_row_tells_everything_at_a_glance(admin: Visitor, log: Log, run: Run) -> None:
    run("keys.create", name="Calendar sync")
    log(0, status=404, method="DELETE", path="/api/forums/forums/3", duration=12_345_678)
    log(1, key_id=None, status=401)
    page = page_text(admin.get("/requests"))
    assert re.search(r"2026-01-31 09:30:00 UTC 404 DELETE / ?api/ ?forums/ ?forums/ ?3 Calendar sync 192\.0\.2\.7 12\.3 s", page)
    assert "No valid key" in page
    assert "The log has about 2." in page


def test_a_request_is_told_with_the_name_of_its_key_however_old_that_is(
    admin: Visitor, log: Log, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys_index, "_MAX_NAMES", 1)
    for name in ("Calendar sync", "Importer", "Search index"):
        run("keys.create", name=name)
    log(0, key_id=1)
    log(1, key_id=2)
    log(2, key_id=9)
    page = page_text(admin.get("/requests"))
    assert [name in page for name in ("Calendar sync", "Importer", "Key 9")] == [True, True, True]
    assert "Calendar sync" in page_text(admin.get("/requests/1"))
    assert "Key 9" in page_text(admin.get("/requests/3"))


def test_each_filter_stands_in_the_address(admin: Visitor, log: Log) -> None:
    log(0, path="/a")
    log(1, path="/b", key_id=2)
    log(2, path="/c", key_id=None, status=401)
    log(3, path="/d", method="POST", operation="forums.create")
    log(4, path="/e", status=404)
    log(5, path="/f", address="2001:db8::7", duration=2_000_000)
    log(120, path="/g")
    for query, paths in (
        ("key=2", ["/b"]),
        ("key=0", ["/c"]),
        ("operation=forums.create", ["/d"]),
        ("method=POST", ["/d"]),
        ("status=404", ["/e"]),
        ("status=4xx", ["/c", "/e"]),
        ("status=4XX&key=1", ["/e"]),
        ("path=%2Fd", ["/d"]),
        ("path=%25", []),
        ("address=2001:DB8:0::7", ["/f"]),
        ("from=2026-01-31T09:30", ["/a"]),
        ("to=2026-01-31T09:29", ["/g"]),
        ("from=2026-01-31T09:29:30.000Z&to=2026-01-31T09:30", ["/b", "/c", "/d", "/e", "/f"]),
        ("slower=2000", ["/f"]),
        ("slower=3600000", []),
        ("key=&operation=&path=+", ["/a", "/b", "/c", "/d", "/e", "/f", "/g"]),
        ("key=99", []),
    ):
        page = admin.get(f"/requests?{query}")
        assert page.status_code == 200, query
        assert _shown(page) == paths, query
        if not paths:
            assert "No request matches" in page_text(page)
            assert 'href="/admin/requests"' in page.text


@pytest.mark.either_engine
def test_filters_that_make_no_sense_are_said_and_nothing_breaks(admin: Visitor, log: Log) -> None:
    log()
    for query in (
        "key=x",
        "status=lost",
        "status=999",
        "status=0404999999999999",
        "address=home",
        "from=soon",
        "slower=-1",
        "before=x",
        "before=1_2",
        "colour=red",
        "method=LOOK",
    ):
        page = admin.get(f"/requests?{query}")
        assert page.status_code == 400, query
        assert 'role="alert"' in page.text, query


def test_pages_lead_to_older_ones_and_keep_the_filters(admin: Visitor, log: Log) -> None:
    for number in range(120):
        log(number // 2, path=f"/{number}", request_id=f"r{number}")
    seen, path = list[str](), "/requests?key=1&path=%2F"
    for _ in range(3):
        page = admin.get(path)
        seen += _shown(page)
        older = re.search(r'rel="next" href="/admin(/requests[^"]+)"', page.text)
        path = older[1].replace("&amp;", "&") if older else ""
        assert not path or "key=1" in path
    assert path == ""
    assert len(seen) == len(set(seen)) == 120
    end = admin.get("/requests?before=2020-01-01T00:00:00.000Z_1")
    assert "This is the end of the log" in page_text(end)


_ERRORS = (
    ("2S291/3", "The key lacks this operation NO_PERMISSION 2S291/3"),
    ("1F363/1", "There is no such record INVALID_ID 1F363/1"),
    ("1L364/2", "A name is needed NO_TITLE 1L364/2"),
    ("2B302/2", "There is no such record INVALID_ID 2B302/2"),
    ("4T104/2", "Something went wrong on our side INTERNAL_ERROR"),
    ("0X000/0", "The request was refused 0X000/0"),
)


@pytest.mark.either_engine
def test_a_request_opens_to_its_error(admin: Visitor, log: Log) -> None:
    for number, (code, said) in enumerate(_ERRORS, 1):
        log(0, status=403, error=code, request_id=f"the-id-{number}")
        page = page_text(admin.get(f"/requests/{number}"))
        assert said in page
        assert f"Request id the-id-{number}" in page


def test_a_request_leads_to_the_event_that_it_made_and_back(admin: Visitor, log: Log, gate: Gate, run: Run, events: Events) -> None:
    run("keys.create", name="Importer", grants=["forums.create"])
    key = Actor("key", 1, "Importer", frozenset({"forums.create"}))
    for request_id in ("other", "mine"):
        gate.run(Call("forums.create", key, {"name": f"By {request_id}"}, request_id=request_id, reason="Import"))
    log(0, operation="forums.create", method="POST", status=201, request_id="mine")
    seq = events()[-1]["seq"]
    assert f'href="/admin/events/{seq}"' in admin.get("/requests/1").text
    assert 'href="/admin/requests/1"' in admin.get(f"/events/{seq}").text
    assert "/admin/requests/1" not in admin.get(f"/events/{seq - 1}").text


def _find_actor(gate: Gate, text: str) -> Actor:
    return gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor


_CHANGE = {"operation": "forums.update", "id": 1, "body": {"name": "Bulletin"}}
_DOCUMENT = {"format": "trellis/1", "name": "a", "calendars": [{"externalId": "b", "name": "B"}]}
_CAUSES: tuple[tuple[str, int | None, dict[str, Any], str], ...] = (  # each operation with its target, and the first that it runs
    ("changesets.restore", 1, {}, "forums.restore"),
    ("forums.update", 1, {"name": "Bulletin"}, "forums.update"),
    ("forums.order", None, {"ids": [2, 1]}, "forums.update"),
    ("forums.put_external", None, {"externalId": "new", "name": "New"}, "forums.create"),
    ("forums.put_external", None, {"externalId": "news", "name": "News"}, "forums.update"),
    ("core.batch", None, {"operations": [_CHANGE]}, "forums.update"),
    ("structure.apply", None, {"document": _DOCUMENT}, "calendars.create"),
    ("calendars.delete", 1, {}, "proposals.create"),
)


def test_a_request_leads_to_an_event_of_what_it_has_run_and_back(
    admin: Visitor, log: Log, gate: Gate, run: Run, clock: Clock, *, key: MakeKey, events: Events
) -> None:
    """Each was carried out five seconds after it was received."""
    run("forums.create", name="News", externalId="news")
    run("forums.create", name="Talk")
    run("calendars.create", name="Meetings")
    actor = _find_actor(gate, key("*", bounds={"calendars.delete": {"level": "propose"}}))
    assert gate.run(Call("core.batch", actor, {"operations": [_CHANGE]}, request_id="before")).change_set == 1
    for number, (operation, target, raw, caused) in enumerate(_CAUSES):
        log(0, operation=operation, method="POST", request_id=f"mine {number}")
        log(0, operation="forums.list", request_id=f"mine {number}")
        clock.move(seconds=5)
        before = len(events())
        gate.run(Call(operation, actor, raw, target, request_id=f"mine {number}"))
        first, request = events()[before], 2 * number + 1
        assert first["operation"] == caused, operation
        assert run("requests.get", request)["event"] == first["seq"], operation
        assert run("requests.get", request + 1)["event"] is None, operation
        assert run("events.get", first["seq"])["request"] == request, operation
        assert f'href="/admin/events/{first["seq"]}"' in admin.get(f"/requests/{request}").text, operation
        assert f'href="/admin/requests/{request}"' in admin.get(f"/events/{first['seq']}").text, operation


def test_what_was_approved_leads_to_the_request_that_approved_it(log: Log, gate: Gate, run: Run, key: MakeKey) -> None:
    made = [key(["forums.create"], bounds={"forums.create": {"level": "propose"}}), key(["proposals.approve"])]
    proposer, approver = (_find_actor(gate, text) for text in made)
    proposed = gate.run(Call("forums.create", proposer, {"name": "News"}, request_id="same")).value["id"]
    log(0, operation="forums.create", method="POST", status=202, request_id="same")
    approved = gate.run(Call("proposals.approve", approver, {}, proposed, request_id="same"))
    log(0, operation="proposals.approve", method="POST", key_id=2, request_id="same")
    made_by = run("proposals.get", proposed)["event"]
    assert [run("events.get", seq)["request"] for seq in (made_by, approved.event)] == [2, 2]
    assert run("events.get", run("requests.get", 1)["event"])["operation"] == "proposals.create"
    assert run("requests.get", 2)["event"] == approved.event


@pytest.mark.either_engine
def test_a_request_that_lacked_a_grant_leads_to_giving_it(admin: Visitor, log: Log, key: MakeKey) -> None:
    key(["forums.create"])
    missing = {"forums.list": "forums.list", "forums.tree": "forums.list", "forums.put_external": "forums.update"}
    for number, (operation, grant) in enumerate(missing.items(), 1):
        log(0, operation=operation, status=403, error="2S291/3")
        page = admin.get(f"/requests/{number}")
        assert f"Grant {grant}…" in page_text(page)
        assert f'href="/admin/keys/1/edit?grant={grant}"' in page.text


@pytest.mark.either_engine
def test_requests_to_each_operation_of_the_api_can_be_chosen(admin: Visitor, gate: Gate) -> None:
    page = admin.get("/requests").text
    offered = re.findall(r'<option value="([a-z_]+\.[a-z_]+)"', page)
    assert {"core.hello", "core.batch", "forums.tree", "forums.put_external", "forums.restore", "proposals.withdraw"} <= {*offered}
    assert {one.name for one in gate.catalogue.values() if one.path is not None} <= {*offered}
    assert len(offered) == len({*offered})


def test_a_refused_request_leads_to_no_event(admin: Visitor, log: Log, run: Run) -> None:
    log(0, operation="forums.create", status=403)
    assert "What this request changed" not in page_text(admin.get("/requests/1"))


def test_a_request_that_is_not_there_is_said_to_be_so(admin: Visitor) -> None:
    assert admin.get("/requests/7").status_code == 404
    assert admin.get(f"/requests/{10**17}").status_code == 404


@pytest.mark.either_engine
def test_hostile_paths_never_run(admin: Visitor, log: Log) -> None:
    hostile = "/api/<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    log(0, path=hostile, operation=None, status=404, request_id="<b>id</b>"[:20], address="192.0.2.7", error="2S291/1")
    for path in ("/requests", "/requests/1", "/requests?path=%3Cscript%3Ealert", '/requests?operation="><script>alert(1)'):
        text = admin.get(path).text
        assert "<script>alert" not in text, path
        assert "<img" not in text, path


def test_looking_changes_nothing(admin: Visitor, log: Log, events: Events) -> None:
    log()
    before = events()
    for path in ("/requests", "/requests/1", "/requests?status=2xx", "/events", "/events/1"):
        admin.get(path)
        assert admin.post(path).status_code == 405, path
    assert events() == before


def test_an_impatient_search_says_how_far_it_looked(admin: Visitor, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.store.requests.searching._CHUNK", 10)
    monkeypatch.setattr("trellis.store.log_search.LONGEST", 0.0)
    for number in range(40):
        log(number, path="/there" if number == 39 else "/api/x")
    page = admin.get("/requests?path=%2Fthere")
    assert "Nothing found yet" in page_text(page)
    assert "stopped at 2026-01-31 09:29" in page_text(page)
    for _ in range(5):
        further = re.search(r'rel="next" href="/admin(/requests[^"]+)"', page.text)
        if further is None:
            break
        page = admin.get(further[1].replace("&amp;", "&"))
    assert _shown(page) == ["/there"]


def test_requests_without_a_key_are_shown_as_counts_beside_their_examples(admin: Visitor, log: Log, gate: Gate) -> None:
    log(0, key_id=None, status=401, operation=None, error="2S290/6")
    counts = [
        KeylessCount("2026-01-31T09:30", "192.0.2.7", 401, "2S290/6", 12_345),
        KeylessCount("2026-01-31T09:29", "2001:db8::/64", 429, "1S290/D", 2),
    ]
    gate.store.write(lambda tx: requests.append_keyless(tx, counts)).result(30)
    page = page_text(admin.get("/requests?key=0"))
    assert "2026-01-31 09:30 UTC 192.0.2.7 401 12,345" in page
    assert "2001:db8::/64 429 2" in page
    assert "2001:db8::/64" not in page_text(admin.get("/requests?key=0&address=192.0.2.7"))
    assert "12,345" not in page_text(admin.get("/requests"))


def test_the_overview_leads_to_the_requests_that_it_has_counted(admin: Visitor, log: Log) -> None:
    day = 24 * 3600
    log(2 * day, status=503, path="/old")
    log(60, status=503, path="/new")
    page = admin.get("")
    assert "1 request failed in the last 24 hours." in page_text(page)
    (link,) = re.findall(r'href="/admin([^"]+)">See them<', page.text)
    assert _shown(admin.get(link.replace("&amp;", "&"))) == ["/new"]
