"""Saved answers: written by --save, read by --from, and refused with a sentence where they cannot be used."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Trellis
from tests.cli.invision.conftest import Document, Import
from tests.cli.structure.conftest import Screen
from tests.old_community import OldCommunity, forum, group, make_lists
from tests.wait import wait_until
from trellis.cli.app import app
from trellis.invision import read_saved, saved, translate

Read = Callable[..., Document]
pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # none of this is about the database


def page(records: list[dict[str, Any]]) -> dict[str, Any]:
    return {"page": 1, "perPage": 25, "totalResults": len(records), "totalPages": 1, "results": records}


def save_lists(folder: Path, **texts: str) -> Path:
    """Save a community of a few groups and forums in a folder, and texts in place of its files."""
    for path, records in {"core/groups": [group(2, "Guests")], "forums/forums": [forum(1, "News")]}.items():
        (folder / path).mkdir(parents=True)
        (folder / path / "page-1.json").write_text(json.dumps(page(records)), encoding="utf-8")
    for name, text in texts.items():
        (folder / "forums/forums" / f"{name.replace('_', '-')}.json").write_text(text, encoding="utf-8")
    return folder


def test_what_was_saved_gives_the_same_document(bring: Import, trellis: Trellis, old: OldCommunity) -> None:
    brought = bring("--save", "saved", "--per-page", "4")
    assert brought.exit_code == 0
    assert "Saved the answers in saved." in brought.stderr
    assert sorted(file.name for file in Path("saved/forums/forums").iterdir()) == ["page-1.json", "page-2.json", "page-3.json"]
    first = Path("invision.yaml").read_text(encoding="utf-8").partition("\n")[2]
    old.requests.clear()
    again = trellis("import", "invision", "--from", "saved", "--output", "again.yaml", "--report", "report.txt")
    assert again.exit_code == 0, again.output
    assert Path("again.yaml").read_text(encoding="utf-8") == f"# Moved in from saved\n{first}"
    assert Path("report.txt").read_text(encoding="utf-8").startswith("Moving in from Green Fingers (saved, release 4.7.20)\n")
    assert old.requests == []


def test_what_takes_long_shows_progress_at_a_terminal(trellis: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    del trellis  # whose database it uses
    screen = Screen()

    def slowly(what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def work_slowly(*arguments: Any) -> Any:
            wait_until(lambda: what in screen.getvalue())
            return work(*arguments)

        return work_slowly

    save_lists(Path("saved"))
    monkeypatch.setattr("trellis.cli.invision.commands.read_saved", slowly("Reading saved", read_saved))
    monkeypatch.setattr("trellis.cli.invision.commands.translate", slowly("Translating", translate))
    monkeypatch.setattr("trellis.cli.terminal._PATIENCE", 0.0)
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "100")
    app(["import", "invision", "--from", "saved"], standalone_mode=False)
    assert Path("invision.yaml").exists()


def test_a_single_file_has_answers_by_their_paths(trellis: Trellis, read: Read) -> None:
    lists: dict[str, Any] = {path: page(records) for path, records in make_lists().items()}
    lists["forums/forums"] = [page(lists["forums/forums"]["results"][:4]), page(lists["forums/forums"]["results"][4:])]
    lists["core/groups"] = lists["core/groups"]["results"]
    Path("saved.json").write_text(json.dumps(lists), encoding="utf-8")
    brought = trellis("import", "invision", "--from", "saved.json")
    assert brought.exit_code == 0, brought.output
    assert "5 groups, 7 forums, 2 blogs, 2 calendars, 2 download categories; 2 left out." in brought.stdout


def test_saved_answers_are_not_overwritten_by_the_document(trellis: Trellis) -> None:
    text = json.dumps({"core/groups": [group(2, "Guests")]})
    Path("saved.json").write_text(text, encoding="utf-8")
    refused = trellis("import", "invision", "--from", "saved.json", "--output", "./saved.json")
    assert (refused.exit_code, "would be overwritten" in " ".join(refused.stderr.split())) == (1, True)
    assert Path("saved.json").read_text(encoding="utf-8") == text


def test_a_folder_of_any_name_gives_a_document_that_can_be_read(trellis: Trellis, read: Read) -> None:
    folder = save_lists(Path("a\x07b\x1b[31m\nc: \u2028d"))
    assert trellis("import", "invision", "--from", str(folder)).exit_code == 0
    assert [entry["name"] for entry in read()["forums"]] == ["News"]


def test_a_list_of_which_only_a_part_was_saved_is_told(trellis: Trellis) -> None:
    lists: dict[str, Any] = {path: page(records) for path, records in make_lists().items()}
    lists["forums/forums"] = {**page(lists["forums/forums"]["results"][:4]), "totalResults": 9, "totalPages": 3}
    Path("saved.json").write_text(json.dumps(lists), encoding="utf-8")
    sentence = "forums/forums: the answers report 5 more records than were saved. Save all pages of the list."
    brought = trellis("import", "invision", "--from", "saved.json", "--report", "report.txt")
    assert (brought.exit_code, sentence in " ".join(brought.stderr.split())) == (0, True), brought.output
    assert sentence in Path("report.txt").read_text(encoding="utf-8")
    save_lists(Path("saved"), page_1=json.dumps({**page([forum(1, "News")]), "totalResults": 6, "totalPages": 6}))
    assert trellis("import", "invision", "--from", "saved").stderr.count("5 more records than were saved") == 1


def test_it_does_not_overwrite_what_was_saved(bring: Import, old: OldCommunity) -> None:
    Path("saved").mkdir()
    assert bring("--save", "saved").exit_code == 0
    old.requests.clear()
    refused = bring("--save", "saved")
    assert (refused.exit_code, "saved already exists" in refused.stderr.replace("\n", "")) == (1, True)
    assert old.requests == []


def test_only_those_read_what_is_saved_who_may_read_new_files_or_the_empty_folder(bring: Import, trellis: Trellis) -> None:
    Path("empty").mkdir(0o750)
    old = os.umask(0o077)
    try:
        assert bring("--save", "new").exit_code == 0
        assert trellis("export", "invision", "x" * 250).exit_code == 0
        os.umask(0o022)
        assert bring("--save", "empty").exit_code == 0
    finally:
        os.umask(old)
    modes = {name: Path(name).stat().st_mode & 0o777 for name in ("new", "x" * 250, "empty")}
    assert modes == {"new": 0o700, "x" * 250: 0o700, "empty": 0o750}


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        ({"page_1": '{"results": [\n{"id": 1,\n'}, "page-1.json, line 3: This is not JSON"),
        ({"page_1": ""}, "page-1.json, line 1: This is not JSON"),
        ({"page_1": "[" * 5000}, "This is not JSON"),
        ({"page_1": "7"}, "forums/forums, page 1: this is not a list of records"),
        ({"page_1": '{"results": [{"id": "12a"}]}'}, "record 1 has no usable id, but '12a'"),
        ({"page_1": '{"errorCode": "2S291/3", "errorMessage": "NO_PERMISSION"}'}, "this is not a list of records"),
        ({"page_3": '{"results": []}'}, "page-2.json is missing"),
    ],
)
def test_answers_that_cannot_be_used(trellis: Trellis, tmp_path: Path, texts: dict[str, str], told: str) -> None:
    refused = trellis("import", "invision", "--from", save_lists(tmp_path / "saved", **texts))
    assert (refused.exit_code, told in " ".join(refused.stderr.split())) == (1, True), refused.stderr
    assert [*Path().iterdir()] == []


def test_a_file_that_is_too_large(trellis: Trellis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "MOST_BYTES", 100)
    refused = trellis("import", "invision", "--from", save_lists(tmp_path / "saved"))
    assert (refused.exit_code, "in smaller pages" in refused.stderr) == (1, True)


@pytest.mark.parametrize(
    ("text", "told"),
    [(None, "could not be read"), ("[]", "must be an object with the answers by their paths"), ("{}", "There are no answers")],
)
def test_a_file_without_answers(trellis: Trellis, text: str | None, told: str) -> None:
    if text is not None:
        Path("saved.json").write_text(text, encoding="utf-8")
    refused = trellis("import", "invision", "--from", "saved.json")
    assert (refused.exit_code, told in refused.stderr) == (1, True), refused.stderr


def test_a_folder_without_answers_or_without_groups(trellis: Trellis, tmp_path: Path) -> None:
    refused = trellis("import", "invision", "--from", tmp_path)
    assert (refused.exit_code, "There are no answers of a community in it" in refused.stderr) == (1, True)
    folder = save_lists(tmp_path / "saved")
    (folder / "core/groups/page-1.json").unlink()
    refused = trellis("import", "invision", "--from", folder)
    assert (refused.exit_code, "permissions mean nothing without them" in refused.stderr) == (1, True)


def test_it_takes_either_an_address_or_what_was_saved(bring: Import) -> None:
    refused = bring("--from", "saved")
    assert (refused.exit_code, "Give either an address with --key-file, or --from" in refused.stderr) == (1, True)


def test_a_document_that_cannot_be_written_leaves_nothing(trellis: Trellis, tmp_path: Path) -> None:
    folder = save_lists(tmp_path / "saved")
    Path("taken").mkdir()
    refused = trellis("import", "invision", "--from", folder, "--output", "taken")
    assert (refused.exit_code, "taken is a folder: name a file in it." in refused.stderr) == (1, True)
    refused = trellis("import", "invision", "--from", folder, "--output", "x" * 300)
    assert (refused.exit_code, "could not be written: File name too long" in refused.stderr) == (1, True)
    refused = trellis("import", "invision", "--from", folder, "--output", "/dev/full")
    assert (refused.exit_code, "could not be written: No space left on device" in refused.stderr) == (1, True)
    assert [*Path().iterdir()] == [Path("taken")]


@pytest.mark.parametrize("member", ["id", "name", "parentId"])
def test_an_answer_that_is_very_deep_is_refused(trellis: Trellis, member: str) -> None:
    record = {"id": "1", "name": '"News"', member: "[" * 1000 + "]" * 1000}
    members = ", ".join(f'"{name}": {value}' for name, value in record.items())
    Path("deep.json").write_text(f'{{"core/groups": [], "forums/forums": [{{{members}}}]}}', encoding="utf-8")
    result = trellis("import", "invision", "--from", "deep.json")
    assert (result.exit_code, result.stderr) == (
        1,
        "An answer is nested too deeply, which no community's is. Nothing was written.\n",
    )
    assert [file.name for file in Path().iterdir()] == ["deep.json"]
