"""The commands that copy the database, once or on a schedule, and restore a copy."""

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from trellis.cli.backup.schedule import DRAFT, Schedule, rename_new, run_schedule
from trellis.cli.community import act, community, explaining, require_other_names
from trellis.cli.terminal import MISUSED, Failure, interrupted_by_signals, make_app, progress_of, show
from trellis.compose import compose
from trellis.logs import configure_logs
from trellis.settings import Settings
from trellis.store import last_runs
from trellis.store.backup import Damaged, NotRestorable, backup, prepare_restore
from trellis.store.condition import Condition, explain_condition, find_condition, find_file
from trellis.store.engine import FileLock
from trellis.store.sqlite import describe_wal_reset_bug

_KEPT: Final = 7  # copies that a schedule keeps if nobody says how many
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}
_EVERY: Final = re.compile(r"([1-9][0-9]{0,3})([mhd])", re.ASCII)


class BackupCommands(TyperGroup):
    """Understands `backup FILE`, in which the name of the command `create` is left out, besides `backup restore FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["create", *args]
        return super().parse_args(ctx, args)


backup_app = make_app(
    cls=BackupCommands,
    help="Copy the SQLite database while it is in use (`trellis backup FILE`), and restore such a copy.",
    no_args_is_help=True,
)


@backup_app.command("create")
def create_backup(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Where to write the copy: a file that does not exist yet. With --every, a folder.",
            show_default=False,
        ),
    ],
    every: Annotated[
        str | None,
        typer.Option(
            help="Make a copy now, and another each time this has passed, until SIGTERM: 30m, 6h, 1d.", show_default=False
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="With --every, how many copies to keep.", show_default=str(_KEPT)),
    ] = None,
) -> None:
    """Copy the SQLite database as it is now, while it is in use, and verify the copy. Only you may read it."""
    if keep is not None and every is None:
        raise Failure("--keep is for --every.", MISUSED)
    settings = Settings.load()
    source = _sqlite_file(settings, "copies SQLite databases", "pg_dump --format=custom --file=FILE ADDRESS")
    with explaining(settings):
        if (at := find_condition(settings)) in {Condition.MISSING, Condition.FOREIGN}:
            raise Failure(explain_condition(settings, at))
    require_other_names(settings, file)
    if every is None:
        _copy_once(settings, source, file)
        show(f"Copied {source} to {file} ({file.stat().st_size:,} bytes).")
        return
    schedule = Schedule(file, parse_interval(every), keep or _KEPT)
    configure_logs(settings)
    run_schedule(schedule, source, lambda target: copy_database(settings, source, target))


def parse_interval(text: str) -> timedelta:
    """Read a time such as 30m, 6h or 1d. Raises Failure."""
    if (found := _EVERY.fullmatch(text)) is None:
        raise Failure(f"--every must be a number of minutes, hours or days, such as 30m, 6h or 1d, not '{text}'.", MISUSED)
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _copy_once(settings: Settings, source: Path, file: Path) -> None:
    """Copy a database to a file that exists only once it is complete, as this process may be killed before. Raises Failure."""
    with _explaining_files(file):
        if os.path.lexists(file):
            raise FileExistsError
        draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}{DRAFT}")
        with interrupted_by_signals():
            try:
                copy_database(settings, source, draft, file)
                rename_new(draft, file)
            finally:
                draft.unlink(missing_ok=True)


def copy_database(settings: Settings, source: Path, target: Path, named: Path | None = None) -> None:
    """Copy a database, verify the copy, and record its time in the database. Raises Failure, which names `named` if given."""
    with explaining(settings), _explaining_files(named or target), _keeping_restores_out(source):
        try:
            with progress_of("Copying pages") as progress:
                backup(source, target, progress)
        except Damaged as damage:
            raise Failure(
                f"The database {source} is damaged: {damage}. No copy was kept. Restore an earlier one: trellis backup restore FILE"
            ) from None
        try:
            _note(settings)
        except KeyboardInterrupt:  # the copy would be left under the name of one that is not complete
            target.unlink(missing_ok=True)
            raise


@contextmanager
def _keeping_restores_out(database: Path) -> Iterator[None]:
    """Hold the lock that every command holds while it has the database open. Raises DatabaseInUse."""
    lock = FileLock(database)
    if describe_wal_reset_bug() is None:  # otherwise the lock would be exclusive, and a running service could not be copied
        lock.share()
    try:
        yield
    finally:
        lock.release()


def _note(settings: Settings) -> None:
    """Record when the backup was made, for `trellis doctor` and monitoring, if that is possible: the copy exists in any case."""
    gate = compose(settings)
    with suppress(Exception):  # the database may be an older one, read-only or on a full disk
        gate.store.write(lambda tx: last_runs.record(tx, last_runs.BACKUP, int(time.time() * 1000)), quiet=True).result()
    gate.store.close()  # not after a signal, as in `community`: it would wait for the write


@backup_app.command("restore")
def restore_backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The copy.", show_default=False)],
) -> None:
    """Replace the SQLite database with a copy, once it is verified and up to date. The old database is set aside, not deleted."""
    settings = Settings.load()
    database = _sqlite_file(settings, "restores SQLite databases", "pg_restore --exit-on-error --no-owner --dbname=ADDRESS FILE")
    of_copy = replace(settings, database_url=f"sqlite:///{file}")
    with explaining(of_copy):
        if not file.is_file():
            raise Failure(f"There is no file {file}.")
    with explaining(of_copy), _explaining_files(database), interrupted_by_signals():
        try:
            with ExitStack() as preparing:
                with progress_of("Copying pages") as progress:
                    candidate = preparing.enter_context(prepare_restore(settings, database, file, progress))
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
        show(f"Its check found problems ({problems:,}): `trellis check` lists them.", style="red")


def _sqlite_file(settings: Settings, does: str, instead: str) -> Path:
    file = find_file(settings)
    if file is None:
        raise Failure(f"`trellis backup` {does}. For PostgreSQL use its own tool: {instead}", MISUSED)
    return file


def _count_problems(settings: Settings) -> int:
    with community(settings) as gate, progress_of("Checking") as progress:
        return int(act(gate, "check.list", progress=progress).value["count"])


@contextmanager
def _explaining_files(file: Path) -> Iterator[None]:
    """Turn an error in writing a file into a Failure."""
    try:
        yield
    except FileExistsError:
        raise Failure(f"{file} already exists. Nothing was overwritten: choose another name.") from None
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror or error}.") from None
