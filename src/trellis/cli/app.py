"""The command `trellis`, which loads each of its commands from a module when it is used."""

import logging
import sys
from collections.abc import Mapping, Sequence
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

_NOTHING: Final = "Nothing was changed."
_WHOLE: Final = "What it was to change is changed completely or not at all: `trellis run events.list order=newest` shows which."
_FILES: Final = "The community was not changed, and no unfinished file was left."

# What a command leaves if Ctrl-C ends it, by the words of its line: the names of commands at its beginning, and options anywhere.
_LEFT: Final[Mapping[str, str]] = {
    "": _NOTHING,  # it ended before it was known which command it was
    "serve": "Trellis has stopped.",
    "work": "Trellis has stopped.",
    "migrate": "The database was migrated completely or not at all: `trellis migrate --plan` shows which. Run it again to migrate.",
    "demo": "What was loaded stays. Run it again to load the rest.",
    "keys": _WHOLE,
    "keys list": _NOTHING,
    "keys show": _NOTHING,
    "admins": _WHOLE,
    "admins list": _NOTHING,
    "mail": "Nothing was changed. The mail may have been sent.",
    "may": _NOTHING,
    "run": _WHOLE,
    "restore": _WHOLE,
    "routes": _NOTHING,
    "check": _NOTHING,
    "check --repair": "Complete batches of 10,000 repairs stay, and an incomplete one is undone. Run it again to repair the rest.",
    "doctor": _NOTHING,
    "purge": "What was deleted stays deleted. The rest is deleted when it is run again, or by a service.",
    "backup": "The database was not changed, and no unfinished copy was left.",
    "backup restore": (
        "The database was replaced completely or not at all: if it was, the old one stands beside it, with `.replaced-` in its "
        "name. If not, run it again."
    ),
    "import": _FILES,
    "export": _FILES,
    "plan": _NOTHING,
    "apply": "The document was applied completely or not at all: `trellis plan` shows which. Then it can be run again.",
    "schema": _NOTHING,
    "openapi": _NOTHING,
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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.obj = (*args,)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command. If Ctrl-C ends it, a message on stderr says what it has left."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            with suppress(Failure, OSError, KeyboardInterrupt):  # nobody may be reading, and some press it twice
                print_message(explain_interruption(ctx.obj))
            raise

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


def explain_interruption(arguments: Sequence[str]) -> str:
    """Return what a command that was interrupted has left. `arguments` are those after `trellis`, and begin with a command."""

    def fits(words: list[str]) -> bool:
        names = [word for word in words if not word.startswith("-")]
        return [*arguments[: len(names)]] == names and all(word in arguments for word in words[len(names) :])

    return f"Interrupted. {_LEFT[max((words for words in _LEFT if fits(words.split())), key=len)]}"


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
