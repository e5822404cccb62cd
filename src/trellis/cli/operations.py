"""The commands about operations: run any of them, undo one, list their routes, print the OpenAPI document."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer

from trellis.cli.community import act, community
from trellis.cli.secrets import take_secrets
from trellis.cli.terminal import MISUSED, Failure, Json, progress_of, say, show, show_json, show_table
from trellis.compose import catalogue_of
from trellis.core.catalogue import Catalogue
from trellis.core.fields import Invalid, Timestamp, parse_json, parse_whole_number
from trellis.core.gate import Gate
from trellis.core.operation import Operation
from trellis.errors import Refused
from trellis.http.routes import Route
from trellis.http.routes import build_routes as routes_of
from trellis.kinds import KINDS
from trellis.rest.bodies import parse_query
from trellis.rest.docs import document
from trellis.settings import Settings

_PARAMETER: Final = re.compile(r"(.+?)(:=|=)(.*)", re.DOTALL)


def run(
    operation: Annotated[
        str,
        typer.Argument(
            metavar="OPERATION",
            help="The operation's name, such as forums.create; `trellis routes` lists those of the API.",
            show_default=False,
        ),
    ],
    parameters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID] NAME=VALUE…",
            help="The id of the record, and the parameters: name=News, 'permissions[view]=*', or name:=JSON. "
            "A password is asked for, or read from a file: password=@FILE.",
            show_default=False,
        ),
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="The reason; recorded in the event log.")] = None,
    json: Json = False,
) -> None:
    """Run any operation, as the terminal, and print its result as JSON."""
    settings = Settings.load()
    with community(settings) as gate:
        found = _find_operation(gate.catalogue, operation)
        target, raw = _parse_arguments(found, parameters or [])
        with progress_of(f"Running {found.name}") as progress:
            answer = act(gate, found.name, raw, target, reason=reason, progress=progress)
    show_json(answer.value, plain=json)


def _find_operation(catalogue: Catalogue, name: str) -> Operation:
    if name not in catalogue and (near := get_close_matches(name, catalogue, 1)):
        raise Refused("UNKNOWN_OPERATION", f"There is no operation '{name}'. Did you mean {near[0]}?")
    return catalogue.find(name)


def _parse_arguments(operation: Operation, parameters: Iterable[str]) -> tuple[int | None, dict[str, Any]]:
    """Parse the arguments: the id of the record that the operation is about, and the parameters by name."""
    pairs = [_pair(f"id={parameter}" if operation.has_target and parameter.isdigit() else parameter) for parameter in parameters]
    # Brackets are parsed as in a form, with numbers as placeholders for the values, which may be any JSON.
    raw = parse_query(urlencode([(name, place) for place, (name, _) in enumerate(pairs)]).encode())
    raw = take_secrets(operation, {name: _fill_placeholders(part, [value for _, value in pairs]) for name, part in raw.items()})
    if not operation.has_target:
        return None, raw
    target = parse_whole_number(raw.pop("id", None))
    if target is None:
        raise Failure(f"{operation.name} is about one record: pass its id as a whole number, such as id=5.", MISUSED)
    return target, raw


def _pair(parameter: str) -> tuple[str, Any]:
    found = _PARAMETER.fullmatch(parameter)
    if found is None:
        raise Failure(f"'{parameter}' is not a parameter. Write name=value, or name:=JSON.", MISUSED)
    name, sign, text = found.groups()
    try:
        parameter.encode()
        return name, parse_json(text) if sign == ":=" else text
    except UnicodeEncodeError:
        raise Failure(f"The parameter {name!r} is not valid UTF-8.", MISUSED) from None
    except ValueError as error:
        raise Failure(f"The value of {name} is not JSON: {error}. For text, write {name}=… instead of {name}:=…", MISUSED) from None


def _fill_placeholders(part: Any, values: list[Any]) -> Any:
    if isinstance(part, dict):
        return {name: _fill_placeholders(below, values) for name, below in part.items()}
    return [_fill_placeholders(below, values) for below in part] if isinstance(part, list) else values[int(part)]


def routes(json: Json = False) -> None:
    """List the operations that the REST API serves: operation, method, path, and who may run it."""
    Settings.load()
    found = [_row(route) for route in routes_of(catalogue_of(KINDS))]
    if json:
        show_json(found, plain=True)
    else:
        show_table(
            ("Operation", "Method", "Path", "Access"),
            ((row["operation"], row["method"], ", ".join((row["path"], *row["also"])), row["access"]) for row in found),
        )


def _row(route: Route) -> dict[str, Any]:
    operation = route.operation
    return {
        "operation": operation.name,
        "method": route.method,
        "path": route.path,
        "also": list(route.also),
        "access": operation.access.value,
        "summary": operation.summary,
    }


def openapi() -> None:
    """Print the OpenAPI document of the REST API as JSON. TRELLIS_PUBLIC_URL sets the URL of the service in it."""
    base_url = Settings.load().public_url
    catalogue = catalogue_of(KINDS)
    show_json(document(catalogue) if base_url is None else document(catalogue, base_url), plain=True)


# --- undoing ------------------------------------------------------------------------------------------------------

_SPAN: Final = re.compile(r"([1-9][0-9]{0,4})([mhd])", re.ASCII)
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days"}


def restore(  # noqa: PLR0917  # one option a parameter, as Typer has it
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
        int | None, typer.Option("--key", metavar="ID", min=1, help="Undo what this key did, with --since.", show_default=False)
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
        typer.Option(metavar="PARENT", help="The new parent if the old one is gone: an id, or `root` for the top level."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be restored, without changing anything.")] = False,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="The reason; recorded in the event log.")] = None,
    json: Json = False,
) -> None:
    """Undo an event, or many: restore what was deleted, revert what was changed or moved, delete what was created."""
    if sum(one is not None for one in (event, change_set, key)) != 1:
        raise Failure("Say what is to be undone: the number of an event, --change-set ID, or --key ID with --since WHEN.", MISUSED)
    if (key is None) != (since is None):
        raise Failure("--key and --since belong together: --key 3 --since 1h undoes what key 3 did in the last hour.", MISUSED)
    with community(Settings.load()) as gate:
        raw: dict[str, Any]
        if event is not None:
            name, target, raw = "events.restore", event, {} if to is None else {"parentId": to}
        elif change_set is not None:
            name, target, raw = "changesets.restore", change_set, {"skipConflicts": skip_conflicts}
        else:
            name, target = "events.restore_of_key", key or 0
            raw = {"since": _parse_since(gate, since or ""), "skipConflicts": skip_conflicts}
        if after is not None and event is None:
            raw["after"] = after
        with progress_of(f"Undoing event {event}" if event is not None else "Undoing events") as progress:
            answer = act(gate, name, raw | {"dryRun": dry_run}, target, reason=reason, progress=progress)
    if json:
        show_json(answer.value, plain=True)
        return
    for line in _restored(answer.value, answer.event) if event is not None else _undone(answer.value):
        show(line)
    if dry_run:
        say("This was a dry run: nothing was changed.")


def _parse_since(gate: Gate, text: str) -> str:
    if found := _SPAN.fullmatch(text.strip()):
        return gate.ago(timedelta(**{_UNITS[found[2]]: int(found[1])}))
    try:
        return str(Timestamp().parse(text))
    except Invalid as invalid:
        raise Failure(f"--since {invalid.detail} A span such as 1h or 2d is right too.", MISUSED) from None


def _undone(value: Mapping[str, Any]) -> Iterator[str]:
    count, dry = value["undoneCount"], bool(value.get("dryRun"))
    yield f"{count:,} {'event' if count == 1 else 'events'} {'would be' if dry else 'undone'}{' undone' if dry else ''}."
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
    where = record.get("path") or record["name"]
    done = f", by event {by}" if by is not None else ""
    yield f"Event {value['event']} ({value['operation']}) {'would be' if dry else 'is'} undone{done}: {where}"
    if restored > 1:
        yield f"  {restored:,} records are restored in all."
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
