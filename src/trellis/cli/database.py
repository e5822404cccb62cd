"""The commands for the database as a whole: migrate, demo, check, purge."""

import asyncio
from typing import Annotated, Any, Final

import typer

from trellis.cli.community import act, community, explaining
from trellis.cli.demo import load_sample
from trellis.cli.terminal import FAILED, MISUSED, Failure, Json, print_message, progress_of, show, show_json, show_table
from trellis.housekeeping import Purges
from trellis.settings import Settings
from trellis.store.condition import Condition, describe_database, explain_condition, find_condition
from trellis.store.migrate import migrate
from trellis.store.migrations import Effect, MigrationPlan, plan_migration
from trellis.store.steps import find_newest_step, list_steps

_PLANNED: Final = 3  # the exit code of `trellis migrate --plan` if there is something to do


def migrate_database(
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what would be done, without doing it. Exit 3 if there is something to do.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring the database to the newest step; create it if it does not exist."""
    settings = Settings.load()
    if json and not plan:
        raise Failure("--json is for --plan.", MISUSED)
    with explaining(settings):
        at = find_condition(settings)
        if at in {Condition.NEWER, Condition.FOREIGN, Condition.POOLED}:
            raise Failure(explain_condition(settings, at))
        if plan:
            planned = plan_migration(settings)
            show_json(_to_dict(planned)) if json else _tell_plan(planned, describe_database(settings))
            raise typer.Exit(_PLANNED if planned.steps else 0)
        ended: list[str] = []  # those of an attempt that is rolled back, too
        number = 0
        if at is not Condition.READY:
            steps = sorted(list_steps())
            with progress_of("Migrating") as progress:

                def end(step: str) -> None:
                    ended.append(step)
                    before = steps.index(ended[0])
                    progress(steps.index(step) + 1 - before, len(steps) - before)

                number = migrate(settings, end, on_wait=print_message)
        if not number:
            show(f"Nothing to do: the database {describe_database(settings)} is at the newest step, {find_newest_step()}.")
            return
        for step in ended[-number:]:
            show(f"Ran step {step}.")
        show(f"The database {describe_database(settings)} is ready.")


def _tell_plan(plan: MigrationPlan, database: str) -> None:
    if not plan.steps:
        show(f"Nothing to do: the database {database} is at the newest step, {plan.newest}.")
        return
    begins = "has no tables yet" if plan.at is None else f"is at step {plan.at}"
    show(f"The database {database} {begins}. To bring it to step {plan.newest}, `trellis migrate` would run, all or none:")
    show()
    show_table(
        ("Step", "May take", "The previous release", "What"),
        [(step.name, _write_span(step.seconds), _judge(step.effect), step.summary) for step in plan.steps],
    )
    show()
    if plan.at is None:
        return
    show(f"With the rows that are in it now, this may take {_write_span(plan.seconds, alone=True)}, or longer on a slower machine.")
    if plan.blocked:
        show(f"Meanwhile all writes have to wait, and so do reads of {', '.join(plan.blocked)}.")
    else:
        show("Meanwhile reads continue, and writes have to wait.")
    show(_ADVICE[plan.reads, plan.writes], style="bold")
    if plan.reads and plan.unknown:
        show("It does not know of these; do not use them until its last process has stopped:")
        for unknown in plan.unknown:
            show(f"- {unknown}")
    show("Nothing was changed.")


_ADVICE: Final = {
    (False, False): "The previous release does not work with the database afterwards: stop every process first.",
    (True, False): "The previous release can still read the database afterwards, but writes incomplete data: do not let it write.",
    (True, True): "The previous release still works with the database afterwards: you can replace its processes one by one.",
}


def _judge(effect: Effect) -> str:
    if not effect.reads:
        return "must stop"
    return "reads and writes" if effect.writes else "reads"


def _write_span(seconds: float, *, alone: bool = False) -> str:
    """Format how long something may take, for a table or, if it stands `alone`, for a sentence."""
    if seconds < 1:
        return "less than a second" if alone else "< 1 s"
    return f"{seconds:,.0f} s" if seconds < 120 else f"{seconds / 60:,.0f} min"


def _to_dict(plan: MigrationPlan) -> dict[str, Any]:
    return {
        "at": plan.at,
        "newest": plan.newest,
        "steps": [
            {
                "step": step.name,
                "summary": step.summary,
                "seconds": round(step.seconds, 1),
                "oldReleaseReads": step.effect.reads,
                "oldReleaseWrites": step.effect.reads and step.effect.writes,
            }
            for step in plan.steps
        ],
        "seconds": round(plan.seconds, 1),
        "blocked": plan.blocked,
        "oldReleaseReads": plan.reads,
        "oldReleaseWrites": plan.writes,
        "unknownToOldRelease": plan.unknown,
    }


def demo() -> None:
    """Load the sample community: groups, forums, calendars, download categories and blogs."""
    settings = Settings.load()
    with community(settings, make=True) as gate:
        if (loaded := load_sample(gate)) is None:
            raise Failure("The community already has forums. The sample is for an empty one; nothing was changed.")
        show("Loaded " + ", ".join(f"{count} {name}" for name, count in loaded.items()) + ".")


def check(
    repair: Annotated[
        bool, typer.Option("--repair", help="Repair what can be repaired safely; nobody else can write meanwhile.")
    ] = False,
    json: Json = False,
) -> None:
    """Check every row: trees, fields, permissions, counters, keys, names, log. Exit 1 if something is wrong."""
    with community(Settings.load()) as gate:
        repairs: list[dict[str, Any]] = []
        if repair:
            with progress_of("Repairing") as progress:
                repaired: dict[str, Any] = {"more": True, "next": None}
                while repaired["more"]:
                    continued = {} if repaired["next"] is None else {"after": repaired["next"]}
                    repaired = act(gate, "check.repair", continued, progress=progress).value
                    repairs += repaired["problems"]
        with progress_of("Checking") as progress:
            found = act(gate, "check.list", progress=progress).value
    if json:
        show_json(found | ({"repairs": repairs} if repair else {}))
    else:
        _tell(found, repairs)
    if found["count"]:
        raise typer.Exit(FAILED)


_MOST_REPAIRS: Final = 10_000  # in a table, as there are problems


def _tell(found: dict[str, Any], repairs: list[dict[str, Any]]) -> None:
    if repairs:
        show_table(("Repaired", "Id", "What", ""), map(_row, repairs[:_MOST_REPAIRS]))
        if (more := len(repairs) - _MOST_REPAIRS) > 0:
            show(f"… and {more:,} more; the events of check.repair list all.")
    if found["problems"]:
        rows = ((*_row(problem), "yes" if problem["repairable"] else "no") for problem in found["problems"])
        show_table(("Problem with", "Id", "What", "", "Repairable"), rows)
    if (count := found["count"]) > len(found["problems"]):
        show(f"… and {count - len(found['problems']):,} more.")
    checked = sum(found["checked"].values())
    if count:
        hint = f"; `trellis check --repair` can repair {found['repairable']:,} of them" if found["repairable"] else ""
        show(f"Checked {checked:,} rows: {count:,} {'problem' if count == 1 else 'problems'}{hint}.", style="red")
    else:
        show(f"Checked {checked:,} rows: nothing is wrong.", style="green")
    _tell_of_the_past(found["kept"])


def _tell_of_the_past(kept: dict[str, Any]) -> None:
    """Print how far back the log and undo reach, if something was purged."""
    for what, name in (("events", "The log"), ("snapshots", "Undo")):
        reach = kept[what]
        if reach["purged"]:
            since = "to nothing" if reach["from"] is None else f"to {reach['from']}"
            days = f"{reach['days']:,} {'day' if reach['days'] == 1 else 'days'}"
            older = "1 older change" if reach["purged"] == 1 else f"{reach['purged']:,} older changes"
            show(f"{name} reaches back {since}; {older} {'was' if reach['purged'] == 1 else 'were'} purged ({days}).")


def _row(problem: dict[str, Any]) -> tuple[Any, ...]:
    return problem["resource"], problem["id"], problem["problem"], problem["detail"]


def purge() -> None:
    """Delete what is past its retention time, trusting this machine's clock. A service does this by itself every ten minutes."""
    settings = Settings.load()
    with community(settings) as gate, progress_of("Deleting rows") as progress:
        failed = asyncio.run(Purges(gate, settings).run(trusting=True, progress=progress))
    if failed:
        raise Failure(f"These could not be deleted: {', '.join(failed)}. The rest of what was past its retention time is gone.")
    show("Deleted what was past its retention time. Services that did not trust their clock trust it again.")
