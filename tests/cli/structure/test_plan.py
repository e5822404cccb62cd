"""`trellis plan`."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer import testing

from tests.cli.conftest import Environment, Trellis, TrellisJson
from tests.cli.structure.conftest import FORUMS, HEAD, Screen, Write
from tests.community import Community
from tests.database_state import DatabaseState
from tests.fixture_types import Run
from tests.wait import wait_until
from trellis.cli.app import app
from trellis.cli.structure.files import read_files
from trellis.cli.structure.report import show_changes
from trellis.core.gate import Gate
from trellis.core.structure import read_document
from trellis.kinds import KINDS


class PlainLabels:
    """Stands for the labels of groups and parents where a plan has none."""

    def describe(self, _resource: str, _member: str, value: Any) -> Any:
        return value


@pytest.fixture
def unchanged(gate: Gate) -> Callable[[], Any]:
    """See that nothing is changed."""
    return DatabaseState(gate).unchanged


def test_its_exit_code_says_whether_there_is_something_to_do(trellis: Trellis, site: Path, write: Write) -> None:
    nothing = trellis("plan", site)
    assert (nothing.exit_code, nothing.stdout) == (0, "Nothing to do: the community matches the document.\n")

    assert trellis("plan", write(FORUMS.replace("Betas", "Previews"))).exit_code == 2
    assert trellis("plan", write(FORUMS.replace("name: Betas", "title: Betas"))).exit_code == 1


@pytest.mark.either_engine
@pytest.mark.parametrize("arguments", [("--prnue",), ("--max-deletes", "-1"), ("gone.yaml",)])
def test_what_is_typed_wrongly_is_not_taken_for_changes(trellis: Trellis, site: Path, arguments: tuple[str, ...]) -> None:
    assert trellis("plan", site, *arguments).exit_code == 1
    assert trellis("apply", site, *arguments, "--yes").exit_code == 1


@pytest.mark.either_engine
def test_a_wrong_setting_is_not_taken_for_changes(trellis: Trellis, site: Path, nowhere: Environment) -> None:
    nowhere(database_ulr="x")
    refused = trellis("plan", site)
    assert (refused.exit_code, "Did you mean TRELLIS_DATABASE_URL?" in refused.stderr) == (1, True)


@pytest.mark.either_engine
def test_the_document_is_not_overwritten_by_the_plan(trellis: Trellis, site: Path) -> None:
    document = site.read_bytes()
    Path("link.json").symlink_to(site)
    for name in (site, "link.json"):
        refused = trellis("plan", site, "--output", name)
        assert (refused.exit_code, "choose another name for the plan" in " ".join(refused.stderr.split())) == (1, True)
    assert site.read_bytes() == document


def test_it_tells_all_that_would_be_done(community: Community, run: Run, trellis: Trellis, write: Write, unchanged: Any) -> None:
    for group, external_id in ((community.moderators, "mods"), (community.patrons, "patrons")):
        run("groups.update", group, externalId=external_id)
    run("forums.update", community.help, externalId="help")
    run("forums.update", community.news, externalId="news")
    document = write(
        f"""{HEAD}forums:
- externalId: help
  name: Questions
  type: discussions
  permissions: {{read: [], add: [mods, patrons]}}
  children:
  - externalId: rules
    name: Rules
    password: {{env: PASSWORD}}
- externalId: wiki
  name: Wiki
  type: redirect
  redirectUrl: https://wiki.example/new
- externalId: news
  name: News
"""
    )
    with unchanged():
        result = trellis("plan", document, "--prune", "--adopt")
    assert result.exit_code == 1
    assert (
        result.stderr
        == "site.yaml, line 11: password has to come from the environment, but 'PASSWORD' is not set there, or is empty.\n"
    )

    with pytest.MonkeyPatch.context() as patch, unchanged():
        patch.setenv("PASSWORD", "hunter22")
        result = trellis("plan", document, "--prune", "--adopt")
    assert result.exit_code == 2
    told = re.sub(r"[0-9]+-[0-9a-f]{32}", "PLAN", result.stdout)
    assert (
        told
        == f"""~ update  forums  Questions
    name: Help → Questions
    type: questions → discussions
    permissions.read: every group → nobody
    permissions.add: every group → mods, patrons
+ create  forums  Questions > Rules
~ update  forums  Wiki
    adopted: forums {community.wiki} has this path
    externalId: – → wiki
    redirectUrl: https://wiki.example/ → https://wiki.example/new
~ update  forums  News
    managedBy: – → site
{MINUS} delete  forums  Staff
{MINUS} delete  forums  News > Releases
    with 1 below it
{MINUS} delete  forums  News > Interviews
→ move    forums  News
    position: 0 → 2
1 to create, 3 to update, 1 to move, 4 to delete.
To do exactly this: trellis apply site.yaml --prune --adopt --plan PLAN
"""
    )


MINUS = "\N{MINUS SIGN}"


def test_it_says_what_it_leaves_alone_and_which_option_would_not(community: Community, trellis: Trellis, write: Write) -> None:
    document = write(f"{HEAD}forums:\n- {{externalId: help, name: Help}}\n")
    told = trellis("plan", document).stdout.splitlines()
    assert told[1] == (
        f"7 nodes are not in the document and stay: News (forums {community.news}), Help (forums {community.help}), "
        f"Wiki (forums {community.wiki}), Staff (forums {community.staff}), Releases (forums {community.releases}), …. "
        "--prune deletes nodes that no other document manages."
    )
    assert (
        told[2]
        == "1 entry has the path of a node without an external id. --adopt takes it over instead of creating another beside it."
    )


def test_it_says_what_was_changed_by_hand_since(run: Run, site: Path, trellis: Trellis) -> None:
    betas = run("forums.list", externalIds="betas")["results"][0]
    run("forums.update", betas["id"], name="Alphas", parentId=None)
    event = run("events.list", order="newest", limit=1)["results"][0]

    told = trellis("plan", site).stdout

    assert "    name: Alphas → Betas\n" in told
    assert "    parentId: top level → News\n" in told
    assert f"    changed by hand since the last apply: event {event['seq']}, forums.update, {event['at'][:16]}Z\n" in told


def test_groups_that_the_plan_makes_are_named(community: Community, trellis: Trellis, write: Write) -> None:
    del community
    told = trellis(
        "plan",
        write(
            f"{HEAD}groups:\n- {{externalId: vips, name: Guests of honour}}\n"
            "forums:\n- {externalId: help, name: Help, permissions: {view: [vips, members]}}\n"
        ),
        "--adopt",
    ).stdout
    assert "    permissions.view: every group → members, vips\n" in told


def test_changes_of_a_key_are_shown(trellis: Trellis, write: Write) -> None:
    site = write(HEAD + "keys:\n- {name: Sync, grants: [forums.list]}\n")
    assert trellis("apply", site, "--yes").exit_code == 0
    write(HEAD + "keys:\n- {name: Sync, bounds: {forums.list: {perDay: 5}}, addresses: [192.0.2.0/24], rateLimit: 9}\n")
    planned = trellis("plan", site, "--output", "plan.json")
    assert planned.exit_code == 2
    assert planned.stdout.splitlines()[:4] == [
        "~ update  keys  Sync",
        '    bounds: – → {"forums.list":{"level":"allow","perDay":5}}',
        "    addresses: – → 192.0.2.0/24",
        "    rateLimit: – → 9",
    ]
    assert trellis("apply", site, "--plan", "plan.json").exit_code == 0
    write(HEAD + "keys:\n- {name: Sync, bounds: {}}\n- {name: New}\n")
    planned = trellis("apply", site, "--yes")
    assert '    bounds: {"forums.list":{"level":"allow","perDay":5}} → –' in planned.stdout
    assert "New\ttrl_" in planned.stdout


def test_json_is_the_plan(trellis: Trellis, site: Path, write: Write) -> None:
    del site
    result = trellis("plan", write(FORUMS.replace("Betas", "Previews")), "--json", "--output", "plan.json")
    assert (result.exit_code, result.stderr) == (2, "")
    plan = orjson.loads(result.stdout)
    assert plan["counts"] == {"create": 0, "update": 1, "move": 0, "delete": 0}
    assert (plan["changes"][0]["file"], plan["changes"][0]["line"]) == ("site.yaml", 7)
    assert orjson.loads(Path("plan.json").read_bytes()) == plan
    assert trellis("plan", write(FORUMS), "--json").exit_code == 0


@pytest.mark.either_engine
def test_faults_of_all_files_are_told_with_their_lines(trellis: Trellis, write: Write, unchanged: Any) -> None:
    first = write(
        f"{HEAD}forums:\n- externalId: a\n  name: A\n  nmae: B\n- externalId: a\n  name: C\n"
        "  permissions: {view: [nobodies]}\n  password: hunter22\n"
    )
    second = write(f"{HEAD}calendars:\n- name: C\n  color: [\n", "more.yaml")
    third = write(f"{HEAD}categories:\n- externalId: c\n  name: ''\n", "third.yaml")

    with unchanged():
        refused = trellis("plan", first, second, third)

    assert (refused.exit_code, refused.stdout) == (1, "")
    lines = refused.stderr.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "site.yaml, line 6",
        "site.yaml, line 7",
        "more.yaml, line 6",
        "third.yaml, line 5",
        "site.yaml, line 10",
    ]
    assert lines[0].endswith("A forum has no 'nmae'. Did you mean name?")
    assert lines[1].endswith("'a' is already the externalId of another forum: site.yaml, line 4.")
    assert "in plain text" in lines[4]
    assert "hunter22" not in refused.output


def test_what_only_the_run_can_know_has_its_line_too(trellis: Trellis, write: Write) -> None:
    document = write(f"{HEAD}forums:\n- externalId: a\n  name: A\n  type: redirect\n- externalId: b\n  name: B\n  theme: blue\n")
    assert [line.partition(": ")[0] for line in trellis("plan", document).stderr.splitlines()] == [
        "site.yaml, line 4",
        "site.yaml, line 9",
    ]


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("password", "told"),
    [
        ("hunter22", "line 6: password is in plain text here."),
        ("1234", "line 6: password is in plain text here."),
        ("{env: TRELLIS_X, or: y}", "line 6: password must be {env: NAME}."),
        ("{env: [A]}", "line 6: password has to come from the environment"),
        ("{env: NOT_SET}", "line 6: password has to come from the environment, but 'NOT_SET' is not set there, or is empty."),
    ],
)
def test_a_password_comes_from_the_environment_only(trellis: Trellis, write: Write, password: str, told: str) -> None:
    refused = trellis("apply", write(f"{HEAD}forums:\n- externalId: a\n  name: A\n  password: {password}\n"), "--yes")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"site.yaml, {told}")


@pytest.mark.either_engine
def test_what_is_not_utf_8_is_told_with_its_line(trellis: Trellis, write: Write) -> None:
    document = write(FORUMS)
    document.write_bytes(FORUMS.encode().replace(b"Betas", b"Bet\xe4s"))
    refused = trellis("plan", document)
    assert (refused.exit_code, refused.stderr) == (1, "site.yaml, line 8: This is not UTF-8.\n")


@pytest.mark.either_engine
def test_a_device_without_an_end_is_refused(trellis: Trellis) -> None:
    refused = trellis("plan", "/dev/zero")
    assert (refused.exit_code, refused.stderr) == (1, "/dev/zero is larger than 8 MiB. Split the document by section.\n")


@pytest.mark.either_engine
def test_the_name_of_a_file_need_not_be_utf_8(trellis: Trellis, write: Write) -> None:
    file = write(FORUMS, os.fsdecode(b"s\xffte.yaml"))
    planned = trellis("plan", file, "--output", "plan.json")
    assert planned.exit_code == 2
    assert "trellis apply 's\\udcffte.yaml' --plan plan.json" in planned.stdout
    assert {change["file"] for change in orjson.loads(Path("plan.json").read_bytes())["changes"]} == {"s\ufffdte.yaml"}
    assert orjson.loads(trellis("plan", file, "--json").stdout) == orjson.loads(Path("plan.json").read_bytes())
    assert trellis("apply", file, "--plan", "plan.json").exit_code == 0


def test_deletes_are_bounded_and_emptiness_is_refused(trellis: Trellis, site: Path, write: Write) -> None:
    del site
    refused = trellis("plan", write(f"{HEAD}forums:\n- {{externalId: help, name: Help}}\n"), "--prune", "--max-deletes", 1)
    assert refused.exit_code == 1
    assert "2 nodes would be deleted, and at most 1 may be" in refused.stderr
    empty = write(f"{HEAD}forums: []\n")
    assert "--allow-empty" in trellis("plan", empty, "--prune").stderr
    assert trellis("plan", empty, "--prune", "--allow-empty").exit_code == 2


@pytest.mark.either_engine
def test_standard_input_is_a_file(trellis: Trellis, site: Path) -> None:
    del trellis
    runner = testing.CliRunner()
    assert runner.invoke(app, ["plan", "-"], input=site.read_bytes(), catch_exceptions=False).exit_code == 0
    refused = runner.invoke(app, ["plan", "-"], input=b"format: trellis/2\n", catch_exceptions=False)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("standard input, line 1: format must be trellis/1")
    twice = runner.invoke(app, ["plan", "-", "-"], input=b"", catch_exceptions=False)
    assert (twice.exit_code, twice.stderr) == (1, "Standard input (-) can be read only once.\n")


@pytest.mark.either_engine
def test_several_files_are_one_document(trellis: Trellis, trellis_json: TrellisJson, write: Write) -> None:
    forums = write(FORUMS)
    calendars = write(f"{HEAD}calendars:\n- {{externalId: meetups, name: Meetups}}\n", "calendars.yaml")
    assert trellis_json("apply", forums, calendars, "--yes")["counts"]["create"] == 4
    assert trellis("plan", forums, calendars).exit_code == 0
    assert trellis("plan", calendars, "--prune").exit_code == 0  # it says nothing of forums


# --- at a terminal ------------------------------------------------------------------------------------------------

CHANGE = {"resource": "forums", "id": 1, "externalId": "a", "adopted": False, "drift": None, "deleted": 0, "touched": []}
PLAN = {
    "changes": [
        {**CHANGE, "action": "create", "path": "News", "differences": []},
        {
            **CHANGE,
            "action": "update",
            "path": "Help > Questions that are asked again and again",
            "differences": [
                {
                    "member": "description",
                    "before": "The same words at first, " * 9 + "old",
                    "after": "The same words at first, " * 9 + "new",
                },
                {"member": "canSeeOthers", "before": True, "after": False},
            ],
        },
        {**CHANGE, "action": "delete", "path": "\u202eliame", "differences": [], "deleted": 3},
    ]
}


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> Iterator[Screen]:
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    yield screen
    monkeypatch.undo()


@pytest.mark.parametrize("columns", [40, 79, 80, 120])
def test_it_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    labels: Any = PlainLabels()
    with terminal(monkeypatch, columns) as screen:
        show_changes(PLAN, labels)
    shown = screen.getvalue()
    lines = re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()
    assert max(map(len, (line for line in lines if not line.startswith("~")))) <= columns
    assert "\x1b[32m+ create" in shown
    assert f"\x1b[31m{MINUS} delete" in shown
    assert ("Differences" in shown) == (columns >= 80)
    assert "canSeeOthers: true → false" in " ".join(" ".join(lines).split())
    assert "\u202e" not in shown
    words = " ".join(shown.split())
    assert words.index("old →") < words.index("new")


def test_what_was_added_at_the_end_of_a_long_text_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    labels: Any = PlainLabels()
    long = "The same words at first, " * 9
    for before, after, told in ((long, long + "then more", ", → …"), (long + "then more", long, "then more → …")):
        change = {**CHANGE, "action": "update", "path": "News", "differences": [_differ("description", before, after)]}
        with terminal(monkeypatch, 300) as screen:
            show_changes({"changes": [change]}, labels)
        shown = screen.getvalue()
        assert "then more" in shown, told
        assert told in shown


def _differ(member: str, before: str, after: str) -> dict[str, str]:
    return {"member": member, "before": before, "after": after}


def test_without_colours_if_nobody_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    labels: Any = PlainLabels()
    for columns in (60, 120):
        with terminal(monkeypatch, columns) as screen:
            monkeypatch.setenv("NO_COLOR", "1")
            show_changes(PLAN, labels)
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", screen.getvalue())


@pytest.mark.either_engine
def test_a_large_file_shows_at_a_terminal_that_it_is_read(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("trellis.cli.terminal._PATIENCE", 0.0)

    def read_slowly(text: str) -> Any:
        wait_until(lambda: "Reading site.yaml" in screen.getvalue())
        return read_document(text)

    monkeypatch.setattr("trellis.cli.structure.files.read_document", read_slowly)
    assert read_files([str(write(FORUMS))], KINDS).sent[0]["content"]["name"] == "site"
