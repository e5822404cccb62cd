"""The command `trellis doctor`."""

from collections.abc import Callable, Iterator
from typing import Final

import typer

from trellis.cli.doctor import machine
from trellis.cli.doctor.database import look_at_database
from trellis.cli.doctor.finding import Finding, State, wrong
from trellis.cli.terminal import FAILED, Json, progress_of, show, show_json, show_table
from trellis.settings import Settings, SettingsError

_LOOKS: Final[tuple[Callable[[Settings], Iterator[Finding]], ...]] = (
    machine.look_at_versions,
    machine.look_at_settings,
    machine.look_at_second_factors,
    machine.look_at_files,
    look_at_database,
    machine.look_at_descriptors,
    machine.look_at_addresses,
    machine.look_at_redis,
    machine.look_at_mail,
    machine.look_at_provider,
)
_COLOURS: Final = {State.GOOD: "green", State.DOUBTFUL: "yellow", State.WRONG: "red"}


def doctor(json: Json = False) -> None:
    """Check settings, versions, files, clock, disk, database, proxies and backups. Exit 1 if something is wrong."""
    with progress_of("Looking"):
        found = _look()
    if json:
        show_json([one._asdict() for one in found])
    else:
        rows = [(one.state.value, one.what, one.told) for one in found]
        show_table(("", "What", "Found"), rows, [_COLOURS[one.state] for one in found])
        for one in found:
            if one.action:
                show(f"{one.what}: {one.action}", style=_COLOURS[one.state])
    if any(one.state is State.WRONG for one in found):
        raise typer.Exit(FAILED)


def _look() -> list[Finding]:
    """Run all checks. A check that fails is a finding too, and does not keep the others from running."""
    try:
        settings = Settings.load()
    except SettingsError as error:
        return [wrong("settings", str(error), "Correct it, and run this again.")]
    found: list[Finding] = []
    for look in _LOOKS:
        try:
            found += look(settings)
        except Exception as error:  # noqa: BLE001  # whatever it is, the operator wants to know the rest
            name = look.__name__.removeprefix("look_at_")
            found.append(wrong(name, f"It could not be checked: {type(error).__name__}: {error}", "Fix that, and run this again."))
    return found
