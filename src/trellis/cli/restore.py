"""The command that takes back an event."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from trellis.cli.terminal import Json, act, community, progress_of, say, show, show_json
from trellis.settings import Settings


def restore(
    event: Annotated[
        int,
        typer.Argument(
            metavar="EVENT",
            min=1,
            help="Its sequence number; `trellis run events.list order=newest` shows the latest.",
            show_default=False,
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(metavar="PARENT", help="Where it goes if its old parent is gone: an id, or `root` for the top level."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would come back, and change nothing.")] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept in the event log.")] = None,
    json: Json = False,
) -> None:
    """Undo an event: bring back what it deleted, or make what it changed or moved as it was."""
    raw: dict[str, Any] = {"dryRun": dry_run} | ({} if to is None else {"parentId": to})
    with community(Settings.load(), make=False) as gate, progress_of(f"Undoing event {event}") as progress:
        answer = act(gate, "events.restore", raw, event, reason=reason, progress=progress)
    if json:
        show_json(answer.value, plain=True)
        return
    for line in _told(answer.value, answer.event):
        show(line)
    if dry_run:
        say("This was a dry run: nothing was changed.")


def _told(value: Mapping[str, Any], by: int | None) -> Iterator[str]:
    record, restored, dry = value["record"], value["restored"]["count"], bool(value.get("dryRun"))
    where = record.get("path") or record["name"]
    done = f", by event {by}" if by is not None else ""
    yield f"Event {value['event']} ({value['operation']}) {'would be' if dry else 'is'} undone{done}: {where}"
    if restored > 1:
        yield f"  {restored:,} records in all come back."
    if moved := value["moved"]["count"]:
        yield f"  {moved:,} {'child stands' if moved == 1 else 'children stand'} under it again."
    if changed := value["changed"]["count"]:
        yield f"  It stands in the permissions of {changed:,} {'record' if changed == 1 else 'records'} again."
    for one in value["left"]["nodes"]:
        yield f"  {one['resource']} {one['id']} stays as it is. {one['why']}"
    if more := value["left"]["count"] - len(value["left"]["nodes"]):
        yield f"  … and {more:,} more."
    if lost := value["lostGroups"]:
        yield f"  Gone from its permissions, since there are no such groups: {', '.join(map(str, lost))}."
