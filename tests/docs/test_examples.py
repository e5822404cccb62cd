"""The programs in docs/examples, run as a user runs them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.api_fixtures import MakeService, serve
from tests.fixture_types import Events, MakeKey, Run

EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "examples"
HEAD: Final = "id,parent,name,description\n"
__all__ = ["serve"]  # a fixture
Mirror = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def mirror(serve: MakeService, key: MakeKey, tmp_path: Path) -> Mirror:
    """Run the mirror over a CSV file."""
    service = serve()
    granted = key(["forums.list", "forums.create", "forums.update", "forums.delete"])
    environment = os.environ | {"TRELLIS_URL": f"{service.address}/api", "TRELLIS_KEY": granted}

    def run_mirror(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "sections.csv"
        file.write_text(HEAD + text, encoding="utf-8")
        command = [sys.executable, str(EXAMPLES / "mirror_csv.py"), str(file), *options]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    return run_mirror


def paths(run: Run) -> list[str]:
    return sorted(one["path"] for one in run("forums.list", perPage=1000)["results"])


def test_a_mirror_of_a_csv(mirror: Mirror, run: Run, events: Events) -> None:
    run("forums.create", name="By hand")
    first = mirror("a,,News,What is new\nb,a,Betas,\nc,,Help,\n")
    assert (first.returncode, first.stdout.splitlines()[0]) == (0, "3 of 3 forums were new or had changed."), first.stderr
    assert paths(run) == ["By hand", "Help", "News", "News > Betas"]

    before = events()
    assert mirror("a,,News,What is new\nb,a,Betas,\nc,,Help,\n").stdout.startswith("0 of 3 ")
    assert events() == before

    renamed = mirror("c,,Questions,\na,,News,What is new\nb,c,Betas,\n")
    assert renamed.stdout.startswith("2 of 3 "), renamed.stderr
    assert paths(run) == ["By hand", "News", "Questions", "Questions > Betas"]


def test_an_emptied_file_deletes_nothing(mirror: Mirror, run: Run) -> None:
    mirror("a,,News,\nb,a,Betas,\n")
    assert mirror("").returncode != 0
    kept = mirror("a,,News,\n")
    assert "--delete 1" in kept.stderr
    assert paths(run) == ["News", "News > Betas"]
    assert mirror("a,,News,\n", "--delete", "1").returncode == 0
    assert paths(run) == ["News"]


def test_a_refused_row_changes_nothing(mirror: Mirror, run: Run) -> None:
    assert mirror("a,,News,\nb,nowhere,Betas,\n").returncode != 0
    assert paths(run) == []
