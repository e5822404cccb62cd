"""What every command does alike: settings that are wrong, databases that cannot be used, refusals."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.abc import MetaPathFinder
from io import RawIOBase, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from tests.cli.conftest import Environment, Trellis
from tests.fixture_types import MakeKey, Run
from tests.service_process import environment
from tests.sqlite_file import open_sqlite
from tests.wait import wait_until
from trellis import asgi
from trellis.cli import main
from trellis.cli.app import app
from trellis.cli.terminal import format_refusal, progress_of
from trellis.errors import Fault, Refused, refuse_faults
from trellis.settings import Settings
from trellis.store.engine import Store
from trellis.store.migrate import migrate
from trellis.store.steps import find_step


class Screen(StringIO):
    """A terminal that keeps what it is shown."""

    def isatty(self) -> bool:
        return True


COMMANDS = (
    ("serve", "--port", "0"),
    ("migrate",),
    ("demo",),
    ("keys", "create", "Plugin"),
    ("keys", "list"),
    ("keys", "show", "1"),
    ("keys", "grant", "1", "forums.get"),
    ("keys", "ungrant", "1", "forums.get"),
    ("keys", "rotate", "1"),
    ("keys", "revoke", "1"),
    ("run", "forums.list"),
    ("check",),
    ("backup", "copy.db"),
    ("export",),
)
ANY_BUT_MAKERS = (
    *(command for command in COMMANDS if command[0] not in {"serve", "migrate", "demo"}),
    ("restore", "1"),
    ("work",),
    ("admins", "list"),
    ("admins", "create", "mira"),
)
WITHOUT_DATABASE = (("routes",), ("openapi",), ("schema",))


def of(command: tuple[str, ...]) -> str:
    return "-".join(command)


@pytest.mark.parametrize("command", COMMANDS + WITHOUT_DATABASE, ids=of)
def test_a_setting_that_does_not_exist_stops_every_command(cli: Trellis, nowhere: Environment, command: tuple[str, ...]) -> None:
    nowhere(database_ulr="sqlite:///x.db")

    result = cli(*command)

    assert result.exit_code == 2
    assert result.stderr == "TRELLIS_DATABASE_ULR is not a setting of Trellis. Did you mean TRELLIS_DATABASE_URL?\n"
    assert result.stdout == ""


def test_a_setting_that_is_malformed_is_named(cli: Trellis, nowhere: Environment) -> None:
    nowhere(rate_limit="many")

    result = cli("keys", "list")

    assert result.exit_code == 2
    assert "TRELLIS_RATE_LIMIT is set to 'many', which is not allowed" in result.stderr


def test_settings_are_read_from_a_dotenv_file(cli: Trellis) -> None:
    Path(".env").write_text("TRELLIS_DATABASE_URL=sqlite:///elsewhere.db\n")

    assert cli("migrate").exit_code == 0
    assert Path("elsewhere.db").exists()


@pytest.mark.parametrize("command", COMMANDS, ids=of)
def test_an_address_without_sense_is_refused_and_its_password_not_shown(
    cli: Trellis, nowhere: Environment, command: tuple[str, ...]
) -> None:
    nowhere(database_url="postgresql://mira:hunter2@db.example:port/trellis")

    result = cli(*command)

    assert result.exit_code == 2
    assert result.stderr.startswith("TRELLIS_DATABASE_URL cannot be read as an address.")
    assert "hunter2" not in result.output


@pytest.mark.parametrize("command", [command for command in COMMANDS if command[0] != "backup"], ids=of)
def test_no_database_server_is_a_sentence(cli: Trellis, nowhere: Environment, command: tuple[str, ...]) -> None:
    nowhere(database_url="postgresql://mira:hunter2@127.0.0.1:9/lantern")

    result = cli(*command)

    assert result.exit_code == 1
    assert "PostgreSQL cannot use the database 'lantern' at 127.0.0.1:9" in result.stderr
    assert "refused" in result.stderr
    assert "hunter2" not in result.output


@pytest.mark.parametrize("command", [command for command in COMMANDS if command[0] != "backup"], ids=of)
def test_a_file_that_is_no_database_is_a_sentence(cli: Trellis, nowhere: Environment, command: tuple[str, ...]) -> None:
    Path("notes.txt").write_text("Dear diary, " * 100)
    nowhere(database_url="sqlite:///notes.txt")

    result = cli(*command)

    assert result.exit_code == 1
    assert result.stderr == "The database notes.txt is not a SQLite database.\n"
    assert Path("notes.txt").read_text() == "Dear diary, " * 100


@pytest.mark.parametrize("command", [command for command in COMMANDS if command[0] != "backup"], ids=of)
@pytest.mark.parametrize("has_alembic", [False, True], ids=["other tables", "steps of its own"])
def test_a_database_of_another_program_is_left_alone(
    cli: Trellis, nowhere: Environment, command: tuple[str, ...], *, has_alembic: bool
) -> None:
    with closing(open_sqlite("places.db")) as connection:
        connection.execute("CREATE TABLE bookmarks (title TEXT)")
        if has_alembic:
            connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
            connection.execute("INSERT INTO alembic_version VALUES ('ae1027a6acf0')")
    before = Path("places.db").read_bytes()
    nowhere(database_url="sqlite:///places.db")

    result = cli(*command)

    assert result.exit_code == 1
    assert "places.db belongs to another program. It was not changed." in result.stderr
    assert Path("places.db").read_bytes() == before


def test_a_database_of_a_newer_release_is_left_alone(cli: Trellis, nowhere: Environment, empty_database: Settings) -> None:
    migrate(empty_database)
    store = Store(empty_database)
    store.write(lambda tx: tx.raw.execute("UPDATE alembic_version SET version_num = '9999'"), quiet=True).result(30)
    store.close()
    nowhere(database_url=empty_database.database_url)

    for command in (("migrate",), ("migrate", "--plan"), ("work",), ("serve", "--port", "0"), *ANY_BUT_MAKERS):
        if command[0] == "backup":
            continue  # it copies whatever there is
        result = cli(*command)
        assert (result.exit_code, result.stdout) == (1, ""), command
        assert re.fullmatch(
            r"The database .+ is from a newer release of Trellis, and this one goes only to step \d{4}: "
            r"install that release, or restore an older backup\. It was not changed\.\n",
            result.stderr,
        ), command
    with pytest.raises(RuntimeError, match=r"is from a newer release of Trellis"):
        asgi.create()
    assert find_step(empty_database) == "9999"


def test_a_folder_that_cannot_be_made_is_a_sentence(cli: Trellis, nowhere: Environment) -> None:
    Path("taken").write_text("a file, not a folder")
    nowhere(database_url="sqlite:///taken/trellis.db")

    result = cli("migrate")

    assert result.exit_code == 1
    assert result.stderr.startswith("The database taken/trellis.db cannot be used: ")
    assert result.stderr.count("\n") == 1


def test_a_damaged_database_is_a_sentence(cli: Trellis, nowhere: Environment) -> None:
    nowhere(database_url="sqlite:///trellis.db")
    assert cli("demo").exit_code == 0
    with Path("trellis.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 65536)

    for command in (("keys", "list"), ("run", "forums.list"), ("run", "forums.create", "name=News")):
        result = cli(*command)
        assert result.exit_code == 1, command
        assert "is damaged. Restore a backup." in result.stderr


def test_a_database_of_an_older_release_asks_for_migrate(trellis: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trellis.store.condition.find_newest_step", lambda: "9999")

    result = trellis("keys", "list")

    assert result.exit_code == 1
    assert result.stderr.endswith("is from an older release. Run: trellis migrate\n")


@pytest.mark.parametrize("command", [("migrate",), ("demo",)], ids=of)
def test_a_database_is_made_by_the_commands_that_are_for_it(cli: Trellis, nowhere: Environment, command: tuple[str, ...]) -> None:
    nowhere(database_url="sqlite:///new/lantern.db")

    assert cli(*command).exit_code == 0

    assert Path("new/lantern.db").exists()
    assert '"totalResults"' in cli("run", "forums.list", "--json").stdout


@pytest.mark.parametrize("address", ["lantern.db", "new/lantern.db"])
@pytest.mark.parametrize("command", ANY_BUT_MAKERS, ids=of)
def test_no_other_command_makes_a_database_or_a_folder(
    cli: Trellis, nowhere: Environment, command: tuple[str, ...], address: str
) -> None:
    nowhere(database_url=f"sqlite:///{address}")

    result = cli(*command)

    assert result.exit_code == 1
    assert result.stderr == f"There is no database {address}. To create it, run: trellis migrate\n"
    assert list(Path.cwd().iterdir()) == []


def test_an_application_without_a_database_does_not_start(nowhere: Environment) -> None:
    nowhere(database_url="sqlite:///new/lantern.db")

    with pytest.raises(RuntimeError, match=r"There is no database new/lantern\.db\. To create it, run: trellis migrate"):
        asgi.create()
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True)
def test_an_empty_postgresql_database_asks_for_migrate(cli: Trellis, nowhere: Environment, empty_database: Settings) -> None:
    nowhere(database_url=empty_database.database_url)

    for command in (("keys", "list"), ("demo",), ("serve", "--port", "0")):
        result = cli(*command)
        assert result.exit_code == 1
        assert result.stderr.endswith("is empty. Run: trellis migrate\n")


def test_a_refusal_names_each_field_on_a_line_of_its_own() -> None:
    faults = (
        Fault("color", "INVALID_VALUE", "color must be a colour as #RRGGBB."),
        Fault("colour", "UNKNOWN_PARAMETER", "There is no parameter 'colour'."),
    )

    assert format_refusal(refuse_faults(*faults)).splitlines() == [
        "INVALID_VALUE: A value is not allowed.",
        "  color must be a colour as #RRGGBB.",
        "  colour: There is no parameter 'colour'.",
    ]
    assert format_refusal(Refused("CANNOT_DELETE", "Guests is built in.")) == "CANNOT_DELETE: Guests is built in."


def test_a_refusal_with_very_many_faults_names_twenty_and_counts_the_others() -> None:
    lines = format_refusal(
        refuse_faults(*(Fault(f"x{number}", "UNKNOWN_PARAMETER", "Unknown.") for number in range(1000)))
    ).splitlines()
    assert len(lines) == 1 + 20 + 1
    assert lines[-1] == "  … and 980 more."


def test_the_version_and_the_help(cli: Trellis) -> None:
    assert cli("--version").stdout.startswith("trellis 0")
    for command in ((), ("keys",), ("run",), ("serve",), ("keys", "create")):
        assert "Usage: " in cli(*command, "--help").stdout


def test_progress_is_told_in_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("trellis.cli.terminal._PATIENCE", 0.05)
    monkeypatch.setattr("trellis.cli.terminal._PAUSE", 0.05)

    with progress_of("Checking") as progress:
        said = _until(lambda said: " s so far\n" in said, capsys)
        progress(2000, 1_000_000)
        said += _until(lambda said: "Checking: 2,000 of 1,000,000\n" in said, capsys)

    assert {re.sub(r"\d+ s", "n s", line) for line in said.splitlines()} == {"Checking: n s so far", "Checking: 2,000 of 1,000,000"}


def test_progress_is_a_bar_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("trellis.cli.terminal._PATIENCE", 0.0)
    monkeypatch.setattr("trellis.cli.drawing._FRAME", 0.01)

    with progress_of("Running forums.delete") as progress:
        wait_until(lambda: "Running forums.delete" in screen.getvalue())
        progress(2000, 10_000)
        wait_until(lambda: "2,000 of 10,000" in screen.getvalue())

    assert "0:00:00" in screen.getvalue()


@pytest.mark.parametrize("told", [False, True])
def test_what_is_quick_shows_no_progress(capsys: pytest.CaptureFixture[str], told: bool) -> None:
    with progress_of("Checking") as progress:
        if told:
            progress(1, 2)

    assert capsys.readouterr() == ("", "")


def _until(seen: Callable[[str], bool], capsys: pytest.CaptureFixture[str]) -> str:
    said = ""

    def read() -> bool:
        nonlocal said
        out, err = capsys.readouterr()
        assert out == ""
        said += err
        return seen(said)

    wait_until(read)
    return said


def open_pipe_without_reader() -> RawIOBase:
    reads, writes = os.pipe()
    os.close(reads)
    return os.fdopen(writes, "wb", buffering=0)


def open_full_disk() -> RawIOBase:
    return Path("/dev/full").open("wb", buffering=0)


def list_commands(command: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield each command, by the words that call it."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from list_commands(below, *path, name)


FULL = "The output could not be written: No space left on device. What the command did before that is not undone."
PRINTING = (
    *(("--version",), ("keys", "list"), ("keys", "create", "Plugin"), ("keys", "list", "--json"), ("admins", "list"), ("export",)),
    *(("run", "forums.list"), ("run", "--list"), ("routes",), ("openapi",), ("schema",), ("check",), ("doctor",), ("purge",)),
    *(("migrate",), ("migrate", "--plan"), ("export", "invision", "saved")),
)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("open_output", [open_full_disk, open_pipe_without_reader])
def test_output_that_cannot_be_written_ends_every_command_without_a_traceback(
    nowhere: Environment,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    open_output: Callable[[], RawIOBase],
) -> None:
    nowhere(database_url=settings.database_url)
    for command in (*((*path, "--help") for path in list_commands(typer.main.get_command(app))), *PRINTING):
        with TextIOWrapper(open_output(), write_through=True) as output:  # type: ignore[type-var]
            monkeypatch.setattr("sys.stdout", output)
            with pytest.raises(SystemExit) as ended:
                app([*command])
        told = [] if open_output is open_pipe_without_reader else [FULL]
        assert (command, ended.value.code, capsys.readouterr().err.splitlines()) == (command, 1, told)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("open_output", [open_full_disk, open_pipe_without_reader])
def test_an_answer_that_cannot_be_written_is_not_a_no(
    nowhere: Environment, settings: Settings, key: MakeKey, monkeypatch: pytest.MonkeyPatch, open_output: Callable[[], RawIOBase]
) -> None:
    nowhere(database_url=settings.database_url)
    key("forums.get")
    with TextIOWrapper(open_output(), write_through=True) as output:  # type: ignore[type-var]
        monkeypatch.setattr("sys.stdout", output)
        with pytest.raises(SystemExit, match="2"):
            app(["may", "1", "forums.get"])


def run_in_shell(settings: Settings, command: str, **more: str) -> "subprocess.CompletedProcess[bytes]":
    """Run commands of a shell, in which `trellis` is this one."""
    script = f'trellis() {{ {shlex.quote(sys.executable)} -m trellis "$@"; }}\n{command}'
    return subprocess.run(("sh", "-c", script), env=environment(settings) | more, capture_output=True, check=False)


# Runs commands until one fails, each in a process that has its streams as they are at the start, and the modules already.
_ONE_BY_ONE: Final = """
import os, shlex, sys
import trellis.cli.keys, trellis.cli.operations.listing, trellis.cli.operations.running, trellis.store.engine.apsw_dialect
from trellis.cli import main
for command in sys.argv[1:]:
    if (child := os.fork()) == 0:
        sys.argv = ["trellis", *shlex.split(command)]
        sys.exit(main())
    if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(status)
"""


def run_one_by_one(settings: Settings, redirections: str, *commands: str, **more: str) -> "subprocess.CompletedProcess[bytes]":
    """Run commands with redirections of a shell."""
    words = ("sh", "-c", f'"$0" -c "$@" {redirections}', sys.executable, _ONE_BY_ONE, *commands)
    return subprocess.run(words, env=environment(settings) | more, capture_output=True, check=False)


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_command_without_stdout_does_what_it_does(settings: Settings, run: Run) -> None:
    done = run_one_by_one(settings, ">&- <&-", "keys create Plugin --grant '*'", "keys list", "routes", "run groups.list")

    assert (done.returncode, done.stderr) == (0, b"")
    assert [key["name"] for key in run("keys.list")["results"]] == ["Plugin"]


def test_no_file_or_connection_gets_what_is_for_a_stderr_that_is_closed() -> None:
    program = "from trellis.cli.terminal import settle_streams; settle_streams(); print(open('/dev/null').fileno() > 2)"
    done = subprocess.run(("sh", "-c", '"$0" -c "$1" 2>&-', sys.executable, program), capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, b"True\n")


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_every_character_is_printed_whatever_the_locale(settings: Settings) -> None:
    done = run_one_by_one(settings, "", "keys create 'Ж – für' --grant '*'", "keys list", PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().count("Ж – für") == 2


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_document_on_stdout_can_be_applied_whatever_the_locale(settings: Settings, trellis: Trellis, run: Run) -> None:
    run("forums.create", name="Gärten")
    done = run_in_shell(settings, "trellis export > site.yaml", PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, b"")

    planned = trellis("plan", "--adopt", "site.yaml")
    assert "is not UTF-8" not in planned.stderr
    assert planned.exit_code in {0, 2}, planned.stderr


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_a_full_disk_ends_a_process_with_one_message(settings: Settings) -> None:
    done = run_in_shell(settings, "trellis --help >/dev/full || trellis keys list >/dev/full")

    assert (done.returncode, done.stderr.decode().splitlines()) == (1, [FULL, FULL])


class Interrupted(MetaPathFinder):
    """Ctrl-C while modules are loaded."""

    def find_spec(self, fullname: str, *_: object) -> None:
        raise KeyboardInterrupt(fullname)


def test_ctrl_c_while_the_command_line_is_loaded_leaves_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "trellis.cli.app")
    monkeypatch.setattr("sys.meta_path", [Interrupted()])
    with pytest.raises(SystemExit, match="130"):
        main()
