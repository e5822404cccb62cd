"""A new kind is one declaration: with no other edit it is in every door, with its five operations, its grants and its events."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
import pytest

from tests.api_client import ApiClient, read_field_errors, read_refusal
from tests.conftest import runner
from tests.database_state import DatabaseState
from tests.fixture_types import Clock, Run
from tests.service_process import environment
from tests.sweeps.galleries import GALLERIES
from trellis.compose import catalogue_of, compose
from trellis.core.gate import Gate
from trellis.core.verbs import STANDARD
from trellis.kinds import KINDS
from trellis.settings import Settings

NAMES: Final = [f"galleries.{verb.name}" for verb in STANDARD]
GRANTS: Final = sorted(o.name for o in catalogue_of((GALLERIES,)).grantable if o.kind is GALLERIES)
PATH: Final = GALLERIES.path

# Beside its declaration, a new kind needs one line: that in the list of kinds.
LISTED: Final = """
import json, sys
import trellis.kinds
from tests.sweeps.galleries import (GALLERIES)
trellis.kinds.KINDS = (*trellis.kinds.KINDS, GALLERIES)
from trellis.cli import main
for line in sys.stdin:  # one command after the other: to load them takes longer than to run them
    sys.argv[1:] = json.loads(line)
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, ended.code
    print("\\0", flush=True)
"""


@pytest.fixture
def gate(settings: Settings, clock: Clock) -> Iterator[Gate]:
    """The house with one kind more."""
    gate = compose(settings, (*KINDS, GALLERIES), clock)
    yield gate
    gate.store.close()


@pytest.fixture
def run(gate: Gate) -> Run:
    return runner(gate)


def test_its_five_operations_work_over_rest(api: ApiClient, database: DatabaseState) -> None:
    with database.new_events() as new_events:
        made = api.post(PATH, {"name": "Summer", "cols": 5, "permissions": {"view": "*"}})
        assert made.status_code == 201
        number = made.json()["id"]
        below = api.post(PATH, {"title": "Beach", "parentId": number}).json()
        assert below["path"] == "Summer > Beach"
        assert below["permissions"] == {"view": "*", "add": []}
        assert api.get(f"{PATH}/{number}").json() == made.json()
        assert [gallery["name"] for gallery in api.get(f"{PATH}?sortBy=position&parentId=root").json()["results"]] == ["Summer"]
        assert api.post(f"{PATH}/{number}", {"comments": False}).json()["comments"] is False
        assert read_field_errors(api.post(f"{PATH}/{number}", {"columns": 7, "colour": "red"})) == {
            "columns": "INVALID_VALUE",
            "colour": "UNKNOWN_PARAMETER",
        }
        read_refusal(api.delete(f"{PATH}/{number}"), 409, "HAS_CHILDREN")
        assert api.delete(f"{PATH}/{number}?deleteChildrenOrMove=-1").json() is None
        assert read_refusal(api.get(f"{PATH}/{number}"), 404, "INVALID_ID")["errorCode"] == "1G399/1"
    assert [event["operation"] for event in new_events()] == [
        f"galleries.{verb}" for verb in ("create", "create", "update", "delete")
    ]


def test_its_operations_can_be_granted_one_by_one(api: ApiClient, run: Run) -> None:
    assert set(NAMES) <= set(api.get("/core/hello").json()["key"]["operations"])
    reader = run("keys.create", name="Reader", grants=["galleries.list"])["key"]
    assert api.get(PATH, key=reader).status_code == 200
    assert (
        read_refusal(api.post(PATH, {"name": "Summer"}, key=reader), 403, "NO_PERMISSION")["missingOperation"] == "galleries.create"
    )
    assert run("keys.create", name="All", grants=["galleries.*"])["grants"] == GRANTS


def test_a_group_that_goes_is_taken_out_of_its_permissions(api: ApiClient, run: Run, database: DatabaseState) -> None:
    group = run("groups.create", name="Painters")["id"]
    number = api.post(PATH, {"name": "Summer", "permissions": {"add": [group, 3]}}).json()["id"]
    api.delete(f"/core/groups/{group}")
    assert api.get(f"{PATH}/{number}").json()["permissions"]["add"] == [3]
    assert database.events()[-1]["touched"] == [{"resource": "galleries", "id": number, "how": "changed"}]
    assert run("check.list")["problems"] == []


def test_it_stands_in_the_openapi_document_and_in_the_reference(api: ApiClient) -> None:
    document = api.get("/openapi.json", key=None).json()
    told = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "operationId" in operation
    }
    assert set(NAMES) <= told
    assert set(document["paths"][PATH]) >= {"get", "post"}
    page = api.get("/docs/galleries", key=None).text
    for text in (*NAMES, "Where pictures are shown.", "How many pictures stand side by side.", PATH):
        assert text in page


def test_it_is_in_the_command_line(api: ApiClient, settings: Settings, tmp_path: Path, database: DatabaseState) -> None:
    commands = (
        ("routes", "--json"),
        ("run", "galleries.create", "name=Winter", "cols=2", "permissions[view]=*", "--json"),
        ("keys", "create", "Painter", "--grant", "galleries.*", "--json"),
    )
    root = Path(__file__).parents[2]
    there = environment(settings) | {"PYTHONPATH": os.pathsep.join((str(root), str(root / "src")))}
    typed = b"\n".join(map(orjson.dumps, commands))
    with database.new_events() as new_events:
        done = subprocess.run(
            [sys.executable, "-c", LISTED], input=typed, cwd=tmp_path, env=there, capture_output=True, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    routes, made, key = map(orjson.loads, done.stdout.split(b"\0\n")[:-1])
    assert set(NAMES) <= {row["operation"] for row in routes}
    assert (made["name"], made["columns"], made["permissions"]["view"]) == ("Winter", 2, "*")
    assert key["grants"] == GRANTS
    assert [event["operation"] for event in new_events()] == ["galleries.create", "keys.create"]
    assert api.get(PATH, key=key["key"]).json()["results"][0]["name"] == "Winter"
