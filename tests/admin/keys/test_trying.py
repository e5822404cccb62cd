"""A key for trying operations in the reference: few grants, an hour at most, and no more than whoever is signed in may do."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.admin.conftest import PASSWORD, MakeVisitor, Visitor, page_text
from tests.fixture_types import Clock, Events, Run

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
HERE = "/keys/try"
JSON = {"Accept": "application/json"}


def _ask(browser: Visitor, *grants: str, **more: str) -> Any:
    """Make a key as the script of the reference does."""
    told = browser.get(HERE, headers=JSON).json()
    sent = {"_submission": told["submission"], "grants": list(grants), **more}
    return browser.post(HERE, sent, csrf=told["csrf"], headers=JSON)


def test_the_reference_gets_a_key_for_one_operation_that_ends_by_itself(
    admin: Visitor, run: Run, events: Events, clock: Clock
) -> None:
    answer = _ask(admin, "forums.create")
    made = answer.json()
    assert (answer.status_code, made["name"]) == (200, "Try it: forums.create")
    assert answer.headers["cache-control"] == "no-store"
    assert not [value for value in answer.headers.values() if "trl_" in value]
    kept = run("keys.get", made["id"])
    assert kept["grants"] == ["forums.create"]
    assert datetime.fromisoformat(kept["expiresAt"]) - datetime.fromisoformat(kept["createdAt"]) == timedelta(hours=1)
    assert (kept["owner"], kept["state"]) == ("Mira Holm", "active")
    assert events()[-1]["operation"] == "keys.create"
    assert made["key"] not in str(events())
    assert "Try it: forums.create" in page_text(admin.get("/keys"))
    clock.move(minutes=61)
    assert run("keys.get", made["id"])["state"] == "expired"


def test_the_form_makes_one_for_what_is_ticked_and_shows_it_once(admin: Visitor, run: Run) -> None:
    page = admin.get(f"{HERE}?operation=forums.create")
    assert page.text.count(' name="grants" value="forums.') > 5
    assert page.text.count("checked") == 1
    shown = admin.post(HERE, {"grants": ["forums.create", "forums.get"]})
    assert "trl_" in shown.text
    assert run("keys.list")["results"][0]["name"] == "Try it: forums.create and 1 more"
    admin.get(HERE)
    admin.post(HERE)
    assert run("keys.list", order="newest")["results"][0]["name"] == "Try it: what needs no grant"


@pytest.mark.parametrize("grant", ["*", "forums.*", "keys.create", "nothing.there"])
def test_nothing_but_operations_by_their_names_is_granted(admin: Visitor, events: Events, grant: str) -> None:
    before = len(events())
    assert _ask(admin, grant).json()["message"] == "UNKNOWN_OPERATION"
    assert len(events()) == before


def test_nobody_gets_more_than_they_may_do_themselves(visitor: MakeVisitor, mira: int, run: Run, events: Events) -> None:
    run("admins.create", login="kim", name="Kim", password=PASSWORD, role="key-manager", mustChangePassword=False)
    kim = visitor()
    kim.sign_in("kim", PASSWORD)
    before = len(events())
    assert _ask(kim, "forums.create").json()["message"] == "ROLE_NEEDED"
    assert 'value="forums.create"' not in kim.get(f"{HERE}?operation=forums.create").text
    assert len(events()) == before


def test_strangers_and_forms_of_others_get_none(admin: Visitor, visitor: MakeVisitor, events: Events, clock: Clock) -> None:
    stranger = visitor()
    told = stranger.get(HERE, headers=JSON)
    assert (told.status_code, sorted(told.json())) == (401, ["detail", "message"])
    before = len(events())
    for csrf, headers, status in (("", JSON, 412), ("0" * 64, JSON, 412), (None, JSON | {"Sec-Fetch-Site": "cross-site"}, 403)):
        admin.get(HERE)
        assert admin.post(HERE, {"grants": "forums.list"}, csrf=csrf, headers=headers).status_code == status
    clock.move(minutes=16)
    assert admin.get(HERE, headers=JSON).json()["message"] == "NEEDS_PASSWORD"
    assert len(events()) == before
