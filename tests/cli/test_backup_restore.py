"""`trellis backup restore`: a copy takes the place of the database, or nothing is changed."""

import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Environment, Trellis
from tests.community import Community
from tests.sqlite_file import file_of, open_sqlite
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.operation import Call
from trellis.settings import Settings

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


def test_what_stands_beside_the_database_goes_with_it(live: Trellis) -> None:
    with serving():
        crashed = {suffix: Path(f"live.db{suffix}").read_bytes() for suffix in ("", "-wal", "-shm")}
    for suffix, content in crashed.items():
        Path(f"live.db{suffix}").write_bytes(content)

    assert live("backup", "restore", "copy.db").exit_code == 0

    assert not has_forum(live, "WAL")
    assert live("check").exit_code == 0
    aside = sorted(name for name in names() if ".replaced-" in name)
    assert [name.partition("Z")[2] for name in aside] == ["", "-shm", "-wal"]
    with open_sqlite(aside[0]) as old:
        assert old.execute("SELECT count(*) FROM nodes WHERE name = 'In the WAL'").fetchone() == (1,)


def test_no_database_is_ever_beside_the_wal_of_another(live: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving():
        wal = Path("live.db-wal").read_bytes()
    Path("live.db-wal").write_bytes(wal)
    rename, seen = Path.rename, list[tuple[bool, bool]]()

    def watched(path: Path, target: Path) -> Path:
        renamed = rename(path, target)
        seen.append((LIVE.exists(), Path("live.db-wal").exists()))
        return renamed

    monkeypatch.setattr(Path, "rename", watched)
    assert live("backup", "restore", "copy.db").exit_code == 0
    assert seen == [(False, True), (False, False), (True, False)]


def test_nothing_is_restored_while_a_service_runs(live: Trellis) -> None:
    with serving():
        result = live("backup", "restore", "copy.db")
    assert result.exit_code == 1
    assert "live.db is in use by another process, and it must not be: stop the service" in result.stderr
    assert has_forum(live, "Later")


def test_a_damaged_copy_is_refused_and_nothing_is_changed(live: Trellis) -> None:
    damage(Path("copy.db"))
    before = names() | {"live.db-lock"}

    result = live("backup", "restore", "copy.db")

    assert result.exit_code == 1
    assert "copy.db is damaged" in result.stderr
    assert names() == before
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
    monkeypatch.setattr("trellis.store.restore.migrate", lambda settings: ran.append(settings.database_url))

    assert live("backup", "restore", "copy.db").exit_code == 0

    assert ran == [f"sqlite:///{Path.cwd()}/live.db.restoring"]


def test_a_database_that_is_lost_is_restored(live: Trellis) -> None:
    LIVE.unlink()

    assert live("backup", "restore", "copy.db").exit_code == 0

    assert has_forum(live, "Betas")


def test_a_damaged_database_is_not_backed_up(live: Trellis) -> None:
    damage(LIVE)

    result = live("backup", "second.db")

    assert result.exit_code == 1
    assert "live.db is damaged" in result.stderr
    assert "trellis backup restore" in result.stderr or "Restore a backup" in result.stderr
    assert "second.db" not in names()
