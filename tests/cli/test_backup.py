"""`trellis backup`."""

import errno
import os
import resource
import signal
import stat
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli import signalled_backup
from tests.cli.conftest import Environment, Trellis
from tests.community import Community
from tests.forked import ForkedProcess
from tests.service_process import environment
from tests.sqlite_file import file_of, open_sqlite
from tests.wait import GIVE_UP
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.settings import Settings
from trellis.store import sqlite
from trellis.store.backup import backup

on_sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


@on_sqlite
def test_a_copy_is_a_whole_database_that_only_its_owner_reads(community: Community, trellis: Trellis, nowhere: Environment) -> None:
    result = trellis("backup", "copy.db")

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Copied ")
    assert stat.S_IMODE(Path("copy.db").stat().st_mode) == 0o600
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["copy.db"]
    nowhere(database_url="sqlite:///copy.db")
    assert trellis("check").exit_code == 0
    assert '"name": "Betas"' in trellis("run", "forums.get", f"id={community.betas}").stdout


@on_sqlite
@pytest.mark.parametrize(("function", "number"), [("open", errno.EACCES), ("fsync", errno.EINVAL)])
def test_a_folder_that_cannot_be_made_durable_takes_files_all_the_same(
    trellis: Trellis, monkeypatch: pytest.MonkeyPatch, function: str, number: int
) -> None:
    """Nobody may list what is in it, or its file system does that by itself."""
    real = getattr(os, function)

    def refuse_folder(file: Any, *more: Any) -> Any:
        if os.path.isdir(file):  # noqa: PTH112  # a name, or the number of an open one
            raise OSError(number, os.strerror(number))
        return real(file, *more)

    Path("keys.yaml").write_text("format: trellis/1\nname: site\nkeys:\n- {name: Feed}\n", encoding="utf-8")
    monkeypatch.setattr(os, function, refuse_folder)
    for command in (
        ("backup", "copy.db"),
        ("export", "--output", "site.yaml"),
        ("apply", "keys.yaml", "--yes", "--keys-to", "keys.txt"),
    ):
        result = trellis(*command)
        assert result.exit_code == 0, result.output
        assert "could not be written" not in result.output
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["copy.db", "keys.txt", "keys.yaml", "site.yaml"]


@on_sqlite
def test_nothing_is_overwritten(trellis: Trellis) -> None:
    Path("copy.db").write_text("precious")

    result = trellis("backup", "copy.db")

    assert result.exit_code == 1
    assert result.stderr == "copy.db already exists. Nothing was overwritten: choose another name.\n"
    assert Path("copy.db").read_text() == "precious"


@on_sqlite
@pytest.mark.parametrize("name", ["", ".", "/", ".."])
def test_a_folder_is_not_a_name_for_a_copy(trellis: Trellis, name: str) -> None:
    """Nor is an empty name, such as that of a variable of the shell that is not set: it means this folder."""
    result = trellis("backup", "create", name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"{name or '.'} already exists. Nothing was overwritten: choose another name.\n"
    assert [*Path.cwd().iterdir()] == []


def test_the_database_of_another_program_is_neither_copied_nor_changed(cli: Trellis, nowhere: Environment) -> None:
    with closing(open_sqlite(Path("other.db"))) as other:
        other.execute("CREATE TABLE customers (id INTEGER)")
    before = Path("other.db").read_bytes()
    nowhere(database_url="sqlite:///other.db")

    for arguments in (("copy.db",), ("copies", "--every", "1h")):
        result = cli("backup", *arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == "The database other.db belongs to another program. It was not changed.\n"
    assert Path("other.db").read_bytes() == before
    assert [path.name for path in Path.cwd().iterdir()] == ["other.db"]


@on_sqlite
@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal", "-lock", ".restoring", ".restoring-wal"])
@pytest.mark.parametrize("every", [(), ("--every", "1h")])
def test_a_file_that_belongs_to_the_database_is_no_name_for_a_copy(
    settings: Settings, trellis: Trellis, suffix: str, every: tuple[str, ...]
) -> None:
    database = file_of(settings)
    name = f"{database}{suffix}"
    Path(name).unlink(missing_ok=True)
    Path("folder").symlink_to(database.parent)
    for given in (name, f"folder/{Path(name).name}"):
        result = trellis("backup", given, *every)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == f"{given} is the name of a file that belongs to the database: choose another name.\n"
    assert suffix == "-lock" or not Path(name).exists()


@on_sqlite
@pytest.mark.parametrize(
    "command",
    [
        ("export", "--output"),
        ("plan", "document.yaml", "--output"),
        ("apply", "document.yaml", "--yes", "--keys-to"),
        ("import", "invision", "--from", "saved", "--output"),
        ("import", "invision", "--from", "saved", "--report"),
        ("import", "invision", "--from", "saved", "--save"),
        ("export", "invision"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
def test_no_command_writes_its_output_over_the_database(
    settings: Settings, trellis: Trellis, command: tuple[str, ...], suffix: str
) -> None:
    Path("document.yaml").write_text("trellis: 1\n")
    database = file_of(settings)
    before = database.read_bytes()
    name = f"{database}{suffix}"

    result = trellis(*command, name)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"{name} is the name of a file that belongs to the database: choose another name.\n"
    assert database.read_bytes() == before


@on_sqlite
@pytest.mark.parametrize("has_links", [True, False])
def test_a_copy_has_its_name_only_when_it_is_whole(trellis: Trellis, monkeypatch: pytest.MonkeyPatch, has_links: bool) -> None:
    copy, seen = sqlite.copy, list[bool]()

    def watched(source: Any, target: Any, pages: int, progress: Any) -> None:
        copy(source, target, pages, progress)
        seen.append(Path("copy.db").exists())

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(sqlite, "copy", watched)
    if not has_links:
        monkeypatch.setattr("os.link", refuse)
    assert trellis("backup", "copy.db").exit_code == 0
    assert seen == [False]
    assert [path.name for path in Path.cwd().iterdir()] == ["copy.db"]


@on_sqlite
def test_what_takes_the_name_of_a_copy_meanwhile_is_not_overwritten(trellis: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = sqlite.copy

    def be_late(source: Any, target: Any, pages: int, progress: Any) -> None:
        copy(source, target, pages, progress)
        Path("copy.db").write_text("precious")

    monkeypatch.setattr(sqlite, "copy", be_late)
    assert trellis("backup", "copy.db").stderr == "copy.db already exists. Nothing was overwritten: choose another name.\n"
    assert [path.name for path in Path.cwd().iterdir()] == ["copy.db"]
    assert Path("copy.db").read_text() == "precious"


@on_sqlite
def test_a_copy_that_cannot_be_written_is_a_sentence(trellis: Trellis) -> None:
    result = trellis("backup", "nowhere/copy.db")

    assert result.exit_code == 1
    assert result.stderr == "nowhere/copy.db cannot be written: No such file or directory.\n"


@on_sqlite
def test_a_full_disk_is_that_of_the_copy(trellis: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(_source: object, target: Any, *_: object) -> None:
        target.execute("PRAGMA max_page_count=1").fetchall()
        target.execute("CREATE TABLE pages (body BLOB)")

    monkeypatch.setattr(sqlite, "copy", fill)
    result = trellis("backup", "copy.db")

    assert result.exit_code == 1
    assert result.stderr.endswith("copy.db cannot be written: No space left on device.\n")
    assert list(Path.cwd().iterdir()) == []


@on_sqlite
def test_a_disk_that_fails_to_write_is_that_of_the_copy(trellis: Trellis) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, limits[1]))
    try:
        result = trellis("backup", "copy.db")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert result.exit_code == 1
    assert result.stderr.endswith("copy.db cannot be written: Input/output error.\n")
    assert list(Path.cwd().iterdir()) == []


@on_sqlite
def test_a_copy_made_during_writes_is_consistent(settings: Settings, trellis: Trellis, nowhere: Environment) -> None:
    gate = compose(settings)
    stop = threading.Event()

    def write() -> None:
        at = 0
        while not stop.is_set():
            gate.run(Call("forums.create", TERMINAL, {"name": f"Forum {at}", "description": "x" * 2000, "position": 0}))
            at += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        results = [trellis("backup", f"copy{number}.db") for number in range(5)]
    finally:
        stop.set()
        writer.join()
        gate.store.close()

    assert [result.exit_code for result in results] == [0] * 5
    for number in range(5):
        nowhere(database_url=f"sqlite:///copy{number}.db")
        assert trellis("check").exit_code == 0


def test_writes_during_a_copy_do_not_begin_it_anew(tmp_path: Path) -> None:
    source, copy = tmp_path / "source.db", tmp_path / "copy.db"
    with closing(open_sqlite(source)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE pages (body BLOB)")
        connection.executemany("INSERT INTO pages VALUES (zeroblob(4000))", [()] * 9000)
        told: list[int] = []

        def write_between(done: int, _total: int) -> None:
            told.append(done)
            connection.execute("INSERT INTO pages VALUES (zeroblob(4000))")

        backup(source, copy, write_between)

    assert len(told) >= 4
    assert told == sorted(told)
    with closing(open_sqlite(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM pages").fetchone() == (9000,)


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Dear diary, " * 100)

    with pytest.raises(sqlite.Error):
        backup(tmp_path / "notes.txt", tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt"]


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_postgresql_has_a_tool_of_its_own(trellis: Trellis) -> None:
    result = trellis("backup", "copy.db")

    assert result.exit_code == 2
    assert "pg_dump" in result.stderr
    assert not Path("copy.db").exists()


@on_sqlite
def test_a_name_that_the_file_system_refuses_is_told(trellis: Trellis, nowhere: Environment) -> None:
    """As with a folder that this user may not look into: whether there is a file cannot even be asked."""
    name = "x" * 300
    restored = trellis("backup", "restore", name)
    nowhere(database_url=f"sqlite:///{name}")
    copied = trellis("backup", "copy.db")

    assert (restored.exit_code, copied.exit_code) == (1, 1)
    assert restored.stderr == copied.stderr == f"The database {name} cannot be used: File name too long.\n"


@pytest.mark.usefixtures("trellis")
@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("step", "number"),
    [
        ("copy", signal.SIGTERM),
        ("copy", signal.SIGHUP),
        ("verify", signal.SIGINT),
        ("verify", signal.SIGTERM),
        ("record", signal.SIGTERM),
    ],
)
def test_a_copy_that_is_ended_leaves_nothing(settings: Settings, tmp_path: Path, step: str, number: signal.Signals) -> None:
    folder = tmp_path / "copies"
    folder.mkdir()

    def back_up(*options: str) -> int:
        output = tmp_path / "output"
        output.touch()
        words = [step, str(int(number)), "backup", *options]
        return ForkedProcess(words, folder, environment(settings), output, signalled_backup.back_up).wait(GIVE_UP)

    assert back_up("copy.db") == 130
    assert list(folder.iterdir()) == []
    assert back_up(".", "--every", "1h") == 0
    assert [path.name for path in folder.iterdir()] == [".trellis-copies-of"]
