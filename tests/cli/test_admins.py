"""The commands on administrators."""

import json

from tests.cli.conftest import Trellis


def test_creating_shows_a_made_up_password_once(trellis: Trellis) -> None:
    made = trellis("admins", "create", "mira@example.com", "--name", "Mira Holm", "--json")
    assert made.exit_code == 0
    assert len(json.loads(made.stdout)["password"]) == 23
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


def test_the_last_one_cannot_be_disabled(trellis: Trellis) -> None:
    trellis("admins", "create", "mira")
    assert "LAST_ADMINISTRATOR" in trellis("admins", "disable", "mira").stderr
    trellis("admins", "create", "ada")
    assert trellis("admins", "disable", "mira").exit_code == 0
    assert "disabled" in trellis("admins", "list").stdout
    assert trellis("admins", "enable", "mira").exit_code == 0


def test_without_any_it_says_how_to_begin(trellis: Trellis) -> None:
    assert "trellis admins create LOGIN" in trellis("admins", "list").stdout
