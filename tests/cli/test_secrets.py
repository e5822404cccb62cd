"""Passwords at the terminal: from a prompt or a file, and never from an argument."""

import os
import pty
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from tests.cli.conftest import Trellis
from tests.fixture_types import Events, Run
from trellis.cli import admins
from trellis.cli.secrets import take_secrets
from trellis.compose import catalogue_of
from trellis.core.admins import Credentials, check_password
from trellis.core.gate import Gate
from trellis.kinds import KINDS
from trellis.settings import Settings

_PASSWORD = "kept in a tin box"
_CREATE = catalogue_of(KINDS)["admins.create"]


@pytest.fixture
def mira(run: Run) -> int:
    return int(run("admins.create", name="Mira Holm", login="mira", password="correct horse battery")["id"])


def _has(gate: Gate, password: str) -> bool:
    return check_password(gate, Credentials("mira", password, "-")) is not None


@pytest.mark.either_engine
@pytest.mark.parametrize("typed", [f"password={_PASSWORD}", f'password:="{_PASSWORD}"', "password:=[1]"])
def test_a_password_in_an_argument_is_refused(trellis: Trellis, gate: Gate, mira: int, events: Events, typed: str) -> None:
    before = events()
    result = trellis("run", "admins.set_password", mira, typed)
    assert result.exit_code == 2
    assert "password=@FILE" in result.stderr
    assert "tin box" not in result.stderr
    assert events() == before


def test_it_is_read_from_a_file(trellis: Trellis, gate: Gate, mira: int, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(_PASSWORD + "\n")
    assert trellis("run", "admins.set_password", mira, f"password=@{file}").exit_code == 0
    assert _has(gate, _PASSWORD)


def test_no_more_of_standard_input_is_read_than_a_password_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("x" * 20_000))
    assert len(admins._password(from_stdin=True)) == len(take_secrets(_CREATE, {"password": "@-"})["password"]) == 10_000


def test_standard_input_stays_open_for_what_is_read_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("first\nsecond\n"))
    assert [take_secrets(_CREATE, {"password": "@-"})["password"] for _ in range(2)] == ["first", "second"]


@pytest.mark.either_engine
@pytest.mark.parametrize(("content", "said"), [(None, "could not be read"), (b"\n", "is empty"), (b"\xff\n", "could not be read")])
def test_a_file_that_holds_none_is_said(trellis: Trellis, mira: int, tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    result = trellis("run", "admins.set_password", mira, f"password=@{file}")
    assert (result.exit_code, said in result.stderr) == (2, True)


@pytest.mark.either_engine
def test_a_device_without_an_end_is_refused(trellis: Trellis, mira: int) -> None:
    result = trellis("run", "admins.set_password", mira, "password=@/dev/zero")
    assert (result.exit_code, result.stderr.startswith("INVALID_VALUE: ")) == (1, True)


@pytest.mark.either_engine
def test_without_a_terminal_it_says_what_to_do(trellis: Trellis, mira: int) -> None:
    result = trellis("run", "admins.set_password", mira)
    assert (result.exit_code, "leave it out to be asked" in result.stderr) == (2, True)


def test_a_forums_password_too_is_read_from_a_file_and_taken_away_by_nothing(trellis: Trellis, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("open sesame")
    assert trellis("run", "forums.create", "name=Staff", "password=open sesame").exit_code == 2
    assert trellis("run", "forums.create", "name=Staff", f"password=@{file}").exit_code == 0
    assert run("forums.get", 1)["passwordProtected"] is True
    assert trellis("run", "forums.update", 1, "password=").exit_code == 0
    assert trellis("run", "forums.update", 1, "password:=null").exit_code == 0
    assert run("forums.get", 1)["passwordProtected"] is False


@pytest.mark.either_engine
def test_at_a_terminal_it_is_asked_for_twice_and_not_shown(gate: Gate, settings: Settings, mira: int, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "trellis", "run", "admins.set_password", str(mira)]
    environment = {**os.environ, "TRELLIS_DATABASE_URL": settings.database_url}
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, env=environment, start_new_session=True
    )
    with process:
        os.close(theirs)
        shown = b""
        # The blank comes once the terminal is ready: what is typed before that is thrown away.
        for prompt in (b"Password: ", b"Repeat for confirmation: "):
            while prompt not in shown:
                shown += os.read(ours, 1024)
            os.write(ours, _PASSWORD.encode() + b"\n")
        while chunk := _read(ours):
            shown += chunk
        assert process.wait(60) == 0
    os.close(ours)
    assert _PASSWORD.encode() not in shown
    assert _has(gate, _PASSWORD)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1024)
    except OSError:  # the other side is closed
        return b""
