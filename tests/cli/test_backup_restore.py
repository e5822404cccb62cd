"""`trellis backup restore`: a copy takes the place of the database, or nothing is changed."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Environment, Trellis
from tests.community import Community
from tests.sqlite_file import file_of, open_sqlite
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.settings import Settings
from trellis.store import sqlite
from trellis.store.backup import backup, restore
from trellis.store.engine import FileLock

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

LIVE = Path("live.db")


@pytest.fixture
def live(community: Community, settings: Settings, cli: Trellis, nowhere: Environment) -> Trellis:
    """The command line over the sample community, of which there is a copy, and which has a forum more by now."""
    nowhere(database_url="sqlite:///live.db")
    shutil.copy(file_of(settings), LIVE)
    assert cli("backup", "copy.db").exit_code == 0
    assert cli("run", "forums.create", "name=Later").exit_code == 0
    return cli


@contextmanager
def serving() -> Iterator[None]:
    """Have the database open, and something in its WAL."""
    gate = compose(Settings.load({"TRELLIS_DATABASE_URL": f"sqlite:///{LIVE}"}, None))
    gate.run(Call("forums.create", TERMINAL, {"name": "In the WAL"}))
    yield
    gate.store.close()


def names() -> set[str]:
    return {path.name for path in Path.cwd().iterdir()}


def has_forum(cli: Trellis, name: str) -> bool:
    return '"totalResults": 1' in cli("run", "forums.list", f"search={name}").stdout


def damage(file: Path, pages: int = 4) -> None:
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 8192 * 4096)
        opened.write(b"\xff" * 4096 * pages)


def test_a_copy_takes_the_place_of_the_database_which_is_set_aside(live: Trellis) -> None:
    LIVE.chmod(0o640)

    result = live("backup", "restore", "copy.db")

    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("Restored live.db from copy.db.\n")
    assert stat.S_IMODE(LIVE.stat().st_mode) == 0o640
    assert (has_forum(live, "Later"), has_forum(live, "Betas")) == (False, True)
    assert live("check").exit_code == 0
    (aside,) = [name for name in names() if ".replaced-" in name]
    assert names() == {"copy.db", "live.db", "live.db-lock", aside}
    shutil.move(aside, "aside.db")
    with open_sqlite("aside.db") as old:
        assert old.execute("SELECT count(*) FROM nodes WHERE name = 'Later'").fetchone() == (1,)


def crash() -> None:
    """Leave the files of a service that was killed, with something in the WAL."""
    with serving():
        crashed = {suffix: Path(f"live.db{suffix}").read_bytes() for suffix in ("", "-wal", "-shm")}
    for suffix, content in crashed.items():
        Path(f"live.db{suffix}").write_bytes(content)


def count_in_wal(file: str | Path) -> int:
    with open_sqlite(file) as opened:
        found: int = opened.execute("SELECT count(*) FROM nodes WHERE name = 'In the WAL'").fetchone()[0]
    return found


def test_what_stands_beside_the_database_goes_with_it(live: Trellis) -> None:
    crash()

    assert live("backup", "restore", "copy.db").exit_code == 0

    assert not has_forum(live, "WAL")
    assert live("check").exit_code == 0
    (aside,) = [name for name in names() if ".replaced-" in name]
    assert count_in_wal(aside) == 1


def test_whenever_a_restore_is_killed_a_whole_database_is_in_place(live: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    crash()
    seen = list[int]()

    def look() -> None:
        killed = Path("killed")
        killed.mkdir()
        for suffix in ("", "-wal"):
            if Path(f"live.db{suffix}").exists():
                shutil.copy(f"live.db{suffix}", killed / f"live.db{suffix}")
        seen.append(count_in_wal(killed / "live.db"))
        shutil.rmtree(killed)

    def watched(real: Callable[..., Any], *given: Any) -> Any:
        look()
        result = real(*given)
        look()
        return result

    for place, name in ((Path, "rename"), (os, "link"), (os, "fsync")):
        real = getattr(place, name)
        monkeypatch.setattr(place, name, lambda *given, real=real: watched(real, *given))
    assert live("backup", "restore", "copy.db").exit_code == 0

    assert seen == sorted(seen, reverse=True)  # the old one, and from one moment on the new one
    assert (seen[0], seen[-1]) == (1, 0)


def crash_unreadable(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Leave the files of a service that was killed, and let SQLite fail with them; return what is in them."""
    crash()
    close_wal = restore._close_wal

    def fail(file: Path) -> None:
        if file.name == "live.db":
            raise sqlite.FAILURES[0]("disk I/O error")
        close_wal(file)

    monkeypatch.setattr(restore, "_close_wal", fail)
    return {suffix: Path(f"live.db{suffix}").read_bytes() for suffix in ("", "-shm", "-wal")}


def test_a_database_that_cannot_be_read_is_set_aside_as_it_is(live: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    files = crash_unreadable(monkeypatch)
    rename, seen = Path.rename, list[tuple[bool, bool]]()

    def watched(path: Path, target: Path) -> Path:
        renamed = rename(path, target)
        seen.append((LIVE.exists(), Path("live.db-wal").exists()))
        return renamed

    monkeypatch.setattr(Path, "rename", watched)
    assert live("backup", "restore", "copy.db").exit_code == 0

    assert has_forum(live, "Betas")
    aside = sorted(name for name in names() if ".replaced-" in name)
    assert {name.partition("Z")[2]: Path(name).read_bytes() for name in aside} == files
    assert seen[0] == (False, True)  # no database is ever beside the WAL of another
    assert seen[-1] == (True, False)


def test_a_folder_without_second_names_for_a_file_will_do(live: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    crash()

    assert live("backup", "restore", "copy.db").exit_code == 0

    assert (has_forum(live, "Later"), has_forum(live, "Betas")) == (False, True)
    (aside,) = [name for name in names() if ".replaced-" in name]
    assert count_in_wal(aside) == 1


def test_nothing_is_restored_while_a_service_runs(live: Trellis) -> None:
    with serving():
        result = live("backup", "restore", "copy.db")
    assert result.exit_code == 1
    assert "live.db is in use by another process, and it must not be: stop the service" in result.stderr
    assert has_forum(live, "Later")


def test_nothing_is_restored_while_a_copy_is_made(live: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    restored = []

    def back_up(*given: Any) -> None:
        restored.append(live("backup", "restore", "copy.db"))
        backup(*given)

    monkeypatch.setattr("trellis.cli.backup.commands.backup", back_up)

    assert live("backup", "another.db").exit_code == 0
    assert restored[0].exit_code == 1
    assert "live.db is in use by another process, and it must not be: stop the service" in restored[0].stderr
    assert has_forum(live, "Later")


@pytest.mark.parametrize("command", [("run", "forums.list"), ("backup", "another.db")])
def test_nothing_else_uses_the_database_during_a_restore_and_says_why(live: Trellis, command: tuple[str, ...]) -> None:
    settings = Settings.load({"TRELLIS_DATABASE_URL": f"sqlite:///{LIVE}"}, None)
    with restore.prepare_restore(settings, LIVE, Path("copy.db")):
        result = live(*command)

    assert result.exit_code == 1
    assert result.stderr == (
        "The database live.db is in use by another process, and that one keeps others out: a `trellis backup restore`, or a "
        "process whose SQLite cannot share a database. Try again once it has ended.\n"
    )


def test_a_damaged_copy_is_refused_and_nothing_is_changed(live: Trellis) -> None:
    damage(Path("copy.db"))
    before = names() | {"live.db-lock"}

    result = live("backup", "restore", "copy.db")

    assert result.exit_code == 1
    assert "copy.db is damaged" in result.stderr
    assert names() == before
    assert has_forum(live, "Later")


def test_a_copy_that_was_cut_off_is_refused_and_nothing_is_changed(live: Trellis) -> None:
    os.truncate("copy.db", Path("copy.db").stat().st_size // 2)

    result = live("backup", "restore", "copy.db")

    assert result.stderr == "copy.db is damaged. Restore another copy. Nothing was changed.\n"
    assert has_forum(live, "Later")


@pytest.mark.parametrize("content", [b"", b"Dear diary, " * 100])
def test_what_is_no_database_of_trellis_is_refused(live: Trellis, content: bytes) -> None:
    Path("other.db").write_bytes(content)

    result = live("backup", "restore", "other.db")

    assert result.exit_code == 1
    assert "other.db is not a" in result.stderr
    assert has_forum(live, "Later")


def test_a_copy_that_is_not_there_is_a_sentence(live: Trellis) -> None:
    assert live("backup", "restore", "none.db").stderr == "There is no file none.db.\n"


def test_a_copy_of_an_older_release_is_brought_up_to_date(live: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    monkeypatch.setattr("trellis.store.backup.restore.migrate", lambda settings: ran.append(settings.database_url))

    assert live("backup", "restore", "copy.db").exit_code == 0

    assert ran == ["sqlite:///live.db.restoring"]


def test_a_database_that_is_lost_is_restored(live: Trellis) -> None:
    LIVE.unlink()

    assert live("backup", "restore", "copy.db").exit_code == 0

    assert has_forum(live, "Betas")


def test_a_damaged_database_is_not_backed_up(live: Trellis) -> None:
    damage(LIVE)

    result = live("backup", "second.db")

    assert result.exit_code == 1
    assert "live.db is damaged. Restore a backup." in result.stderr
    assert "second.db" not in names()


def test_a_database_that_was_set_aside_is_never_overwritten(live: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Clock":
            return cls(2026, 11, 22, 12, tzinfo=tz)

    monkeypatch.setattr(restore, "datetime", Clock)
    assert live("backup", "restore", "copy.db").exit_code == 0
    assert live("backup", "restore", "copy.db").exit_code == 0

    aside = [name for name in names() if ".replaced-" in name]
    assert len(aside) == 2
    found = 0
    for name in aside:
        with open_sqlite(name) as old:
            found += old.execute("SELECT count(*) FROM nodes WHERE name = 'Later'").fetchone()[0]
    assert found == 1


def test_what_a_killed_restore_has_left_goes_with_the_next_command_but_nothing_of_one_that_runs(
    live: Trellis, nowhere: Environment
) -> None:
    before = names()
    left = {"live.db.restoring", "live.db.restoring-wal", "live.db.restoring-lock"}
    for name in left:
        Path(name).write_bytes(b"left")
    running = FileLock(LIVE)
    running.take()
    assert live("check").exit_code == 1
    assert names() == before | left
    running.release()

    assert live("check").exit_code == 0
    assert names() == before

    Path("live.db.restoring").write_bytes(b"left")
    Path("linked.db").symlink_to(LIVE)
    nowhere(database_url="sqlite:///linked.db")
    assert live("check").exit_code == 0
    assert names() == before | {"linked.db"}


def interrupt_rename(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let the rename with this number fail."""
    rename, renamed = Path.rename, list[Path]()

    def interrupt(path: Path, target: Path) -> Path:
        renamed.append(path)
        if len(renamed) == number:
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupt)


def test_a_restore_that_is_interrupted_leaves_the_database_as_it_was(live: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    crash()
    interrupt_rename(monkeypatch, 1)

    result = live("backup", "restore", "copy.db")

    assert result.exit_code == 1
    assert result.stderr.endswith("live.db cannot be written: No space left on device.\n")
    assert {name for name in names() if name.startswith("live.db")} == {"live.db", "live.db-lock"}
    assert has_forum(live, "Later")
    assert has_forum(live, "WAL")


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_restore_that_is_interrupted_once_the_copy_is_in_place_loses_neither_database(
    live: Trellis, monkeypatch: pytest.MonkeyPatch, is_readable: bool
) -> None:
    if is_readable:
        crash()
    else:
        crash_unreadable(monkeypatch)
    rename = Path.rename

    def interrupt(path: Path, target: Path) -> Path:
        renamed = rename(path, target)
        if target.name == LIVE.name:
            raise KeyboardInterrupt
        return renamed

    monkeypatch.setattr(Path, "rename", interrupt)

    assert live("backup", "restore", "copy.db").exit_code != 0

    assert has_forum(live, "Betas")
    assert not has_forum(live, "Later")
    (aside,) = [name for name in names() if name.endswith("Z")]
    assert count_in_wal(aside) == 1


@pytest.mark.parametrize("at", [1, 2, 3])
def test_nor_does_it_change_one_that_cannot_be_read(live: Trellis, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    files = crash_unreadable(monkeypatch)
    interrupt_rename(monkeypatch, at + 1)

    result = live("backup", "restore", "copy.db")

    assert result.stderr.endswith("live.db cannot be written: No space left on device.\n")
    assert {name.removeprefix("live.db") for name in names() if name.startswith("live.db")} == {"", "-lock", "-shm", "-wal"}
    assert {suffix: Path(f"live.db{suffix}").read_bytes() for suffix in files} == files


def test_a_link_to_the_database_stays_and_a_service_that_knows_the_file_keeps_it(live: Trellis, nowhere: Environment) -> None:
    Path("data").mkdir()
    LIVE.rename("data/real.db")
    LIVE.symlink_to("data/real.db")
    gate = compose(Settings.load({"TRELLIS_DATABASE_URL": "sqlite:///data/real.db"}, None))
    gate.run(Call("forums.create", TERMINAL, {"name": "By the service"}))

    refused = live("backup", "restore", "copy.db")
    gate.store.close()

    assert "live.db is in use by another process" in refused.stderr
    assert has_forum(live, "By the service")
    assert live("backup", "restore", "copy.db").exit_code == 0
    assert LIVE.is_symlink()
    nowhere(database_url="sqlite:///data/real.db")
    assert (has_forum(live, "Later"), has_forum(live, "Betas")) == (False, True)


def test_a_database_that_is_lost_is_restored_for_the_owner_of_its_folder(live: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    LIVE.unlink()
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr("os.chown", lambda file, user, group: given.append((Path(file).name, user, group)))

    assert live("backup", "restore", "copy.db").exit_code == 0

    folder = Path.cwd().stat()
    assert given == [("live.db.restoring", folder.st_uid, folder.st_gid)]


def test_a_copy_may_have_a_name_that_is_not_utf8(live: Trellis) -> None:
    name = os.fsdecode(b"k\xf6pie ?#%41.db")  # Latin-1, and what means something in an address

    made = live("backup", name)
    assert live("run", "forums.create", "name=Latest").exit_code == 0
    restored = live("backup", "restore", name)

    assert made.exit_code == restored.exit_code == 0, restored.output
    assert made.stdout.startswith("Copied live.db to k\\udcf6pie ?#%41.db (")
    assert restored.stdout.endswith("Restored live.db from k\\udcf6pie ?#%41.db.\n")
    assert (has_forum(live, "Later"), has_forum(live, "Latest")) == (True, False)


def test_the_folder_may_have_a_question_mark_in_its_name(live: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("which?").mkdir()
    for name in ("live.db", "copy.db"):
        shutil.move(name, "which?")
    monkeypatch.chdir("which?")

    result = live("backup", "restore", "copy.db")

    assert result.exit_code == 0, result.output
    assert (has_forum(live, "Later"), has_forum(live, "Betas")) == (False, True)


@pytest.mark.parametrize("name", ["live.db.restoring", "live.db.restoring-journal", "live.db-wal"])
@pytest.mark.parametrize("given", ["itself", "link", "second name"])
def test_a_copy_with_a_name_that_a_restore_uses_is_refused_and_stays(live: Trellis, name: str, given: str) -> None:
    Path("copy.db").rename(name)
    copy = Path(name if given == "itself" else "copy.db")
    if given == "link":
        copy.symlink_to(name)
    elif given == "second name":
        copy.hardlink_to(name)
    before = {path: Path(path).read_bytes() for path in names()}

    result = live("backup", "restore", str(copy))

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith(
        f"{name}, the name of a file that SQLite or a restore may delete: rename it first. Nothing was changed.\n"
    )
    assert {path: Path(path).read_bytes() for path in names()} == before
