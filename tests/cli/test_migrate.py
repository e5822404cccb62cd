"""`trellis migrate`."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Environment, Trellis
from tests.wait import wait_until
from trellis.settings import Settings
from trellis.store.migrate import migrate
from trellis.store.steps import find_newest_step, find_step


def test_it_brings_an_empty_database_to_the_newest_step_and_then_does_nothing(
    cli: Trellis, nowhere: Environment, empty_database: Settings
) -> None:
    nowhere(database_url=empty_database.database_url)

    first, second = cli("migrate"), cli("migrate")

    assert first.exit_code == second.exit_code == 0
    assert first.stdout.startswith("Ran step 0001.\n")
    assert first.stdout.endswith(" is ready.\n")
    assert second.stdout.startswith("Nothing to do: ")
    assert second.stdout.count("\n") == 1
    assert find_step(empty_database) == find_newest_step()


def test_one_that_takes_long_shows_progress_beside_the_output(
    cli: Trellis, nowhere: Environment, empty_database: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere(database_url=empty_database.database_url)
    monkeypatch.setattr("trellis.cli.terminal._PATIENCE", 0.0)
    monkeypatch.setattr("trellis.cli.terminal._PAUSE", 0.05)

    def migrate_slowly(*arguments: Any, **more: Any) -> int:
        said: Any = sys.stderr.buffer  # in memory: it is that of Typer's runner
        wait_until(said.getvalue)
        number = migrate(*arguments, **more)
        wait_until(lambda: b"finishing" in said.getvalue())
        return number

    monkeypatch.setattr("trellis.cli.database.migrate", migrate_slowly)
    result = cli("migrate")
    assert re.fullmatch(
        r"(Migrating: \d+ s so far\n)+(Migrating: \d+ of \d+\n)*(Migrating: (\d+) of \4, finishing\n)+", result.stderr
    )
    assert result.stdout.startswith("Ran step 0001.\n")


def test_it_leaves_what_is_there(trellis: Trellis) -> None:
    trellis("run", "forums.create", "name=News")

    assert trellis("migrate").exit_code == 0
    assert '"name": "News"' in trellis("run", "forums.get", "id=1").stdout


def test_a_plan_says_what_would_be_done_and_whether_there_is_something(
    cli: Trellis, nowhere: Environment, engine: str, empty_database: Settings
) -> None:
    migrate(empty_database, to="0021")
    nowhere(database_url=empty_database.database_url)

    planned, as_json = cli("migrate", "--plan"), cli("migrate", "--plan", "--json")

    assert planned.exit_code == as_json.exit_code == 3
    assert "0022  < 1 s     reads and writes      Adds presets of keys" in planned.stdout
    assert "0021 " not in planned.stdout
    assert bool(re.search("and so do reads of .*api_keys, ", planned.stdout)) == (engine == "postgresql")
    assert "still works with the database afterwards" in planned.stdout
    assert "- paused keys, and keys with a limit for each day\n" in planned.stdout
    assert planned.stdout.endswith("Nothing was changed.\n")
    plan = json.loads(as_json.stdout)
    assert (plan["at"], plan["newest"], plan["oldReleaseWrites"]) == ("0021", find_newest_step(), True)
    assert plan["steps"][0]["step"] == "0022"
    assert find_step(empty_database) == "0021"

    assert cli("migrate").exit_code == 0
    nothing = cli("migrate", "--plan")
    assert (nothing.exit_code, nothing.stdout.startswith("Nothing to do: ")) == (0, True)


def test_a_plan_for_no_database_makes_none(cli: Trellis, nowhere: Environment) -> None:
    nowhere(database_url="sqlite:///new/trellis.db")

    planned = cli("migrate", "--plan")

    assert planned.exit_code == 3
    assert planned.stdout.startswith("The database new/trellis.db has no tables yet. ")
    assert not Path("new").exists()
    misused = cli("migrate", "--json")
    assert (misused.exit_code, misused.stderr) == (2, "--json is for --plan.\n")
