"""The commands about the database as a whole: migrate, demo, check, purge, backup."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from trellis.cli.community import act, community, explaining
from trellis.cli.demo import load_sample
from trellis.cli.terminal import FAILED, MISUSED, Failure, Json, progress_of, show, show_json, show_table
from trellis.housekeeping import Purges
from trellis.settings import Settings
from trellis.store.condition import Condition, describe_database, explain_condition, find_condition, find_file
from trellis.store.engine import Damaged, backup
from trellis.store.migrate import migrate
from trellis.store.restore import NotRestorable, prepare_restore
from trellis.store.steps import find_newest_step


def migrate_database() -> None:
    """Bring the database to the newest step; make it if it is not there."""
    settings = Settings.load()
    with explaining(settings):
        at = find_condition(settings)
        if at is Condition.FOREIGN:
            raise Failure(explain_condition(settings, at))
        if at is Condition.READY or not migrate(settings, lambda step: show(f"Ran step {step}.")):
            show(f"Nothing to do: the database {describe_database(settings)} is at the newest step, {find_newest_step()}.")
            return
        show(f"The database {describe_database(settings)} is ready.")


def demo() -> None:
    """Load the sample community: groups, forums, calendars, download categories and blogs."""
    settings = Settings.load()
    with community(settings, make=True) as gate:
        if act(gate, "forums.list", {"perPage": 1}).value["totalResults"]:
            raise Failure("The community has forums already. The sample is for an empty one; nothing was changed.")
        with progress_of("Loading the sample community") as progress:
            loaded = load_sample(gate, progress)
        show("Loaded " + ", ".join(f"{count} {name}" for name, count in loaded.items()) + ".")


def check(
    repair: Annotated[
        bool, typer.Option("--repair", help="Mend what can be mended safely; nobody else can write meanwhile.")
    ] = False,
    json: Json = False,
) -> None:
    """Look at every row: trees, fields, permissions, counters, keys, names, log. Exit 1 if something is wrong."""
    with community(Settings.load()) as gate:
        repairs: list[dict[str, Any]] = []
        if repair:
            with progress_of("Repairing") as progress:
                repairs = act(gate, "check.repair", progress=progress).value["problems"]
        with progress_of("Checking") as progress:
            found = act(gate, "check.list", progress=progress).value
    if json:
        show_json(found | ({"repairs": repairs} if repair else {}), plain=True)
    else:
        _tell(found, repairs)
    if found["count"]:
        raise typer.Exit(FAILED)


def _tell(found: dict[str, Any], repairs: list[dict[str, Any]]) -> None:
    if repairs:
        show_table(("Repaired", "Id", "What", ""), _rows(repairs))
    if found["problems"]:
        show_table(("Problem with", "Id", "What", "", "Repairable"), [(*row, mark) for row, mark in _marked(found["problems"])])
    if (count := found["count"]) > len(found["problems"]):
        show(f"… and {count - len(found['problems']):,} more.")
    rows = sum(found["checked"].values())
    if not count:
        show(f"Checked {rows:,} rows: nothing is wrong.", style="green")
        _tell_of_the_past(found["kept"])
        return
    hint = f"; `trellis check --repair` mends {found['repairable']:,} of them" if found["repairable"] else ""
    show(f"Checked {rows:,} rows: {count:,} {'problem' if count == 1 else 'problems'}{hint}.", style="red")
    _tell_of_the_past(found["kept"])


def _tell_of_the_past(kept: dict[str, Any]) -> None:
    """Say how far the log and undo reach back, once something was purged."""
    for what, name in (("events", "The log"), ("snapshots", "Undo")):
        reach = kept[what]
        if reach["purged"]:
            since = "to nothing" if reach["from"] is None else f"to {reach['from']}"
            older = "1 older change" if reach["purged"] == 1 else f"{reach['purged']:,} older changes"
            show(f"{name} reaches back {since}; {older} {'was' if reach['purged'] == 1 else 'were'} purged ({reach['days']} days).")


def _rows(problems: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(p["resource"], p["id"], p["problem"], p["detail"]) for p in problems]


def _marked(problems: list[dict[str, Any]]) -> list[tuple[tuple[Any, ...], str]]:
    return list(zip(_rows(problems), ["yes" if p["repairable"] else "no" for p in problems], strict=True))


def purge() -> None:
    """Delete what is older than it is kept, now, trusting this machine's clock; a service does that every ten minutes by itself."""
    settings = Settings.load()
    with community(settings, make=False) as gate:
        asyncio.run(Purges(gate, settings).run(trusting=True))
    show("Deleted what was older than it is kept. Services that doubted their clock trust it again.")


# --- backup -------------------------------------------------------------------------------------------------------


class BackupCommands(TyperGroup):
    """`backup restore FILE`, and `backup FILE`, in which the name of the command `create` is left out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            args = ["create", *args]
        return super().parse_args(ctx, args)


backup_app = typer.Typer(
    cls=BackupCommands,
    help="Copy the SQLite database while it is in use (`trellis backup FILE`), and restore such a copy.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
)

Copy = Annotated[Path, typer.Argument(metavar="FILE", help="The copy.", show_default=False)]


@backup_app.command("create")
def create_backup(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where the copy goes. It must not be there yet.", show_default=False)
    ],
) -> None:
    """Copy the SQLite database as it is now, while it is in use, and verify the copy. Only you may read it."""
    settings = Settings.load()
    source = _sqlite_file(settings, "copies SQLite databases", "pg_dump --format=custom --file=FILE ADDRESS")
    if not source.exists():
        raise Failure(explain_condition(settings, Condition.MISSING))
    with explaining(settings), _explaining_files(file):
        try:
            with progress_of("Copying pages") as progress:
                backup(source, file, progress)
        except Damaged as damage:
            raise Failure(
                f"The database {source} is damaged: {damage}. No copy was kept. Restore one of before: trellis backup restore FILE"
            ) from None
    show(f"Copied {source} to {file} ({file.stat().st_size:,} bytes).")


@backup_app.command("restore")
def restore_backup(file: Copy) -> None:
    """Replace the SQLite database by a copy, once it is verified and up to date. The old database is set aside, not deleted."""
    settings = Settings.load()
    database = _sqlite_file(settings, "restores SQLite databases", "pg_restore --exit-on-error --no-owner --dbname=ADDRESS FILE")
    if not file.is_file():
        raise Failure(f"There is no file {file}.")
    of_copy = replace(settings, database_url=f"sqlite:///{file}")
    with explaining(of_copy), _explaining_files(database):
        try:
            with progress_of("Copying pages") as progress, prepare_restore(settings, database, file, progress) as candidate:
                problems = _count_problems(candidate.settings)
                aside = candidate.put_in_place()
        except Damaged as damage:
            raise Failure(f"{file} is damaged: {damage}. Nothing was changed; restore another copy.") from None
        except NotRestorable as refused:
            raise Failure(f"{refused} Nothing was changed.") from None
    for path in aside:
        show(f"Set aside: {path}")
    show(f"Restored {database} from {file}.")
    if problems:
        show(f"Its check found problems ({problems:,}): `trellis check` tells them.", style="red")


def _sqlite_file(settings: Settings, does: str, instead: str) -> Path:
    file = find_file(settings)
    if file is None:
        raise Failure(f"`trellis backup` {does}. For PostgreSQL use its own tool: {instead}", MISUSED)
    return file


def _count_problems(settings: Settings) -> int:
    with community(settings) as gate:
        return int(act(gate, "check.list").value["count"])


@contextmanager
def _explaining_files(file: Path) -> Iterator[None]:
    """Turn an error about a file that is written into a Failure."""
    try:
        yield
    except FileExistsError:
        raise Failure(f"{file} is there already. Nothing was overwritten: give another name.") from None
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror or error}.") from None
