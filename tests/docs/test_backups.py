"""What the docs print about backups does what it says, on both engines."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import orjson
import psycopg
import pytest

from tests.community import Community
from tests.conftest import runner
from tests.docs.test_pages import _BLOCK, between
from tests.service_process import environment
from trellis.compose import compose
from trellis.settings import Settings

PAGE: Final = (Path(__file__).parents[2] / "docs" / "backup-and-restore.md").read_text()
_TRELLIS: Final = Path(sys.executable).parent


def run(script: str, folder: Path, variables: dict[str, str]) -> str:
    ran = subprocess.run(["sh", "-ec", script], cwd=folder, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_a_backup_is_made_and_restored_as_printed(
    community: Community, settings: Settings, engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backing_up, restoring = _BLOCK.findall(between(PAGE, f"backup on {engine}"))
    variables, programs = environment(settings), [str(_TRELLIS), os.environ["PATH"]]
    if engine == "postgresql":
        programs.insert(0, str(request.getfixturevalue("postgresql").bin_path))  # of the server's version
        address = urlsplit(settings.database_url)
        variables["RESTORED_URL"] = urlunsplit(address._replace(path="/restored"))
    variables["PATH"] = os.pathsep.join(programs)

    run(backing_up, tmp_path, variables)
    gate = compose(settings)
    runner(gate)("forums.create", name="Later")
    gate.store.close()  # before a file is put in the place of this one
    try:
        assert "nothing is wrong" in run(restoring, tmp_path, variables)
        restored = variables | {"TRELLIS_DATABASE_URL": variables.get("RESTORED_URL", settings.database_url)}
        forums = orjson.loads(run("trellis run forums.list --json", tmp_path, restored))["results"]
        names = {forum["id"]: forum["name"] for forum in forums}
        assert (names[community.betas], "Later" in names.values()) == ("Betas", False)
    finally:
        if engine == "postgresql":
            with psycopg.connect(settings.database_url, autocommit=True) as connection:
                connection.execute("DROP DATABASE IF EXISTS restored WITH (FORCE)")


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_every_block_about_backups_is_run_here(engine: str) -> None:
    marked = [block for name in ("sqlite", "postgresql") for block in _BLOCK.findall(between(PAGE, f"backup on {name}"))]
    assert re.findall(r"```", PAGE) == ["```"] * 2 * len(marked)
