"""Bounds of grants in the panel: set without scripts, shown, kept where the form does not name them."""

from typing import Any

import pytest

from tests.admin.conftest import Visitor, page_text
from tests.admin.html_forms import read_forms
from tests.admin.keys.test_index import _form
from tests.fixture_types import Clock, MakeKey, Run

UPDATE = "bounds.forums.update"


def _edit(admin: Visitor, **values: Any) -> dict[str, Any]:
    return _form(admin, "/keys/1/edit", **({"name": "Plugin", "expires": "keep"} | values))


@pytest.mark.either_engine
def test_a_button_lists_a_row_for_each_grant_that_is_ticked(admin: Visitor, key: MakeKey) -> None:
    key(["forums.list"])
    page = admin.post("/keys/1/edit", _edit(admin, grants=["", "forums.list", "forums.update"], _tick="bounds"))
    assert page.status_code == 200
    assert f'name="{UPDATE}.level"' in page.text
    assert 'name="bounds.forums.list.under"' in page.text
    assert 'name="bounds.forums.list.level"' not in page.text, "a read has nothing to approve"
    assert 'name="bounds.forums.get.under"' not in page.text


def test_bounds_are_set_for_each_grant_and_shown(admin: Visitor, key: MakeKey, run: Run) -> None:
    key(["forums.list", "forums.update"])
    typed = {f"{UPDATE}.level": "propose", f"{UPDATE}.under": "12, forums:7", f"{UPDATE}.until": "7d", f"{UPDATE}.perDay": "9"}
    empty = {f"bounds.forums.list.{name}": "" for name in ("under", "until", "perDay")}
    saved = admin.post("/keys/1/edit", _edit(admin, grants=["", "forums.list", "forums.update"], **typed, **empty))
    assert saved.status_code == 303
    bound = {"level": "propose", "under": ["forums:7", "forums:12"], "until": "2026-02-07T09:30:00.000Z", "perDay": 9}
    assert run("keys.get", 1)["bounds"] == {"forums.update": bound}
    shown = page_text(admin.get("/keys/1"))
    assert "Only within forums:7, forums:12, until 2026-02-07 09:30 UTC, 9 times a day, to be approved by somebody else." in shown
    form = admin.get("/keys/1/edit").text
    assert f'name="{UPDATE}.under" value="forums:7, forums:12"' in form


@pytest.mark.either_engine
def test_what_is_wrong_stands_at_its_grant_and_what_was_typed_stays(admin: Visitor, key: MakeKey, run: Run) -> None:
    key(["forums.update"])
    page = admin.post("/keys/1/edit", _edit(admin, grants=["", "forums.update"], **{f"{UPDATE}.under": "calendars:3"}))
    assert page.status_code == 400
    assert "Within of forums.update: forums.update is about forums, so it cannot be limited to 'calendars:3'." in page_text(page)
    assert f'name="{UPDATE}.under" value="calendars:3"' in page.text
    assert run("keys.get", 1)["bounds"] == {}


def test_a_form_that_does_not_name_a_bound_leaves_it(admin: Visitor, key: MakeKey, run: Run, clock: Clock) -> None:
    key(["forums.update", "forums.list"], bounds={"forums.update": {"until": "1h"}})
    before = run("keys.get", 1)["bounds"]
    clock.move(hours=2)
    admin.sign_in()
    assert admin.post("/keys/1/edit", _edit(admin, name="Other", grants=["", "forums.update"])).status_code == 303
    assert run("keys.get", 1)["bounds"] == before
    assert admin.post("/keys/1/edit", _edit(admin, name="Other", grants=["", "forums.list"])).status_code == 303
    assert run("keys.get", 1)["bounds"] == {}


@pytest.mark.parametrize("hours", [1, 3], ids=["still holds", "has ended"])
def test_a_form_that_is_sent_as_it_was_shown_leaves_a_bound_to_the_millisecond(
    admin: Visitor, key: MakeKey, run: Run, clock: Clock, hours: int
) -> None:
    clock.move(milliseconds=123)
    key(["forums.update"], bounds={"forums.update": {"until": "2h"}})
    before = run("keys.get", 1)["bounds"]
    assert before["forums.update"]["until"] == "2026-01-31T11:30:00.123Z"
    clock.move(hours=hours)
    admin.sign_in()
    (form,) = (form for form in read_forms(admin.get("/keys/1/edit")) if form.all("grants"))
    assert form[f"{UPDATE}.until"] == "2026-01-31T11:30:00+00:00"
    assert admin.post("/keys/1/edit", form.filled(name="Other")).status_code == 303
    assert (run("keys.get", 1)["name"], run("keys.get", 1)["bounds"]) == ("Other", before)


def test_a_limit_of_none_stays_when_its_form_is_sent_as_it_was_shown(admin: Visitor, key: MakeKey, run: Run) -> None:
    key(["forums.update", "forums.list"], bounds={"forums.update": {"perDay": 0}})
    before = run("keys.get", 1)["bounds"]
    page = admin.get("/keys/1/edit")
    (form,) = (form for form in read_forms(page) if form.all("grants"))
    assert form[f"{UPDATE}.perDay"] == "0"
    assert "1 grant with bounds" in page_text(page)
    assert admin.post("/keys/1/edit", form.filled(name="Other")).status_code == 303
    assert (run("keys.get", 1)["name"], run("keys.get", 1)["bounds"]) == ("Other", before)


@pytest.mark.either_engine
def test_a_conflict_shows_how_bounds_differ(admin: Visitor, key: MakeKey, run: Run) -> None:
    key(["forums.update", "forums.list"], bounds={"forums.update": {"perDay": 5}})
    (form,) = (form for form in read_forms(admin.get("/keys/1/edit")) if form.all("grants"))
    run("keys.update", 1, bound={"forums.update": {"perDay": 2}, "forums.list": {"under": ["forums:7"]}})
    conflict = admin.post("/keys/1/edit", form.filled(name="Mine"))
    assert conflict.status_code == 409
    said = page_text(conflict)
    assert "Name Plugin Mine" in said
    assert "Bounds forums.list: Only within forums:7. forums.update: Only 2 times a day. forums.update: Only 5 times a day." in said


@pytest.mark.either_engine
def test_a_conflict_shows_in_the_zone_of_the_page_when_a_key_would_expire(
    admin: Visitor, key: MakeKey, run: Run, clock: Clock
) -> None:
    admin.post("/account/view", {"zone": "Europe/Berlin", "theme": ""})
    key(["forums.list"], bounds={"forums.list": {"until": "1d"}})
    (form,) = (form for form in read_forms(admin.get("/keys/1/edit")) if form.all("grants"))
    run("keys.update", 1, expires="9d", bound={"forums.list": {"until": "2d"}})
    clock.move(seconds=20)
    said = page_text(admin.post("/keys/1/edit", form.filled(("bounds.forums.list.until", "2d"), expires="30d")))
    assert "Expires 2026-02-09 10:30:00 UTC+1 2026-03-02 10:30:20 UTC+1" in said
    assert "Only until 2026-02-02 10:30:00 UTC+1. forums.list: Only until 2026-02-02 10:30:20 UTC+1." in said


@pytest.mark.either_engine
def test_what_is_wrong_with_a_bound_and_how_bounds_differ_is_said_in_german(admin: Visitor, key: MakeKey, run: Run) -> None:
    admin.client.headers["accept-language"] = "de"
    key(["forums.update", "forums.list"], bounds={"forums.update": {"perDay": 5}})
    (form,) = (form for form in read_forms(admin.get("/keys/1/edit")) if form.all("grants"))
    refused = page_text(admin.post("/keys/1/edit", form.filled(**{f"{UPDATE}.perDay": "x", f"{UPDATE}.until": ""})))
    assert "Wie oft am Tag von forums.update: muss eine ganze Zahl von 0 bis" in refused
    run("keys.update", 1, bound={"forums.update": {"perDay": 2}})
    conflict = page_text(admin.post("/keys/1/edit", form.filled(name="Mine")))
    assert "Grenzen forums.update: Nur 2 Mal am Tag. forums.update: Nur 5 Mal am Tag." in conflict


def test_widening_a_bound_asks_for_the_password(admin: Visitor, key: MakeKey, run: Run, clock: Clock) -> None:
    key(["forums.update"], bounds={"forums.update": {"perDay": 5, "under": [12]}})
    admin.sign_in()
    clock.move(minutes=20)
    fewer = _edit(admin, grants=["", "forums.update"], **{f"{UPDATE}.perDay": "3", f"{UPDATE}.under": "forums:12"})
    assert admin.post("/keys/1/edit", fewer).headers["location"].endswith("/keys/1")
    more = _edit(admin, grants=["", "forums.update"], **{f"{UPDATE}.perDay": "3", f"{UPDATE}.under": ""})
    asked = admin.post("/keys/1/edit", more)
    assert "Enter your password" in page_text(asked)
    assert run("keys.get", 1)["bounds"] == {"forums.update": {"level": "allow", "under": ["forums:12"], "perDay": 3}}


def test_a_new_key_has_its_bounds_from_the_start(admin: Visitor, run: Run) -> None:
    typed = {"bounds.forums.list.under": "forums:12", "bounds.forums.list.perDay": "100"}
    made = admin.post("/keys/new", _form(admin, "/keys/new", name="Bot", expires="90d", grants=["", "forums.list"], **typed))
    assert made.status_code == 200
    assert run("keys.get", 1)["bounds"] == {"forums.list": {"level": "allow", "under": ["forums:12"], "perDay": 100}}
