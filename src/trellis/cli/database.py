"""The commands about the database as a whole: migrate, demo, check, purge."""

import asyncio
from typing import Annotated, Any

import typer

from trellis.cli.community import act, community, explaining
from trellis.cli.demo import load_sample
from trellis.cli.terminal import FAILED, Failure, Json, progress_of, show, show_json, show_table
from trellis.housekeeping import Purges
from trellis.settings import Settings
from trellis.store.condition import Condition, describe_database, explain_condition, find_condition
from trellis.store.migrate import migrate
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
