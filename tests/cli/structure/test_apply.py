"""`trellis apply`."""

import os
import pty
import stat
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import IO, Any

import orjson
import pytest

from tests.cli.conftest import Trellis, TrellisJson
from tests.cli.structure.conftest import FORUMS, HEAD, Screen, Write
from tests.database_state import DatabaseState
from tests.fixture_types import Events, Run
from tests.wait import wait_until
from trellis.cli.app import app
from trellis.cli.community import act
from trellis.core.gate import Gate, Result
from trellis.settings import Settings

KEYS = f"{HEAD}keys:\n- {{name: Mirror, grants: [forums.list]}}\n- {{name: Feed, grants: [events.list], rateLimit: 5}}\n"


@pytest.fixture
def unchanged(gate: Gate) -> Callable[[], Any]:
    """See that nothing is changed."""
    return DatabaseState(gate).unchanged


def paths(run: Run) -> list[str]:
    return sorted(one["path"] for one in run("forums.list", perPage=1000)["results"])


def test_it_is_one_change_set_that_can_be_undone(trellis: Trellis, write: Write, run: Run, events: Events) -> None:
    result = trellis("apply", write(FORUMS), "--yes", "--reason", "first")

    number = events()[-1]["changeSet"]
    assert (result.exit_code, result.stderr) == (0, "")
    assert (
        result.stdout
        == f"""+ create  forums  News
+ create  forums  News > Betas
+ create  forums  Help
3 to create, 0 to update, 0 to move, 0 to delete.
3 created, 0 updated, 0 moved, 0 deleted.
To undo it: trellis restore --change-set {number}
"""
    )
    assert [(event["changeSet"], event["reason"]) for event in events()] == [(number, "first")] * 3
    assert paths(run) == ["Help", "News", "News > Betas"]

    again = trellis("apply", "site.yaml", "--yes")
    assert (again.exit_code, again.stdout) == (0, "Nothing to do: the community matches the document.\n")
    assert trellis("restore", "--change-set", number).exit_code == 0
    assert paths(run) == []


def test_a_plan_is_carried_out_as_it_was_seen(trellis: Trellis, site: Path, write: Write, run: Run) -> None:
    document = write(FORUMS.replace("Betas", "Previews"))
    trellis("plan", document, "--output", "plan.json")
    token = orjson.loads(Path("plan.json").read_bytes())["plan"]

    run("calendars.create", name="Meetups")  # of which the document says nothing
    result = trellis("apply", document, "--plan", "plan.json")
    assert result.exit_code == 0
    assert result.stdout.startswith("~ update  forums  News > Previews\n    name: Betas → Previews\n0 created, 1 updated, ")
    assert paths(run) == ["Help", "News", "News > Previews"]

    again = trellis("apply", document, "--plan", token)
    assert again.exit_code == 1
    assert again.stderr.startswith("PLAN_OUTDATED: 1 change has been made since the plan")


def test_a_plan_is_refused_with_what_has_changed_since(
    trellis: Trellis, site: Path, write: Write, run: Run, events: Events, unchanged: Any
) -> None:
    document = write(FORUMS.replace("Betas", "Previews"))
    trellis("plan", document, "--output", "plan.json")
    for name in ("A", "B"):
        run("forums.create", name=name)
    made = events()[-2:]

    with unchanged():
        refused = trellis("apply", document, "--plan", "plan.json")

    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[1:] == [
        f"  event {one['seq']}, {one['at']}: forums.create of forums {one['resourceId']}" for one in made
    ]


def test_another_document_is_not_what_was_planned(trellis: Trellis, site: Path, write: Write, unchanged: Any) -> None:
    trellis("plan", write(FORUMS.replace("Betas", "Previews")), "--output", "plan.json")
    with unchanged():
        refused = trellis("apply", write(FORUMS.replace("Betas", "Others")), "--plan", "plan.json")
    assert (refused.exit_code, refused.stderr.startswith("PLAN_DIFFERS")) == (1, True)


def test_a_plan_is_of_all_that_is_given_and_not_of_its_file(trellis: Trellis, write: Write, unchanged: Any, run: Run) -> None:
    text = f"{HEAD}forums:\n- externalId: a\n  name: A\n  permissions: {{view: []}}\n"
    trellis("plan", write(text), "--output", "plan.json")
    with unchanged():
        refused = trellis("apply", write(text.replace("[]", '"*"')), "--plan", "plan.json")
    assert (refused.exit_code, refused.stderr.startswith("PLAN_DIFFERS")) == (1, True)
    assert trellis("apply", write(f"# moved\n{text}", "moved.yaml"), "--plan", "plan.json").exit_code == 0
    assert run("forums.get", 1)["permissions"]["view"] == []


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "is neither the name of a plan nor a file"), ("{}", "is not a plan"), ("[", "is not a plan"), ("[1]", "is not a plan")],
)
def test_what_is_no_plan_is_told(trellis: Trellis, site: Path, content: str | None, told: str) -> None:
    if content is not None:
        Path("plan.json").write_text(content)
    refused = trellis("apply", site, "--plan", "plan.json")
    assert (refused.exit_code, told in refused.stderr) == (1, True)


@pytest.mark.either_engine
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_without_a_terminal_nothing_is_done_unasked(
    trellis: Trellis, write: Write, unchanged: Any, options: tuple[str, ...]
) -> None:
    with unchanged():
        refused = trellis("apply", write(FORUMS), *options)
    assert (refused.exit_code, "--yes" in refused.stderr) == (1, True)


@pytest.mark.either_engine
@pytest.mark.parametrize(("answer", "code", "made"), [("y", 0, True), ("n", 1, False)])
def test_at_a_terminal_it_asks(write: Write, settings: Settings, run: Run, answer: str, code: int, made: bool) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "trellis", "apply", str(write(FORUMS))]
    environment = {**os.environ, "TRELLIS_DATABASE_URL": settings.database_url}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True) as process:
        os.close(theirs)
        shown = b""
        while b"Do this? [y/N]: " not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, f"{answer}\n".encode())
        while chunk := _read(ours):
            shown += chunk
        assert process.wait(60) == code
    os.close(ours)
    assert (b"3 to create" in shown, b"3 created" in shown, b"Nothing was done." in shown) == (True, made, not made)
    assert bool(paths(run)) == made


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1024)
    except OSError:  # the other side is closed
        return b""


def test_json_tells_what_was_done(trellis_json: TrellisJson, write: Write, events: Events) -> None:
    done = trellis_json("apply", write(FORUMS), "--yes")
    last = events()[-1]
    assert (done["counts"]["create"], done["event"], done["changeSet"]) == (3, last["seq"], last["changeSet"])
    again = trellis_json("apply", "site.yaml", "--yes")
    assert (again["changes"], again["event"], again["changeSet"]) == ([], None, None)


def test_passwords_come_from_the_environment_and_stay_the_same(
    trellis: Trellis, write: Write, run: Run, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = write(
        f"{HEAD}forums:\n- externalId: a\n  name: A\n  children:\n  - externalId: b\n    name: B\n    password: {{env: PW}}\n"
    )
    monkeypatch.setenv("PW", "open sesame")
    result = trellis("apply", document, "--yes")
    assert [run("forums.get", one)["passwordProtected"] for one in (1, 2)] == [False, True]
    assert "open sesame" not in result.output + str(events())
    assert trellis("plan", document).exit_code == 0

    monkeypatch.setenv("PW", "another one")
    trellis("plan", document, "--output", "plan.json")
    monkeypatch.setenv("PW", "one more")
    outdated = trellis("apply", document, "--plan", "plan.json")
    assert (outdated.exit_code, "PLAN_DIFFERS" in outdated.stderr) == (1, True)
    assert "one more" not in outdated.output + str(events())
    monkeypatch.setenv("PW", "another one")
    assert "    password: changed\n" in trellis("plan", document).stdout
    write(document.read_text().replace("{env: PW}", "null"))
    assert trellis("apply", document, "--yes").exit_code == 0
    assert run("forums.get", 2)["passwordProtected"] is False


@pytest.mark.either_engine
def test_new_keys_are_written_to_a_file_that_only_its_owner_may_read(
    trellis: Trellis, write: Write, run: Run, events: Events
) -> None:
    old = os.umask(0)
    try:
        result = trellis("apply", write(KEYS), "--yes", "--keys-to", "keys.txt")
    finally:
        os.umask(old)
    assert result.exit_code == 0
    assert stat.S_IMODE(Path("keys.txt").stat().st_mode) == 0o600
    keys = dict(line.split("\t") for line in Path("keys.txt").read_text().splitlines())
    assert list(keys) == ["Mirror", "Feed"]
    listed = run("keys.list")["results"]
    assert all(keys[one["name"]].startswith(one["public"]) for one in listed)
    told = result.output + str(events()) + str(listed)
    assert not any(key in told for key in keys.values())
    assert result.stdout.endswith("--skip-conflicts  (new keys stay)\n")


@pytest.mark.either_engine
def test_the_file_of_keys_must_be_new(trellis: Trellis, write: Write, unchanged: Any) -> None:
    Path("keys.txt").write_text("mine")
    for name in ("keys.txt", "nowhere/keys.txt"):
        with unchanged():
            refused = trellis("apply", write(KEYS), "--yes", "--keys-to", name)
        assert (refused.exit_code, "othing was done" in refused.stderr) == (1, True)
    assert Path("keys.txt").read_text() == "mine"


@pytest.mark.either_engine
def test_no_empty_file_of_keys_stays(trellis: Trellis, site: Path, write: Write) -> None:
    assert trellis("apply", site, "--yes", "--keys-to", "keys.txt").exit_code == 0
    assert trellis("apply", write("format: x\n"), "--yes", "--keys-to", "keys.txt").exit_code == 1
    assert not Path("keys.txt").exists()


@pytest.mark.either_engine
def test_the_file_of_keys_is_durable_with_its_name(
    trellis: Trellis, write: Write, made_durable: list[tuple[Path, list[str]]]
) -> None:
    assert trellis("apply", write(KEYS), "--yes", "--keys-to", "keys.txt").exit_code == 0
    (file, _), (folder, names) = made_durable[-2:]
    assert (file, folder, "keys.txt" in names) == (Path.cwd() / "keys.txt", Path.cwd(), True)


@pytest.mark.either_engine
def test_new_keys_are_shown_once_otherwise(trellis: Trellis, trellis_json: TrellisJson, write: Write, run: Run) -> None:
    shown = trellis("apply", write(KEYS), "--yes").stdout.splitlines()
    assert shown[-3] == "Save the new keys now: they will not be shown again."
    keys = dict(line.split("\t") for line in shown[-2:])
    assert all(keys[one["name"]].startswith(one["public"]) for one in run("keys.list")["results"])
    assert "trl_" not in trellis("apply", write(KEYS.replace("rateLimit: 5", "rateLimit: 6")), "--yes").stdout

    more = write(f"{HEAD}keys:\n- {{name: More}}\n")
    made = trellis_json("apply", more, "--yes")
    assert [one["name"] for one in made["secrets"]] == ["More"]
    others = trellis_json("apply", write(f"{HEAD}keys:\n- {{name: Others}}\n"), "--yes", "--keys-to", "keys.txt")
    assert "secrets" not in others
    assert Path("keys.txt").read_text().startswith("Others\ttrl_")


@pytest.mark.either_engine
def test_keys_that_cannot_be_written_are_shown(trellis: Trellis, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_full(descriptor: int, mode: str, encoding: str) -> IO[str]:
        with open("/dev/full", "wb") as full:  # noqa: PTH123  # the same descriptor from now on
            os.dup2(full.fileno(), descriptor)
        return open(descriptor, mode, encoding=encoding)

    monkeypatch.setattr("trellis.cli.structure.keys_file.os.fdopen", open_full)
    monkeypatch.setattr("trellis.cli.structure.keys_file.os.fchmod", lambda *_: None)
    result = trellis("apply", write(KEYS), "--yes", "--keys-to", "keys.txt")
    assert result.exit_code == 0
    assert result.stderr.endswith("keys.txt could not be written: No space left on device. The keys are shown instead.\n")
    assert "Mirror\ttrl_" in result.stdout
    assert not Path("keys.txt").exists()


@pytest.mark.either_engine
def test_a_large_document_shows_its_progress_at_a_terminal(
    trellis: Trellis, write: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = (
        f"- externalId: s{section}\n  name: Section {section}\n  children:\n"
        + "".join(f"  - {{externalId: s{section}.{one}, name: Forum {one}}}\n" for one in range(49))
        for section in range(4)
    )
    document = write(f"{HEAD}forums:\n{''.join(entries)}")
    screen, output = Screen(), StringIO()

    def act_seen(*arguments: Any, **options: Any) -> Result:
        result = act(*arguments, **options)
        wait_until(lambda: "200 of 200" in screen.getvalue())
        return result

    assert trellis("plan", document, "--output", "plan.json").stderr == ""
    with monkeypatch.context() as patch:
        patch.setattr("trellis.cli.structure.commands.act", act_seen)
        patch.setattr("trellis.cli.terminal._PATIENCE", 0.0)
        patch.setattr("trellis.cli.drawing._FRAME", 0.01)
        patch.setattr("sys.stderr", screen)
        patch.setattr("sys.stdout", output)
        patch.setenv("COLUMNS", "100")
        app(["apply", str(document), "--plan", "plan.json", "--json"], standalone_mode=False)

    assert "Applying" in screen.getvalue()
    assert orjson.loads(output.getvalue())["counts"]["create"] == 200
    assert run("forums.list", perPage=1)["totalResults"] == 200
