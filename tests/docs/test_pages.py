"""The README and the docs do not lie: their tables are those of the code, and their examples run as printed."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from json import JSONDecoder, loads
from pathlib import Path
from typing import Any, Final

import pytest

from tests.community import CATALOGUE, CONTRACT, GRANTABLE
from tests.service_process import Service, environment
from trellis.compose import catalogue_of
from trellis.core.events.event import event_types
from trellis.core.verbs import singular_of
from trellis.kinds import KINDS
from trellis.settings import Settings, definitions, description, variable

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text()
GUIDE: Final = (ROOT / "docs" / "guide.md").read_text()
_BLOCK: Final = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def between(text: str, name: str) -> str:
    """Return what stands between two comments."""
    return text.partition(f"<!-- {name}: start -->\n")[2].partition(f"<!-- {name}: end -->")[0]


def test_the_guide_names_all_that_happens_to_nodes_and_webhooks_are_told_of() -> None:
    section = GUIDE.partition("\n## Webhooks\n")[2].partition("\n### Alarms\n")[0]
    kinds = {singular_of(kind.name) for kind in KINDS}
    words = {word for kind, word in (name.split(".") for name in event_types(CATALOGUE.values())) if kind in kinds}
    assert {word for word in words if f"`{word}`" not in section} == set()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    """Serve the sample community as `make serve` does; give the service and its demo key."""
    folder = tmp_path_factory.mktemp("demo")
    settings = Settings.load({"TRELLIS_DATABASE_URL": f"sqlite:///{folder}/trellis.db"}, None)
    with Service(settings, folder, options=("--demo",)) as service:
        found = re.search(r"Demo key: +(\S+)", service.output)
        assert found is not None
        yield service, found[1]


def run(lines: str, service: Service, key: str, folder: Path) -> str:
    """Run lines of shell as printed, with the port and the key of this service."""
    if not shutil.which("curl") or not shutil.which("bash"):
        pytest.skip("the examples are for bash and curl, and this machine lacks one of them")
    script = lines.replace("127.0.0.1:8000", f"127.0.0.1:{service.port}").replace("trl_…", key)
    start = f'set -euo pipefail\npython3() {{ {sys.executable} "$@"; }}\n'
    done = subprocess.run(["bash", "-c", start + script], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers(text: str) -> list[Any]:
    """Take apart JSON documents that stand one behind another."""
    decoder, at, found = JSONDecoder(), 0, []
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        found.append(document)
    return found


def test_the_first_session_of_the_readme_runs_as_printed(demo: tuple[Service, str], tmp_path: Path) -> None:
    service, key = demo
    assert _BLOCK.findall(README) == _BLOCK.findall(between(README, "session"))
    script = "".join(_BLOCK.findall(between(README, "session")))
    hello, three, top, made, changed, moved, plan, gone, wrong = answers(run(script, service, key, tmp_path))
    assert len(hello["key"]["operations"]) == GRANTABLE
    assert len(three["results"]) == 3
    assert [forum["position"] for forum in top["results"]] == list(range(top["totalResults"]))
    assert made["name"] == "Garden diaries"
    assert changed["description"] == "<p>A year in your garden.</p>"
    assert moved["position"] == 0
    assert plan["deleted"]["ids"] == [made["id"]]
    assert gone is None
    assert {fault["field"] for fault in wrong["errors"]} == {"name", "nmae", "type", "parentId"}


def test_the_examples_of_the_guide_run_as_printed(demo: tuple[Service, str], tmp_path: Path) -> None:
    service, key = demo
    start = f"API={service.address}/api\nAPI_KEY={key}\n"
    ran = _BLOCK.findall("".join(re.findall(r"<!-- run -->\n(```sh\n.*?```)", GUIDE, re.DOTALL)))
    assert len(ran) == GUIDE.count("```sh")
    found = answers(run(start + "".join(ran), service, key, tmp_path))
    json, form, announced, named, below, unsaid, inherited, branch, copied, children, plan, holders, *found = found
    feed, batch, structure, applied, exported, wrong = found
    for answer in (json, form, announced):
        assert (answer["name"], answer["permissions"]["add"]) == ("News", [3, 4])
    assert (named["externalId"], below["parentId"]) == ("section-17", named["id"])
    assert {fault["field"] for fault in unsaid["errors"]} == {
        f"permissions.{name}" for name in ("read", "add", "reply", "attachments")
    }
    assert (inherited["permissions"]["read"], inherited["permissions"]["view"]) == ([], "*")
    assert len({str(one["result"]["permissions"]) for one in branch["results"]}) == 1
    assert [one["result"]["path"] for one in batch["results"]] == ["Club", "Club > Meetings"]
    assert structure["counts"]["create"] == 2
    assert applied["changes"] == structure["changes"]
    assert [one["externalId"] for one in exported["forums"]] == ["clubs.chess"]
    assert (copied["name"], copied["parentId"]) == ("Next year", None)
    assert children["errorMessage"] == "HAS_CHILDREN"
    assert plan["deleted"]["count"] == 1 + children["descendants"]
    assert [one["name"] for one in holders["results"]] == ["Demo"]
    assert [event["type"] for event in feed["results"]] == ["forum.created"] * 2
    assert feed["more"] is True
    assert wrong["errorMessage"] == "NO_TITLE"


def test_the_examples_for_agents_run_as_printed(demo: tuple[Service, str], tmp_path: Path) -> None:
    service, key = demo
    page = (ROOT / "docs" / "agents.md").read_text()
    blocks = _BLOCK.findall(page)
    assert len(blocks) == page.count("```sh")
    found = [answer["result"] for answer in answers(run("".join(blocks), service, key, tmp_path))]
    listed, tools, begun, resources, made, plan, undone, missing = found
    assert len(listed["structuredContent"]["results"]) == 2
    assert "forums.create" in {tool["name"] for tool in tools["tools"]}
    assert begun["protocolVersion"] == "2025-06-18"
    trees = {f"trellis://tree/{kind.name}" for kind in KINDS if f"{kind.name}.tree" in catalogue_of(KINDS)}
    readable = {one["uri"] for one in resources["resources"]}
    assert readable == {"trellis://guide", *trees, "trellis://events"}
    assert readable - trees < {*re.findall(r"`(trellis://[\w/]+)`", page)} <= readable
    assert plan["structuredContent"]["deleted"]["ids"] == [made["structuredContent"]["id"]]
    assert undone["structuredContent"]["record"] is None
    assert loads(missing["content"][0]["text"])["errorMessage"] == "INVALID_ID"


def test_the_examples_for_clients_of_the_suite_run_as_printed(demo: tuple[Service, str], tmp_path: Path) -> None:
    service, _ = demo
    page = (ROOT / "docs" / "invision.md").read_text()
    (script,) = _BLOCK.findall(page)
    made = subprocess.run(
        [sys.executable, "-m", "trellis", "keys", "create", "Old client", "--dialect", "invision", "--grant", "*", "--json"],
        env=environment(service.settings),
        capture_output=True,
        check=True,
    )
    key = loads(made.stdout)["key"]
    hello, listed, created, missing = answers(run(f"API={service.address}/api\nAPI_KEY={key}\n{script}", service, key, tmp_path))
    assert hello["key"]["dialect"] == "invision"
    assert (len(listed["results"]), listed["results"][0]["parentId"]) == (2, -1)
    assert (created["type"], created["permissions"]["perm_3"], created["permissions"]["perm_2"]) == ("category", "3,4", None)
    assert missing == {"errorCode": "1F363/1", "errorMessage": "INVALID_ID"}


def test_the_settings_of_the_docs_are_those_of_the_code() -> None:
    page = between((ROOT / "docs" / "settings.md").read_text(), "settings")
    told = {tuple(row) for row in re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", page, re.MULTILINE)}
    assert told == {(variable(name), _default(setting.default), description(name)) for name, setting in definitions().items()}


def _default(value: object) -> str:
    if value is None or value == ():
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def test_the_operations_of_the_readme_are_those_of_the_catalogue() -> None:
    told = re.findall(r"`(\w+\.\w+)`", between(README, "operations"))
    ours = re.findall(r"`(\w+\.\w+)`", between(README, "our operations"))
    catalogue = catalogue_of(KINDS)
    assert sorted(told) == sorted(CONTRACT)
    assert sorted([*told, *ours]) == sorted(o.name for o in catalogue.grantable)
