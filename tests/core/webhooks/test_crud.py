"""The operations on webhooks, on both engines."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from tests.fixture_types import Clock, Events, Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.webhooks import crud
from trellis.errors import Refused
from trellis.store.tables import METADATA

URL = "https://hooks.example/trellis"
Make = Callable[..., dict[str, Any]]


@pytest.fixture
def make(run: Run) -> Make:
    """Make a webhook."""
    return lambda **given: dict(run("webhooks.create", **({"url": URL, "events": ["forum.*"]} | given)))


def refused(run: Run, *call: Any, **raw: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        run(*call, **raw)
    return caught.value


def test_a_webhook_is_made_with_a_secret_that_is_shown_once(run: Run, make: Make, events: Events, clock: Clock) -> None:
    made = make(description="Search index")
    secret = made.pop("secret")
    assert secret.startswith("whsec_")
    assert made == {
        "id": 1,
        "url": URL,
        "events": ["forum.*"],
        "description": "Search index",
        "enabled": True,
        "state": "on",
        "failingSince": None,
        "lastAttemptAt": None,
        "disabledAt": None,
        "disabledBecause": "",
        "oldSecretUntil": None,
        "maker": {"type": "terminal", "id": None, "name": "terminal"},
        "createdAt": clock.text,
        "updatedAt": clock.text,
    }
    assert run("webhooks.get", 1) == made
    assert run("webhooks.list")["results"] == [made]
    (event,) = events()
    assert (event["operation"], event["after"]) == ("webhooks.create", made)


def test_a_secret_stands_in_no_event_and_in_no_kept_answer(gate: Gate, run: Run, make: Make) -> None:
    plugin = Actor("key", 1, "Plugin", None)
    call = Call("webhooks.create", plugin, {"url": URL, "events": "*"}, token="t", fingerprint="f")
    first, again = gate.run(call), gate.run(call)
    secrets = [first.value["secret"], run("webhooks.rotate", 1)["secret"], make()["secret"]]
    assert again.replayed
    assert again.value == {name: value for name, value in first.value.items() if name != "secret"}
    with gate.store.reading() as tx:
        for table in METADATA.sorted_tables:
            if table.name != "webhooks":
                rows = tx.connection.execute(sa.select(table)).all()
                assert not any(secret.removeprefix("whsec_") in str(row) for row in rows for secret in secrets)


def test_every_fault_is_told_at_once(run: Run) -> None:
    wrong = refused(run, "webhooks.create", url="http://10.0.0.5/", events=["forum.create", "*"], enabled="perhaps")
    assert {(fault.field, fault.message) for fault in wrong.faults} == {
        ("url", "ADDRESS_NOT_ALLOWED"),
        ("events", "UNKNOWN_EVENT"),
        ("enabled", "INVALID_VALUE"),
    }
    assert "Did you mean forum.created?" in wrong.detail
    assert {fault.field for fault in refused(run, "webhooks.create").faults} == {"url", "events"}
    assert refused(run, "webhooks.create", url=URL, events=[]).message == "INVALID_VALUE"


def test_an_update_changes_what_is_sent_and_nothing_else(run: Run, make: Make, events: Events, clock: Clock) -> None:
    make()
    clock.move(hours=1)
    assert run("webhooks.update", 1, events=["*"])["events"] == ["*"]
    changed = run("webhooks.update", 1, enabled=False)
    assert (changed["state"], changed["disabledAt"], changed["disabledBecause"]) == ("off", clock.text, "")
    assert run("webhooks.update", 1, enabled=False) == changed
    assert run("webhooks.update", 1, **changed) == changed
    assert [event["changed"] for event in events()] == [[], ["events"], ["enabled", "state", "disabledAt"]]
    assert refused(run, "webhooks.update", 1, url="http://[::1]/").message == "ADDRESS_NOT_ALLOWED"


def test_a_version_that_has_changed_is_not_written_over(gate: Gate, make: Make) -> None:
    make()
    for operation in ("webhooks.update", "webhooks.delete"):
        with pytest.raises(Refused, match="PRECONDITION_FAILED"):
            gate.run(Call(operation, TERMINAL, {}, 1, expected=("other",)))


def test_a_deleted_webhook_is_gone_and_its_id_with_it(run: Run, make: Make, events: Events) -> None:
    made = make()
    del made["secret"]
    assert run("webhooks.delete", 1, dryRun=True)["deleted"] == {"count": 1, "ids": [1]}
    assert run("webhooks.delete", 1) is None
    assert events()[-1]["before"] == made
    assert make()["id"] == 2
    codes = set()
    for operation in ("get", "update", "delete", "rotate", "disable", "test", "redeliver"):
        missing = refused(run, f"webhooks.{operation}", 1, **({"because": "gone"} if operation == "disable" else {}))
        assert missing.message == "INVALID_ID"
        codes.add(missing.code)
    assert len(codes) == 7


def test_a_rotation_shows_the_new_secret_and_says_until_when_the_old_one_signs(
    run: Run, make: Make, clock: Clock, events: Events
) -> None:
    made = make()
    rotated = run("webhooks.rotate", 1, overlapHours=2)
    assert rotated["secret"] != made["secret"]
    clock.move(hours=2)
    assert rotated["oldSecretUntil"] == clock.text
    assert run("webhooks.get", 1)["oldSecretUntil"] is None
    assert run("webhooks.rotate", 1, overlapHours=0)["oldSecretUntil"] is None
    assert "secret" in events()[1]["changed"]


def test_a_dry_run_shows_no_secret(run: Run, make: Make) -> None:
    assert "secret" not in run("webhooks.create", url=URL, events="*", dryRun=True)
    make()
    assert "secret" not in run("webhooks.rotate", 1, dryRun=True)


def test_there_is_an_end_to_webhooks(run: Run, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crud, "MOST", 3)
    for _ in range(3):
        make()
    assert refused(run, "webhooks.create", url=URL, events="*").message == "TOO_MANY_WEBHOOKS"


def test_nothing_is_sent_to_one_that_is_off(run: Run, make: Make) -> None:
    make(enabled=False)
    assert refused(run, "webhooks.test", 1).message == "WEBHOOK_OFF"
    assert refused(run, "webhooks.redeliver", 1, failedSince="2026-01-01").message == "WEBHOOK_OFF"


def test_a_redelivery_is_of_one_or_of_all_since(run: Run, make: Make) -> None:
    make()
    assert refused(run, "webhooks.redeliver", 1).message == "MISSING_VALUE"
    assert refused(run, "webhooks.redeliver", 1, delivery=1, failedSince="2026-01-01").message == "MISSING_VALUE"
    assert refused(run, "webhooks.redeliver", 1, delivery=1).code == "1T107/D"
    assert run("webhooks.redeliver", 1, failedSince="2026-01-01")["count"] == 0


def test_a_key_needs_the_grant_and_five_can_be_granted(gate: Gate, make: Make) -> None:
    make()
    plugin = Actor("key", 1, "Plugin", frozenset({"webhooks.list"}))
    assert gate.run(Call("webhooks.list", plugin)).value["totalResults"] == 1
    with pytest.raises(Refused, match="NO_PERMISSION"):
        gate.run(Call("webhooks.get", plugin, target=1))
    granted = {o.name for o in gate.catalogue.values() if o.resource == "webhooks" and o.is_grantable}
    assert granted == {f"webhooks.{verb}" for verb in ("list", "get", "create", "update", "delete")}
