"""The gate: who may pass, and that the same wish twice under one idempotency key is done once."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api_fixtures import listen
from tests.community import COMMUNITY_URL, CONTRACT
from tests.fixture_types import Clock, Events, MakeKey, Run
from trellis import __version__
from trellis.compose import compose
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate
from trellis.core.keys import authenticate
from trellis.core.operation import INSIDE, Call
from trellis.errors import Refused
from trellis.settings import Settings
from trellis.store.counters import next_number

PLUGIN = Actor("key", 7, "Plugin", frozenset({"forums.create", "calendars.create"}))


def create(name: str = "News", token: str | None = "t-1", fingerprint: str = "f-1", actor: Actor = PLUGIN, **raw: Any) -> Call:
    return Call("forums.create", actor, {"name": name, **raw}, token=token, fingerprint=fingerprint)


@pytest.fixture
def second(gate: Gate, settings: Settings, clock: Clock) -> Iterator[Gate]:
    """Another process on the same database."""
    second = compose(settings, clock=clock)
    yield second
    second.store.close()


def test_a_write_that_changes_nothing_leaves_the_data_version(gate: Gate, run: Run) -> None:
    """It may share a commit with bookkeeping, which does write."""
    listen(gate)
    forum = run("forums.create", name="News")["id"]
    before = gate.store.data_version()
    go = threading.Event()
    quiet = gate.store.write(lambda _: go.wait(30), quiet=True)
    bookkeeping = gate.store.write(lambda tx: next_number(tx, "tickets"), quiet=True)
    unchanged = gate.submit(Call("forums.update", TERMINAL, {"name": "News"}, forum))
    dry = gate.submit(Call("forums.update", TERMINAL, {"name": "Other", "dryRun": True}, forum))
    go.set()
    assert (quiet.result(30), bookkeeping.result(30)) == (True, 1)
    assert (unchanged.result(30).event, dry.result(30).dry) == (None, True)
    assert gate.store.data_version() in {before, None}


# --- who may pass -------------------------------------------------------------------------------------------------


def test_an_operation_that_was_not_granted_is_refused_by_name(gate: Gate, events: Events) -> None:
    with pytest.raises(Refused) as refused:
        gate.run(Call("forums.delete", PLUGIN, {}, 1))
    assert refused.value.message == "NO_PERMISSION"
    assert refused.value.facts == {"missingOperation": "forums.delete"}
    assert "trellis keys grant 7 forums.delete" in refused.value.detail
    assert events() == []


def test_the_grant_is_judged_before_what_was_sent(gate: Gate) -> None:
    with pytest.raises(Refused, match=r"^NO_PERMISSION"):
        gate.run(Call("forums.update", PLUGIN, {"nonsense": 1}, 999))


def test_a_key_with_every_grant_cannot_do_what_is_inside(gate: Gate) -> None:
    everything = Actor("key", 7, "Plugin", gate.environment.grantable)
    inside = [name for name, operation in gate.catalogue.items() if operation.access is INSIDE]
    assert {"groups.create", "groups.update", "blogs.create", "keys.create", "check.list"} <= set(inside)
    for name in inside:
        with pytest.raises(Refused, match=r"^NO_PERMISSION"):
            gate.run(Call(name, everything, {}, 1))


def test_there_are_nineteen_operations_to_grant_and_ours(gate: Gate) -> None:
    assert gate.environment.grantable == {operation.name for operation in gate.catalogue.grantable}
    assert gate.environment.grantable > set(CONTRACT)


def test_an_unknown_operation_is_refused(gate: Gate) -> None:
    with pytest.raises(Refused, match=r"^UNKNOWN_OPERATION: There is no operation 'forums.burn'"):
        gate.run(Call("forums.burn", TERMINAL))


def test_any_key_may_say_hello_and_learns_what_it_may_do(gate: Gate, key: MakeKey) -> None:
    text = key(["forums.list", "blogs.delete"], name="Plugin", expires="1d")
    actor = gate.store.read_single(lambda tx: authenticate(tx, text, gate.now())).actor
    assert gate.run(Call("core.hello", actor)).value == {
        "communityName": "The Lantern",
        "communityUrl": COMMUNITY_URL,
        "version": __version__,
        "key": {
            "name": "Plugin",
            "dialect": "trellis",
            "expiresAt": "2026-02-01T09:30:00.000Z",
            "operations": ["blogs.delete", "forums.list"],
            "bounds": {},
            "perDay": None,
        },
    }
    assert gate.run(Call("core.hello", Actor("key", 9, "Nobody", frozenset()))).value["key"]["operations"] == []


def test_the_terminal_may_do_everything(gate: Gate) -> None:
    assert all(TERMINAL.may(name) for name in gate.catalogue)
    assert set(gate.run(Call("core.hello", TERMINAL)).value["key"]["operations"]) == gate.environment.grantable


# --- the same wish twice ------------------------------------------------------------------------------------------


def test_the_same_wish_again_is_answered_from_the_first(gate: Gate, run: Run, events: Events) -> None:
    first, again = gate.run(create()), gate.run(create())
    assert (first.replayed, again.replayed) == (False, True)
    assert again.value == first.value
    assert again.event == first.event, "as whoever missed the first answer needs it"
    assert run("forums.list")["totalResults"] == 1
    assert len(events()) == 1


def test_the_first_answer_is_given_even_when_the_record_has_changed_but_not_when_it_is_gone(gate: Gate, run: Run) -> None:
    first = gate.run(create())
    run("forums.update", first.value["id"], name="Bulletin")
    assert gate.run(create()).value == first.value
    run("forums.delete", first.value["id"])
    with pytest.raises(Refused, match="IDEMPOTENCY_RECORD_GONE"):
        gate.run(create())


def test_another_wish_under_the_same_key_is_refused(gate: Gate, run: Run) -> None:
    gate.run(create())
    with pytest.raises(Refused, match=r"^IDEMPOTENCY_KEY_REUSED"):
        gate.run(create("Olds", fingerprint="f-2"))
    assert run("forums.list")["totalResults"] == 1


def test_other_keys_and_other_actors_are_other_wishes(gate: Gate, run: Run) -> None:
    other = Actor("key", 8, "Other", PLUGIN.grants)
    made = [gate.run(create()), gate.run(create(token="t-2")), gate.run(create(actor=other)), gate.run(create(token=None))]
    assert [answer.value["id"] for answer in made] == [1, 2, 3, 4]


def test_a_wish_is_remembered_by_another_process_and_after_a_restart(
    gate: Gate, second: Gate, settings: Settings, clock: Clock
) -> None:
    first = gate.run(create())
    assert second.run(create()) == first._replace(replayed=True)
    with pytest.raises(Refused, match=r"^IDEMPOTENCY_KEY_REUSED"):
        second.run(create(fingerprint="f-2"))
    gate.store.close()
    restarted = compose(settings, clock=clock)
    assert restarted.run(create()).replayed
    restarted.store.close()


def test_a_wish_is_remembered_for_24_hours(gate: Gate, clock: Clock) -> None:
    first = gate.run(create())
    clock.move(hours=24)
    assert gate.run(create()).value["id"] == first.value["id"]
    clock.move(milliseconds=1)
    again = gate.run(create("Olds", fingerprint="f-2"))
    assert (again.replayed, again.value["id"]) == (False, 2)
    assert gate.run(create("Olds", fingerprint="f-2")).value == again.value


def test_a_clock_that_is_ahead_does_not_let_the_same_request_create_twice(gate: Gate, clock: Clock) -> None:
    first = gate.run(create())
    clock.move(days=2)
    assert gate.run(create()) == first._replace(replayed=True)


def test_a_refusal_is_not_remembered(gate: Gate) -> None:
    with pytest.raises(Refused, match=r"^INVALID_PARENT"):
        gate.run(create(parentId=9))
    answer = gate.run(create(fingerprint="f-2"))
    assert not answer.replayed


def test_a_dry_run_is_neither_remembered_nor_answered_from_memory(gate: Gate) -> None:
    assert gate.run(create(dryRun=True)).dry
    first = gate.run(create())
    assert not first.replayed
    dry = gate.run(create(dryRun=True))
    assert (dry.dry, dry.replayed, dry.value["id"]) == (True, False, 2)


def test_a_wish_whose_first_is_still_running_is_refused(gate: Gate) -> None:
    hold = threading.Event()
    blocking = gate.store.write(lambda _: hold.wait(60))
    first = gate.submit(create())
    with pytest.raises(Refused, match=r"^IDEMPOTENCY_KEY_IN_USE"):
        gate.submit(create())
    other = gate.submit(create(token="t-2"))
    hold.set()
    blocking.result(60)
    assert [first.result(60).value["id"], other.result(60).value["id"]] == [1, 2]
    assert gate.run(create()).replayed


def test_an_answer_that_has_arrived_can_be_asked_for_again_at_once(gate: Gate) -> None:
    for number in range(60):
        call = create(token=f"t-{number}")
        assert gate.run(call).value == gate.run(call).value


def test_a_wish_that_failed_can_be_tried_again_at_once(gate: Gate) -> None:
    for _ in range(30):
        with pytest.raises(Refused, match=r"^INVALID_PARENT"):
            gate.run(create(parentId=9))


def test_two_processes_with_one_wish_do_it_once(gate: Gate, second: Gate, run: Run) -> None:
    for number in range(10):
        futures = [door.submit(create(token=f"t-{number}")) for door in (gate, second)]
        answers = [future.result(60) for future in futures]
        assert sorted(answer.replayed for answer in answers) == [False, True]
        assert answers[0].value == answers[1].value
    assert run("forums.list")["totalResults"] == 10


# --- clocks -------------------------------------------------------------------------------------------------------


def test_no_record_and_no_event_lies_before_an_earlier_event(gate: Gate, run: Run, clock: Clock, events: Events) -> None:
    forum = run("forums.create", name="News")
    made = clock.text
    clock.move(hours=-2)
    changed = run("forums.update", forum["id"], name="Renamed")
    beside = run("calendars.create", name="Made by a machine whose clock is behind")
    assert changed["createdAt"] == changed["updatedAt"] == beside["createdAt"] == beside["updatedAt"] == made
    clock.move(hours=3)
    assert run("forums.update", forum["id"], name="Again")["updatedAt"] == clock.text
    times = [event["at"] for event in events()]
    assert times == sorted(times)


def test_a_clock_that_was_ahead_does_not_prolong_keys(run: Run, clock: Clock) -> None:
    """Records bear the time of the newest event; expiries go by the clock."""
    clock.move(days=100)
    run("forums.create", name="News")
    clock.move(days=-100)
    made = run("keys.create", name="Plugin", expires="1d")
    clock.move(days=1)
    assert made["expiresAt"] == clock.text
    assert run("keys.get", made["id"])["state"] == "expired"
