"""The list of keys, and making one: by the grid, once shown, never kept."""

import re
from typing import Any, Final

import pytest

from tests.admin.conftest import PASSWORD, MakeVisitor, Visitor, page_text
from tests.community import CATALOGUE, GRANTABLE
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, Events, MakeKey, Run
from trellis.admin.keys.grants import GrantGrid
from trellis.core.gate import Gate

GRID = GrantGrid(CATALOGUE)
FORM = {"name": "Calendar sync", "expires": "90d", "until": "", "addresses": "", "rateLimit": "", "logRequests": "1"}
HOSTILE = """<script>alert(1)</script>"'&amp;{{7*7}}"""


def _key_in(response: Any) -> str | None:
    found = re.search(r"trl_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}", response.text)
    return found[0] if found else None


def _form(admin: Visitor, path: str = "/keys/new", **values: Any) -> dict[str, Any]:
    """Open a form; give what it would send with some values typed in."""
    page = admin.get(path)
    hidden = dict(re.findall(r'<input type="hidden" name="(_\w+)" value="([^"]*)"', page.text))
    return FORM | hidden | {"grants": ["", "forums.create"]} | values


@pytest.mark.either_engine
def test_without_keys_the_list_says_how_to_begin(admin: Visitor) -> None:
    page = admin.get("/keys")
    assert page.status_code == 200
    assert "There are no keys yet" in page_text(page)
    assert 'href="/admin/keys/new"' in page.text


def test_the_list_tells_what_each_key_is(admin: Visitor, run: Run, key: MakeKey, clock: Clock) -> None:
    key("*", name="Everything plugin")
    key(["*.list", "*.get", "*.export", "access.*"], name="Backup", expires="1d")
    key([], name="Idle")
    key("forums.create", name="Old")
    run("keys.revoke", 4, reason="Leaked")
    clock.move(days=2)
    admin.sign_in()
    page = page_text(admin.get("/keys"))
    for said in ("Everything plugin Active", "Backup Expired", "Read everything", "Nothing yet", "Old Revoked", "Create a forum"):
        assert said in page
    assert "Leaked" in page
    assert _key_in(admin.get("/keys")) is None


def test_filters_stand_in_the_address(admin: Visitor, run: Run, key: MakeKey) -> None:
    for name, grants in (("Backup", ["*.list"]), ("Calendar", ["calendars.*"]), ("Old", ["forums.create"])):
        key(grants, name=name)
    run("keys.revoke", 3)
    for query, names in (
        ("search=back", ["Backup"]),
        ("search=BACK", ["Backup"]),
        ("search=%25", []),
        ("state=active", ["Calendar", "Backup"]),
        ("state=revoked", ["Old"]),
        ("operation=forums.create", ["Old"]),
        ("operation=forums.list&state=active", ["Backup"]),
        ("search=&state=&operation=", ["Old", "Calendar", "Backup"]),
        ("page=1", ["Old", "Calendar", "Backup"]),
        ("perPage=1&page=2", ["Calendar"]),
    ):
        page = admin.get(f"/keys?{query}")
        assert page.status_code == 200, query
        assert re.findall(r'href="/admin/keys/\d+">(\w+)</a></th>', page.text) == names, query
        assert (">Clear<" in page.text) == (query not in {"search=&state=&operation=", "page=1"}), query


def test_the_public_part_finds_a_key(admin: Visitor, key: MakeKey) -> None:
    key("*", name="Other")
    text = key("*", name="This")
    page = admin.get(f"/keys?search={text[:12]}")
    assert re.findall(r'">(\w+)</a></th>', page.text) == ["This"]


@pytest.mark.either_engine
def test_filters_that_make_no_sense_are_said_at_their_fields(admin: Visitor, key: MakeKey) -> None:
    key("*")
    page = admin.get("/keys?state=lost&page=x&colour=red")
    assert page.status_code == 400
    assert "This form has no field 'colour'" in page_text(page)


@pytest.mark.either_engine
def test_the_grid_tells_every_endpoint_and_links_to_the_reference(admin: Visitor, gate: Gate) -> None:
    page = admin.get("/keys/new").text
    for box in GrantGrid(gate.catalogue).boxes:
        assert f'name="grants" value="{box.name}"' in page
        assert f'href="{box.reference}"' in page
    assert page.count('type="checkbox" name="grants"') == len(gate.catalogue.grantable) == GRANTABLE
    assert "POST" in page


def test_a_key_is_made_and_shown_once(admin: Visitor, events: Events, run: Run, gate: Gate) -> None:
    before = events()
    sent = _form(admin, addresses="192.0.2.0/24\n2001:db8::1", rateLimit="60", grants=["", "forums.create", "forums.list"])
    made = admin.post("/keys/new", sent)
    assert made.status_code == 200
    assert made.headers["cache-control"] == "no-store"
    text = _key_in(made)
    assert text is not None
    assert f"curl -H &#39;Authorization: Bearer {text}&#39; http://panel.example/api/core/hello" in made.text.replace("'", "&#39;")
    (event,) = events()[len(before) :]
    assert (event["operation"], event["actor"]["name"]) == ("keys.create", "Mira Holm")
    assert event["after"]["grants"] == ["forums.create", "forums.list"]
    assert event["after"]["addresses"] == ["192.0.2.0/24", "2001:db8::1/128"]
    assert (event["after"]["rateLimit"], event["after"]["expiresAt"]) == (60, "2026-05-01T09:30:00.000Z")
    again = admin.post("/keys/new", sent)  # a reload
    assert again.status_code == 200
    assert "the key has already been shown" in page_text(again)
    assert _key_in(again) is None
    assert len(events()) == len(before) + 1
    rows = DatabaseState(gate).rows()
    assert text.rpartition("_")[2][:32] not in repr(rows)
    assert run("keys.list")["totalResults"] == 1


def test_the_dialect_is_chosen_in_the_form_and_shown_in_the_list(admin: Visitor, run: Run) -> None:
    form = admin.get("/keys/new").text
    assert '<option value="trellis"' in form
    assert '<option value="invision"' in form
    assert admin.post("/keys/new", _form(admin, name="Ours", dialect="trellis")).status_code == 200
    assert "Invision" not in page_text(admin.get("/keys"))
    assert admin.post("/keys/new", _form(admin, name="Old client", dialect="invision")).status_code == 200
    assert "Invision" in page_text(admin.get("/keys"))
    assert [key["dialect"] for key in run("keys.list")["results"]] == ["trellis", "invision"]


def test_a_form_that_has_made_a_key_makes_no_other_by_itself(admin: Visitor, run: Run) -> None:
    sent = _form(admin)
    admin.post("/keys/new", sent)
    other = admin.post("/keys/new", sent | {"name": "Something else"})
    assert other.status_code == 409
    assert "was already sent" in page_text(other)
    assert 'value="Something else"' in other.text
    once = re.search(r'name="_submission" value="([^"]+)"', other.text)
    assert once is not None
    assert admin.post("/keys/new", sent | {"name": "Something else", "_submission": once[1]}).status_code == 200
    assert run("keys.list")["totalResults"] == 2


@pytest.mark.either_engine
def test_the_curl_line_has_the_public_address(visitor: MakeVisitor, mira: int) -> None:
    admin = visitor(https=True, public_url="https://api.example")
    admin.sign_in()
    assert "https://api.example/api/core/hello" in admin.post("/keys/new", _form(admin)).text


@pytest.mark.either_engine
def test_the_buttons_of_the_grid_work_without_scripts(admin: Visitor, events: Events) -> None:
    before, form = events(), _form(admin, name=HOSTILE, addresses="typed\ntext")
    for button, ticked in (
        ("all", GRANTABLE),
        ("none", 0),
        ("read", len(GRID.reading)),
        ("row:calendars", len(GRID.ticks["row:calendars"]) + 1),
        ("column:delete", len(GRID.ticks["column:delete"]) + 1),
        ("bad", 1),
    ):
        page = admin.post("/keys/new", form | {"_tick": button})
        assert page.status_code == 200, button
        assert len(re.findall(r'name="grants" value="[^"]+"[^>]* checked', page.text)) == ticked, button
        assert f"{ticked} of {GRANTABLE} operations ticked" in page_text(page)
        assert "typed\ntext</textarea>" in page.text
        assert "<script>alert" not in page.text
    assert events() == before


_FAULTS: Final[tuple[tuple[dict[str, Any], str], ...]] = (
    ({"name": ""}, "Name"),
    ({"name": "x" * 101}, "Name"),
    ({"addresses": "home"}, "addresses or networks"),
    ({"rateLimit": "-1"}, "Requests per minute must be a whole number"),
    ({"expires": "date"}, "Date is missing"),
    ({"expires": "date", "until": "2020-01-01T00:00"}, "is in the past"),
    ({"expires": "soon"}, "Expires must be"),
    ({"grants": ["", "forums.lost"]}, "this form has no operation called 'forums.lost'"),
    ({"grants": ["*"]}, "this form has no operation called"),
    ({"revokedAt": "now"}, "no field 'revokedAt'"),
    ({"digest": "0" * 64}, "no field 'digest'"),
    ({"name": HOSTILE, "rateLimit": HOSTILE}, "Requests per minute"),
)


@pytest.mark.either_engine
def test_faults_stand_at_their_fields_and_nothing_is_made(admin: Visitor, events: Events) -> None:
    before, form = events(), _form(admin)
    for values, said in _FAULTS:
        page = admin.post("/keys/new", form | values)
        assert page.status_code == 400, values
        assert said in page_text(page)
        assert 'role="alert"' in page.text
        assert "<script>alert" not in page.text
        assert "{{7*7}}" in page.text or "name" not in values or "{{" not in values["name"]
        assert events() == before
        assert _key_in(page) is None


@pytest.mark.either_engine
def test_all_faults_are_said_at_once_and_what_was_typed_stays(admin: Visitor) -> None:
    page = admin.post("/keys/new", _form(admin, name="", rateLimit="lots", addresses="home", grants=["", "blogs.delete"]))
    assert "3 fields need another look" in page_text(page)
    assert 'value="lots"' in page.text
    assert "home</textarea>" in page.text
    assert re.search(r'value="blogs.delete"[^>]* checked', page.text)


def test_the_password_is_asked_for_again_before_a_key_is_made(admin: Visitor, clock: Clock, events: Events) -> None:
    sent = _form(admin)
    clock.move(minutes=16)
    before = events()
    opened = admin.get("/keys/new")
    assert opened.headers["location"] == "/admin/confirm-password?next=/admin/keys/new"
    admin.get("/confirm-password")
    asked = admin.post("/keys/new", sent)
    assert asked.status_code == 403
    assert "Calendar sync" in asked.text
    assert events() == before
    carried = [(name, value) for name, given in sent.items() for value in (given if isinstance(given, list) else [given])]
    confirmed = admin.post(
        "/confirm-password",
        {
            "password": PASSWORD,
            "next": "/admin/keys/new",
            "replay": "1",
            "carried-name": [name for name, _ in carried],
            "carried-value": [value for _, value in carried],
        },
    )
    assert 'action="/admin/keys/new"' in confirmed.text
    assert _key_in(admin.post("/keys/new", sent)) is not None


@pytest.mark.either_engine
def test_a_stale_form_makes_nothing_and_keeps_the_ticks(admin: Visitor, events: Events) -> None:
    before = events()
    page = admin.post("/keys/new", _form(admin), csrf="0" * 64)
    assert page.status_code == 409
    assert "signed in since this form was opened" in page_text(page)
    assert re.search(r'value="forums.create"[^>]* checked', page.text)
    assert events() == before


@pytest.mark.either_engine
def test_hostile_names_never_run(admin: Visitor, run: Run) -> None:
    made = run("keys.create", name=HOSTILE, grants=["forums.list"])
    run("keys.revoke", made["id"], reason=HOSTILE)
    for path in ("/keys", "/keys/1", "/keys/1/edit", "/events", "/events/3", "/requests", "/events?actor=key:1"):
        assert "<script>alert" not in admin.get(path).text, path
