"""What a command loads before it runs: nothing that it does not need, so that it starts quickly."""

import subprocess
import sys

import pytest

from tests.cli.conftest import Trellis
from tests.service_process import environment
from trellis.settings import Settings

# The modules that a program has loaded once it is done, other than those of Python itself.
LIST = """
import sys
try:
    {program}
finally:
    print(*(name for name in sys.modules if name.partition(".")[0] not in sys.stdlib_module_names), file=sys.stderr)
"""
COMMAND = "from trellis.cli import main; sys.argv = {words!r}; main()"
SLOW = {"alembic", "argon2", "httpcore", "httpx", "jinja2", "nh3", "pyotp", "redis", "rich", "segno", "webauthn", "cryptography"}
TRACES = {"opentelemetry", "google", "requests"}  # what they need, where they have an endpoint


def modules(program: str, settings: Settings) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", LIST.format(program=program)], env=environment(settings), capture_output=True, text=True, check=True
    )
    return set(ran.stderr.splitlines()[-1].split()) - {"__main__"}


def of_command(settings: Settings, *words: str) -> set[str]:
    return modules(COMMAND.format(words=["trellis", *words]), settings)


def packages(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def dialects(names: set[str]) -> set[str]:
    """Return the engines for which SQLAlchemy has loaded what it knows of them."""
    return {name.split(".")[2] for name in names if name.startswith("sqlalchemy.dialects.")} & {"sqlite", "postgresql"}


@pytest.fixture(scope="module")
def typer() -> set[str]:
    """Return the packages that Typer loads."""
    return packages(modules("import typer", Settings()))


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
def test_the_version_needs_nothing_but_typer(settings: Settings, typer: set[str]) -> None:
    loaded = of_command(settings, "--version")

    assert packages(loaded) == {*typer, "apsw", "trellis"}
    assert {name for name in loaded if name.startswith("trellis.")} == {
        "trellis.cli",
        "trellis.cli.app",
        "trellis.cli.loading",
        "trellis.cli.terminal",
        "trellis.errors",
        "trellis.invisible",
        "trellis.refusals",
        "trellis.refusals.operations",
        "trellis.refusals.refusal",
        "trellis.refusals.requests",
        "trellis.sentences",
        "trellis.settings",
        "trellis.settings.checks",
        "trellis.settings.fields",
        "trellis.settings.settings",
        "trellis.settings.texts",
        "trellis.store",
        "trellis.store.sqlite",
    }


def test_the_list_of_keys_needs_the_database_and_the_operations_on_keys(engine: str, settings: Settings, typer: set[str]) -> None:
    loaded = of_command(settings, "keys", "list")
    driver = "import sqlalchemy.dialects.sqlite" if engine == "sqlite" else "import sqlalchemy.dialects.postgresql.psycopg, psycopg"

    assert packages(loaded) <= {*typer, *packages(modules(driver, settings)), "apsw", "orjson", "trellis"}
    assert packages(loaded) & SLOW == set()
    assert dialects(loaded) == {engine}
    assert {name.split(".")[1] for name in loaded if name.startswith("trellis.")} == {
        "cli",
        "compose",
        "invisible",
        "core",
        "errors",
        "refusals",
        "sentences",
        "settings",
        "store",
        "timestamps",
        "traced_gate",
        "traces",
    }
    assert loaded.isdisjoint({"trellis.store.admins", "trellis.store.lists", "trellis.store.webhooks"})
    assert {name for name in loaded if name.startswith("trellis.core.")}.isdisjoint(
        {"trellis.core.admins", "trellis.core.check", "trellis.core.nodes", "trellis.core.undo", "trellis.core.webhooks"}
    )


def test_a_worker_needs_nothing_that_only_some_requests_use(engine: str, settings: Settings) -> None:
    loaded = modules("from trellis.asgi import create; create()", settings)

    assert "trellis.asgi" in loaded
    assert packages(loaded) & (SLOW | TRACES) == set()
    assert dialects(loaded) == {engine}
    assert ("psycopg" in loaded) == (engine == "postgresql")


def test_the_help_lists_every_command_with_what_it_does(cli: Trellis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = cli("--help").stdout
    told = {line.split()[1]: " ".join(line.split()[2:-1]) for line in shown.splitlines() if line.startswith("│ ")}
    assert {name for name, text in told.items() if text.endswith(".")} >= {
        *("serve", "work", "migrate", "demo", "keys", "admins", "run", "restore", "routes", "check", "backup", "openapi")
    }
