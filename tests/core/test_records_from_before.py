"""Records from before a rule was made: they can be sent back as they were read, and only so."""

import json
from typing import Any

import pytest

from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import Events, Run
from tests.node_rows import write_by_hand
from trellis.errors import Refused
from trellis.settings import Settings

_UNSEEN = "\N{HANGUL FILLER}"
_DEEP = "<b>" * 700 + "x" + "</b>" * 700


@pytest.fixture
def old(run: Run, settings: Settings, engine: str, community: Community) -> int:
    """A forum with a name and a description that no forum may be given now."""
    run("forums.update", community.staff, description="<b>x</b>")
    fields = f"CAST(replace(CAST(fields AS text), '<b>x</b>', '{_DEEP}') AS {'text' if engine == 'sqlite' else 'jsonb'})"
    where = f"kind = 'forums' AND id = {community.staff}"
    write_by_hand(settings, f"UPDATE nodes SET name = '{_UNSEEN}', fields = {fields} WHERE {where}")  # noqa: S608
    return community.staff


def test_a_node_is_sent_back_as_it_was_read(run: Run, events: Events, old: int) -> None:
    before = run("forums.get", old)
    assert (before["name"], before["description"]) == (_UNSEEN, _DEEP)
    count = len(events())
    assert run("forums.update", old, **before) == before
    assert len(events()) == count
    changed = run("forums.update", old, **before | {"type": "questions"})
    assert (changed["name"], changed["description"], changed["type"]) == (_UNSEEN, _DEEP, "questions")


@pytest.mark.parametrize("values", [{"name": f"{_UNSEEN}{_UNSEEN}"}, {"description": f"{_DEEP}y"}, {"title": _UNSEEN}])
def test_nothing_else_of_the_sort_is_accepted(run: Run, old: int, values: dict[str, str]) -> None:
    before = run("forums.get", old)
    for others in ((), before):
        sent: dict[str, Any] = {name: before[name] for name in others if name not in {"name", *values}}
        with pytest.raises(Refused) as refused:
            run("forums.update", old, **sent, **values)
        assert refused.value.status == 400


def test_beside_a_new_password_it_is_refused(run: Run, database: DatabaseState, old: int) -> None:
    """A password is digested before the write only where nothing is at fault, and none may be stored as it was typed."""
    with database.unchanged(), pytest.raises(Refused, match="invisible"):
        run("forums.update", old, **run("forums.get", old), password="orbit lantern camel")
    run("forums.update", old, password="orbit lantern camel")
    assert "orbit" not in str(database.rows())


def test_false_is_not_sent_back_for_zero(run: Run, old: int) -> None:
    """Whether a value is refused does not depend on what the forum has: in Python, false is equal to 0, and true to 1."""
    for sent, number in ((False, 0), (True, 1)):
        run("forums.update", old, minContent=number)
        with pytest.raises(Refused, match="whole number"):
            run("forums.update", old, minContent=sent)
        assert run("forums.update", old, minContent=float(number))["minContent"] == number


def test_a_webhook_is_sent_back_as_it_was_read(run: Run, settings: Settings) -> None:
    run("webhooks.create", url="https://hooks.example/trellis", events=["*"])
    write_by_hand(settings, f"UPDATE webhooks SET description = '{_UNSEEN}'")  # noqa: S608
    before = run("webhooks.get", 1)
    sent = {name: before[name] for name in ("url", "events", "description")}
    assert run("webhooks.update", 1, **sent)["description"] == _UNSEEN
    with pytest.raises(Refused, match="invisible"):
        run("webhooks.update", 1, **sent | {"description": f"{_UNSEEN}{_UNSEEN}"})


def test_so_is_a_webhook_whose_address_and_events_are_no_longer_accepted(run: Run, settings: Settings) -> None:
    """Settings may allow fewer addresses than before, and a community may have had kinds that it no longer has."""
    run("webhooks.create", url="https://hooks.example/trellis", events=["*"])
    had = json.dumps(["wiki.created", "forum.*"])
    write_by_hand(settings, f"UPDATE webhooks SET url = 'https://10.0.0.1/hook', events = '{had}'")  # noqa: S608
    before = run("webhooks.get", 1)
    sent = {name: before[name] for name in ("url", "events", "description", "enabled")}
    assert run("webhooks.update", 1, **sent) == before
    changed = run("webhooks.update", 1, **sent | {"enabled": False, "events": [*before["events"], "blog.*"]})
    assert (changed["url"], changed["events"], changed["enabled"]) == (before["url"], [*before["events"], "blog.*"], False)
    for value in ({"url": "https://10.0.0.2/hook"}, {"events": [*before["events"], "wiki.deleted"]}):
        with pytest.raises(Refused) as refused:
            run("webhooks.update", 1, **sent | value)
        assert refused.value.status == 400


def _check(run: Run, sent: dict[str, Any], resource: str, change: dict[str, Any], refused: dict[str, Any]) -> None:
    """Send the first record of a resource back as it was read, alone and with a change; then with something that is refused."""
    before = run(f"{resource}.update", 1, **sent)
    assert {name: before[name] for name in sent} == sent
    changed = run(f"{resource}.update", 1, **sent | change)
    assert {name: changed[name] for name in sent | change} == sent | change
    with pytest.raises(Refused) as error:
        run(f"{resource}.update", 1, **sent | refused)
    assert error.value.status == 400


@pytest.mark.parametrize("column", ["name", "login"])
def test_so_is_an_administrator_whose_name_or_login_nobody_sees(run: Run, settings: Settings, column: str) -> None:
    run("admins.create", name="Ada Berg", login="ada", password="orbit lantern camel")
    write_by_hand(settings, f"UPDATE administrators SET {column} = '{_UNSEEN}'")  # noqa: S608
    before = run("admins.get", 1)
    sent = {name: before[name] for name in ("name", "login", "email")}
    _check(run, sent, "admins", {"email": "ada@lantern.example"}, {column: f"{_UNSEEN}{_UNSEEN}"})


@pytest.mark.parametrize(
    ("column", "value", "worse"),
    [
        ("name", _UNSEEN, f"{_UNSEEN}{_UNSEEN}"),
        ("owner", _UNSEEN, f"{_UNSEEN}{_UNSEEN}"),
        ("addresses", ["fe80::1%eth0/128"], ["fe80::1%eth0/128", "fe80::2%eth0/128"]),
        ("grants", ["forums.list", "wiki.create"], ["forums.list", "wiki.create", "wiki.delete"]),
    ],
)
def test_so_is_a_key(run: Run, settings: Settings, column: str, value: Any, worse: Any) -> None:
    run("keys.create", name="Plugin", grants=["forums.list"])
    stored = value if isinstance(value, str) else json.dumps(value)
    write_by_hand(settings, f"UPDATE api_keys SET {column} = '{stored}'")  # noqa: S608
    before = run("keys.get", 1)
    sent = {name: before[name] for name in ("name", "owner", "note", "grants", "bounds", "addresses")}
    _check(run, sent, "keys", {"note": "checked"}, {column: worse})


def test_a_grant_that_has_gone_keeps_its_bound_and_goes_if_it_is_not_named(run: Run, settings: Settings) -> None:
    run("keys.create", name="Plugin", grants=["forums.list"])
    bounds = {"wiki.create": {"level": "propose", "under": ["forums:7"], "until": "2126-02-07T09:30:00.000Z", "perDay": 5}}
    stored = f"grants = '{json.dumps(['forums.list', 'wiki.create'])}', bounds = '{json.dumps(bounds)}'"
    write_by_hand(settings, f"UPDATE api_keys SET {stored}")  # noqa: S608
    before = run("keys.get", 1)
    assert before["bounds"] == bounds
    sent = {name: before[name] for name in ("grants", "bounds")}
    assert run("keys.update", 1, **sent, note="checked")["bounds"] == bounds
    assert "wiki.create" not in run("keys.update", 1, grants=["*"])["grants"]


def test_so_is_a_saved_filter(run: Run, settings: Settings) -> None:
    run("filters.create", name="Refused", list="requests", query="status=4xx")
    write_by_hand(settings, f"UPDATE saved_filters SET name = '{_UNSEEN}'")  # noqa: S608
    sent = {"name": _UNSEEN, "query": "status=4xx", "shared": False}
    _check(run, sent, "filters", {"shared": True}, {"name": f"{_UNSEEN}{_UNSEEN}"})
