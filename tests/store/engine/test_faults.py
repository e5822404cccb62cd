"""What becomes of reads and writes when something happens to the file of a SQLite database, and afterwards."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.community import Community
from tests.sqlite_file import file_of
from trellis.compose import compose
from trellis.core.actor import TERMINAL
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.languages import load_language
from trellis.settings import Settings
from trellis.store import sqlite
from trellis.store.backup import backup
from trellis.store.engine import database_files, faults, store

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)


@pytest.fixture
def file(settings: Settings) -> Path:
    """The file of the database."""
    return file_of(settings)


@pytest.fixture
def gate(community: Community, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """The sample community; readers look at their file each time."""
    monkeypatch.setattr(store, "_CHECK_EVERY", -1.0)
    gate = compose(settings)
    yield gate
    gate.store.close()


def create(gate: Gate, name: str) -> int:
    made = gate.run(Call("forums.create", TERMINAL, {"name": name})).value
    return int(made["id"])


def read(gate: Gate, forum: int) -> str:
    return str(gate.run(Call("forums.get", TERMINAL, {}, forum)).value["name"])


def count(gate: Gate, text: str) -> int:
    return int(gate.run(Call("forums.list", TERMINAL, {"search": text})).value["totalResults"])


def refused(what: Any, *arguments: Any) -> str:
    with pytest.raises(Refused) as caught:
        what(*arguments)
    assert (caught.value.status, caught.value.message) == (503, "BUSY")
    return caught.value.detail


def test_a_read_only_file_is_read_and_writes_are_refused_until_it_can_be_written_to(
    gate: Gate, community: Community, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sqlite._library, "SQLITE_OPEN_READWRITE", sqlite._library.SQLITE_OPEN_READONLY)
        assert refused(create, gate, "News").startswith("The database cannot be written to. As far as we know, nothing was changed")
        assert read(gate, community.betas) == "Betas"
        assert gate.store.faults.reason == "The database cannot be written to."
    forum = create(gate, "News")
    assert read(gate, forum) == "News"
    assert gate.store.faults.reason is None


@contextmanager
def no_descriptors() -> Iterator[None]:
    """Let nothing more be opened by this process."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)  # the lowest, and nothing above it is to be opened either
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_fault_that_comes_and_goes_is_logged_once_a_minute(
    gate: Gate, community: Community, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without free file descriptors, the writer goes on with its own, and new readers cannot open the file."""
    now = 1000.0
    monkeypatch.setattr(faults, "monotonic", lambda: now)

    def come_and_go(times: int) -> list[str]:
        caplog.clear()
        for number in range(times):
            gate.store.close_reader()
            with no_descriptors():
                assert refused(read, gate, community.betas).startswith("The database cannot be opened.")
            create(gate, f"News {number}")
        return [record.getMessage() for record in caplog.records]

    told = ["The database cannot be opened.", "The database can be written to again."]
    assert come_and_go(5) == told
    assert come_and_go(5) == []
    now += 60
    assert come_and_go(5) == told


def test_a_damaged_page_is_told_until_the_process_ends(gate: Gate, file: Path, community: Community) -> None:
    gate.store.close_reader()
    with file.open("r+b") as opened:
        opened.seek(8192)
        opened.write(b"\xff" * (file.stat().st_size - 8192))
    assert refused(read, gate, community.betas).startswith("The database is damaged.")
    assert refused(create, gate, "News").startswith("The database is damaged.")
    gate.store.faults.record_success()
    assert gate.store.faults.reason == "The database is damaged."


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_what_is_written_into_a_file_that_was_taken_away_is_not_acknowledged(gate: Gate, file: Path, suffix: str) -> None:
    create(gate, "Before")
    taken = Path(f"{file}{suffix}")
    taken.rename(aside := taken.with_name(taken.name + ".aside"))
    assert "was removed or replaced" in refused(create, gate, "Lost")
    if suffix == "":
        assert "cannot be opened" in refused(create, gate, "Lost too")
        assert "cannot be opened" in refused(read, gate, 1)
        assert not file.exists()
        aside.rename(file)
    forum = create(gate, "After")
    assert read(gate, forum) == "After"
    assert gate.store.faults.reason is None


def replace_file(file: Path) -> None:
    """Put a copy in the place of the file."""
    copy = file.with_name(file.name + ".copy")
    copy.write_bytes(file.read_bytes())
    file.rename(file.with_name(file.name + ".aside"))
    copy.rename(file)


def test_the_first_write_notices_that_its_file_was_replaced(gate: Gate, file: Path) -> None:
    """It may have waited for its turn for as long as any other write."""
    assert "removed or replaced" in refused(gate.store.write(lambda _: replace_file(file)).result)


def test_a_reader_notices_that_its_file_was_replaced(gate: Gate, file: Path, community: Community) -> None:
    read(gate, community.betas)
    replace_file(file)
    assert "removed or replaced" in refused(read, gate, community.betas)
    assert read(gate, community.betas) == "Betas"


def test_lists_count_what_is_in_the_file_that_was_put_in_the_place_of_another(gate: Gate, file: Path) -> None:
    """What was counted in the old file is brought up to date by numbers that the new one gives to other changes."""
    backup(file, copy := file.with_name(file.name + ".copy"))
    for number in range(3):
        create(gate, f"Lost {number}")
    assert count(gate, "lost") == 3
    for part in filter(Path.exists, database_files(file)):
        part.rename(part.with_name(part.name + ".aside"))
    copy.rename(file)
    assert "removed or replaced" in refused(create, gate, "Lost")
    for number in range(4):
        create(gate, f"Other {number}")
    assert "removed or replaced" in refused(count, gate, "lost")
    assert count(gate, "lost") == 0


@pytest.mark.parametrize("within", ["savepoint", "trial"])
def test_a_full_disk_is_told_of_a_write_that_can_be_undone_in_part(gate: Gate, within: str) -> None:
    """SQLite then rolls the whole transaction back, and its savepoints are gone."""

    def fill(tx: Any) -> None:
        tx.raw.execute("PRAGMA max_page_count=1")
        with getattr(tx, within)():
            for number in range(100):
                tx.raw.execute("INSERT INTO counters (name, last, total) VALUES (?, 0, 0)", (f"{number} {'x' * 60_000}",))

    assert refused(gate.store.write(fill).result, 30).startswith("The database cannot grow: the disk is full.")
    assert gate.store.faults.reason == "The database cannot grow: the disk is full."
    assert create(gate, "There is room")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="Linux lists open files without a name there")
def test_the_temporary_files_of_a_large_write_are_beside_the_database(gate: Gate, file: Path) -> None:
    """Another folder, such as /var/tmp, may be on a full disk, or read-only as in a container."""

    def list_nameless_files() -> set[str]:
        opened = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
        return {name for name in opened if name.endswith(" (deleted)")}

    def write_much(tx: Any) -> set[str]:
        before = list_nameless_files()
        with tx.savepoint():
            for number in range(100):
                tx.raw.execute("INSERT INTO counters (name, last, total) VALUES (?, 0, 0)", (f"{number} {'x' * 3000}",))
            with tx.savepoint():
                tx.raw.execute("UPDATE counters SET total = total + 1, name = 'y' || name")
                return list_nameless_files() - before

    folders = {Path(name).parent for name in gate.store.write(write_much).result()}
    assert folders == {Path(os.path.realpath(file)).parent}


def test_a_full_disk_is_told_and_writes_go_on_when_there_is_room(gate: Gate) -> None:
    pages = []

    def bound(tx: Any) -> None:
        pages.append(tx.raw.execute("PRAGMA max_page_count").fetchone()[0])
        tx.raw.execute("PRAGMA max_page_count=1")

    gate.store.write(bound).result(30)

    def fill() -> None:
        for number in range(100):
            gate.run(Call("forums.create", TERMINAL, {"name": str(number), "description": "x" * 60_000}))

    assert refused(fill).startswith("The database cannot grow: the disk is full.")
    assert create(gate, "There is room")  # over a connection of its own, without the bound


def test_an_error_of_input_and_output_on_a_full_disk_is_a_full_disk(
    gate: Gate, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = sqlite._library.IOError("disk I/O error")
    error.result = 10
    assert faults.describe_fault(error, file) == "The database cannot be read or written: the disk reports an error."
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_bavail=0, f_frsize=4096))
    assert faults.describe_fault(error, file) == "The database cannot grow: the disk is full."


def test_a_disk_is_full_until_there_is_room(gate: Gate, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = sqlite._library.FullError("database or disk is full")
    error.result = 13
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_bavail=0, f_frsize=4096))
        gate.store.faults.record(error)
        create(gate, "Small enough")
        assert gate.store.faults.reason == "The database cannot grow: the disk is full."
    create(gate, "There is room")
    assert gate.store.faults.reason is None


@contextmanager
def no_room() -> Iterator[None]:
    """Let this process write no more than the first bytes of a file, as if it had no quota left."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_fault_lasts_as_long_as_nothing_can_be_written(gate: Gate) -> None:
    """Health checks try to write while there is a fault. A change that changes nothing would succeed although no other does."""
    assert read(gate, create(gate, "News")) == "News"  # over a connection that stays open, as in a service
    with no_room():
        assert "the disk reports an error" in refused(create, gate, "More news")
        for _ in range(3):
            assert "the disk reports an error" in refused(gate.store.try_to_write().result)
        assert gate.store.faults.reason == "The database cannot be read or written: the disk reports an error."
    gate.store.try_to_write().result()
    assert gate.store.faults.reason is None


def test_a_fault_is_told_in_the_language_of_the_panel(gate: Gate) -> None:
    error = sqlite._library.FullError("database or disk is full")
    error.result = 13
    with pytest.raises(Refused) as caught, gate.store.reading():
        raise error
    assert caught.value.detail.startswith("The database cannot grow: the disk is full. As far as we know")
    german = load_language("de").sentence(caught.value.detail)
    assert german.startswith("Die Datenbank kann nicht wachsen: Der Datenträger ist voll. Soweit bekannt")


def test_a_mistake_in_a_statement_is_no_fault_of_the_file(gate: Gate) -> None:
    failed = gate.store.write(lambda tx: tx.raw.execute("SELECT FROM nodes"))
    assert isinstance(failed.exception(30), sqlite.StatementError)
    assert gate.store.faults.reason is None
