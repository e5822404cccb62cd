"""The feed of changes: cursors, filters, names of events, how far it reaches back, and that no reader ever skips one."""

import threading
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.community import CATALOGUE, Community
from tests.conftest import runner
from tests.core.events import writing_process
from tests.fixture_types import Clock, Events, Run
from tests.forked import ForkedProcess
from tests.service_process import environment
from tests.wait import wait_until
from trellis.compose import compose
from trellis.core.events.event import event_type, event_types
from trellis.core.gate import Gate
from trellis.core.verbs import singular_of
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.settings import Settings
from trellis.store import tables
from trellis.store.counters import next_number
from trellis.store.engine.store import Store
from trellis.store.events import log, walk


def seqs(answer: dict[str, Any]) -> list[int]:
    return [event["seq"] for event in answer["results"]]


@pytest.fixture
def five(run: Run, clock: Clock) -> None:
    """Five events, an hour apart: forums 1 and 2, calendar 1, forums 2 and 1 again."""
    for operation, target in (
        ("forums.create", None),
        ("forums.create", None),
        ("calendars.create", None),
        ("forums.update", 2),
        ("forums.update", 1),
    ):
        run(operation, target, name=f"At {clock.at.hour}")
        clock.move(hours=1)


@pytest.fixture
def searches_one_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search examines a single event and then is out of time, as one does after hundreds of thousands."""
    monkeypatch.setattr("trellis.store.events.scan._CHUNK", 1)
    monkeypatch.setattr("trellis.core.events.feed._LONGEST", 0.0)


@pytest.mark.usefixtures("five", "searches_one_event")
@pytest.mark.parametrize(
    ("order", "cursors"),
    [
        ("oldest", [(1, True), (2, True), (3, True), (4, True), (5, False)]),
        ("newest", [(5, True), (4, True), (3, True), (2, True), (None, False)]),
    ],
)
def test_a_filter_that_excludes_very_many_events_is_answered_in_parts(
    run: Run, order: str, cursors: list[tuple[int | None, bool]]
) -> None:
    answers = [run("events.list", resource="calendars", order=order)]
    while answers[-1]["more"]:
        answers.append(run("events.list", resource="calendars", order=order, after=answers[-1]["next"]))
    assert [(answer["next"], answer["more"]) for answer in answers] == cursors
    assert [seqs(answer) for answer in answers] == [[], [], [3], [], []]


@pytest.mark.usefixtures("five", "searches_one_event")
def test_a_search_in_parts_begins_at_the_time_that_is_asked_for(run: Run, events: Events) -> None:
    third = events()[2]["at"]
    answer = run("events.list", resource="calendars", since=third)
    assert (seqs(answer), answer["next"], answer["more"]) == ([3], 3, True)
    answer = run("events.list", resource="calendars", until=third, order="newest")
    assert (seqs(answer), answer["next"], answer["more"]) == ([], 2, True)


def test_a_reader_goes_on_with_the_cursor_of_each_answer(run: Run, five: None) -> None:
    first = run("events.list", limit=2)
    assert (seqs(first), first["next"], first["more"], first["oldest"]) == ([1, 2], 2, True, 1)
    second = run("events.list", limit=2, after=first["next"])
    assert (seqs(second), second["next"], second["more"]) == ([3, 4], 4, True)
    third = run("events.list", limit=2, after=second["next"])
    assert (seqs(third), third["next"], third["more"]) == ([5], 5, False)
    fourth = run("events.list", limit=2, after=third["next"])
    assert (seqs(fourth), fourth["next"], fourth["more"]) == ([], 5, False)


def test_an_empty_log_has_a_cursor_to_begin_with(run: Run) -> None:
    assert run("events.list") == {"results": [], "next": 0, "more": False, "oldest": None}
    run("forums.create", name="News")
    assert seqs(run("events.list", after=0)) == [1]


def test_a_filter_passes_over_what_it_does_not_want_for_good(run: Run, five: None) -> None:
    answer = run("events.list", resource="calendars")
    assert (seqs(answer), answer["next"], answer["more"]) == ([3], 5, False)
    full = run("events.list", resource="forums", limit=2)
    assert (seqs(full), full["next"], full["more"]) == ([1, 2], 2, True)


def test_newest_first_comes_to_an_end(run: Run, five: None) -> None:
    first = run("events.list", order="newest", limit=3)
    assert (seqs(first), first["next"], first["more"]) == ([5, 4, 3], 3, True)
    last = run("events.list", order="newest", limit=3, after=3)
    assert (seqs(last), last["next"], last["more"]) == ([2, 1], None, False)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"operation": "forums.update"}, [4, 5]),
        ({"resource": "forums", "resourceId": 2}, [2, 4]),
        ({"since": "2026-01-31T11:30:00Z"}, [3, 4, 5]),
        ({"until": "2026-01-31T11:30:00Z"}, [1, 2]),
        ({"since": "2026-01-31T10:30:00Z", "until": "2026-01-31T12:30:00+00:00", "resource": "forums"}, [2]),
    ],
)
def test_filters(run: Run, five: None, filters: dict[str, Any], expected: list[int]) -> None:
    assert seqs(run("events.list", **filters)) == expected


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 1001}, {"since": "yesterday"}, {"resourceId": "x"}, {"after": "x"}])
def test_a_parameter_that_makes_no_sense_is_refused(run: Run, wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=r"^INVALID_VALUE"):
        run("events.list", **wrong)


def test_a_cursor_from_the_future_is_refused_rather_than_waited_for(run: Run, five: None) -> None:
    with pytest.raises(Refused, match=r"^INVALID_VALUE: after: there is no event 6 yet; the newest is 5\."):
        run("events.list", after=6)


# --- how long events are kept -------------------------------------------------------------------------------------


def purge(gate: Gate, days: int, most: int = 5000) -> int:
    before = gate.ago(timedelta(days=days))
    return int(gate.store.write(lambda tx: log.purge(tx, before, most)).result(30))


def test_a_cursor_before_the_oldest_event_is_told_what_it_has_missed(gate: Gate, run: Run, five: None, clock: Clock) -> None:
    clock.move(days=90, hours=-2)
    assert purge(gate, 90) == 3
    assert purge(gate, 90) == 0
    with pytest.raises(Refused) as refused:
        run("events.list", after=1)
    assert (refused.value.message, refused.value.facts) == ("NO_LONGER_KEPT", {"oldest": 4, "newest": 5})
    assert "events 2 to 3 have been purged" in refused.value.detail
    with pytest.raises(Refused, match=r"event 3 has been purged"):
        run("events.list", after=2)
    assert seqs(run("events.list", after=3)) == [4, 5]
    assert seqs(run("events.list")) == [4, 5]
    assert run("events.list", order="newest", after=4)["results"] == []


def test_a_log_that_is_purged_to_the_last_event_still_knows_where_it_was(gate: Gate, run: Run, five: None, clock: Clock) -> None:
    clock.move(days=365)
    assert purge(gate, 90) == 5
    assert run("events.list", after=5) == {"results": [], "next": 5, "more": False, "oldest": None}
    with pytest.raises(Refused, match=r"^NO_LONGER_KEPT"):
        run("events.list", after=0)
    run("forums.create", name="New")
    assert seqs(run("events.list", after=5)) == [6]
    assert run("check.list")["problems"] == []


def test_events_are_purged_in_batches_and_never_out_of_turn(gate: Gate, run: Run, five: None, clock: Clock) -> None:
    clock.move(days=365)
    assert [purge(gate, 90, most=2) for _ in range(4)] == [2, 2, 1, 0]
    run("forums.create", name="Old")
    clock.move(days=-400)  # the clock was set back
    run("forums.create", name="Older still")
    clock.move(days=401)
    assert purge(gate, 90) == 0
    assert seqs(run("events.list")) == [6, 7]


# --- names --------------------------------------------------------------------------------------------------------


def test_an_event_says_in_a_word_what_happened(run: Run, community: Community, events: Events) -> None:
    known = len(events())
    run("forums.create", name="Polls")
    run("forums.update", community.help, name="Questions", position=0)
    run("forums.update", community.help, position=1)
    run("categories.update", community.dark_skins, parentId=community.tools)
    run("forums.delete", community.help)
    run("events.restore", events()[-1]["seq"])
    run("blogs.delete", community.notebook)
    run("keys.create", name="Plugin")
    run("keys.revoke", 1)
    told = [event["type"] for event in events()[known:]]
    assert told == [
        *("forum.created", "forum.updated", "forum.moved", "category.moved", "forum.deleted", "forum.restored"),
        *("blog.deleted", "key.created", "key.revoked"),
    ]
    assert set(told) - {"key.created", "key.revoked"} <= set(event_types(CATALOGUE.values()))


def test_all_types_are_one_for_each_thing_that_can_happen_to_a_node() -> None:
    types = event_types(CATALOGUE.values())
    assert len(types) == len(set(types))
    for kind in KINDS:
        noun = singular_of(kind.name)
        assert {f"{noun}.{past}" for past in ("created", "updated", "deleted", "restored")} <= set(types)
        assert (f"{noun}.moved" in types) == (kind.tree or kind.ordered)
    assert [singular_of(resource) for resource in ("forums", "categories", "keys", "check")] == [
        "forum",
        "category",
        "key",
        "check",
    ]


def test_the_type_is_worked_out_in_one_place(gate: Gate, run: Run, five: None, events: Events) -> None:
    with gate.store.reading() as tx:
        kept = list(walk(tx, log.select_page(tx, {}, None, newest_first=False)))
    assert [event_type(event) for event in kept] == [event["type"] for event in events()]


# --- many readers, many writers -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_readers_see_every_event_once_and_in_order_while_others_write(engine: str, settings: Settings, tmp_path: Path) -> None:
    """4 processes write on PostgreSQL and 2 on SQLite; 4 readers with connections of their own follow the feed."""
    writers, each = (4, 10) if engine == "postgresql" else (2, 20)
    total = writers * each * 3
    go, told = tmp_path / "go", [tmp_path / f"writer-{number}" for number in range(writers)]
    seen: list[list[int]] = [[] for _ in range(4)]
    failures: list[BaseException] = []
    ended = threading.Event()

    def follow(mine: list[int], limit: int) -> None:
        gate = compose(settings)
        run, after = runner(gate), 0
        try:
            while len(mine) < total and not ended.is_set():
                answer = run("events.list", after=after, limit=limit)
                mine.extend(seqs(answer))
                after = answer["next"]
        except BaseException as failure:  # noqa: BLE001  # told to the test, which runs in another thread
            failures.append(failure)
        finally:
            gate.store.close()

    readers = [threading.Thread(target=follow, args=(mine, limit)) for mine, limit in zip(seen, (1, 3, 100, 1000), strict=True)]
    with ExitStack() as open_ones:
        open_ones.callback(ended.set)
        started = []
        for output in told:
            output.touch()
            started.append(ForkedProcess([str(each), str(go)], tmp_path, environment(settings), output, writing_process.main))
            open_ones.callback(started[-1].kill)
        wait_until(lambda: all(output.read_text() == "ready\n" for output in told))
        for reader in readers:
            reader.start()
        go.touch()
        assert [process.wait(600) for process in started] == [0] * writers, [output.read_text() for output in told]
        for reader in readers:
            reader.join(60)
    assert failures == []
    assert seen == [list(range(1, total + 1))] * 4


def test_an_event_that_waits_for_its_commit_is_not_passed_over(settings: Settings, run: Run) -> None:
    """A writer that has its number already and has not committed yet: the next number waits behind it."""
    other = Store(settings)
    reached, go = threading.Event(), threading.Event()

    def slow(tx: Any) -> int:
        number = next_number(tx, "events")
        reached.set()
        go.wait(60)
        columns = {"at": "", "operation": "forums.create", "actor": {}, "resource": "forums", "changed": [], "touched": []}
        tx.connection.execute(sa.insert(tables.events).values(seq=number, **columns))
        return number

    first = other.write(slow)
    assert reached.wait(60)
    done = threading.Event()

    def create() -> None:
        run("forums.create", name="Second")
        done.set()

    second = threading.Thread(target=create)
    second.start()
    assert not done.wait(0.3)
    assert run("events.list") == {"results": [], "next": 0, "more": False, "oldest": None}
    go.set()
    assert first.result(60) == 1
    second.join(60)
    assert seqs(run("events.list", after=0)) == [1, 2]
    other.close()
