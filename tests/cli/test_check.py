"""`trellis check` and its `--repair`: each fault that can be planted is found, and mended where that is safe."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.cli.conftest import Environment, Trellis, TrellisJson
from tests.cli.database_faults import FAULTS, Fault
from tests.community import GUESTS, Community
from tests.fixture_types import Clock, Events, Run
from tests.node_rows import write_by_hand
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.fields import Boolean, Field
from trellis.core.gate import Gate
from trellis.core.kind import NodeKind
from trellis.core.operation import Call
from trellis.kinds import KINDS
from trellis.settings import Settings
from trellis.store import check, lists, snapshots
from trellis.store.events import log

Plant = Callable[..., None]


@pytest.fixture
def plant(settings: Settings) -> Plant:
    """Change rows behind Trellis's back, past every constraint; `{news}` in the SQL is what is given as `news`."""

    def run(*templates: str, **ids: int) -> None:
        statements = [template.format(**ids) if ids else template for template in templates]
        write_by_hand(settings, *statements)

    return run


@pytest.mark.parametrize("faults", FAULTS, ids=lambda faults: faults[0].name.replace(" ", "-"))
def test_faults_are_found_and_mended(
    faults: tuple[Fault, ...], community: Community, plant: Plant, trellis: Trellis, run: Run, events: Events
) -> None:
    ids = vars(community) | {"guests": GUESTS}
    for fault in faults:
        plant(*fault.sql.split("; "), **vars(community))

    found = run("check.list")["problems"]

    told = {(p["resource"], p["id"], p["problem"], p["repairable"]): p["detail"] for p in found}
    assert len(told) == len(found)
    expected = {(fault.resource, ids.get(fault.id or ""), fault.problem, fault.repairable): fault.detail for fault in faults}
    assert {what: detail[: len(expected.get(what, ""))] for what, detail in told.items()} == expected

    before = events()
    repaired = trellis("check", "--repair")
    added = events()[len(before) :]
    if not faults[0].repairable:
        assert (repaired.exit_code, added) == (1, [])
        return
    assert repaired.exit_code == 0, repaired.output  # it has checked again
    assert [event["operation"] for event in added] == ["check.repair"]
    assert all(problem in added[0]["before"]["problems"] for problem in found)
    for fault in faults:
        if fault.id is not None and fault.problem != "order":
            assert {"resource": fault.resource, "id": ids[fault.id], "how": "repaired"} in added[0]["touched"]


def test_a_sound_community_is_told_so(community: Community, trellis: Trellis, trellis_json: TrellisJson, clock: Clock) -> None:
    result = trellis("check")

    assert result.exit_code == 0
    assert result.stdout == "Checked 18 rows: nothing is wrong.\n"
    assert trellis_json("check") == {
        "checked": {"groups": 5, "forums": 7, "blogs": 1, "calendars": 2, "categories": 3},
        "kept": {
            "events": {"count": 15, "from": clock.text, "purged": 0, "days": 90},
            "snapshots": {"count": 0, "from": None, "purged": 0, "days": 30},
        },
        "count": 0,
        "repairable": 0,
        "problems": [],
    }


def test_the_check_tells_how_far_the_log_and_undo_reach_back(
    community: Community, gate: Gate, run: Run, trellis: Trellis, clock: Clock
) -> None:
    run("forums.update", community.help, name="Questions")
    clock.move(days=31)
    run("forums.update", community.help, name="Help")
    gate.store.write(lambda tx: snapshots.purge(tx, gate.ago(timedelta(days=30)))).result(30)
    gate.store.write(lambda tx: log.purge(tx, gate.ago(timedelta(days=30)), most=10)).result(30)

    result = trellis("check")

    assert result.exit_code == 0
    assert result.stdout == (
        "Checked 18 rows: nothing is wrong.\n"
        "The log reaches back to 2026-01-31T09:30:00.000Z; 10 older changes were purged (90 days).\n"
        f"Undo reaches back to {clock.text}; 1 older change was purged (30 days).\n"
    )


@pytest.mark.usefixtures("community")
def test_no_change_can_be_undone_for_longer_than_its_event_is_kept(trellis_json: TrellisJson, nowhere: Environment) -> None:
    nowhere(keep_events="14")
    kept = trellis_json("check")["kept"]
    assert (kept["events"]["days"], kept["snapshots"]["days"]) == (14, 14)


def test_repairing_a_sound_community_leaves_no_event(community: Community, trellis_json: TrellisJson, events: Events) -> None:
    before = events()

    assert trellis_json("check", "--repair")["repairs"] == []
    assert events() == before


def test_many_faults_at_once(
    community: Community, plant: Plant, trellis: Trellis, trellis_json: TrellisJson, run: Run, clock: Clock
) -> None:
    plant(
        "UPDATE nodes SET parent_id = {betas} WHERE kind = 'forums' AND id = {news}",
        "UPDATE nodes SET parent_id = 404 WHERE kind = 'forums' AND id = {help}",
        "UPDATE nodes SET parent_id = {wiki} WHERE kind = 'forums' AND id = {staff}",
        "UPDATE nodes SET parent_id = 405 WHERE kind = 'categories' AND id = {skins}",
        "UPDATE counters SET total = 0",
        "UPDATE nodes SET name_key = '' WHERE kind = 'groups'",
        **vars(community),
    )

    shown = trellis("check")
    repaired = trellis_json("check", "--repair")

    assert shown.exit_code == 1
    assert "`trellis check --repair` can repair" in shown.stdout
    assert repaired["count"] == 0
    assert len(repaired["repairs"]) >= 15
    top = [forum["id"] for forum in run("forums.list", parentId="root", sortBy="position")["results"]]
    assert top == [community.wiki, community.staff, community.help, community.news]
    assert run("forums.get", community.betas)["path"] == "News > Releases > Betas"
    assert run("categories.get", community.dark_skins)["path"] == "Skins > Dark skins"


def test_clients_learn_which_nodes_were_repaired(
    community: Community, plant: Plant, trellis: Trellis, run: Run, clock: Clock
) -> None:
    clock.move(days=1)
    plant(
        "UPDATE nodes SET parent_id = 404 WHERE kind = 'forums' AND id = {help}",
        "UPDATE nodes SET name_key = '' WHERE kind = 'forums' AND id = {staff}",  # which no client sees
        'UPDATE nodes SET fields = \'{{"description": "", "owner": "", "groups": "*", "pinned": 0}}\' WHERE kind = \'blogs\'',
        **vars(community),
    )

    assert trellis("check", "--repair").exit_code == 0

    changed = [node["id"] for kind in ("forums", "blogs") for node in run(f"{kind}.list", updatedSince=clock.text)["results"]]
    assert changed == [community.help, community.notebook]


def test_of_very_many_repairs_the_first_are_listed(
    community: Community, plant: Plant, trellis: Trellis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis.cli.database._MOST_REPAIRS", 2)
    plant("UPDATE nodes SET name_key = ''", **vars(community))

    lines = trellis("check", "--repair").stdout.splitlines()

    assert len(lines) == 2 + 2 + 1 + 1
    assert lines[4].startswith("… and 1")
    assert lines[4].endswith(" more; the events of check.repair list all.")


def test_a_search_index_that_was_rebuilt_is_not_taken_for_damaged(gate: Gate, run: Run) -> None:
    run("forums.create", name="News")
    gate.store.write(lists.update_search_index).result()
    assert run("check.list")["problems"] == []
    gate.store.write(lists.rebuild_search_index).result()
    assert run("check.list")["problems"] == []


def test_keys_and_webhooks_that_cannot_be_read_are_told(run: Run, plant: Plant, trellis: Trellis, engine: str) -> None:
    values = {
        ("api_keys", "grants"): ("7", "[1]", "{bad"),
        ("api_keys", "addresses"): ("7", "[1]", "{bad"),
        ("api_keys", "bounds"): ("7", '{"forums.list": 7}', "{bad"),
        ("webhooks", "events"): ("7", "[[]]", "{bad"),
        ("webhooks", "maker"): ("7", '{"type": "key", "id": 1}', "{bad"),
    }
    planted: list[tuple[str, int, str]] = []
    for (table, column), each in values.items():
        for value in each:
            if engine == "postgresql" and value == "{bad":
                continue  # PostgreSQL stores nothing in such a column that is not JSON
            if table == "api_keys":
                made = run("keys.create", name="Importer", grants=["forums.list"])
            else:
                made = run("webhooks.create", url="https://hooks.example/", events=["*"])
            plant(f"UPDATE {table} SET {column} = '{value}' WHERE id = {made['id']}")  # noqa: S608  # a table of ours
            planted.append((table.removeprefix("api_"), made["id"], column))

    result = trellis("check", "--repair")

    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    shown = " ".join(result.stdout.split())
    found = run("check.list")["problems"]
    assert [(one["resource"], one["id"], one["problem"]) for one in found] == [(*one[:2], "unreadable") for one in planted]
    for one, (_, _, column) in zip(found, planted, strict=True):
        assert f"its {column} cannot be read. Restore a backup." in one["detail"]
        assert " ".join(one["detail"].split()) in shown


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # PostgreSQL stores nothing else in a column of numbers
@pytest.mark.parametrize(
    ("change", "resource", "column"),
    [
        ("nodes SET id = 'ten' WHERE kind = 'calendars' AND id = 2", "calendars", "id"),
        ("nodes SET parent_id = 'news' WHERE kind = 'forums' AND id = 5", "forums", "parent_id"),
        ("counters SET last = 'many' WHERE name = 'forums'", "counters", "last"),
        ("logged_requests SET duration = 'long'", "logged_requests", "duration"),
    ],
)
@pytest.mark.usefixtures("community")
def test_a_number_that_is_text_is_told_and_the_rest_is_checked(
    run: Run, plant: Plant, trellis: Trellis, change: str, resource: str, column: str
) -> None:
    plant("INSERT INTO logged_requests (at, shape, path, duration, request_id) VALUES ('2026-01-31T09:30:00.000Z', 1, '/', 1, 'r')")
    plant("UPDATE nodes SET name_key = 'tools' WHERE kind = 'groups' AND id = 3")
    plant(f"UPDATE {change}")

    result = trellis("check", "--repair")

    assert (result.exit_code, type(result.exception)) == (1, SystemExit)
    assert "cannot be read. Restore a backup." in " ".join(result.stdout.split())
    found = [one for one in run("check.list")["problems"] if (one["resource"], one["problem"]) == (resource, "unreadable")]
    assert [(f"the {column} of 1 row " in one["detail"] or f"its {column} " in one["detail"]) for one in found] == [True]
    assert "found as 'tools', but its name is" in result.stdout.replace("\n", " ")


@pytest.mark.usefixtures("community")
def test_nothing_counts_as_repairable_while_no_repair_could_be_recorded(plant: Plant, run: Run, trellis: Trellis) -> None:
    plant("UPDATE nodes SET name_key = 'tools' WHERE kind = 'groups' AND id = 3", "UPDATE counters SET total = 4000000000000000000")

    found, repaired = run("check.list"), trellis("check", "--repair")

    assert ("name key", False) in [(problem["problem"], problem["repairable"]) for problem in found["problems"]]
    assert found["repairable"] == 0
    assert repaired.exit_code == 1
    assert "`trellis check --repair` can repair" not in repaired.stdout


def test_a_password_in_plain_text_is_told_but_not_shown(community: Community, plant: Plant, trellis: Trellis) -> None:
    plant(
        'UPDATE nodes SET fields = \'{{"description": "", "type": "discussions", "password": "hunter2", "theme": null, '
        '"sitemapPriority": null, "minContent": 0, "canSeeOthers": true, "redirectUrl": null}}\' '
        "WHERE kind = 'forums' AND id = {help}",
        help=community.help,
    )

    result = trellis("check", "--repair")

    assert result.exit_code == 1
    assert "password is not stored as a hash: set it again" in result.stdout
    assert "hunter2" not in result.output


def test_a_redirect_without_an_address_is_left_to_a_person(community: Community, run: Run, plant: Plant, trellis: Trellis) -> None:
    plant(
        'UPDATE nodes SET fields = \'{{"description": "", "type": "redirect", "password": null, "theme": null, '
        '"sitemapPriority": null, "minContent": 0, "canSeeOthers": true, "redirectUrl": "javascript:alert(1)"}}\' '
        "WHERE kind = 'forums' AND id = {wiki}",
        wiki=community.wiki,
    )

    found = run("check.list")["problems"]

    assert [(p["problem"], p["repairable"]) for p in found] == [("field", True), ("rule", False)]
    assert trellis("check", "--repair").exit_code == 1
    assert run("forums.get", community.wiki)["redirectUrl"] is None


def test_a_grant_of_an_operation_that_is_gone(trellis_json: TrellisJson, trellis: Trellis, plant: Plant) -> None:
    trellis("keys", "create", "Plugin", "--grant", "forums.get")
    trellis("keys", "create", "Old", "--grant", "forums.get")
    trellis("keys", "revoke", "2")
    plant('UPDATE api_keys SET grants = \'["forums.get", "galleries.get"]\'')

    found = trellis("check", "--json")

    assert found.exit_code == 1
    assert '"detail": "it is granted operations that no longer exist: galleries.get"' in found.stdout
    assert trellis_json("check", "--repair")["count"] == 0
    assert trellis_json("keys", "show", "1")["grants"] == ["forums.get"]


def test_bounds_go_with_a_grant_of_an_operation_that_is_gone(trellis_json: TrellisJson, trellis: Trellis, plant: Plant) -> None:
    trellis("keys", "create", "Plugin", "--grant", "forums.get")
    plant(
        'UPDATE api_keys SET grants = \'["forums.get", "galleries.get"]\'',
        """UPDATE api_keys SET bounds = '{"forums.get": {"perDay": 5}, "galleries.get": {"perDay": 7}}'""",
    )

    trellis("check", "--repair")

    assert trellis_json("keys", "show", "1")["bounds"] == {"forums.get": {"perDay": 5}}


def test_only_so_many_problems_are_listed_and_all_are_counted(community: Community, plant: Plant, run: Run) -> None:
    plant("UPDATE nodes SET name_key = '?' WHERE kind <> 'groups'")

    found = run("check.list", limit=3)

    assert len(found["problems"]) == 3
    assert found["count"] == found["repairable"] == 13


def test_a_repair_of_very_many_problems_leaves_several_events(
    community: Community, plant: Plant, trellis_json: TrellisJson, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant("UPDATE nodes SET name_key = '?' WHERE kind <> 'groups'")
    monkeypatch.setattr("trellis.core.check.report._MAX_REPAIRS", 6)
    before = events()

    repaired = trellis_json("check", "--repair")

    assert (repaired["count"], len(repaired["repairs"])) == (0, 13)
    assert [len(event["before"]["problems"]) for event in events()[len(before) :]] == [6, 6, 1]


def test_a_repair_continues_where_the_one_before_it_has_ended(
    community: Community, plant: Plant, trellis: Trellis, run: Run, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(
        "UPDATE nodes SET name_key = '?' WHERE kind <> 'groups'",
        "UPDATE nodes SET parent_id = 404 WHERE kind = 'forums' AND id = 1",
    )
    monkeypatch.setattr("trellis.core.check.report._MAX_REPAIRS", 3)
    monkeypatch.setattr("trellis.store.check._BATCH", 2)
    read: list[str] = []
    batches, scans = check.read_batches, check.find_unreadable

    def find_unreadable(*given: Any) -> Iterator[check.UnreadableValue]:
        read.append("all")
        return scans(*given)

    def read_batches(*given: Any) -> Iterator[list[check.StoredNode]]:
        for batch in batches(*given):
            read.extend(f"{given[1]} {one.id}" for one in batch)
            yield batch

    monkeypatch.setattr(check, "find_unreadable", find_unreadable)
    monkeypatch.setattr(check, "read_batches", read_batches)
    before = len(events())

    assert trellis("check", "--repair").exit_code == 0

    assert len(events()) == before + 5
    while_repairing = read[: read.index("all", 1)]
    twice = [one for one, times in Counter(while_repairing).items() if times > 1]
    assert len(twice) <= 4 * 2, "at most the batch in which a repair has ended is read again"
    assert run("check.list")["problems"] == []


def test_the_progress_of_a_repair_continues_as_well(
    community: Community, settings: Settings, plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant("UPDATE nodes SET name_key = '?' WHERE kind = 'forums'")
    monkeypatch.setattr("trellis.core.check.report._MAX_REPAIRS", 3)
    monkeypatch.setattr("trellis.store.check._BATCH", 2)
    told: list[tuple[int, int]] = []
    gate = compose(settings)
    try:
        first = gate.run(Call("check.repair", TERMINAL)).value
        raw = {"after": first["next"]}
        gate.run(Call("check.repair", TERMINAL, raw, progress=lambda done, total: told.append((done, total))))
    finally:
        gate.store.close()
    assert told[0][0] > told[0][1] / 4, "groups, and some of the forums, are done"
    assert told == sorted(told)


def test_a_repair_that_no_other_has_ended_cannot_be_continued(trellis: Trellis) -> None:
    for after in ("forums", "forums:x", "forums:-1", f"forums:{2**63}", "ghosts:1", ":"):
        result = trellis("run", "check.repair", f"after={after}")
        assert result.exit_code == 1
        assert "after must be the `next` of a repair." in result.stderr


def test_a_dry_repair_keeps_nothing(community: Community, plant: Plant, run: Run, events: Events) -> None:
    plant("UPDATE nodes SET name_key = '?' WHERE kind = 'forums' AND id = {news}", news=community.news)
    before = events()

    assert run("check.repair", dryRun=True)["repaired"] == 1
    assert run("check.list")["count"] == 1
    assert events() == before


def test_a_field_that_is_new_to_its_kind_is_given_its_default(community: Community, settings: Settings) -> None:
    calendars = next(kind for kind in KINDS if kind.name == "calendars")
    grown = NodeKind(**{**vars_of(calendars), "fields": (*calendars.fields, Field("weekly", Boolean(), "New.", default=True))})
    gate = compose(settings, [grown if kind is calendars else kind for kind in KINDS])
    try:
        found = gate.run(Call("check.list", TERMINAL)).value
        assert [p["detail"] for p in found["problems"]] == ["weekly is missing; its default is true"] * 2
        gate.run(Call("check.repair", TERMINAL))
        assert gate.run(Call("calendars.get", TERMINAL, {}, community.meetups)).value["weekly"] is True
    finally:
        gate.store.close()


def vars_of(kind: NodeKind) -> dict[str, Any]:
    return {name: getattr(kind, name) for name in NodeKind.__dataclass_fields__}


def test_progress_is_told(community: Community, settings: Settings, plant: Plant) -> None:
    """It begins with the first table that is read, not only with the nodes."""
    plant("UPDATE events SET seq = 1000 * seq", "UPDATE nodes SET name_key = 'x' WHERE kind = 'forums'")
    told: list[tuple[int, int]] = []
    gate = compose(settings)
    try:
        gate.run(Call("check.list", TERMINAL, progress=lambda done, total: told.append((done, total))))
    finally:
        gate.store.close()

    done, total = told[-1]
    assert done == total >= 18
    assert told == sorted(told)
    assert len({done for done, _ in told}) > 5, "there are five kinds of nodes"


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # PostgreSQL's JSON columns hold nothing else
def test_fields_that_cannot_even_be_read(community: Community, plant: Plant, trellis: Trellis, run: Run) -> None:
    plant(
        "UPDATE nodes SET fields = '{{\"color\": ', permissions = '' WHERE kind = 'calendars' AND id = {meetups}",
        meetups=community.meetups,
    )

    assert trellis("check").exit_code == 1
    assert trellis("check", "--repair").exit_code == 0
    mended = run("calendars.get", community.meetups)
    assert (mended["name"], mended["color"], mended["permissions"]["view"]) == ("Meetups", "#3B82F6", [])


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # PostgreSQL's JSON columns hold nothing else
def test_an_earlier_change_can_be_undone_after_what_could_not_be_read_was_mended(
    community: Community, plant: Plant, trellis: Trellis, run: Run, events: Events
) -> None:
    run("calendars.update", community.meetups, name="Trips")
    plant("UPDATE nodes SET fields = '[' WHERE kind = 'calendars' AND id = {meetups}", meetups=community.meetups)
    trellis("check", "--repair")

    assert trellis("restore", events()[-2]["seq"]).exit_code == 0
    assert run("calendars.get", community.meetups)["name"] == "Meetups"


def test_what_cannot_be_read_is_mended_as_well_if_it_was_moved_before(
    community: Community, plant: Plant, trellis: Trellis, run: Run, events: Events, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setattr("trellis.store.check._BATCH", 1)
    run("forums.update", community.staff, name="Team")
    plant("UPDATE nodes SET parent_id = {wiki}, fields = '[]' WHERE kind = 'forums' AND id = {staff}", **vars(community))
    if engine == "sqlite":  # PostgreSQL's JSON columns hold only JSON
        plant("UPDATE nodes SET fields = '[' WHERE kind = 'forums' AND id = {staff}", **vars(community))

    result = trellis("check", "--repair")

    assert result.exit_code == 0, result.output
    assert run("forums.get", community.staff)["parentId"] is None
    assert trellis("restore", events()[-2]["seq"]).exit_code == 0
    assert run("forums.get", community.staff)["name"] == "Staff"


def test_names_that_nobody_can_see_whole_are_told_and_mended(
    community: Community, plant: Plant, trellis: Trellis, run: Run, gate: Gate, events: Events
) -> None:
    """They are from before such characters were refused. What would be nothing without them, and a login, is left to a person."""
    run("keys.create", name="Sync")
    run("admins.create", name="Mira Holm", login="mira", password="kept in a tin box")
    gate.run(Call("webhooks.create", TERMINAL, {"url": "https://hooks.example/in", "events": ["*"], "description": "Index"}))
    plant(
        "UPDATE nodes SET name = 'Ne\u200bws\ufeff', name_key = 'ne\u200bws\ufeff' WHERE kind = 'forums' AND id = {news}",
        "UPDATE nodes SET name = '\u200b', name_key = '\u200b' WHERE kind = 'forums' AND id = {help}",
        'UPDATE nodes SET fields = \'{{"description": "", "owner": "Mira\u2060 Holm", "groups": "*", "pinned": false}}\' '
        "WHERE kind = 'blogs'",
        "UPDATE api_keys SET name = 'Sy\u00adnc'",
        "UPDATE administrators SET name = 'Mira\u200b Holm', login = 'mi\u200bra', login_key = 'mi\u200bra'",
        "UPDATE webhooks SET description = 'In\u200bdex'",
        **vars(community),
    )
    found = {(p["resource"], p["id"], p["repairable"]): p["detail"] for p in run("check.list")["problems"]}
    hidden = "must not contain invisible characters; there is U+"
    assert found == {
        ("forums", community.news, True): f"its name {hidden}200B at offset 2. Once repaired, it is 'News'.",
        ("forums", community.help, False): f"its name {hidden}200B at offset 0. "
        f"Change it: trellis run forums.update id={community.help} name=…",
        ("blogs", community.notebook, True): f"owner {hidden}2060 at offset 4. Once repaired, it is 'Mira Holm'.",
        ("keys", 1, True): f"its name {hidden}00AD at offset 2. Once repaired, it is 'Sync'.",
        ("admins", 1, True): f"its name {hidden}200B at offset 4. Once repaired, it is 'Mira Holm'.",
        ("admins", 1, False): f"its login {hidden}200B at offset 2. Change it: trellis run admins.update id=1 login=…",
        ("webhooks", 1, True): f"its description {hidden}200B at offset 2. Once repaired, it is 'Index'.",
    }

    assert trellis("check", "--repair").exit_code == 1
    assert run("forums.get", community.news)["name"] == "News"
    assert [one["id"] for one in run("forums.list", name="News")["results"]] == [community.news]
    assert run("blogs.get", community.notebook)["owner"] == "Mira Holm"
    assert run("keys.get", 1)["name"] == "Sync"
    assert run("admins.get", 1)["name"] == "Mira Holm"
    assert run("webhooks.get", 1)["description"] == "Index"
    touched = {(one["resource"], one["id"]) for one in events()[-1]["touched"]}
    assert touched == {("forums", community.news), ("blogs", community.notebook), ("keys", 1), ("admins", 1), ("webhooks", 1)}

    for hint in (f"forums.update id={community.help} name=Help", "admins.update id=1 login=mira"):
        assert trellis("run", *hint.split()).exit_code == 0
    assert trellis("check").exit_code == 0


def test_a_folder_whose_name_is_not_utf8_can_have_the_database(
    nowhere: Environment, cli: Trellis, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkdir(b"a\xff")  # noqa: PTH102  # pathlib takes no bytes
    monkeypatch.chdir(os.fsdecode(b"a\xff"))
    nowhere(database_url="sqlite:///trellis.db")
    for command in (("migrate",), ("run", "forums.create", "name=News"), ("check",)):
        assert cli(*command).exit_code == 0
