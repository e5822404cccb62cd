"""Changing nodes: only what is sent changes, what changes nothing is not recorded, and a stale caller is refused."""

from typing import Any

import pytest

from tests.community import Community
from tests.fixture_types import Clock, Events, Run
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.version import compute_version, encode_json
from trellis.errors import Refused


def test_what_is_not_sent_stays_as_it_is(run: Run, community: Community, clock: Clock) -> None:
    before = run("forums.get", community.releases)
    clock.move(minutes=5)
    after = run("forums.update", community.releases, minContent=7)
    assert after == before | {"minContent": 7, "updatedAt": clock.text}
    assert run("forums.get", community.releases) == after


def test_a_change_leaves_one_event_with_before_after_and_what_differs(
    run: Run, community: Community, events: Events, clock: Clock
) -> None:
    before, known = run("calendars.get", community.meetups), len(events())
    clock.move(days=1)
    after = run("calendars.update", community.meetups, title="Gatherings", color="#000000", approveEvents=False)
    (event,) = events()[known:]
    assert (event["operation"], event["resource"], event["resourceId"]) == (
        "calendars.update",
        "calendars",
        community.meetups,
    )
    assert (event["before"], event["after"], event["at"]) == (before, after, clock.text)
    assert event["changed"] == ["name", "url", "color"]
    assert event["touched"] == []


UNCHANGED: tuple[dict[str, Any], ...] = (
    {},
    {"name": "News"},
    {"title": " News "},
    {"type": "normal", "minContent": "0", "canSeeOthers": "true"},
    {"permissions": {"view": "*", "reply": "3"}},
    {"permissions": {}},
    {"password": None},
    {"description": ""},
    {"parentId": 0},
    {"position": 0},
    {"id": 99, "path": "elsewhere", "updatedAt": "1999-01-01"},
)


def test_an_update_that_changes_nothing_answers_the_record_and_records_nothing(
    run: Run, community: Community, events: Events, clock: Clock
) -> None:
    before, known = run("forums.get", community.news), len(events())
    for same in UNCHANGED:
        clock.move(days=1)
        assert run("forums.update", community.news, **same) == before, same
        assert run("forums.get", community.news) == before, same
    assert len(events()) == known


def test_a_new_name_shows_in_the_paths_of_all_below(run: Run, community: Community) -> None:
    assert run("forums.update", community.news, name="Bulletin")["path"] == "Bulletin"
    assert run("forums.get", community.betas)["path"] == "Bulletin > Releases > Betas"


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("groups", "1C358/5"),
        ("forums", "1F363/5"),
        ("blogs", "1B366/5"),
        ("calendars", "1L364/5"),
        ("categories", "1D365/5"),
    ],
)
def test_an_id_that_names_nothing_is_refused_with_the_kinds_code(run: Run, kind: str, code: str) -> None:
    for target in (999, 2**63 - 1, None):
        with pytest.raises(Refused, match=r"^INVALID_ID: There is no .* with the id") as refused:
            run(f"{kind}.update", target, name="X")
        assert refused.value.code == code, target


def test_a_name_can_be_left_out_but_not_emptied(run: Run, community: Community) -> None:
    with pytest.raises(Refused, match=r"^NO_TITLE: name must not be empty"):
        run("forums.update", community.news, name=" ")


def test_every_field_at_fault_is_told_and_nothing_changes(run: Run, community: Community, events: Events) -> None:
    before, known = run("forums.get", community.help), len(events())
    with pytest.raises(Refused) as refused:
        run(
            "forums.update",
            community.help,
            name="X",
            parentId=community.help,
            type="club",
            sitemapPriority=10,
            permissions={"view": [88]},
            nam="Y",
        )
    told = {fault.field for fault in refused.value.faults}
    assert told == {"parentId", "type", "sitemapPriority", "permissions.view", "nam"}
    assert run("forums.get", community.help) == before
    assert len(events()) == known


def test_a_dry_run_answers_what_would_be_and_changes_nothing(run: Run, community: Community, events: Events) -> None:
    before, known = run("forums.get", community.help), len(events())
    would = run("forums.update", community.help, name="Questions", position=0, dryRun="1")
    assert (would["name"], would["position"]) == ("Questions", 0)
    assert run("forums.get", community.help) == before
    assert run("forums.get", community.news)["position"] == 0
    assert len(events()) == known


@pytest.mark.parametrize("operation", ["forums.update", "forums.delete"])
def test_a_write_meant_for_another_version_is_refused(
    gate: Gate, run: Run, community: Community, events: Events, operation: str
) -> None:
    stale, known = compute_version(encode_json(run("forums.get", community.help))), len(events())
    run("forums.update", community.help, minContent=1)
    with pytest.raises(Refused, match=r"^PRECONDITION_FAILED: The record has changed since you read it"):
        gate.run(
            Call(
                operation,
                TERMINAL,
                {"name": "X"} if "update" in operation else {},
                community.help,
                expected=("0" * 24, stale),
            )
        )
    assert run("forums.get", community.help)["name"] == "Help"
    assert len(events()) == known + 1


@pytest.mark.parametrize("others", [(), ("0" * 24,)])
def test_a_write_meant_for_this_version_is_done(gate: Gate, run: Run, community: Community, others: tuple[str, ...]) -> None:
    now = compute_version(encode_json(run("forums.get", community.help)))
    changed = gate.run(Call("forums.update", TERMINAL, {"name": "X"}, community.help, expected=(*others, now))).value
    now = compute_version(encode_json(changed))
    gate.run(Call("forums.delete", TERMINAL, {}, community.help, expected=(now,)))
    with pytest.raises(Refused, match=r"^INVALID_ID"):
        run("forums.get", community.help)


def test_any_version_will_do_for_a_star(gate: Gate, community: Community) -> None:
    assert gate.run(Call("forums.update", TERMINAL, {"name": "X"}, community.help, expected=("*",))).value["name"] == "X"


def test_a_stale_version_is_told_before_anything_else_that_is_wrong(gate: Gate, community: Community) -> None:
    with pytest.raises(Refused, match=r"^PRECONDITION_FAILED"):
        gate.run(Call("forums.update", TERMINAL, {"minContent": -1}, community.help, expected=("0" * 24,)))


def test_a_version_changes_with_every_change_and_comes_back_with_none(run: Run, community: Community, clock: Clock) -> None:
    versions = [compute_version(encode_json(run("forums.get", community.help)))]
    for name in ("Questions", "Answers"):
        clock.move(seconds=1)
        versions.append(compute_version(encode_json(run("forums.update", community.help, name=name))))
    assert len(set(versions)) == 3
    assert compute_version(encode_json(run("forums.get", community.help))) == versions[-1]
