"""`trellis run` and `trellis routes`."""

import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.conftest import Environment, Trellis, TrellisJson
from tests.cli.structure.conftest import Screen
from tests.community import ENDPOINTS, Community
from tests.fixture_types import Events, MakeKey, Run
from tests.forked import ForkedProcess
from tests.service_process import environment
from tests.wait import GIVE_UP, wait_until
from trellis.cli import main
from trellis.cli.app import app
from trellis.compose import catalogue_of
from trellis.core.actor import Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.core.structure import read_document
from trellis.kinds import KINDS
from trellis.settings import Settings, variable
from trellis.store.engine import Transaction


def test_run_prints_the_record_as_json(trellis: Trellis) -> None:
    result = trellis("run", "forums.create", "name=News", "minContent=3")

    assert result.exit_code == 0
    assert result.stderr == ""
    record = orjson.loads(result.stdout)
    assert (record["id"], record["name"], record["minContent"]) == (1, "News", 3)


def test_run_leaves_the_event_that_a_key_would_leave(trellis: Trellis, gate: Gate, run: Run, events: Events) -> None:
    key = Actor("key", 1, "Plugin")
    gate.run(Call("forums.create", key, {"name": "News"}, request_id="r-1", reason="Spring"))
    trellis("run", "forums.create", "name=News", "--reason", "Spring")

    of_key, of_terminal = events()
    assert of_terminal["actor"] == {"type": "terminal", "id": None, "name": "terminal"}
    assert len(of_terminal["requestId"]) == 32
    own = {"seq", "at", "actor", "requestId", "resourceId", "after"}
    assert {n: v for n, v in of_key.items() if n not in own} == {n: v for n, v in of_terminal.items() if n not in own}
    own = {"id", "url", "position", "createdAt", "updatedAt"}
    of_key, of_terminal = of_key["after"], of_terminal["after"]
    assert {n: v for n, v in of_key.items() if n not in own} == {n: v for n, v in of_terminal.items() if n not in own}


@pytest.mark.usefixtures("community")
def test_no_operation_fails_the_command(engine: str, trellis: Trellis) -> None:
    """Half of the operations run on the one engine, and the others on the other one."""
    for name, operation in list(catalogue_of(KINDS).items())[engine == "sqlite" :: 2]:
        takes_ids = any(field.name == "ids" for field in operation.takes)
        for parameters in ([], ["ids=1,2"]) if takes_ids else ([],):
            result = trellis("run", name, *(["1"] if operation.has_target else []), *parameters)  # which raises what is no refusal
            if result.exit_code == 0:
                orjson.loads(result.stdout)


def test_the_feed_is_waited_for(trellis: Trellis, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, Any]] = []
    monkeypatch.setattr("trellis.cli.operations.running.sleep", lambda _: made.append(run("forums.create", name="News")))
    found = orjson.loads(trellis("run", "events.list", "after=0", "wait=30").stdout)
    assert [event["operation"] for event in found["results"]] == ["forums.create"]
    assert orjson.loads(trellis("run", "events.list", "after=1", "wait=0").stdout)["results"] == []
    assert len(made) == 1


def test_what_is_no_json_is_printed_as_it_is(trellis: Trellis) -> None:
    result = trellis("run", "structure.export", "format=yaml")
    assert result.exit_code == 0
    assert result.stdout.startswith("# ")
    assert read_document(result.stdout)["format"] == "trellis/1"


@pytest.mark.either_engine
def test_brackets_and_json_values(trellis_json: TrellisJson) -> None:
    record = trellis_json(
        "run", "forums.create", "name=News", "permissions[view]=*", "permissions[read][]=3", "permissions[read][]=4",
        "permissions[add]:=[4]", "theme:=null", "canSeeOthers:=false", "description=a=b:=c",
    )  # fmt: skip

    assert record["permissions"] == {"view": "*", "read": [3, 4], "add": [4], "reply": [], "attachments": []}
    assert record["canSeeOthers"] is False
    assert record["description"] == "a=b:=c"
    whole = trellis_json("run", "forums.update", "id=1", 'permissions:={"view": [3], "reply": "*"}')
    assert (whole["permissions"]["view"], whole["permissions"]["reply"]) == ([3], "*")


def test_an_id_is_the_target_of_operations_that_have_one(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("run", "calendars.create", "name=Meetups")

    assert trellis_json("run", "calendars.update", "id=1", "name=Trips")["name"] == "Trips"
    assert trellis_json("run", "calendars.get", "id=1")["name"] == "Trips"
    assert trellis_json("run", "calendars.list", "ids=1")["totalResults"] == 1
    assert trellis("run", "calendars.delete", "id=1").stdout == "null\n"
    assert trellis("run", "calendars.get", "id=1").exit_code == 1


@pytest.mark.either_engine
def test_the_id_may_stand_alone(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("run", "calendars.create", "name=Meetups")

    assert trellis_json("run", "calendars.get", "1")["name"] == "Meetups"
    assert trellis_json("run", "calendars.update", "1", "name=Trips")["name"] == "Trips"
    assert trellis("run", "calendars.list", "1").exit_code == 2


def test_a_dry_run_prints_the_plan_and_keeps_nothing(trellis: Trellis, trellis_json: TrellisJson) -> None:
    trellis("run", "forums.create", "name=News")

    plan = trellis_json("run", "forums.delete", "id=1", "dryRun=1")

    assert plan["deleted"] == {"count": 1, "ids": [1]}
    assert trellis("run", "forums.get", "id=1").exit_code == 0


def test_groups_and_blogs_are_made_this_way(trellis_json: TrellisJson) -> None:
    assert trellis_json("run", "groups.create", "name=Moderators", "prefix=<b>", "suffix=</b>")["id"] == 5
    assert trellis_json("run", "blogs.create", "name=Notebook", "groups:=[5]")["groups"] == [5]


@pytest.mark.either_engine
def test_a_refusal_names_every_field_on_stderr(trellis: Trellis, events: Events) -> None:
    result = trellis("run", "calendars.create", "color=blue", "approveEvents=perhaps", "colour=red")

    assert result.exit_code == 1
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[0] == "NO_TITLE: A name is needed."
    assert lines[1].startswith("  name is needed: ")
    assert lines[2] == "  color must be a colour as #RRGGBB, such as #3B82F6, not 'blue'."
    assert lines[3] == "  approveEvents must be true or false (or 1 or 0), not 'perhaps'."
    assert lines[4] == "  colour: There is no parameter 'colour'. Did you mean color?"
    assert events() == []


def test_children_that_are_in_the_way(trellis: Trellis) -> None:
    trellis("run", "forums.create", "name=News")
    trellis("run", "forums.create", "name=Releases", "parentId=1")

    result = trellis("run", "forums.delete", "id=1")

    assert result.exit_code == 1
    assert result.stderr.startswith("HAS_CHILDREN: 'News' has 1 child. Send deleteChildrenOrMove=-1")
    assert trellis("run", "forums.delete", "id=1", "deleteChildrenOrMove=-1").exit_code == 0


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("forum.create",), 1, "There is no operation 'forum.create'. Did you mean forums.create?"),
        (("dance",), 1, "There is no operation 'dance'. `trellis routes` lists them."),
        (("forums.get",), 2, "forums.get is about one record: pass its id as a whole number, such as id=5."),
        (("forums.get", "id=first"), 2, "pass its id as a whole number"),
        (("keys.pause", "Calendar sync"), 2, "such as id=5. `trellis run keys.list` lists the ids."),
        (("forums.create", "News"), 2, "'News' is not a parameter. Write name=value, or name:=JSON."),
        (("forums.create", "name=A", "theme:=[1"), 2, "The value of theme is not JSON"),
        (("forums.create", "name=A", "name=B"), 1, "'name' is sent more than once"),
        (("forums.create", "name=A\udcff"), 2, "is not valid UTF-8"),
        (("forums.create", "na\udcffme=A"), 2, "is not valid UTF-8"),
    ],
)  # fmt: skip
def test_what_is_typed_wrongly(trellis: Trellis, arguments: tuple[str, ...], code: int, expected: str) -> None:
    result = trellis("run", *arguments)

    assert result.exit_code == code
    assert expected in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # what is sent is refused before the database is asked
def test_every_operation_of_the_catalogue_can_be_run(trellis: Trellis, tmp_path: Path) -> None:
    catalogue = catalogue_of(KINDS)
    assert len(catalogue) >= 34
    (tmp_path / "password").write_text("kept in a tin box")
    for name, operation in catalogue.items():
        secrets = [f"{field.name}=@{tmp_path}/password" for field in operation.takes if field.is_secret]
        named = [f"{operation.path_field.name}=x"] if operation.path_field else []
        result = trellis("run", name, "id=1", "nonsense=1", *named, *secrets)
        assert result.exit_code == 1, name
        assert "There is no " in result.stderr, name  # parameter, or record with this id


def test_routes_lists_the_nineteen_hello_ours_and_those_that_the_api_does_not_serve(cli: Trellis) -> None:
    shown, listed = cli("routes").stdout, orjson.loads(cli("routes", "--json").stdout)

    assert len([row for row in listed if row["path"] is not None]) == ENDPOINTS
    assert {row["operation"] for row in listed} == set(catalogue_of(KINDS))
    assert listed[0] == {
        "operation": "core.hello",
        "method": "GET",
        "path": "/core/hello",
        "also": [],
        "access": "any key",
        "summary": "Say hello",
    }
    ours = {row["operation"]: (row["method"], row["path"], row["access"]) for row in listed}
    assert ours["events.list"] == ("GET", "/core/events", "granted")
    assert ours["events.restore"] == ("POST", "/core/events/{id}/restore", "granted by resource")
    for row in listed:
        line = next(line for line in shown.splitlines() if line.strip().startswith(row["operation"] + " "))
        assert (row["method"] or "–") in line
        assert all(path in line for path in (row["path"] or "–", *row["also"]))
    assert ours["keys.create"] == (None, None, "panel and terminal")


def test_run_lists_all_operations_and_says_what_one_takes_without_a_database(cli: Trellis) -> None:
    listed = cli("run", "--list").stdout.splitlines()[2:]
    assert [line.split()[0] for line in listed] == list(catalogue_of(KINDS))
    for name, operation in catalogue_of(KINDS).items():
        said = cli("run", name, "--help")
        assert said.exit_code == 0
        assert operation.summary in said.stdout
        for field in operation.takes:
            assert (f"\n{field.name} " in said.stdout) is not field.read_only

    assert "Did you mean forums.create?" in cli("run", "forum.create", "--help").stderr
    alone = cli("run")
    assert (alone.exit_code, alone.stderr.strip()) == (2, "Which operation? trellis run --list lists them.")
    assert "NAME=VALUE" in alone.stdout


def test_openapi_prints_the_document_for_the_address_it_is_served_under(cli: Trellis, nowhere: Environment) -> None:
    plain = orjson.loads(cli("openapi").stdout)
    nowhere(public_url="https://api.example/")
    public = orjson.loads(cli("openapi").stdout)

    assert plain["openapi"].startswith("3.1")
    assert plain["servers"] == [{"url": "http://localhost:8000/api"}]
    assert public["servers"] == [{"url": "https://api.example/api"}]
    operations = {operation["operationId"] for path in plain["paths"].values() for operation in path.values()}
    assert len(operations) == ENDPOINTS


@pytest.mark.either_engine
def test_a_slow_run_shows_its_progress_beside_the_output(
    community: Community, run: Run, trellis: Trellis, monkeypatch: pytest.MonkeyPatch, slowly: Callable[..., Any]
) -> None:
    monkeypatch.setattr("trellis.cli.operations.running.act", slowly)
    seen = run("forums.get", community.news)

    read = trellis("run", "forums.get", f"id={community.news}")
    delete = trellis("run", "forums.delete", f"id={community.news}", "deleteChildrenOrMove=-1")

    assert orjson.loads(read.stdout) == seen
    assert re.fullmatch(r"Running forums.get: \d+ s so far\n", read.stderr)
    assert delete.stdout == "null\n"
    assert delete.stderr == "Running forums.delete: 4 of 4, finishing\n"


def run_interruptibly() -> None:
    """Run the command: what a shell starts in the background ignores SIGINT, and so does all that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()


def test_what_is_interrupted_is_not_done_after_all(gate: Gate, run: Run, settings: Settings, tmp_path: Path) -> None:
    begun, over = threading.Event(), threading.Event()

    def keep_others_waiting(_tx: Transaction) -> None:
        begun.set()
        over.wait(GIVE_UP)

    held = gate.store.write(keep_others_waiting, quiet=True)
    assert begun.wait(GIVE_UP)
    patient = {**environment(settings), variable("busy_timeout"): "600"}
    (output := tmp_path / "output").touch()
    process = ForkedProcess(("run", "forums.create", "name=Later"), tmp_path, patient, output, run_interruptibly)
    try:
        wait_until(output.read_text)
        assert output.read_text().startswith("Running forums.create: ")
        process.send_signal(signal.SIGINT)
        assert process.wait(GIVE_UP / 2) == 130
    finally:
        process.kill()
        over.set()
        held.result()
    assert run("forums.list", search="Later")["totalResults"] == 0


def test_a_reason_is_kept_as_everywhere(trellis: Trellis, run: Run, events: Events) -> None:
    key = str(run("keys.create", name="Plugin")["key"])
    trellis("run", "forums.create", "name=News", "--reason", f"Leaked {key}\n in \udcff\x1b[2J a chat. {'x' * 400}")
    trellis("keys", "revoke", "1", "--reason", f"Leaked: {key}")
    trellis("run", "forums.create", "name=Old", "--reason", "\udcff")
    public = key.split("_")[1]
    told = [event["reason"] for event in events()]
    assert told[:3] == [None, f"Leaked trl_{public}_[hidden] in [2J a chat. {'x' * 400}", f"Leaked: trl_{public}_[hidden]"]
    assert told[3] is None


@pytest.mark.parametrize(
    "command",
    [
        ("keys", "show"),
        ("keys", "revoke"),
        ("restore",),
        ("restore", "--change-set"),
        ("restore", "--since", "1h", "--key"),
        ("run", "forums.get"),
    ],
)
@pytest.mark.parametrize("number", [2**63, 10**30])
def test_an_id_that_is_too_large_is_one_that_there_is_not(trellis: Trellis, command: tuple[str, ...], number: int) -> None:
    result = trellis(*command, f"id:={number}" if command[0] == "run" else number)

    assert (result.exit_code, result.stdout) == (1, "")
    assert re.fullmatch(rf"INVALID_ID: There is no [a-z ]+ with the id {number}\.\n", result.stderr)


def test_an_id_far_below_zero_is_one_that_there_is_not(trellis: Trellis) -> None:
    result = trellis("run", "forums.get", f"id:={-(10**30)}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"INVALID_ID: There is no forum with the id {-(10**30)}.\n"


@pytest.mark.parametrize(
    ("operation", "called"),
    [
        ("admins.get", "administrator"),
        ("changesets.restore", "change set"),
        ("deliveries.get", "delivery"),
        ("filters.delete", "saved filter"),
        ("categories.get", "download category"),
    ],
)
@pytest.mark.parametrize("number", [999, 10**30])
def test_a_record_that_there_is_not_is_called_what_it_is(trellis: Trellis, operation: str, called: str, number: int) -> None:
    assert f"There is no {called} with the id {number}." in trellis("run", operation, f"id:={number}").stderr


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_reason_that_is_too_long_is_refused_as_by_the_api(trellis: Trellis, key: MakeKey, events: Events) -> None:
    key("forums.list")
    before = events()
    for command in ("run groups.create name=News", "restore 1", "apply site.yaml --yes", "keys revoke 1", "keys pause 1"):
        refused = trellis(*command.split(), "--reason", "x" * 501)
        assert (refused.exit_code, refused.stderr) == (
            1,
            "INVALID_VALUE: A value is not allowed.\n  reason is 501 characters long; at most 500 are allowed.\n",
        )
    assert events() == before
    assert trellis("run", "groups.create", "name=News", "--reason", "x" * 500).exit_code == 0


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_document_at_a_terminal_cannot_turn_what_is_around_it(
    trellis: Trellis, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("forums.create", name="News", description="<p>\u202esdrawkcab</p>")
    assert "\u202e" in trellis("export").stdout
    for command in (["run", "structure.export", "format=yaml"], ["export"], ["export", "--json"]):
        monkeypatch.setattr("sys.stdout", screen := Screen())
        with pytest.raises(SystemExit):
            app(command)
        assert ("\u202e" in screen.getvalue(), "sdrawkcab" in screen.getvalue()) == (False, True)
