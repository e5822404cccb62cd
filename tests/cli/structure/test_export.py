"""`trellis export` and `trellis schema`."""

import os
from pathlib import Path

import orjson
import pytest

from tests.cli.conftest import Trellis, TrellisJson
from tests.community import Community
from tests.fixture_types import Events, Run
from trellis.core.structure import read_document


def test_what_was_exported_is_taken_over_and_then_there_is_nothing_to_do(
    community: Community, run: Run, events: Events, trellis: Trellis
) -> None:
    written = trellis("export", "--output", "site.yaml")
    assert (written.exit_code, written.stdout, written.stderr) == (0, "", "Wrote site.yaml.\n")

    before = {
        kind: run(f"{kind}.list", perPage=100)["results"] for kind in ("groups", "forums", "calendars", "categories", "blogs")
    }
    assert trellis("apply", "site.yaml", "--adopt", "--yes").exit_code == 0
    number = len(events())
    assert trellis("plan", "site.yaml", "--prune", "--max-deletes", 0).exit_code == 0

    assert len(events()) == number
    managed = ("externalId", "managedBy", "updatedAt")
    for kind, records in before.items():
        now = run(f"{kind}.list", perPage=100)["results"]
        assert [{**one, **dict.fromkeys(managed)} for one in now] == [{**one, **dict.fromkeys(managed)} for one in records]
    assert run("forums.get", community.betas)["externalId"] == "news.releases.betas"


@pytest.mark.either_engine
@pytest.mark.usefixtures("community")
def test_yaml_and_json_say_the_same(trellis: Trellis, trellis_json: TrellisJson) -> None:
    yaml = trellis("export")
    assert "https://community.example, revision 15, " in yaml.stdout.partition("\n")[0]
    assert read_document(yaml.stdout) == trellis_json("export")


def test_sections_and_parts_can_be_chosen(community: Community, run: Run, trellis: Trellis, trellis_json: TrellisJson) -> None:
    run("forums.update", community.news, externalId="n1")
    both = trellis_json("export", "--section", "calendars", "--section", "categories")
    assert both.keys() == {"format", "name", "calendars", "categories"}

    part = trellis_json("export", "--section", "forums", "--under", "n1")
    assert (part["under"], [one["name"] for one in part["forums"]]) == ("n1", ["Releases", "Interviews"])

    for arguments, told in [
        (("--section", "forum"), "there is no section 'forum'"),
        (("--under", "n1"), "under needs exactly one section"),
        (("--section", "forums", "--under", "n2"), "there is no forum with the external id 'n2'"),
    ]:
        refused = trellis("export", *arguments, "--output", "part.yaml")
        assert refused.exit_code == 1
        assert told in refused.stderr
    assert not Path("part.yaml").exists()


@pytest.mark.usefixtures("community")
def test_external_ids_are_made_of_the_path_or_missed(trellis: Trellis) -> None:
    assert "externalId: news.releases.betas\n" in trellis("export").stdout
    refused = trellis("export", "--external-ids", "fail")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "have no external id" in refused.stderr


@pytest.mark.usefixtures("community")
def test_a_file_that_cannot_be_written_is_a_sentence(trellis: Trellis) -> None:
    refused = trellis("export", "--output", "nowhere/site.yaml")
    assert (refused.exit_code, refused.stderr) == (1, "nowhere/site.yaml could not be written: No such file or directory.\n")


def test_the_schema_is_that_of_the_documents(trellis: Trellis) -> None:
    schema = orjson.loads(trellis("schema").stdout)
    assert {"format", "name", "under", "forums", "groups", "keys"} <= schema["properties"].keys()


@pytest.mark.either_engine
def test_a_file_is_replaced_as_a_whole_and_stays_as_private_as_it_was(community: Community, trellis: Trellis) -> None:
    site, link, pipe = Path("site.yaml"), Path("link.yaml"), Path("/dev/null")
    site.write_text("old\n" * 10_000, encoding="utf-8")
    site.chmod(0o600)
    link.symlink_to(site)
    assert trellis("export", "--output", link).exit_code == 0
    assert read_document(site.read_text(encoding="utf-8"))["format"] == "trellis/1"
    assert (site.stat().st_mode & 0o777, link.is_symlink()) == (0o600, True)
    assert trellis("export", "--output", pipe).exit_code == 0
    assert pipe.is_char_device()
    assert sorted(Path().iterdir()) == [link, site]


def test_a_file_is_durable_before_it_replaces_the_old_one_and_so_is_its_name_afterwards(
    trellis: Trellis, made_durable: list[tuple[Path, list[str]]]
) -> None:
    assert trellis("export", "--output", "site.yaml").exit_code == 0
    (file, _), (folder, names) = made_durable[-2:]
    assert (file.parent, folder, names) == (Path.cwd(), Path.cwd(), ["site.yaml"])


@pytest.mark.either_engine
def test_a_pipe_that_has_no_name_of_its_own_is_written_to(community: Community, trellis: Trellis) -> None:
    for leads_to in ("/dev/fd/{}", "link"):
        read, write = os.pipe()
        path = Path(leads_to.format(write))
        if leads_to == "link":
            path.symlink_to(f"/dev/fd/{write}")
        exported = trellis("export", "--output", path)
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as opened:
            text = opened.read()
        assert exported.exit_code == 0, exported.stderr
        assert read_document(text)["format"] == "trellis/1"


def test_a_folder_that_was_deleted_takes_no_file(trellis: Trellis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    refused = trellis("export", "--output", "site.yaml")

    assert (refused.exit_code, refused.stderr) == (1, "site.yaml could not be written: No such file or directory.\n")
