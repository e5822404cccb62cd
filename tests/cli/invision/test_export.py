"""`trellis export invision`: the answers that the suite would give, which `trellis import invision --from` reads."""

import fcntl
import os
import signal
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.api_fixtures import MakeApiClient, MakeService, make_api, serve
from tests.cli.conftest import Environment, Trellis
from tests.cli.invision import signalled_export
from tests.community import Community
from tests.fixture_types import MakeKey, Run
from tests.forked import ForkedProcess
from tests.service_process import environment
from tests.wait import GIVE_UP
from trellis.core.verbs import GET, LIST
from trellis.invision import find_paths
from trellis.kinds import KINDS
from trellis.settings import Settings

__all__ = ["make_api", "serve"]  # fixtures
ARGUMENTS = ("export", "invision", "out")
PERMISSIONS = ("perm_view", *(f"perm_{number}" for number in range(2, 8)))


def answers(folder: str = "out") -> dict[str, Any]:
    """Read what was exported, by names."""
    root = Path(folder)
    return {file.relative_to(root).with_suffix("").as_posix(): orjson.loads(file.read_bytes()) for file in root.rglob("*.json")}


def test_it_writes_lists_page_by_page_and_single_records(trellis: Trellis, community: Community, run: Run) -> None:
    exported = trellis(*ARGUMENTS, "--per-page", "4")
    assert exported.exit_code == 0, exported.output
    found = answers()
    assert exported.stdout == f"Wrote {len(found)} answers to out.\n"
    assert found["core/hello"] == {
        "communityName": "Our community",
        "communityUrl": "https://community.example",
        "ipsVersion": "4.2.0",
    }
    pages = [found[f"forums/forums/page-{number}"] for number in (1, 2)]
    assert [(page["page"], page["perPage"], page["totalResults"], page["totalPages"]) for page in pages] == [
        (1, 4, 7, 2),
        (2, 4, 7, 2),
    ]
    assert [record["id"] for page in pages for record in page["results"]] == list(range(1, 8))
    assert found["blog/blogs/page-1"]["totalPages"] == 1
    for page in pages:
        for record in page["results"]:
            assert found[f"forums/forums/{record['id']}"] == record
    betas = found[f"forums/forums/{community.betas}"]
    assert [*betas] == ["id", "name", "path", "type", "topics", "url", "parentId", "permissions", "club"]
    assert (betas["parentId"], betas["permissions"]["perm_2"]) == (community.releases, str(community.patrons))
    assert found[f"forums/forums/{community.news}"]["parentId"] == -1
    assert found[f"calendar/calendars/{community.meetups}"]["class"] == "IPS\\calendar\\Calendar"
    assert [one["name"] for one in found[f"blog/blogs/{community.notebook}"]["groups"]] == ["Members", "Patrons"]


def test_an_empty_community_has_a_page_of_each_list(trellis: Trellis) -> None:
    assert trellis(*ARGUMENTS).exit_code == 0
    empty = {"page": 1, "perPage": 25, "totalResults": 0, "totalPages": 1, "results": []}
    found = answers()
    assert sum(answer == empty for answer in found.values()) == 4  # groups are built in


def test_it_is_what_a_key_with_the_dialect_is_answered(
    trellis: Trellis, community: Community, make_api: MakeApiClient, key: MakeKey, nowhere: Environment
) -> None:
    nowhere(community_name="The Lantern")  # as the API in this process has it
    assert trellis(*ARGUMENTS).exit_code == 0
    client = make_api(key("*", name="Client", dialect="invision"))
    not_served = {find_paths(kind)[0] for kind in KINDS if not kind.serves(GET)}
    for name, answer in answers().items():
        if name.rpartition("/")[0] in not_served:
            continue
        path, _, number = name.partition("/page-")
        told = client.get(f"/{path}", params={"page": number} if number else {}).json()
        assert {member: told[member] for member in answer} == answer, name
        assert name == "core/hello" or [*told] == [*answer], name


def test_a_folder_that_is_there_is_left_alone(trellis: Trellis) -> None:
    assert trellis(*ARGUMENTS).exit_code == 0
    before = answers()
    refused = trellis(*ARGUMENTS)
    assert (refused.exit_code, "already exists. Name a new folder; nothing was written." in refused.stderr) == (1, True)
    assert answers() == before
    assert [*Path().iterdir()] == [Path("out")]


def test_options_of_documents_are_not_passed_over(trellis: Trellis) -> None:
    refused = trellis("export", "--section", "forums", "invision", "out")
    assert (refused.exit_code, "leave them out" in refused.stderr) == (2, True)
    assert not Path("out").exists()


def simplify(found: dict[str, Any]) -> dict[str, list[Any]]:
    """Return what was exported without ids and addresses: nodes by their paths, permissions by the names of groups."""
    groups = {record["id"]: record["name"] for record in found["core/groups/page-1"]["results"]}
    simple: dict[str, list[Any]] = {}
    for name, answer in found.items():
        folder, _, last = name.rpartition("/")
        if not last.isdigit():
            continue
        record = dict(answer)
        parent = record.pop("parentId", None)
        record["above"] = found[f"{folder}/{parent}"]["name"] if parent not in {None, -1} else None
        if "permissions" in record:
            record["permissions"] = [name_groups(record["permissions"][member], groups) for member in PERMISSIONS]
        if folder == "blog/blogs":
            record["groups"] = sorted(group["name"] for group in record["groups"])
        del record["id"]
        record.pop("url", None)
        simple.setdefault(folder, []).append(record)
    return {folder: sorted(records, key=orjson.dumps) for folder, records in simple.items()}


def name_groups(who: str | None, groups: dict[int, str]) -> Any:
    return who if who in {None, "", "*"} else sorted(groups[int(one)] for one in str(who).split(","))


def test_what_was_exported_comes_back(
    trellis: Trellis, community: Community, run: Run, empty_database: Settings, nowhere: Environment
) -> None:
    run("groups.update", community.moderators, prefix='<span title="Moderators">', suffix="</span> & friends")
    run("groups.update", 2, name="Visitors")
    run("groups.create", name="Tom & <Jerry>", prefix="<b>", suffix="</b>")
    last = run("forums.create", name="A > B <i>&</i>", parentId=community.help, permissions={"view": [2, community.patrons]})
    run("forums.create", name="News")
    run("forums.create", name="News", type="category")
    run("forums.update", community.staff, parentId=last["id"])
    run("blogs.create", name="Closed", owner="Jon", groups=[], pinned=True, description="<p>a &lt; b</p>")
    run("blogs.create", name="Open", owner="", groups="*")
    assert trellis(*ARGUMENTS).exit_code == 0

    nowhere(database_url=empty_database.database_url)
    assert trellis("migrate").exit_code == 0
    brought = trellis("import", "invision", "--from", "out", "--report", "report.txt")
    assert brought.exit_code == 0, brought.output
    assert trellis("plan", "invision.yaml").exit_code == 2
    applied = trellis("apply", "invision.yaml", "--yes")
    assert applied.exit_code == 0, applied.output
    assert trellis("plan", "invision.yaml").exit_code == 0
    assert trellis("export", "invision", "back").exit_code == 0
    assert simplify(answers("back")) == simplify(answers())


def test_a_service_of_ours_is_read_like_any_other(
    trellis: Trellis, community: Community, serve: MakeService, key: MakeKey, empty_database: Settings, nowhere: Environment
) -> None:
    assert trellis(*ARGUMENTS).exit_code == 0
    file = Path("old.key")
    file.write_text(key("*", name="Moving", dialect="invision"), encoding="utf-8")
    service = serve()
    nowhere(database_url=empty_database.database_url)
    assert trellis("migrate").exit_code == 0
    sections = [word for kind in KINDS if kind.serves(LIST) for word in ("--section", kind.name)]
    live = trellis("import", "invision", service.address, "--key-file", file, "--rate", "1000", *sections)
    assert live.exit_code == 0, live.output
    saved = trellis("import", "invision", "--from", "out", "--output", "saved.yaml", *sections)
    assert saved.exit_code == 0, saved.output
    live_text, saved_text = (Path(name).read_text(encoding="utf-8").partition("\n")[2] for name in ("invision.yaml", "saved.yaml"))
    assert live_text == saved_text


def export_with_signal(settings: Settings, output: Path, number: signal.Signals, action: signal.Handlers) -> int:
    """Export in a process that gets a signal before its first file; return its exit status. SIGKILL has no other action."""
    output.touch()
    words = [str(int(number)), str(int(action)), *ARGUMENTS]
    return ForkedProcess(words, Path.cwd(), environment(settings), output, signalled_export.export).wait(GIVE_UP)


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_export_that_is_ended_leaves_no_half_of_a_folder(settings: Settings, tmp_path: Path, number: signal.Signals) -> None:
    before = {*Path().iterdir()}
    assert export_with_signal(settings, tmp_path / "ended", number, signal.SIG_DFL) != 0
    assert {*Path().iterdir()} == before
    assert export_with_signal(settings, tmp_path / "ignored", number, signal.SIG_IGN) == 0  # as under `nohup`
    assert "core/hello" in answers()


def test_what_a_killed_export_has_left_is_removed_by_the_next_one_but_not_what_a_running_one_writes(
    trellis: Trellis, settings: Settings, tmp_path: Path
) -> None:
    before = {*Path().iterdir()}
    assert export_with_signal(settings, tmp_path / "killed", signal.SIGKILL, signal.SIG_DFL) == -signal.SIGKILL
    (left,) = {*Path().iterdir()} - before
    empty = Path(".out.89abcdef")  # of one that was killed before its first file
    empty.mkdir()
    running, others = Path(".out.0123abcd"), Path(".out.notes")
    for folder in (running, others):
        folder.mkdir()
        (folder / "file").touch()
    lock = os.open(running, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)

    assert trellis(*ARGUMENTS).exit_code == 0
    os.close(lock)
    assert not left.exists()
    assert not empty.exists()
    assert {*Path().iterdir()} - before == {running, others, Path("out")}


def test_an_export_makes_another_folder_if_one_is_removed_before_it_is_locked(
    trellis: Trellis, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    make = Path.mkdir

    def make_and_lose(folder: Path, *arguments: Any, **options: Any) -> None:
        make(folder, *arguments, **options)
        if folder.name.startswith(".out."):
            made.append(folder)
            if len(made) == 1:
                folder.rmdir()

    monkeypatch.setattr(Path, "mkdir", make_and_lose)
    assert trellis(*ARGUMENTS).exit_code == 0
    assert len(made) == 2
    assert "core/hello" in answers()
