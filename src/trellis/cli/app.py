"""The command `trellis`, which loads each of its commands from a module when it is used."""

import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from trellis import __version__
from trellis.cli.loading import uncollected
from trellis.cli.terminal import (
    FAILED,
    MISUSED,
    Failure,
    explain_output,
    format_refusal,
    make_app,
    print_message,
    settle_streams,
    show,
)
from trellis.errors import Refused
from trellis.settings import SettingsError

# The module of each command, and its name there: a function, or the Typer application of a group of commands.
_COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "serve": ("serve", "serve"),
    "work": ("work", "work"),
    "migrate": ("database", "migrate_database"),
    "demo": ("database", "demo"),
    "keys": ("keys", "app"),
    "admins": ("admins", "app"),
    "mail": ("mail", "app"),
    "may": ("access", "may"),
    "run": ("operations", "run_app"),
    "restore": ("operations", "restore"),
    "routes": ("operations", "routes"),
    "check": ("database", "check"),
    "doctor": ("doctor", "doctor"),
    "purge": ("database", "purge"),
    "backup": ("backup", "backup_app"),
    "import": ("invision", "import_app"),
    "export": ("invision", "export_app"),
    "plan": ("structure", "plan_app"),
    "apply": ("structure", "apply_app"),
    "schema": ("structure", "schema"),
    "openapi": ("operations", "openapi"),
}

_QUIET: Final = logging.NullHandler()  # errors are printed to stderr; `serve` sets up its own log


@cache
def _load(name: str) -> Any:
    """Return a command. Its module is imported when it is used, since most take long to load."""
    module, attribute = _COMMANDS[name]
    with uncollected():
        found = getattr(import_module(f"trellis.cli.{module}"), attribute)
        if not isinstance(found, typer.Typer):  # a function, for which Typer needs an application, here with a single command
            function, found = found, make_app()
            found.command()(function)
        command = typer.main.get_command(found)
    command.name = name
    return command


class Commands(TyperGroup):
    """The group of all commands."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = dict.fromkeys(_COMMANDS)  # the names, among which Typer looks for the nearest to a misspelt one

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        del ctx
        return _load(cmd_name) if cmd_name in _COMMANDS else None

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command. A failure is reported as one message on stderr and an exit code, without a traceback."""
        logging.getLogger("trellis").addHandler(_QUIET)
        try:
            return super().main(*arguments, **options)
        except SettingsError as error:
            sentence, code = str(error), MISUSED
        except Failure as failure:
            sentence, code = str(failure), failure.code
        except Refused as refused:
            sentence, code = format_refusal(refused), FAILED
        except OSError as error:  # help is not printed by `show`
            sentence = explain_output(error) if error.filename is None else f"{error.filename}: {error.strerror}."
            code = FAILED
        with suppress(Failure, OSError):  # stderr may be full as well
            print_message(sentence, style="red")
        sys.exit(code)


app = typer.Typer(
    name="trellis",
    cls=Commands,
    help="Trellis manages the structure of a community. Settings are read from TRELLIS_* variables and a .env file.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from trellis.store.sqlite import library_version  # noqa: PLC0415  # start-up time: most commands load it later, or never

        show(f"trellis {__version__}, SQLite {library_version()}")
        raise typer.Exit


@app.callback()
def _trellis(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command line."""
    settle_streams()
    app()
