"""The commands on administrators."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyotp import TOTP
from typer.testing import CliRunner

from tests.cli.conftest import Trellis
from tests.fixture_types import Clock, Run
from trellis.cli.app import app
from trellis.core.actor import Actor
from trellis.core.admins import find_invited
from trellis.core.factors import set_up_app
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.store.admins import Identity, administrators, identities
from trellis.store.engine import Transaction


def test_creating_shows_a_made_up_password_once(trellis: Trellis) -> None:
    made = trellis("admins", "create", "mira@example.com", "--name", "Mira Holm", "--json")
    assert made.exit_code == 0
    assert len(json.loads(made.stdout)["password"]) == 35
    listed = trellis("admins", "list", "--json")
    assert [(a["name"], a["login"]) for a in json.loads(listed.stdout)] == [("Mira Holm", "mira@example.com")]
    assert "password" not in listed.stdout


def test_a_login_is_taken_once(trellis: Trellis) -> None:
    trellis("admins", "create", "mira")
    again = trellis("admins", "create", "MIRA")
    assert again.exit_code == 1
    assert "LOGIN_TAKEN" in again.stderr


def test_a_password_is_reset_by_login(trellis: Trellis) -> None:
    trellis("admins", "create", "mira")
    reset = trellis("admins", "reset-password", "mira")
    assert reset.exit_code == 0
    assert "Password:" in reset.stdout
    nobody = trellis("admins", "reset-password", "nobody")
    assert nobody.exit_code == 1
    assert "no administrator with the login 'nobody'" in nobody.stderr


def test_of_more_administrators_than_a_page_has_the_last_is_found(
    trellis: Trellis, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trellis.cli.community.MOST_PER_PAGE", 10)
    trellis("admins", "create", "mira")

    def write_more(tx: Transaction) -> None:
        mira = administrators.find(tx, 1)
        assert mira is not None
        for number in range(2, 12):
            administrators.insert(tx, replace(mira, id=number, name=f"Mira {number}", login=f"mira{number}"))

    gate.store.write(write_more).result(60)
    assert len(json.loads(trellis("admins", "list", "--json").stdout)) == 11
    assert trellis("admins", "disable", "mira11").stdout == "Mira 11 can no longer sign in.\n"


def test_a_second_factor_is_taken_away_from_whoever_is_locked_out(trellis: Trellis, gate: Gate, run: Run) -> None:
    trellis("admins", "create", "mira")
    assert "mira has no second factor." in trellis("admins", "reset-second-factor", "mira").stdout
    setup = set_up_app(gate, 1, "mira")
    run("admins.set_authenticator", 1, salt=setup.salt, code=TOTP(setup.secret).at(datetime.fromisoformat(gate.now())))
    told = trellis("admins", "reset-password", "mira").stdout
    assert "Second factors are kept: app. If somebody else may have them, run: trellis admins reset-second-factor mira" in told
    reset = trellis("admins", "reset-second-factor", "MIRA")
    assert (reset.exit_code, "mira no longer has a second factor, and was signed out everywhere." in reset.stdout) == (0, True)
    event = run("events.list", limit=1000)["results"][-1]
    assert (event["type"], event["actor"]["type"], event["resourceId"]) == ("admin.reset_second_factor", "terminal", 1)
    assert run("admins.sign_in", 1)["token"]


@pytest.mark.parametrize("flags", [(), ("--keep-webhooks",)], ids=str)
def test_the_webhooks_of_a_disabled_administrator_are_switched_off_unless_told_otherwise(
    trellis: Trellis, gate: Gate, run: Run, flags: tuple[str, ...]
) -> None:
    trellis("admins", "create", "mira")
    trellis("admins", "create", "ada")
    mira = Actor("admin", 1, "mira")
    gate.run(Call("webhooks.create", mira, {"url": "https://hooks.example/in", "events": ["*"]}))
    result = trellis("admins", "disable", "mira", *flags)
    assert result.exit_code == 0
    assert ("Switched off as well: webhook 1" in result.stderr) is not bool(flags)
    assert run("webhooks.get", 1)["enabled"] is bool(flags)


def test_the_last_one_cannot_be_disabled(trellis: Trellis) -> None:
    trellis("admins", "create", "mira")
    assert "LAST_ADMINISTRATOR" in trellis("admins", "disable", "mira").stderr
    trellis("admins", "create", "ada")
    assert trellis("admins", "disable", "mira").exit_code == 0
    assert "disabled" in trellis("admins", "list").stdout
    assert trellis("admins", "enable", "mira").exit_code == 0


def test_without_any_it_says_how_to_begin(trellis: Trellis) -> None:
    assert "trellis admins create LOGIN" in trellis("admins", "list").stdout


def test_roles_are_shown_and_given(trellis: Trellis, run: Run) -> None:
    trellis("admins", "create", "mira")
    made = trellis("admins", "create", "ada", "--role", "structure-editor", "--kind", "forums", "--kind", "calendars")
    assert made.exit_code == 0
    assert "ada is structure-editor (forums, calendars): Creates, changes" in trellis("admins", "role", "ada").stdout
    assert "ada is structure-editor (blogs): " in trellis("admins", "role", "ada", "--kind", "blogs").stdout
    assert "kinds: the role owner is for all kinds" in trellis("admins", "role", "mira", "--kind", "blogs").stderr
    assert "ada is auditor: Reads everything" in trellis("admins", "role", "ada", "auditor").stdout
    assert [(one["role"], one["kinds"]) for one in run("admins.list")["results"]] == [("owner", []), ("auditor", [])]
    assert "auditor" in trellis("admins", "list").stdout
    assert "LAST_ADMINISTRATOR" in trellis("admins", "role", "mira", "auditor").stderr
    assert "INVALID_VALUE" in trellis("admins", "role", "ada", "emperor").stderr


def test_inviting_shows_a_link_once_and_again_another_one(trellis: Trellis, gate: Gate, clock: Clock) -> None:
    clock.at = datetime.now(UTC)  # by which the command goes
    invited = json.loads(trellis("admins", "invite", "mira", "--name", "Mira Holm", "--role", "auditor", "--json").stdout)
    assert (invited["name"], invited["role"], invited["isInvited"]) == ("Mira Holm", "auditor", True)
    assert "was already added" in trellis("admins", "invite", "mira", "--role", "owner").stderr
    assert "Choose what they may do" in trellis("admins", "invite", "nobody").stderr
    first = invited["link"].removeprefix("/admin/invitation/")
    assert find_invited(gate, first) is not None
    assert "invited" in trellis("admins", "list").stdout
    told = trellis("admins", "invite", "mira").stderr
    assert "TRELLIS_PUBLIC_URL is not set" in told
    assert "http://127.0.0.1:8000/admin/invitation/" in told
    again = trellis("admins", "invite", "MIRA").stdout
    second = next(line for line in again.splitlines() if line.startswith("Link:")).rpartition("/")[2]
    assert find_invited(gate, first) is None
    assert find_invited(gate, second) is not None
    assert "The invitation of Mira Holm was withdrawn." in trellis("admins", "withdraw-invitation", "mira").stdout
    assert "Mira Holm has no invitation." in trellis("admins", "withdraw-invitation", "mira").stdout
    assert find_invited(gate, second) is None


def test_an_account_at_a_provider_is_shown_and_unlinked(trellis: Trellis, gate: Gate, run: Run) -> None:
    trellis("admins", "create", "mira")
    assert "mira has no linked account." in trellis("admins", "unlink", "mira").stdout
    linked = Identity("https://id.example", "248289761001", 1, "mira@example.com", None, gate.now(), None)
    gate.store.write(lambda tx: identities.insert(tx, linked)).result()
    shown = trellis("admins", "single-sign-on", "mira").stdout
    assert "mira@example.com" in shown
    assert "248289761001" in shown
    assert trellis("admins", "unlink", "mira").exit_code == 0
    assert "mira has no linked account." in trellis("admins", "single-sign-on", "mira").stdout
    assert run("events.list", limit=1000)["results"][-1]["type"] == "admin.unlinked_identity"


@pytest.mark.usefixtures("trellis")
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("typed", "told"), [(b"\xff\n", "is not UTF-8"), (b"\n", "There was no password")])
def test_a_password_on_standard_input_that_is_none_is_a_sentence(typed: bytes, told: str) -> None:
    refused = CliRunner().invoke(app, ["admins", "create", "ada", "--password-stdin"], input=typed, catch_exceptions=False)
    assert (refused.exit_code, told in refused.stderr) == (2, True)
