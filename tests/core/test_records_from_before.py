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
