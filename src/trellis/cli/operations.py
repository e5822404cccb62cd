"""The commands about operations: run any of them, undo one, list their routes, print the OpenAPI document."""

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from json import JSONDecodeError
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import orjson
import typer

from trellis.cli.community import act, community
from trellis.cli.terminal import MISUSED, Failure, Json, progress_of, say, show, show_json, show_table
from trellis.compose import catalogue_of
from trellis.core.catalogue import Catalogue
from trellis.core.fields import parse_whole_number
from trellis.core.operation import Operation
from trellis.errors import Refused
from trellis.http.routes import Route
from trellis.http.routes import build_routes as routes_of
from trellis.kinds import KINDS
from trellis.rest.bodies import from_query
from trellis.rest.docs import document
from trellis.settings import Settings

_PARAMETER: Final = re.compile(r"(.+?)(:=|=)(.*)", re.DOTALL)


def run(
    operation: Annotated[
        str,
        typer.Argument(
            metavar="OPERATION",
            help="Its name, such as forums.create; `trellis routes` lists those of the API.",
            show_default=False,
        ),
    ],
    parameters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID] NAME=VALUE…",
            help="The id of the record that it is about, and what it takes: name=News, 'permissions[view]=*', or name:=JSON.",
            show_default=False,
        ),
    ] = None,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept in the event log.")] = None,
    json: Json = False,
) -> None:
    """Run any operation, as the terminal, and print its result as JSON."""
    settings = Settings.load()
    with community(settings) as gate:
        found = _found(gate.catalogue, operation)
        target, raw = _taken(found, parameters or [])
        with progress_of(f"Running {found.name}") as progress:
            answer = act(gate, found.name, raw, target, reason=reason, progress=progress)
    show_json(answer.value, plain=json)


def _found(catalogue: Catalogue, name: str) -> Operation:
    if name not in catalogue and (near := get_close_matches(name, catalogue, 1)):
        raise Refused("UNKNOWN_OPERATION", f"There is no operation '{name}'. Did you mean {near[0]}?")
    return catalogue.find(name)


def _taken(operation: Operation, parameters: Iterable[str]) -> tuple[int | None, dict[str, Any]]:
    """Read the parameters: the id of the record that the operation is about, and what it is given by name."""
    pairs = [_pair(f"id={parameter}" if operation.has_target and parameter.isdigit() else parameter) for parameter in parameters]
    # Brackets are read as in a form; numbers stand for the values meanwhile, which may be any JSON.
    raw = from_query(urlencode([(name, place) for place, (name, _) in enumerate(pairs)]).encode())
    raw = {name: _filled(part, [value for _, value in pairs]) for name, part in raw.items()}
    if not operation.has_target:
        return None, raw
    target = parse_whole_number(raw.pop("id", None))
    if target is None:
        raise Failure(f"{operation.name} is about one record: give its id as a whole number, such as id=5.", MISUSED)
    return target, raw


def _pair(parameter: str) -> tuple[str, Any]:
    found = _PARAMETER.fullmatch(parameter)
    if found is None:
        raise Failure(f"'{parameter}' is not a parameter. Write name=value, or name:=JSON.", MISUSED)
    name, sign, text = found.groups()
    try:
        parameter.encode()
        return name, orjson.loads(text) if sign == ":=" else text
    except UnicodeEncodeError:
        raise Failure(f"The parameter {name!r} is not valid UTF-8.", MISUSED) from None
    except JSONDecodeError as error:
        raise Failure(f"The value of {name} is not JSON: {error}. For text, write {name}=… instead of {name}:=…", MISUSED) from None


def _filled(part: Any, values: list[Any]) -> Any:
    if isinstance(part, dict):
        return {name: _filled(below, values) for name, below in part.items()}
    return [_filled(below, values) for below in part] if isinstance(part, list) else values[int(part)]


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
    for line in _restored(answer.value, answer.event):
        show(line)
    if dry_run:
        say("This was a dry run: nothing was changed.")


def _restored(value: Mapping[str, Any], by: int | None) -> Iterator[str]:
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
    """Print the OpenAPI document of the REST API as JSON. TRELLIS_PUBLIC_URL says under which address it is served."""
    base_url = Settings.load().public_url
    catalogue = catalogue_of(KINDS)
    show_json(document(catalogue) if base_url is None else document(catalogue, base_url), plain=True)
