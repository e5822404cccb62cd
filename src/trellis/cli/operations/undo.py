"""The command that undoes an event, or many."""

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Final

import typer

from trellis.cli.community import KEY_HELP, Reason, act, community, find_key
from trellis.cli.terminal import MISUSED, Failure, Json, print_message, progress_of, refuse_empty, show, show_json
from trellis.core.fields import Invalid, Timestamp
from trellis.core.gate import Gate
from trellis.settings import Settings

_SPAN: Final = re.compile(r"([1-9][0-9]{0,4})([mhd])", re.ASCII)
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


def restore(  # noqa: PLR0917  # Typer needs one parameter per option
    event: Annotated[
        int | None,
        typer.Argument(
            metavar="[EVENT]",
            min=1,
            help="The event's number; `trellis run events.list order=newest` shows the latest.",
            show_default=False,
        ),
    ] = None,
    change_set: Annotated[
        int | None,
        typer.Option("--change-set", metavar="ID", min=1, help="Undo all of this change set.", show_default=False),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="KEY", help=f"Undo what a key did, with --since. {KEY_HELP}", callback=refuse_empty()),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="How far back: 30m, 1h, 2d, or a timestamp in ISO 8601.", show_default=False),
    ] = None,
    after: Annotated[
        int | None,
        typer.Option(metavar="EVENT", min=0, help="Of many events, undo only those after this one.", show_default=False),
    ] = None,
    skip_conflicts: Annotated[
        bool, typer.Option("--skip-conflicts", help="Undo the others if some of many events cannot be undone.")
    ] = False,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="PARENT",
            help="The new parent if the old one is gone: an id, or `root` for the top level.",
            callback=refuse_empty("Give the id of a parent, or `root` for the top level."),
        ),
    ] = None,
    delete_created: Annotated[
        bool, typer.Option("--delete-created", help="Delete what the event created; of many events, this is always done.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be restored, without changing anything.")] = False,
    reason: Reason = None,
    json: Json = False,
) -> None:
    """Undo an event, or many: restore what was deleted, revert what was changed or moved, delete what was created."""
    _check_options(event, change_set, key, since=since, after=after, skip_conflicts=skip_conflicts, to=to)
    if event is None and delete_created:
        raise Failure(
            "--delete-created is for a single event: when undoing many events, whatever they created is always deleted.", MISUSED
        )
    with community(Settings.load()) as gate:
        raw: dict[str, Any]
        if event is not None:
            name, target, raw = "events.restore", event, {} if to is None else {"parentId": to}
            raw |= {"deleteCreated": True} if delete_created else {}
        elif change_set is not None:
            name, target, raw = "changesets.restore", change_set, {"skipConflicts": skip_conflicts}
        else:
            raw = {"since": _parse_since(gate, since or ""), "skipConflicts": skip_conflicts}
            name, target = "events.restore_of_key", find_key(gate, key or "")
        if after is not None:
            raw["after"] = after
        with progress_of(f"Undoing event {event}" if event is not None else "Undoing events") as progress:
            answer = act(gate, name, raw | {"dryRun": dry_run}, target, reason=reason, progress=progress)
    if json:
        show_json(answer.value)
        return
    for line in _restored(answer.value, answer.event) if event is not None else _undone(answer.value):
        show(line)
    if dry_run:
        print_message("This was a dry run: nothing was changed.")


def _check_options(
    event: int | None,
    change_set: int | None,
    key: str | None,
    *,
    since: str | None,
    after: int | None,
    skip_conflicts: bool,
    to: str | None,
) -> None:
    """Refuse options that do not say what to undo, or that do not fit together. Raises Failure."""
    if sum(one is not None for one in (event, change_set, key)) != 1:
        raise Failure("Say what to undo: the number of an event, --change-set ID, or --key KEY with --since WHEN.", MISUSED)
    if (key is None) != (since is None):
        raise Failure("--key and --since belong together: --key 3 --since 1h undoes what key 3 did in the last hour.", MISUSED)
    if event is not None and (after is not None or skip_conflicts):
        raise Failure("--after and --skip-conflicts are for many events: give them with --change-set or --key.", MISUSED)
    if event is None and to is not None:
        raise Failure("--to is for a single event: give its number.", MISUSED)


def _parse_since(gate: Gate, text: str) -> str:
    if found := _SPAN.fullmatch(text.strip()):
        return gate.ago(timedelta(**{_UNITS[found[2]]: int(found[1])}))
    try:
        return str(Timestamp().parse(text))
    except Invalid as invalid:
        raise Failure(f"--since {invalid.detail} A duration such as 1h or 2d works too.", MISUSED) from None


def _undone(value: Mapping[str, Any]) -> Iterator[str]:
    count, dry = value["undoneCount"], bool(value.get("dryRun"))
    yield f"{count:,} {'event' if count == 1 else 'events'} {'would be undone' if dry else 'undone'}."
    for one in value["conflicts"]:
        yield f"  Event {one['event']} ({one['operation']}) cannot be undone. {one['detail']}"
    if more := value["conflictCount"] - len(value["conflicts"]):
        yield f"  … and {more:,} more."
    if value["purgedCount"] is None:
        yield "  Older events have been purged; some of them may have been among those to undo."
    elif purged := value["purgedCount"]:
        yield f"  {purged:,} {'event has' if purged == 1 else 'events have'} been purged and cannot be undone."


def _restored(value: Mapping[str, Any], by: int | None) -> Iterator[str]:
    record, restored, dry = value["record"], value["restored"]["count"], bool(value.get("dryRun"))
    done = f", by event {by}" if by is not None else ""
    where = "" if record is None else f": {record.get('path') or record['name']}"  # None if undoing deletes all that it created
    yield f"Event {value['event']} ({value['operation']}) {'would be' if dry else 'is'} undone{done}{where or '.'}"
    if restored > 1:
        yield f"  {restored:,} records are restored in all."
    if deleted := value["deleted"]["count"]:
        yield f"  {deleted:,} {'record is' if deleted == 1 else 'records are'} deleted."
    if moved := value["moved"]["count"]:
        yield f"  {moved:,} {'child moves' if moved == 1 else 'children move'} back under it."
    if changed := value["changed"]["count"]:
        yield f"  It returns to the permissions of {changed:,} {'record' if changed == 1 else 'records'}."
    for one in value["left"]["nodes"]:
        yield f"  {one['resource']} {one['id']} is not changed. {one['why']}"
    if more := value["left"]["count"] - len(value["left"]["nodes"]):
        yield f"  … and {more:,} more."
    if lost := value["lostGroups"]:
        yield f"  Removed from its permissions, because these groups no longer exist: {', '.join(map(str, lost))}."
