"""`trellis keys`."""

import re
import sys
from typing import Any

import pytest

from tests.cli.conftest import Trellis, TrellisJson
from tests.community import GRANTABLE, grantable
from tests.wait import wait_until
from trellis.cli.community import list_all

FORM = re.compile(r"trl_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}")


def test_create_shows_the_key_once_and_alone_on_its_line(trellis: Trellis) -> None:
    result = trellis("keys", "create", "Calendar sync", "--grant", "calendars.*", "--expires", "90d")

    assert result.exit_code == 0
    key, told, may = result.stdout.splitlines()
    assert FORM.fullmatch(key)
    assert told == "This is key 1, 'Calendar sync'. Save it now: it will not be shown again."
    assert may == f"It may run: {', '.join(grantable('calendars.*'))}"
    assert result.stderr == ""
    assert key not in trellis("keys", "show", "1").output + trellis("keys", "list").output


@pytest.mark.either_engine
def test_an_end_that_is_empty_is_refused(trellis: Trellis) -> None:
    """Such as that of a variable of the shell that is not set: the key would never end."""
    for empty in (("--until", ""), ("--expires", " "), ("--preset", "")):
        assert trellis("keys", "create", "Sync", "--grant", "forums.list", *empty).exit_code == 2
    trellis("keys", "create", "Sync", "--grant", "forums.list", "--until", "7d")
    assert trellis("keys", "grant", "1", "forums.list", "--until", "").exit_code == 2
    assert trellis("keys", "show", "1").output.count("until 20") == 1


def test_an_expiry_that_is_empty_does_not_remove_the_one_of_a_key(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("keys", "create", "Sync", "--grant", "forums.list", "--expires", "2030-01-01T00:00:00Z")
    result = trellis("keys", "update", "1", "--expires", "")
    assert (result.exit_code, "--no-expiry" in result.stderr) == (2, True)
    assert trellis_json("keys", "show", "1")["expiresAt"] == "2030-01-01T00:00:00.000Z"


def test_a_bound_to_dry_runs_is_told_once(trellis: Trellis) -> None:
    shown = trellis("keys", "create", "Sync", "--grant", "forums.delete", "--dry-run-only", "--under", "forums:1").stdout
    assert "forums.delete: Only within forums:1, in dry runs.\n" in shown
    assert (
        "forums.delete: Only in dry runs.\n"
        in trellis("keys", "create", "Other", "--grant", "forums.delete", "--dry-run-only").stdout
    )


def test_bounds_without_a_grant_that_they_are_for_are_refused(trellis: Trellis, trellis_json: TrellisJson) -> None:
    for bounds in (("--under", "forums:1"), ("--until", "7d"), ("--per-day", "0"), ("--dry-run-only",)):
        for preset in ((), ("--preset", "agent")):
            result = trellis("keys", "create", "Sync", *bounds, *preset)
            assert (result.exit_code, "Bounds apply to the grants" in result.stderr) == (2, True), bounds
    assert trellis_json("keys", "list") == []


def test_create_as_json_takes_every_setting(trellis_json: TrellisJson) -> None:
    key = trellis_json(
        "keys", "create", "Plugin", "--grant", "forums.create", "--grant", "calendars.*", "--ip", "192.0.2.0/24",
        "--ip", "2001:db8::1", "--rate-limit", "60", "--no-log", "--expires", "2030-01-01T00:00:00Z", "--dialect", "invision",
    )  # fmt: skip

    assert list(key)[:2] == ["id", "key"]
    assert FORM.fullmatch(key["key"])
    assert key["grants"] == [*grantable("calendars.*"), "forums.create"]
    assert key["addresses"] == ["192.0.2.0/24", "2001:db8::1/128"]
    assert key["rateLimit"] == 60
    assert key["logRequests"] is False
    assert key["expiresAt"] == "2030-01-01T00:00:00.000Z"
    assert key["dialect"] == "invision"


def test_the_dialect_of_a_key_is_shown_and_can_be_changed(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("keys", "create", "Old client", "--dialect", "invision")
    assert "invision" in trellis("keys", "list").stdout
    assert [key["dialect"] for key in trellis_json("keys", "list")] == ["invision"]
    assert "Dialect:             invision" in trellis("keys", "show", "1").stdout
    assert trellis("run", "keys.update", "1", "dialect=trellis").exit_code == 0
    assert trellis_json("keys", "show", "1")["dialect"] == "trellis"


def test_a_star_grants_everything_a_key_can_be_granted(trellis_json: TrellisJson) -> None:
    assert len(trellis_json("keys", "create", "All", "--grant", "*")["grants"]) == GRANTABLE


def test_a_key_without_grants_comes_with_a_warning(trellis: Trellis) -> None:
    for json in ((), ("--json",)):
        result = trellis("keys", "create", "Plugin", *json)
        assert result.exit_code == 0
        assert result.stderr.startswith("This key may not do anything yet. Grant it operations: trellis keys grant ")


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--grant", "forum.create"), "Did you mean forums.create?"),
        (("--grant", "keys.create"), "no grantable operation matches 'keys.create'"),
        (("--dialect", "esperanto"), "dialect must be one of trellis, invision"),
        (("--expires", "soon"), "expires must be a duration such as 90d"),
        (("--ip", "localhost"), "addresses must be addresses or networks"),
    ],
)
def test_create_refuses_what_is_wrong(trellis: Trellis, arguments: tuple[str, ...], expected: str) -> None:
    result = trellis("keys", "create", "Plugin", *arguments)

    assert result.exit_code == 1
    assert expected in result.stderr
    assert result.stdout == ""
    assert trellis("keys", "list", "--json").stdout == "[]\n"


def test_list_shows_every_key(trellis: Trellis, trellis_json: TrellisJson) -> None:
    assert "There are no keys yet." in trellis("keys", "list").stdout
    trellis("keys", "create", "Plugin", "--grant", "forums.*")
    trellis("keys", "create", "Board [old]")
    trellis("keys", "revoke", "2", "--reason", "Nobody needs it.")

    shown = trellis("keys", "list").stdout
    listed = trellis_json("keys", "list")

    assert re.search(rf"1 +Plugin +trl_\w{{8}} +active +{len(grantable('forums.*'))} operations", shown)
    assert re.search(r"2 +Board \[old\] +trl_\w{8} +revoked +nothing", shown)
    assert [key["state"] for key in listed] == ["active", "revoked"]
    assert not any("digest" in name or name == "key" for key in listed for name in key)


def test_show_tells_everything_but_the_secret(trellis: Trellis, trellis_json: TrellisJson) -> None:
    made = trellis_json("keys", "create", "Plugin", "--grant", "forums.get")

    assert trellis_json("keys", "show", made["id"]) == {name: made[name] for name in made if name != "key"}
    assert "May run:             forums.get" in trellis("keys", "show", made["id"]).stdout
    assert trellis("keys", "show", "99").stderr == "INVALID_ID: There is no key with the id 99.\n"


def test_grant_and_ungrant(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("keys", "create", "Plugin")

    granted = trellis_json("keys", "grant", "1", "forums.get", "*.list")
    ungranted = trellis_json("keys", "ungrant", "1", "*.list")
    again = trellis("keys", "ungrant", "1", "calendars.list")

    assert granted["grants"] == grantable("forums.get", "*.list")
    assert ungranted["grants"] == ["forums.get"]
    assert again.exit_code == 0
    assert again.stderr == "Nothing to change.\n"


def test_update_changes_what_it_is_told_and_nothing_else(trellis: Trellis, trellis_json: TrellisJson) -> None:
    made = trellis_json("keys", "create", "Plugin", "--grant", "forums.list", "--ip", "192.0.2.0/24", "--rate-limit", "60")
    changed = trellis_json("keys", "update", "1", "--rate-limit", "600", "--expires", "2030-01-01T00:00:00Z", "--no-log")
    told = {"rateLimit": 600, "expiresAt": "2030-01-01T00:00:00.000Z", "logRequests": False}
    apart = ("key", "updatedAt")
    assert {k: v for k, v in changed.items() if k not in apart} == {k: v for k, v in made.items() if k not in apart} | told
    more = ("--no-expiry", "--default-rate-limit", "--any-ip", "--any-per-day", "--log", "--name", "Calendar")
    changed = trellis_json("keys", "update", "1", *more)
    assert [changed[name] for name in ("expiresAt", "rateLimit", "addresses", "perDay", "logRequests", "name")] == [
        *(None, None, [], None, True, "Calendar")
    ]
    assert trellis_json("keys", "update", "1", "--per-day-in-all", "5", "--ip", "198.51.100.7")["perDay"] == 5
    assert "Nothing to change." in trellis("keys", "update", "1", "--name", "Calendar").stderr
    for wrong in ((), ("--expires", "1d", "--no-expiry"), ("--ip", "192.0.2.1", "--any-ip")):
        assert trellis("keys", "update", "1", *wrong).exit_code == 2
    assert trellis("keys", "update", "1", "--expires", "soon").exit_code == 1


def test_rotate_shows_a_new_secret_of_the_same_key(trellis: Trellis, trellis_json: TrellisJson) -> None:
    made = trellis_json("keys", "create", "Plugin", "--grant", "forums.get")
    rotated = trellis_json("keys", "rotate", made["id"], "--overlap-days", "2")

    assert rotated["key"] != made["key"]
    assert rotated["key"].startswith(made["public"])
    assert rotated["oldSecretUntil"] is not None
    assert "\nThe previous secret is valid until 20" in trellis("keys", "rotate", made["id"], "--overlap-days", 2).stdout


def test_revoke_ends_a_key_for_good(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("keys", "create", "Plugin", "--grant", "forums.get")

    revoked = trellis_json("keys", "revoke", "1", "--reason", "Found in a public repository.")
    event = trellis_json("run", "events.list", "order=newest", "limit=1")["results"][0]

    assert revoked["state"] == "revoked"
    assert revoked["revokedBecause"] == event["reason"] == "Found in a public repository."
    refused = trellis("keys", "rotate", "1")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("KEY_REVOKED: The key 'Plugin' was revoked at ")


@pytest.mark.either_engine
@pytest.mark.parametrize("arguments", [("show", ""), ("rotate", "1", "--overlap-days", "x"), ("grant", "1")])
def test_what_cannot_be_read_is_a_usage_error(trellis: Trellis, arguments: tuple[str, ...]) -> None:
    assert trellis("keys", *arguments).exit_code == 2


def test_a_preset_says_what_the_other_options_do_not(trellis: Trellis, trellis_json: TrellisJson) -> None:
    key = trellis_json("keys", "create", "Agent", "--preset", "agent", "--expires", "2030-01-01T00:00:00Z", "--per-day-in-all", "5")
    assert (key["preset"], key["perDay"], key["expiresAt"]) == ("agent", 5, "2030-01-01T00:00:00.000Z")
    assert key["bounds"]["forums.delete"] == {"level": "propose"}
    shown = trellis("keys", "show", "1").stdout
    assert re.search(r"Preset: +agent", shown)
    assert "forums.restore: Only what it did itself." in shown


def test_a_preset_is_limited_to_some_grants_and_nodes(trellis: Trellis, trellis_json: TrellisJson) -> None:
    key = trellis_json("keys", "create", "Agent", "--preset", "agent", "--grant", "forums.*", "--under", "forums:12")
    assert key["grants"] == grantable("forums.*")
    assert key["bounds"]["forums.delete"] == {"level": "propose", "under": ["forums:12"]}
    refused = trellis("keys", "create", "Agent", "--preset", "agent", "--under", "forums:12")
    assert refused.exit_code == 2
    assert "--grant" in refused.stderr


def test_keys_are_paused_and_resumed(trellis: Trellis, trellis_json: TrellisJson) -> None:
    for name in ("Gardener", "Porter"):
        trellis("keys", "create", name, "--preset", "agent")
    trellis("keys", "create", "Plugin")
    assert trellis_json("keys", "pause", "1", "--reason", "Odd")["pausedBecause"] == "Odd"
    assert trellis("keys", "pause-preset", "agent", "--reason", "Too much").stdout == "Paused: key 2\n"
    assert trellis("keys", "pause-preset", "agent").stdout == "There was no key with this preset to pause.\n"
    assert [key["state"] for key in trellis_json("keys", "list")] == ["paused", "paused", "active"]
    assert "Too much" in trellis("keys", "show", "2").stdout
    assert trellis_json("keys", "resume", "1")["state"] == "active"


def test_a_key_is_named_by_its_id_its_public_part_or_its_name(trellis: Trellis, trellis_json: TrellisJson) -> None:
    sync = trellis_json("keys", "create", "Calendar sync", "--grant", "calendars.*")
    for named in (sync["id"], sync["public"], sync["public"].removeprefix("trl_"), sync["key"], "Calendar sync"):
        assert trellis_json("keys", "show", named)["id"] == sync["id"]
    assert trellis_json("keys", "pause", "Calendar sync")["state"] == "paused"
    assert trellis_json("keys", "resume", "Calendar sync")["state"] == "active"
    assert trellis_json("keys", "grant", "Calendar sync", "forums.list")["grants"][-1] == "forums.list"
    assert trellis_json("keys", "ungrant", "Calendar sync", "forums.list")["id"] == sync["id"]
    assert trellis_json("keys", "update", "Calendar sync", "--note", "nightly")["note"] == "nightly"
    assert trellis_json("keys", "rotate", "Calendar sync")["id"] == sync["id"]
    assert trellis("restore", "--key", "Calendar sync", "--since", "1h", "--dry-run").exit_code == 0
    assert trellis_json("keys", "revoke", "Calendar sync")["state"] == "revoked"
    assert trellis("keys", "show", "Calendar sync").exit_code == 1, "a revoked key has only its id"


def test_a_name_of_several_keys_is_refused_with_their_ids_and_changes_none(trellis: Trellis, trellis_json: TrellisJson) -> None:
    first, second = (trellis_json("keys", "create", "Sync")["id"] for _ in range(2))
    refused = trellis("keys", "revoke", "Sync")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.endswith(f"key: 2 keys have this name. Send the id: {first}, {second}.\n")
    assert [key["state"] for key in trellis_json("keys", "list")] == ["active", "active"]


def test_a_whole_number_is_an_id_even_if_a_key_has_it_as_its_name(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("keys", "create", "7")
    for number in ("7", "0", "9" * 30):
        assert trellis("keys", "revoke", number).exit_code == 1
    assert trellis_json("keys", "list")[0]["state"] == "active"


def test_what_names_no_key_is_refused_without_a_secret(trellis: Trellis) -> None:
    lost = "trl_abcdefgh_" + "x" * 38
    refused = trellis("keys", "show", lost)
    assert refused.exit_code == 1
    assert "There is no key 'trl_abcdefgh_[hidden]'. `trellis keys list` lists all keys" in refused.stderr
    assert "x" * 38 not in refused.output
    assert trellis("keys", "pause", " ").exit_code == 2


@pytest.mark.either_engine
def test_a_list_that_takes_long_shows_progress_beside_the_output(trellis: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    trellis("keys", "create", "Sync", "--grant", "forums.list")
    monkeypatch.setattr("trellis.cli.terminal._PATIENCE", 0.0)

    def list_slowly(*arguments: Any) -> list[dict[str, Any]]:
        said: Any = sys.stderr.buffer  # in memory: it is that of Typer's runner
        wait_until(said.getvalue)
        return list_all(*arguments)

    monkeypatch.setattr("trellis.cli.keys.list_all", list_slowly)
    result = trellis("keys", "list")
    assert re.fullmatch(r"Reading keys: \d+ s so far\n", result.stderr)
    assert "Sync" in result.stdout
