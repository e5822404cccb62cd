"""The command line as its user has it: called by name, with settings from the environment, in a folder of its own."""

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import orjson
import pytest
from typer import testing

from tests.wait import GIVE_UP, wait_until
from trellis.cli import community, terminal
from trellis.cli.app import app
from trellis.core.gate import Result
from trellis.settings import PREFIX, Settings

Environment = Callable[..., None]


class Trellis(Protocol):
    """Runs the command line: `trellis("keys", "list")`. An error that it should have explained is raised."""

    def __call__(self, *arguments: object) -> testing.Result: ...


class TrellisJson(Protocol):
    """Runs the command line, which must succeed, with --json; gives what it printed, read."""

    def __call__(self, *arguments: object) -> Any: ...


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Stand in a folder without a .env file; give a function that sets settings by their names.

    Commands show no progress, however slow the machine is, unless a test wants to see it.
    """
    monkeypatch.setattr(terminal, "_PATIENCE", GIVE_UP)
    folder = tmp_path / "somewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def environment(**settings: str) -> None:
        for name, value in settings.items():
            monkeypatch.setenv(PREFIX + name.upper(), value)

    return environment


@pytest.fixture
def made_durable(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, list[str]]]:
    """Note each file or folder that is made durable, with the names in it at that time."""
    noted: list[tuple[Path, list[str]]] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        noted.append((path, sorted(one.name for one in path.iterdir()) if path.is_dir() else []))

    monkeypatch.setattr(os, "fsync", note)
    return noted


@pytest.fixture
def cli(nowhere: Environment, monkeypatch: pytest.MonkeyPatch) -> Trellis:
    """Return the command line, with no settings; the log of the test run stays as it is."""
    monkeypatch.setattr("trellis.cli.serve.configure_logs", lambda _settings: None)
    runner = testing.CliRunner()
    return lambda *arguments: runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture
def slowly(nowhere: Environment, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs an operation as the commands do, for so long that its progress is shown once, when all is done. After `nowhere`."""
    done, show = threading.Event(), terminal._show

    def show_when_done(*arguments: Any) -> None:
        done.wait(60)
        show(*arguments)

    def act_slowly(*arguments: Any, **options: Any) -> Result:
        result = community.act(*arguments, **options)
        said: Any = sys.stderr.buffer  # in memory: it is that of Typer's runner
        done.set()
        wait_until(said.getvalue)
        done.clear()
        return result

    monkeypatch.setattr(terminal, "_PATIENCE", 0.0)
    monkeypatch.setattr(terminal, "_show", show_when_done)
    return act_slowly


@pytest.fixture
def trellis(cli: Trellis, nowhere: Environment, settings: Settings) -> Trellis:
    """Return the command line over a new, migrated database."""
    nowhere(database_url=settings.database_url, community_url=settings.community_url)
    return cli


@pytest.fixture
def trellis_json(trellis: Trellis) -> TrellisJson:
    """Return the command line over a new, migrated database, as a program uses it."""

    def run(*arguments: object) -> Any:
        result = trellis(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return orjson.loads(result.stdout)

    return run
