"""The operations on API keys: making, changing, rotating and revoking them, and what is kept of them."""

import json
from typing import Any

import pytest
import sqlalchemy as sa

from tests.community import grantable
from tests.fixture_types import Clock, Events, MakeKey, Run
from trellis.core.gate import Gate
from trellis.errors import Refused
from trellis.store import keys
from trellis.store.tables import METADATA


def everything(gate: Gate) -> str:
    """All that stands in the database, as text."""
    with gate.store.engine.connect() as connection:
        rows = [[str(value) for value in row] for table in METADATA.sorted_tables for row in connection.execute(sa.select(table))]
    return json.dumps(rows)


def test_a_new_key_is_shown_whole_once(run: Run, clock: Clock) -> None:
    made = run(
        "keys.create",
        name=" Calendar sync ",
        grants=["calendars.*"],
        expires="90d",
        addresses="192.0.2.7",
        rateLimit=60,
    )
    text = made.pop("key")
    assert text.startswith(made["public"] + "_")
    assert made == {
        "id": 1,
        "name": "Calendar sync",
        "owner": "",
        "note": "",
        "public": text[:12],
        "state": "active",
        "grants": grantable("calendars.*"),
        "bounds": {},
        "expiresAt": "2026-05-01T09:30:00.000Z",
        "addresses": ["192.0.2.7/32"],
        "rateLimit": 60,
        "perDay": None,
        "logRequests": True,
        "dialect": "trellis",
        "preset": None,
        "oldSecretUntil": None,
        "pausedAt": None,
        "pausedBecause": None,
        "revokedAt": None,
        "revokedBecause": None,
        "lastUsedAt": None,
        "createdAt": clock.text,
        "updatedAt": clock.text,
    }
    assert run("keys.get", 1) == made
    assert run("keys.list")["results"] == [made]


def test_nothing_of_the_secret_is_in_the_database(run: Run, gate: Gate) -> None:
    texts = [run("keys.create", name="Plugin")["key"], run("keys.rotate", 1, overlapDays=7)["key"]]
    kept = everything(gate)
    for text in texts:
        secret = text[13:]
        assert text[4:12] in kept, "the public part is what a key is found by"
        assert [secret[at : at + 16] for at in range(len(secret) - 15) if secret[at : at + 16] in kept] == []


def test_the_events_of_keys_hold_no_secret_and_say_that_it_changed(run: Run, events: Events) -> None:
    made, rotated = run("keys.create", name="Plugin"), run("keys.rotate", 1)
    created, changed = events()
    assert (created["operation"], created["resource"], created["resourceId"]) == ("keys.create", "keys", 1)
    assert "key" not in created["after"]
    assert changed["changed"] == ["secret"]
    assert made["key"][13:] not in json.dumps(events())
    assert rotated["key"][13:] not in json.dumps(events())


def test_a_key_without_grants_has_none(run: Run) -> None:
    assert run("keys.create", name="Plugin")["grants"] == []


@pytest.mark.parametrize(
    ("patterns", "grants"),
    [
        (["forums.list"], ["forums.list"]),
        (["*.list"], grantable("*.list")),
        (["groups.*", "groups.get"], grantable("groups.*")),
        ("blogs.*,forums.get", grantable("blogs.*", "forums.get")),
        (["forums.[gl]*"], ["forums.get", "forums.list"]),
    ],
)
def test_patterns_stand_for_all_that_match_now(run: Run, patterns: Any, grants: list[str]) -> None:
    assert run("keys.create", name="Plugin", grants=patterns)["grants"] == grants


def test_a_star_grants_all_that_can_be_granted(gate: Gate, run: Run) -> None:
    assert set(run("keys.create", name="Plugin", grants="*")["grants"]) == gate.environment.grantable


@pytest.mark.parametrize(
    "inside", ["keys.create", "groups.create", "blogs.update", "events.restore", "core.hello", "FORUMS.LIST", "?"]
)
def test_what_a_key_cannot_be_granted_is_refused(run: Run, inside: str, events: Events) -> None:
    with pytest.raises(Refused, match=r"^UNKNOWN_OPERATION: grants: no grantable operation matches") as refused:
        run("keys.create", name="Plugin", grants=["forums.list", inside])
    assert [fault.field for fault in refused.value.faults] == ["grants"]
    assert events() == []


def test_a_misspelt_grant_is_answered_with_the_nearest(run: Run) -> None:
    with pytest.raises(Refused, match=r"matches 'forum.list'\. Did you mean forums\.list\?"):
        run("keys.create", name="Plugin", grants="forum.list")


def test_every_fault_of_a_key_is_told(run: Run) -> None:
    with pytest.raises(Refused) as refused:
        run(
            "keys.create",
            grants="x.y",
            expires="soon",
            addresses="nowhere",
            rateLimit=-1,
            logRequests="maybe",
            colour="red",
        )
    assert [fault.field for fault in refused.value.faults] == [
        *("name", "expires", "addresses", "rateLimit", "logRequests"),
        *("grants", "colour"),
    ]


@pytest.mark.parametrize(
    ("expires", "at"),
    [
        ("12h", "2026-01-31T21:30:00.000Z"),
        ("90d", "2026-05-01T09:30:00.000Z"),
        ("2026-02-01T00:00:00+01:00", "2026-01-31T23:00:00.000Z"),
        ("never", None),
        (None, None),
    ],
)
def test_a_key_ends_after_a_span_or_at_a_moment_or_never(run: Run, expires: str | None, at: str | None) -> None:
    assert run("keys.create", name="Plugin", expires=expires)["expiresAt"] == at


def test_a_key_cannot_end_in_the_past(run: Run, clock: Clock) -> None:
    with pytest.raises(Refused, match=r"^INVALID_VALUE: expires is in the past: .* To end a key now, revoke it"):
        run("keys.create", name="Plugin", expires=clock.text)


def test_a_key_tells_its_state(run: Run, clock: Clock) -> None:
    run("keys.create", name="Plugin", expires="1d")
    clock.move(hours=24, milliseconds=-1)
    assert run("keys.get", 1)["state"] == "active"
    clock.move(milliseconds=1)
    assert run("keys.get", 1)["state"] == "expired"
    run("keys.revoke", 1)
    assert run("keys.get", 1)["state"] == "revoked"


def test_grants_are_added_and_taken_away(run: Run) -> None:
    run("keys.create", name="Plugin", grants=["forums.list", "forums.get"])
    assert run("keys.update", 1, grant="calendars.list")["grants"] == ["calendars.list", "forums.get", "forums.list"]
    assert run("keys.update", 1, ungrant="forums.*")["grants"] == ["calendars.list"]
    assert run("keys.update", 1, grants=["groups.get"], grant="groups.list")["grants"] == ["groups.get", "groups.list"]
    assert run("keys.update", 1, grants=[])["grants"] == []


def test_other_settings_change_alone(run: Run, clock: Clock, events: Events) -> None:
    made = run("keys.create", name="Plugin", grants="forums.list", expires="90d", addresses="192.0.2.0/24", rateLimit=5)
    del made["key"]
    clock.move(days=1)
    assert run("keys.update", 1, name="Sync") == made | {"name": "Sync", "updatedAt": clock.text}
    assert run("keys.update", 1, expires=None, addresses=[], rateLimit=None)["expiresAt"] is None
    assert events()[-1]["changed"] == ["expiresAt", "addresses", "rateLimit"]


def test_a_key_has_a_dialect_that_can_be_changed(run: Run, events: Events) -> None:
    assert run("keys.create", name="Old client", dialect="invision")["dialect"] == "invision"
    assert run("keys.update", 1, name="Client")["dialect"] == "invision"
    assert run("keys.update", 1, dialect="trellis")["dialect"] == "trellis"
    assert events()[-1]["changed"] == ["dialect"]
    with pytest.raises(Refused, match="dialect must be one of trellis, invision"):
        run("keys.update", 1, dialect="esperanto")


def test_an_update_that_changes_nothing_records_nothing(run: Run, events: Events, clock: Clock) -> None:
    run("keys.create", name="Plugin", grants="forums.list")
    clock.move(days=1)
    updated = run("keys.update", 1, name="Plugin", grants="forums.list", grant="forums.list", addresses="")
    assert updated["updatedAt"] == updated["createdAt"]
    assert len(events()) == 1


def test_rotation_shows_a_new_key_of_the_same_public_part(run: Run) -> None:
    old = run("keys.create", name="Plugin")["key"]
    rotated = run("keys.rotate", 1)
    assert rotated["key"][:13] == old[:13]
    assert rotated["key"] != old
    assert rotated["oldSecretUntil"] is None


def test_rotation_may_let_the_old_secret_live_on_for_some_days(run: Run, clock: Clock) -> None:
    run("keys.create", name="Plugin")
    assert run("keys.rotate", 1, overlapDays=2)["oldSecretUntil"] == "2026-02-02T09:30:00.000Z"
    clock.move(days=2)
    assert run("keys.get", 1)["oldSecretUntil"] is None


def test_an_old_secret_leaves_nothing_behind_once_it_has_ended(run: Run, gate: Gate) -> None:
    def old_digest() -> str | None:
        kept = gate.store.read_single(lambda tx: keys.find(tx, 1))
        assert kept is not None
        return kept.old_digest

    run("keys.create", name="Plugin")
    run("keys.rotate", 1)
    assert old_digest() is None
    run("keys.rotate", 1, overlapDays=7)
    assert old_digest() is not None
    run("keys.revoke", 1)
    assert old_digest() is None


@pytest.mark.parametrize("days", [-1, 8, "x"])
def test_an_overlap_out_of_range_is_refused(run: Run, days: object) -> None:
    run("keys.create", name="Plugin")
    with pytest.raises(Refused, match=r"^INVALID_VALUE: overlapDays must be a whole number from 0 to 7"):
        run("keys.rotate", 1, overlapDays=days)


def test_a_revoked_key_stays_in_the_list_with_its_reason(run: Run, clock: Clock) -> None:
    run("keys.create", name="Plugin")
    run("keys.revoke", 1, reason="It was lost.")
    (listed,) = run("keys.list")["results"]
    assert (listed["state"], listed["revokedAt"], listed["revokedBecause"]) == ("revoked", clock.text, "It was lost.")


@pytest.mark.parametrize("operation", ["keys.update", "keys.rotate", "keys.revoke"])
def test_a_revoked_key_does_not_come_back(run: Run, operation: str, events: Events) -> None:
    run("keys.create", name="Plugin")
    run("keys.revoke", 1)
    with pytest.raises(Refused, match=r"^KEY_REVOKED: The key 'Plugin' was revoked at 2026-01-31T09:30:00.000Z"):
        run(operation, 1)
    assert len(events()) == 2


@pytest.mark.parametrize("operation", ["keys.get", "keys.update", "keys.rotate", "keys.revoke"])
def test_a_key_that_does_not_exist_is_refused(run: Run, operation: str) -> None:
    with pytest.raises(Refused, match=r"^INVALID_ID: There is no key with the id 7") as refused:
        run(operation, 7)
    assert refused.value.code == "1T105/2"


@pytest.mark.parametrize("operation", ["keys.create", "keys.update", "keys.rotate", "keys.revoke"])
def test_a_dry_run_changes_no_key_and_shows_no_secret(run: Run, events: Events, operation: str) -> None:
    before = run("keys.create", name="Plugin")
    del before["key"]
    would = run(
        operation,
        None if operation == "keys.create" else 1,
        **({} if "ro" in operation or "rev" in operation else {"name": "Sync"}),
        dryRun=1,
    )
    assert "key" not in would
    assert run("keys.list")["results"] == [before]
    assert len(events()) == 1
    assert run("keys.create", name="Next")["id"] == 2


def test_keys_come_in_pages(run: Run, key: MakeKey) -> None:
    for _ in range(3):
        key("forums.list")
    page = run("keys.list", page=2, perPage=2)
    assert (page["totalResults"], page["totalPages"], [one["id"] for one in page["results"]]) == (3, 2, [3])


def test_keys_are_found_by_the_exact_name_of_a_granted_operation(run: Run) -> None:
    run("keys.create", name="Importer", grants=["forums.list"])
    found = {name: run("keys.list", operation=name)["totalResults"] for name in ("forums.list", "FORUMS.LIST", "forums.lis_", "%")}
    assert found == {"forums.list": 1, "FORUMS.LIST": 0, "forums.lis_": 0, "%": 0}
