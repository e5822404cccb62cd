"""`make serve` writes down which database it serves, unless that is said already."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
LINE: Final = "TRELLIS_DATABASE_URL=sqlite:///var/trellis.db"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in which everything is installed, with a program that serves nothing."""
    if not shutil.which("make"):
        pytest.skip("there is no make on the PATH")
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", "requirements/runtime.txt", ".venv/bin/python", ".venv/bin/trellis", ".venv/.runtime"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('#!/bin/sh\necho "$@"\n')
        file.chmod(0o755)
    return tmp_path


def make_serve(checkout: Path, **environment: str) -> str:
    """Run it, and return what the settings file says."""
    made = subprocess.run(
        ["make", "serve"], cwd=checkout, env={"PATH": "/usr/bin:/bin"} | environment, capture_output=True, text=True, check=True
    )
    assert made.stdout == "serve --demo --port 8000\n"
    file = checkout / ".env"
    return file.read_text() if file.exists() else ""


def test_the_database_that_is_served_is_written_down_once(checkout: Path) -> None:
    (checkout / ".env").write_text("TRELLIS_COMMUNITY_NAME=Lantern")
    written = make_serve(checkout)
    assert written == f"TRELLIS_COMMUNITY_NAME=Lantern\n{LINE}\n"
    assert make_serve(checkout) == written


@pytest.mark.parametrize(
    "line",
    [
        "TRELLIS_DATABASE_URL=sqlite:///other.db",
        "\texport\tTRELLIS_DATABASE_URL = sqlite:///other.db",
        "TRELLIS_DATABASE_URL_FILE=/run/secrets/database",
    ],
)
def test_nothing_is_added_to_a_database_that_is_set(checkout: Path, line: str) -> None:
    (checkout / ".env").write_text(f"{line}\n")
    assert make_serve(checkout) == f"{line}\n"
    (checkout / ".env").unlink()
    name, _, value = line.removeprefix("\texport\t").partition("=")
    assert make_serve(checkout, **{name.strip(): value.strip()}) == ""
