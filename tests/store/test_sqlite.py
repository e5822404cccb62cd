"""Which SQLite is used, and whether it can lose writes."""

from contextlib import closing
from pathlib import Path

import pytest

from tests.sqlite_file import open_sqlite
from trellis.store import sqlite
from trellis.store.sqlite import Version


@pytest.mark.parametrize(
    ("version", "loses"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 0), True),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 4), False),
        ((4, 0, 0), False),
    ],
)
def test_versions_with_the_wal_reset_bug_are_known(version: tuple[int, int, int], loses: bool) -> None:
    assert Version(*version).has_wal_reset_bug is loses


def test_the_library_that_is_installed_does_not_lose_writes() -> None:
    assert sqlite.HAS_APSW
    assert sqlite.describe_wal_reset_bug() is None


def test_a_file_is_made_only_where_that_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(sqlite.Error) as caught:
        sqlite.connect(tmp_path / "none.db").execute("SELECT 1")
    assert sqlite.result_code(caught.value) == 14  # SQLITE_CANTOPEN
    assert list(tmp_path.iterdir()) == []
    open_sqlite(tmp_path / "some.db").close()
    assert [path.name for path in tmp_path.iterdir()] == ["some.db"]


def test_a_data_version_is_read_with_the_pragma_since_apsws_own_is_that_of_the_last_read(tmp_path: Path) -> None:
    with closing(open_sqlite(tmp_path / "a.db")) as writer, closing(open_sqlite(tmp_path / "a.db")) as reader:
        writer.execute("PRAGMA journal_mode=WAL").fetchall()
        writer.execute("CREATE TABLE t (a)")
        before = reader.execute("PRAGMA data_version").fetchone()
        own = reader.data_version()
        writer.execute("INSERT INTO t VALUES (1)")
        assert reader.data_version() == own
        assert reader.execute("PRAGMA data_version").fetchone() != before


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="files that have no name any more are told by Linux")
@pytest.mark.parametrize(("changed", "goes_to_a_file"), [(30, False), (33, True), (1000, True)])
def test_what_a_savepoint_may_bring_back_takes_memory_up_to_a_bound(tmp_path: Path, changed: int, goes_to_a_file: bool) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000)"
    with closing(sqlite.connect(tmp_path / "some.db", create=True)) as database:
        database.execute("PRAGMA temp_store=FILE")
        database.execute("PRAGMA journal_mode=WAL").fetchall()
        database.execute("CREATE TABLE pages (id INTEGER PRIMARY KEY, filling BLOB)")
        database.execute(f"{numbers} INSERT INTO pages SELECT i, zeroblob(4000) FROM n")  # noqa: S608  # our own text
        database.execute("BEGIN")
        database.execute("SAVEPOINT job")
        before = _find_nameless_files()
        database.execute("UPDATE pages SET filling = randomblob(4000) WHERE id <= ?", (changed,))
        assert (_find_nameless_files() > before) is goes_to_a_file
        database.execute("ROLLBACK TO SAVEPOINT job")
        assert database.execute("SELECT count(*) FROM pages WHERE filling = zeroblob(4000)").fetchall() == [(1000,)]


def _find_nameless_files() -> set[str]:
    """Return the files that this process has open and that have no name any more, as temporary files have none."""
    opened = [str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
    return {name for name in opened if name.endswith(" (deleted)")}


def test_a_path_may_begin_with_two_slashes(tmp_path: Path) -> None:
    with closing(sqlite.connect(f"/{tmp_path}/made.db", create=True)) as connection:
        connection.execute("CREATE TABLE made (id INTEGER)")
    assert (tmp_path / "made.db").stat().st_size
