"""Saved filters in the panel: saved below a list, opened with one click and by the search, changed, deleted, outlived."""

import re

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import find_form
from tests.fixture_types import Events, Run
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import Call


def test_a_filter_is_saved_opened_changed_and_deleted(admin: Visitor) -> None:
    page = admin.get("/requests?status=4xx&path=forums")
    assert "Save this filter" in page_text(page)
    assert 'name="query" value="status=4xx&amp;path=forums"' in page.text
    saved = admin.post("/filters", {"name": "Refused writes", "list": "requests", "query": "status=4xx&path=forums", "shared": "1"})
    assert saved.headers["location"] == "/admin/filters/1"
    opened = admin.get("/filters/1")
    assert opened.headers["location"] == "/admin/requests?status=4xx&path=forums&_filter=1"
    shown = admin.get("/requests?status=4xx&path=forums&_filter=1")
    assert "The filter was saved as" in page_text(shown)
    assert '<a class="button quiet" href="/admin/filters/1" aria-current="true">' in shown.text
    assert "no longer valid" not in shown.text
    other = admin.get("/requests?status=5xx&_filter=1")
    assert "Save to Refused writes" in page_text(other)
    admin.post("/filters/1/edit", {"query": "status=5xx"})
    assert admin.get("/filters/1").headers["location"] == "/admin/requests?status=5xx&_filter=1"
    hits = page_text(admin.get("/search/hits?text=refused"))
    assert "Saved filters Refused writes filter of requests" in hits

    again = admin.post("/filters", {"name": "refused WRITES", "list": "requests", "query": "status=4xx"})
    assert again.status_code == 400
    assert "another filter of this list" in page_text(again)
    assert 'name="query" value="status=4xx"' in again.text
    admin.get("/filters/1/edit")
    assert admin.post("/filters/1/edit", {"name": "Failures", "shared": "0"}).headers["location"] == "/admin/filters"
    assert "Failures Requests Yours" in page_text(admin.get("/filters"))
    admin.post("/filters/1/delete")
    assert "No saved filters yet" in page_text(admin.get("/filters"))
    assert admin.get("/filters/1").status_code == 404


def test_a_filter_that_was_changed_in_the_meantime_is_not_put_back(admin: Visitor, run: Run, events: Events) -> None:
    for name in ("Refused", "Mine"):
        admin.post("/filters", {"name": name, "list": "requests", "query": "status=4xx", "shared": "1"})
    renaming = find_form(admin.get("/filters/2/edit"), "/filters/2/edit")
    replacing = find_form(admin.get("/requests?status=5xx&_filter=2"), "/filters/2/edit")
    run("filters.update", 2, name="Ours", shared=False)
    assert admin.post("/filters/2/edit", replacing.filled()).status_code == 303  # which nobody else has replaced
    before = len(events())
    conflict = admin.post("/filters/2/edit", renaming.filled(name="Of Mira"))
    assert (conflict.status_code, len(events())) == (409, before)
    assert "Somebody else changed this filter in the meantime" in page_text(conflict)
    assert "Name Ours Of Mira Shared no yes" in page_text(conflict)
    refused = admin.post("/filters/2/edit", renaming.filled(name="Refused"))
    assert (refused.status_code, "another filter of this list" in page_text(refused)) == (400, True)
    assert admin.post("/filters/2/edit", find_form(refused, "/filters/2/edit").filled(name="Of Mira")).status_code == 409
    assert admin.post("/filters/2/edit", find_form(conflict, "/filters/2/edit").filled()).status_code == 303
    assert [(one["name"], one["shared"]) for one in run("filters.list") if one["id"] == 2] == [("Of Mira", True)]


def test_a_filter_that_was_replaced_in_the_meantime_is_not_replaced_unseen(admin: Visitor, run: Run) -> None:
    admin.post("/filters", {"name": "Mine", "list": "requests", "query": "status=4xx"})
    replacing = find_form(admin.get("/requests?status=5xx&_filter=1"), "/filters/1/edit")
    run("filters.update", 1, query="status=2xx")
    conflict = admin.post("/filters/1/edit", replacing.filled())
    assert (conflict.status_code, "Filter status=2xx status=5xx" in page_text(conflict)) == (409, True)
    assert admin.post("/filters/1/edit", find_form(conflict, "/filters/1/edit").filled()).status_code == 303
    assert "status=5xx" in admin.get("/filters/1").headers["location"]


def test_a_filter_of_proposals_that_names_no_state_is_open_as_it_was_saved(admin: Visitor, run: Run) -> None:
    run("filters.create", name="New forums", list="proposals", query="operation=forums.create", shared=True)
    opened = admin.get("/filters/1").headers["location"].removeprefix("/admin")
    current = 'href="/admin/filters/1" aria-current="true"'
    assert current in admin.get(opened).text
    assert current not in admin.get(f"{opened}&state=any").text


def test_a_filter_that_is_not_understood_any_more_says_so(admin: Visitor, run: Run) -> None:
    run("filters.create", name="Of a field", list="requests", query="colour=red", shared=True)
    run("filters.create", name="Of an operation", list="requests", query="operation=forums.fold", shared=True)
    for number, said in ((1, "no field 'colour'"), (2, "'forums.fold' no longer exists")):
        page = admin.get(admin.get(f"/filters/{number}").headers["location"].removeprefix("/admin"))
        assert "is no longer valid" in page_text(page)
        assert said in page_text(page)


def test_the_filter_that_is_open_stays_so_on_the_other_pages_of_its_list(admin: Visitor, gate: Gate, run: Run) -> None:
    for number in (1, 2):
        bounds = {"forums.create": {"level": "propose"}}
        text = run("keys.create", name=f"Key {number}", grants=["forums.create"], bounds=bounds)["key"]
        agent = gate.store.read_single(lambda tx, text=text: authenticate(tx, text, gate.now())).actor  # type: ignore[misc]
        gate.run(Call("forums.create", agent, {"name": "News"}))
    for name, query, place in (
        ("requests", "status=4xx", "&before=2026-01-01T00:00:00.000Z_5"),
        ("events", "resource=forums", "&before=900"),
        ("deliveries", "state=failed", "&before=900"),
        ("keys", "state=active&perPage=1", ""),
        ("proposals", "state=open&perPage=1", ""),
    ):
        made = run("filters.create", name="Mine", list=name, query=query, shared=True)["id"]
        page = admin.get(admin.get(f"/filters/{made}").headers["location"].removeprefix("/admin") + place)
        assert page.status_code == 200, page_text(page)
        links = re.findall(r'<nav class="pages".*?</nav>', page.text, re.DOTALL)
        assert [re.findall(r"_filter=(\d+)", one) for one in links] == [[str(made)]], name


def test_every_list_with_filters_can_keep_one(admin: Visitor) -> None:
    filters = {"events": "type=forum.created", "deliveries": "state=failed", "keys": "state=active", "proposals": "state=approved"}
    for name, query in filters.items():
        assert f'name="list" value="{name}"' in admin.get(f"/{name}?{query}").text
        saved = admin.post("/filters", {"name": name, "list": name, "query": query})
        where = admin.get(saved.headers["location"].removeprefix("/admin")).headers["location"].removeprefix("/admin")
        page = admin.get(where)
        assert page.status_code == 200
        assert 'aria-current="true"' in page.text
