"""The command `trellis`: every command under its name."""

from typing import Annotated

import typer

from trellis import __version__
from trellis.cli import admins, database, keys, operations, restore, serve, work
from trellis.cli.terminal import Door, show

app = typer.Typer(
    name="trellis",
    cls=Door,
    help="Trellis, the structure service of a community. Settings come from TRELLIS_* variables and a .env file.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve.serve)
app.command("work")(work.work)
app.command("migrate")(database.migrate_database)
app.command("demo")(database.demo)
app.add_typer(keys.app, name="keys")
app.add_typer(admins.app, name="admins")
app.command("run")(operations.run)
app.command("restore")(restore.restore)
app.command("routes")(operations.routes)
app.command("check")(database.check)
app.command("backup")(database.backup_database)
app.command("openapi")(operations.openapi)


def _version(wanted: bool) -> None:
    if wanted:
        show(f"trellis {__version__}")
        raise typer.Exit


@app.callback()
def _trellis(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command line."""
    app()
