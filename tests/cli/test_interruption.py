"""Ctrl-C ends a command with status 130, and a message says what it has left."""

from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.cli.conftest import Trellis
from tests.community import Community
from tests.fixture_types import Events, Run
from tests.node_rows import write_by_hand
from trellis.cli import database
from trellis.cli.app import _COMMANDS, _LEFT, explain_interruption
from trellis.core.check import report
from trellis.settings import Settings


def press(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.either_engine
def test_of_each_command_it_is_known_what_it_leaves(trellis: Trellis) -> None:
    assert {words.split()[0] for words in _LEFT if words} == _COMMANDS.keys()
    for words in filter(None, _LEFT):
        names = [word for word in words.split() if not word.startswith("-")]
        shown = trellis(*names, "--help")
        assert shown.exit_code == 0, shown.output
        assert all(option in shown.stdout for option in words.split()[len(names) :])
    assert explain_interruption(["check", "--json", "--repair"]) == explain_interruption(["check", "--repair"])
    assert explain_interruption(["keys", "create", "list"]) != explain_interruption(["keys", "list"])


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("where", "arguments", "left"),
    [
        ("database.act", ("check",), "Nothing was changed."),
        ("database.Purges.run", ("purge",), "What was deleted stays deleted."),
        ("keys.list_all", ("keys", "list", "--json"), "Nothing was changed."),
        ("keys.act", ("keys", "create", "Sync"), "What it was to change is changed completely or not at all"),
        ("operations.running.act", ("run", "forums.create", "name=News"), "What it was to change is changed completely"),
        ("operations.undo.act", ("restore", "1"), "What it was to change is changed completely or not at all"),
        ("database.load_sample", ("demo",), "What was loaded stays."),
        ("structure.commands.act", ("export", "--output", "structure.yaml"), "The community was not changed"),
        ("structure.commands.act", ("apply", "structure.yaml", "--yes"), "The document was applied completely or not at all"),
        ("invision.commands.export_answers", ("export", "invision", "saved"), "The community was not changed"),
        ("invision.commands.read_saved", ("import", "invision", "--from", "saved"), "The community was not changed"),
        ("structure.commands.act", ("plan", "structure.yaml"), "Nothing was changed."),
    ],
)
def test_what_an_interrupted_command_leaves_is_said(
    trellis: Trellis, monkeypatch: pytest.MonkeyPatch, where: str, arguments: tuple[str, ...], left: str
) -> None:
    Path("structure.yaml").write_text("forums: []\n")
    before = {path.name for path in Path().iterdir()}
    monkeypatch.setattr(f"trellis.cli.{where}", press)

    result = trellis(*arguments)

    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.startswith(f"Interrupted. {left}")
    assert {path.name for path in Path().iterdir()} == before


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("command", [("backup", "copy.db"), ("backup", "restore", "copy.db")])
def test_an_interrupted_copy_is_not_left(trellis: Trellis, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    if is_restore := "restore" in command:
        trellis("backup", "copy.db")
    trellis("run", "forums.create", "name=News")
    before = {path.name for path in Path().iterdir()}
    monkeypatch.setattr("trellis.store.sqlite.copy", press)

    result = trellis(*command)

    assert result.exit_code == 130
    assert result.stderr.startswith(f"Interrupted. The database was {'replaced completely or not at all' if is_restore else 'not'}")
    assert {path.name for path in Path().iterdir()} == before
    assert '"totalResults": 1,' in trellis("run", "forums.list").stdout


def test_an_interrupted_repair_leaves_what_it_has_repaired(
    community: Community, settings: Settings, trellis: Trellis, run: Run, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is interrupted in its second batch, when that has written already."""
    monkeypatch.setattr("trellis.core.check.report._MAX_REPAIRS", 1)
    write_by_hand(settings, "UPDATE nodes SET name_key = 'x' WHERE kind = 'forums'")
    wrong = run("check.list")["count"]
    act, save = database.act, report._save_repaired

    def save_in_vain(*arguments: Any) -> NoReturn:
        save(*arguments)
        raise RuntimeError

    def act_twice(*arguments: Any, **options: Any) -> NoReturn:
        act(*arguments, **options)
        monkeypatch.setattr(report, "_save_repaired", save_in_vain)
        with pytest.raises(RuntimeError):
            act(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(database, "act", act_twice)
    before = len(events())

    result = trellis("check", "--repair")

    assert result.exit_code == 130
    assert result.stderr.startswith("Interrupted. Complete batches of 10,000 repairs stay")
    assert run("check.list")["count"] == wrong - 1
    assert len(events()) == before + 1

    monkeypatch.setattr(report, "_save_repaired", save)
    monkeypatch.setattr(database, "act", act)
    assert trellis("check", "--repair").exit_code == 0
