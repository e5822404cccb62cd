"""What the command line says of the SQLite library, with the one of the package and with the interpreter's."""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.service_process import environment
from tests.sqlite_file import file_of
from trellis import __version__
from trellis.settings import Settings
from trellis.store.sqlite import library_version

pytestmark = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)

# The interpreter's SQLite is taken where there is no APSW; it calls itself one that loses writes.
OLD = "import sys; sys.modules['apsw'] = None; import sqlite3; sqlite3.sqlite_version = '3.40.1'; "
MAIN = "from trellis.cli import main; main()"
# Runs several commands in one process, and ends what each prints with its status between zeros.
EACH = """
import json
from trellis.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["trellis", *words]
    try:
        main()
        status = 0
    except SystemExit as ended:
        status = ended.code or 0
    print(end=f"\\0{status}\\0", flush=True)
"""

Ran = subprocess.CompletedProcess[str]


@pytest.fixture
def old(settings: Settings) -> Callable[..., Ran]:
    """The command line with the interpreter's SQLite."""

    def run(*words: str) -> Ran:
        command = [sys.executable, "-c", OLD + MAIN, *words]
        return subprocess.run(command, env=environment(settings), capture_output=True, text=True, check=False)

    return run


@pytest.mark.usefixtures("engine")
def test_the_version_names_the_library() -> None:
    ran = subprocess.run([sys.executable, "-m", "trellis", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"trellis {__version__}, SQLite {library_version()}\n"


def test_the_interpreters_library_does_all_that_a_command_needs_and_is_named_and_reported(settings: Settings) -> None:
    copy = file_of(settings).with_suffix(".copy")
    commands = [
        ("--version",),
        ("run", "forums.create", "name=News"),
        ("run", "forums.list", "search=new"),
        ("run", "forums.delete", "id=1"),
        ("run", "forums.list"),
        ("backup", str(copy)),
        ("check",),
        ("serve", "--port", "0", "--workers", "2"),
    ]
    command = [sys.executable, "-c", OLD + EACH, json.dumps(commands)]
    ran = subprocess.run(command, env=environment(settings), capture_output=True, text=True, check=True)
    told = ran.stdout.removesuffix("\0").split("\0")
    assert told[1::2] == [*"000000", "1", "2"], ran.stderr
    version, _, listed, _, left, _, checked, _ = told[::2]
    assert version == f"trellis {__version__}, SQLite 3.40.1\n"
    assert '"name": "News"' in listed
    assert '"name": "News"' not in left
    assert copy.read_bytes().startswith(b"SQLite format 3\0")
    os.unlink(copy)  # noqa: PTH108  # the folder is another's
    assert "SQLite 3.40.1 can lose acknowledged writes" in checked
    assert "apsw" in checked
    assert "With this SQLite only one process may use a database: leave --workers at 1. SQLite 3.40.1 can lose" in ran.stderr


def test_one_process_serves_with_a_library_that_loses_writes_and_says_so(settings: Settings, old: Callable[..., Ran]) -> None:
    command = [sys.executable, "-u", "-c", OLD + MAIN, "serve", "--port", "0"]
    with subprocess.Popen(command, env=environment(settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as service:
        try:
            assert service.stderr is not None
            assert (
                "WARNING trellis.cli.serve: No other process may use the database while this one does. SQLite 3.40.1"
                in service.stderr.readline()
            )
            assert service.stdout is not None
            while not service.stdout.readline().startswith("Panel:"):
                assert service.poll() is None
            second = old("keys", "list")
            assert second.returncode == 1
            assert "is in use by another process, and only one process may use it: SQLite 3.40.1" in second.stderr
        finally:
            service.terminate()
            service.communicate()
    assert old("keys", "list").returncode == 0
