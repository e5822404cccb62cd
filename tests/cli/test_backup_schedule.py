"""`trellis backup FOLDER --every …`: copies again and again, of which the newest stay."""

import errno
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import Trellis
from tests.forked import ForkedProcess
from tests.service_process import environment
from tests.wait import GIVE_UP, wait_until
from trellis.cli.backup.schedule import Schedule, claim_folder, make_one, run_schedule
from trellis.cli.terminal import Failure
from trellis.settings import Settings
from trellis.store.backup.copy import verify

on_sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_the_newest_stay_and_what_is_not_a_copy_is_not_touched(tmp_path: Path) -> None:
    schedule = Schedule(tmp_path / "copies", timedelta(hours=1), 2)
    for hour in range(4):
        make_one(schedule, lambda target: target.touch(), NOON + timedelta(hours=hour))
        (schedule.folder / "trellis-notes.db").touch()
    assert sorted(path.name for path in schedule.folder.iterdir()) == [
        "trellis-20261122T140000Z.db",
        "trellis-20261122T150000Z.db",
        "trellis-notes.db",
    ]


def test_a_copy_stays_when_the_clock_was_put_back_since_the_ones_before_it(tmp_path: Path) -> None:
    schedule = Schedule(tmp_path, timedelta(hours=1), 2)
    for year in (2030, 2031, 2026):
        make_one(schedule, lambda target: target.touch(), NOON.replace(year=year))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trellis-20261122T120000Z.db", "trellis-20311122T120000Z.db"]


def test_older_copies_are_deleted_once_the_new_one_is_durable(tmp_path: Path, made_durable: list[tuple[Path, list[str]]]) -> None:
    schedule = Schedule(tmp_path, timedelta(hours=1), 1)
    for hour in range(2):
        make_one(schedule, lambda target: target.touch(), NOON + timedelta(hours=hour))
    (_, at_first), (_, then) = [one for one in made_durable if one[0] == tmp_path]
    old, new = "trellis-20261122T120000Z.db", "trellis-20261122T130000Z.db"
    assert old in at_first
    assert {old, new} <= set(then)
    assert [path.name for path in tmp_path.iterdir()] == [new]


def test_what_a_killed_process_has_left_is_no_copy(tmp_path: Path) -> None:
    schedule = Schedule(tmp_path, timedelta(hours=1), 1)

    def be_killed(target: Path) -> None:
        target.write_text("half of it")
        target.with_name(f"{target.name}-journal").write_text("what it was")
        raise SystemExit

    with pytest.raises(SystemExit):
        make_one(schedule, be_killed, NOON)
    left = "trellis-20261122T120000Z.db.partial"
    assert sorted(path.name for path in tmp_path.iterdir()) == [left, f"{left}-journal"]
    make_one(schedule, lambda target: target.touch(), NOON + timedelta(hours=1))
    assert [path.name for path in tmp_path.iterdir()] == ["trellis-20261122T130000Z.db"]


def test_two_schedules_leave_each_others_copies_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    schedule = Schedule(tmp_path, timedelta(hours=1), 2)

    def be_slow(target: Path) -> None:
        target.touch()
        make_one(schedule, lambda target: target.touch(), NOON + timedelta(minutes=1))

    make_one(schedule, be_slow, NOON)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trellis-20261122T120000Z.db", "trellis-20261122T120100Z.db"]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_copy_in_the_same_second_overwrites_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    if not has_links:
        monkeypatch.setattr("os.link", refuse)
    schedule = Schedule(tmp_path, timedelta(hours=1), 9)

    def copy_first(target: Path) -> None:
        target.write_text("first")
        make_one(schedule, copy_second, NOON)

    def copy_second(target: Path) -> None:
        target.write_text("second")

    def copy_third(target: Path) -> None:
        target.write_text("third")

    make_one(schedule, copy_first, NOON)
    make_one(schedule, copy_third, NOON)
    copies = sorted(tmp_path.iterdir())
    assert [path.name for path in copies] == [f"trellis-20261122T12000{second}Z.db" for second in range(3)]
    assert [path.read_text() for path in copies] == ["first", "second", "third"]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_copy_whose_name_is_taken_meanwhile_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, has_links: bool
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    if not has_links:
        monkeypatch.setattr("os.link", refuse)

    def be_late(target: Path) -> None:
        target.write_text("late")
        target.with_suffix("").write_text("precious")

    make_one(Schedule(tmp_path, timedelta(hours=1), 1), be_late, NOON)
    assert caplog.messages[-1].startswith("No copy was made: ")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("trellis-20261122T120000Z.db", "precious")]


def test_a_folder_is_for_one_database(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "copies"
    (tmp_path / "link.db").symlink_to("one.db")
    claim_folder(folder, tmp_path / "one.db")
    claim_folder(folder, tmp_path / "link.db")
    with pytest.raises(Failure) as refused:
        claim_folder(folder, tmp_path / "two.db")
    assert str(refused.value) == (
        f"{folder} has the copies of {tmp_path.resolve()}/one.db, and older ones would be deleted. Use another folder, or, if the "
        f"database was moved, delete {folder}/.trellis-copies-of."
    )
    assert [path.name for path in folder.iterdir()] == [".trellis-copies-of"]
    (folder / ".trellis-copies-of").unlink()
    claim_folder(folder, tmp_path / "two.db")


def test_a_folder_that_another_process_claims_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def be_late(_draft: object, owner: Path) -> None:
        owner.write_text("/srv/other.db\n")
        raise FileExistsError

    monkeypatch.setattr("os.link", be_late)
    with pytest.raises(Failure, match=r" has the copies of /srv/other\.db, "):
        claim_folder(tmp_path, tmp_path / "trellis.db")
    assert [path.name for path in tmp_path.iterdir()] == [".trellis-copies-of"]


@on_sqlite
def test_a_folder_with_the_copies_of_another_database_is_refused_and_stays(trellis: Trellis) -> None:
    Path("copies").mkdir()
    Path("copies/.trellis-copies-of").write_text("/srv/other.db\n")
    result = trellis("backup", "copies", "--every", "1h")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("copies has the copies of /srv/other.db, and older ones would be deleted. Use another folder, ")
    assert [path.name for path in Path("copies").iterdir()] == [".trellis-copies-of"]


def test_a_folder_that_cannot_be_claimed_is_tried_again_at_each_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "copies"
    folder.touch()  # not a folder yet

    def wait_or_end(_seconds: float) -> None:
        if not folder.is_file():
            raise KeyboardInterrupt
        folder.unlink()

    monkeypatch.setattr("trellis.cli.backup.schedule.time", SimpleNamespace(sleep=wait_or_end))
    caplog.set_level("INFO")
    run_schedule(Schedule(folder, timedelta(hours=1), 1), tmp_path / "trellis.db", lambda target: target.touch())
    assert [message.split(":")[0].split(" to ")[0] for message in caplog.messages[1:]] == [
        "No copy was made",
        "Copied the database",
        "Trellis has stopped.",
    ]
    assert (folder / ".trellis-copies-of").read_text() == f"{tmp_path.resolve()}/trellis.db\n"


@pytest.mark.parametrize("call", ["stat", "iterdir"])
def test_an_error_of_the_file_system_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    schedule = Schedule(tmp_path, timedelta(hours=1), 1)
    make_one(schedule, lambda target: target.touch(), NOON)

    def fail(_path: Path, **_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:

        def copy(target: Path) -> None:
            target.touch()
            patch.setattr(Path, call, fail)

        make_one(schedule, copy, NOON + timedelta(hours=1))
    assert "Input/output error" in caplog.messages[-1]
    assert "trellis-20261122T120000Z.db" in {path.name for path in tmp_path.iterdir()}
    make_one(schedule, lambda target: target.touch(), NOON + timedelta(hours=2))
    assert [path.name for path in tmp_path.iterdir()] == ["trellis-20261122T140000Z.db"]


@pytest.mark.parametrize(
    ("error", "told", "logged"),
    [
        (Failure("The database is damaged."), "No copy was made: The database is damaged.", "The database is damaged."),
        (RuntimeError("can't start new thread"), "No copy was made.", "can't start new thread"),
    ],
    ids=["expected", "unexpected"],
)
def test_a_copy_that_fails_is_told_and_deletes_none(
    error: Exception, told: str, logged: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = Schedule(tmp_path, timedelta(hours=1), 1)
    make_one(schedule, lambda target: target.touch(), NOON)

    def fail(_target: Path) -> None:
        raise error

    make_one(schedule, fail, NOON + timedelta(hours=1))
    assert caplog.messages[-1] == told
    assert logged in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["trellis-20261122T120000Z.db"]


@on_sqlite
@pytest.mark.parametrize("arguments", [("copies", "--every", "soon"), ("--every", "soon", "copies"), ("--every=soon", "copies")])
def test_options_may_come_before_the_folder(trellis: Trellis, arguments: tuple[str, ...]) -> None:
    result = trellis("backup", *arguments)
    assert (result.exit_code, "not 'soon'" in result.stderr) == (2, True)
    for helped in ("--help", "-h"):
        assert "restore" in trellis("backup", helped).stdout


@on_sqlite
@pytest.mark.parametrize("every", ["soon", "0h", "6", "99999d"])
def test_a_time_that_cannot_be_meant_is_a_sentence(trellis: Trellis, every: str) -> None:
    result = trellis("backup", "copies", "--every", every)
    assert (result.exit_code, result.stderr) == (
        2,
        f"--every must be a number of minutes, hours or days, such as 30m, 6h or 1d, not '{every}'.\n",
    )
    assert list(Path.cwd().iterdir()) == []


@on_sqlite
def test_a_number_of_copies_to_keep_needs_a_schedule(trellis: Trellis) -> None:
    result = trellis("backup", "copies", "--keep", "3")
    assert (result.exit_code, result.stderr) == (2, "--keep is for --every.\n")
    assert list(Path.cwd().iterdir()) == []


@on_sqlite
def test_it_copies_at_once_and_ends_when_it_is_told_to(settings: Settings, tmp_path: Path) -> None:
    (output := tmp_path / "output").touch()
    process = ForkedProcess(("backup", "copies", "--every", "1d"), tmp_path, environment(settings), output)
    try:
        wait_until(lambda: "Copied the database to copies/trellis-" in output.read_text())
        process.terminate()
        assert process.wait(GIVE_UP) == 0
    finally:
        process.kill()
    assert output.read_text().endswith(" Trellis has stopped.\n")
    (copy,) = tmp_path.glob("copies/*.db")
    verify(copy)
