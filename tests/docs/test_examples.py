"""The programs in docs/examples, run as a user runs them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api_fixtures import MakeService, serve
from tests.conftest import NewSettings, runner
from tests.fixture_types import Events, MakeKey, Run
from tests.service_process import Service
from trellis.compose import compose
from trellis.core.structure import read_document

EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "examples"
HEAD: Final = "id,parent,name,description\n"
__all__ = ["serve"]  # a fixture
Done = subprocess.CompletedProcess[str]
Mirror = Callable[..., Done]


def run_example(name: str, *arguments: object, folder: Path, url: str, key: str) -> Done:
    """Run a program of the examples, with the address and the key that it is to use."""
    environment = os.environ | {"API_URL": f"{url}/api", "API_KEY": key}
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_what_an_example_reads_from_the_environment_does_not_keep_the_command_from_starting() -> None:
    programs = [file.read_text(encoding="utf-8") for file in EXAMPLES.glob("*.[pt][ys]")]
    assert len(programs) > 3
    read = {name for text in programs for name in re.findall(r"\benv(?:iron)?\b[^A-Z\n]*([A-Z][A-Z_]+)", text)}
    assert {"API_URL", "MAX_DELETES"} <= read
    assert not {name for name in read if name.startswith("TRELLIS_")}, "the command refuses to start with any that is no setting"


@pytest.fixture
def mirror(serve: MakeService, key: MakeKey, tmp_path: Path) -> Mirror:
    """Run the mirror over a CSV file."""
    service = serve()
    granted = key(["forums.list", "forums.create", "forums.update", "forums.delete"])

    def run_mirror(text: str, *options: str, mark: str = "") -> Done:
        file = tmp_path / "sections.csv"
        file.write_text(mark + HEAD + text, encoding="utf-8")
        return run_example("mirror_csv.py", file, *options, folder=tmp_path, url=service.address, key=granted)

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
    refused = mirror("a,,News,\nb,nowhere,Betas,\n")
    assert refused.returncode == 1
    assert refused.stderr.endswith("there is no forum with the external id 'csv-nowhere'.\n")
    assert len(refused.stderr.splitlines()) == 1
    assert paths(run) == []


def test_a_file_as_spreadsheets_write_it_is_read(mirror: Mirror, run: Run) -> None:
    """They begin UTF-8 with a byte order mark."""
    assert mirror("a,,Übersicht,\n", mark="\N{ZERO WIDTH NO-BREAK SPACE}").returncode == 0
    assert paths(run) == ["Übersicht"]


# --- from staging to live -----------------------------------------------------------------------------------------

READ: Final = ["*.list", "structure.export", "structure.plan"]
APPLY: Final = [*READ, "structure.apply", "forums.*", "calendars.*", "categories.*"]


@pytest.fixture
def staging(new_settings: NewSettings, tmp_path: Path) -> str:
    """Write the structure of a staging community into a file; give its text."""
    settings = new_settings()
    gate = compose(settings)
    run = runner(gate)
    news = run("forums.create", name="News", externalId="news", permissions={"view": "*", "read": [3]})["id"]
    run("forums.create", name="Betas", externalId="betas", parentId=news)
    run("calendars.create", name="Meetups", externalId="meetups")
    run("categories.create", name="Skins", externalId="skins")
    key = run("keys.create", name="Export", grants=READ)["key"]
    with Service(settings, tmp_path) as service:
        exported = run_example("staging_to_live.py", "export", "structure.yaml", folder=tmp_path, url=service.address, key=key)
        assert exported.returncode == 0, exported.stderr
        run("forums.create", name="Unnamed")
        refused = run_example("staging_to_live.py", "export", "other.yaml", folder=tmp_path, url=service.address, key=key)
        assert (refused.returncode, "has no external id" in refused.stderr) == (1, True)
    gate.store.close()
    return (tmp_path / "structure.yaml").read_text(encoding="utf-8")


class Workflow:
    """Runs the commands of the workflow's jobs as a runner would: with bash, in the folder of the repository."""

    def __init__(self, folder: Path, service: Service) -> None:
        self.folder = folder
        self._service = service
        self._jobs = read_document((EXAMPLES / "staging_to_live.yml").read_text(encoding="utf-8"))["jobs"]
        shutil.copy(EXAMPLES / "staging_to_live.py", folder)
        programs = folder / "bin"
        programs.mkdir()
        for name, line in (("gh", 'printf "%s\\n" "$*" >> gh.txt'), ("python3", f'exec {sys.executable} "$@"')):
            (programs / name).write_text(f"#!/bin/sh\n{line}\n")
            (programs / name).chmod(0o700)

    def run(self, job: str, key: str) -> Done:
        """Run the commands of a job, until one fails."""
        environment = os.environ | {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "API_URL": f"{self._service.address}/api",
            "API_KEY": key,
            "GITHUB_STEP_SUMMARY": "summary.md",
            "GITHUB_OUTPUT": "output.txt",
            "PULL_REQUEST": "7",
        }
        script = "\n".join(f"({step['run']}\n)" for step in self._jobs[job]["steps"] if "run" in step)
        command = ["bash", "-e", "-c", script]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def workflow(serve: MakeService, tmp_path: Path) -> Workflow:
    """Return the workflow, at a live community in which nothing is yet."""
    if not shutil.which("bash"):
        pytest.skip("the workflow is for bash")
    return Workflow(tmp_path, serve())


def test_what_was_planned_for_live_is_what_is_applied(
    staging: str, workflow: Workflow, key: MakeKey, run: Run, events: Events
) -> None:
    planned = workflow.run("plan", key(READ))
    assert planned.returncode == 0, planned.stderr
    comment = (workflow.folder / "summary.md").read_text()
    assert "+ create forums: News > Betas\n" in comment
    assert (workflow.folder / "output.txt").read_text() == "code=2\n"
    assert (workflow.folder / "gh.txt").read_text() == "pr comment 7 --body-file plan.md\n"
    assert paths(run) == []

    applied = workflow.run("apply", key(APPLY))
    assert (applied.returncode, applied.stderr) == (0, "")
    assert paths(run) == ["News", "News > Betas"]
    assert run("forums.list", name="Betas")["results"][0]["permissions"]["read"] == [3]

    number = len(events())
    assert workflow.run("plan", key(READ)).returncode == 0
    assert (workflow.folder / "output.txt").read_text() == "code=2\ncode=0\n"
    assert len(events()) == number + 1  # the new key


def test_a_plan_that_somebody_has_overtaken_is_not_applied(staging: str, workflow: Workflow, key: MakeKey, run: Run) -> None:
    workflow.run("plan", key(READ))
    run("forums.create", name="By hand")
    refused = workflow.run("apply", key(APPLY))
    assert refused.returncode == 1
    assert "1 change has been made since the plan" in refused.stderr
    assert paths(run) == ["By hand"]


def test_a_document_that_is_refused_fails_the_workflow(staging: str, workflow: Workflow, key: MakeKey) -> None:
    (workflow.folder / "structure.yaml").write_text(staging.replace("name: Betas", "nmae: Betas"), encoding="utf-8")
    refused = workflow.run("plan", key(READ))
    assert (refused.returncode, (workflow.folder / "output.txt").read_text()) == (1, "code=1\n")
    assert not (workflow.folder / "gh.txt").exists()


# --- taking back a night's work -----------------------------------------------------------------------------------


def test_what_a_key_did_in_a_night_is_taken_back(
    serve: MakeService, key: MakeKey, run: Run, events: Events, tmp_path: Path
) -> None:
    service = serve()
    sync, operator = key(["forums.*"]), key(["events.list", "forums.restore"])
    by_hand = run("forums.create", name="By hand")["id"]
    headers = {"Authorization": f"Bearer {sync}"}

    def write(method: str, path: str, **body: Any) -> Any:
        answer = service.client.request(method, path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer

    evening = write("POST", "forums/forums", name="Evening")
    since = json.loads(service.client.get("core/events?order=newest&limit=1", headers={"Authorization": f"Bearer {operator}"}).text)
    old = since["results"][0]["seq"]
    made = write("POST", "forums/forums", name="Night").json()["id"]
    write("POST", f"forums/forums/{made}", name="Late night")
    write("POST", f"forums/forums/{by_hand}", name="Overwritten")
    write("DELETE", f"forums/forums/{evening.json()['id']}")
    at = next(event["at"] for event in events() if event["seq"] == old + 1)

    def undo(*options: str) -> Done:
        key_id = next(event["actor"]["id"] for event in events() if event["seq"] == old)
        return run_example("undo_night.py", key_id, at, *options, folder=tmp_path, url=service.address, key=operator)

    wrong = run_example("undo_night.py", 1, "yesterday", folder=tmp_path, url=service.address, key=operator)
    assert (wrong.returncode, wrong.stderr.startswith("since must be a timestamp in ISO 8601")) == (1, True), wrong.stderr

    before = events()
    assert undo().stdout == "4 events would be undone.\n"
    assert events() == before

    run("forums.update", by_hand, name="Corrected")
    refused = undo("--yes")
    assert (refused.returncode, "3 others can be undone" in refused.stderr) == (1, True)
    assert "(forums.update) cannot be undone." in refused.stdout

    assert undo("--yes", "--skip-conflicts").stdout.endswith("3 events were undone.\n")
    assert paths(run) == ["Corrected", "Evening"]
    assert len({event["changeSet"] for event in events()[-3:]}) == 1
