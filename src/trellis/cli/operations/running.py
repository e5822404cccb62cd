"""The command that runs any operation, lists all operations, and describes their parameters."""

import json as json_text
import re
from collections.abc import Mapping
from time import monotonic, sleep
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import typer

from trellis.cli.community import Reason, act, community
from trellis.cli.secrets import take_secrets
from trellis.cli.terminal import MISUSED, Failure, Json, make_app, progress_of, show, show_document, show_json, show_table
from trellis.compose import catalogue_of
from trellis.core.catalogue import Catalogue
from trellis.core.fields import Field, Suggestions, parse_json, parse_whole_number
from trellis.core.gate import Gate, Result
from trellis.core.operation import Operation, RawText
from trellis.core.verbs import Response
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.rest.bodies import parse_query
from trellis.rest.docs import type_in_words
from trellis.settings import Settings

_PARAMETER: Final = re.compile(r"(.+?)(:=|=)(.*)", re.DOTALL)
_LOOK_EVERY: Final = 0.25  # seconds

run_app = make_app()


@run_app.command(add_help_option=False)
def run(  # Typer needs one parameter per option
    context: typer.Context,
    operation: Annotated[
        str | None,
        typer.Argument(metavar="OPERATION", help="The operation's name, such as forums.create.", show_default=False),
    ] = None,
    parameters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID] NAME=VALUE…",
            help="The id of the record, and the parameters: name=News, 'permissions[view]=\\*', or name:=JSON. "
            "A password is asked for, or read from a file: password=@FILE.",
            show_default=False,
        ),
    ] = None,
    reason: Reason = None,
    list_all: Annotated[bool, typer.Option("--list", help="List all operations, with what each does.")] = False,
    json: Json = False,
    wants_help: Annotated[
        bool, typer.Option("--help", "-h", help="Show this message and exit; after an operation, what it does and takes.")
    ] = False,
) -> None:
    """Run any operation, as the terminal, and print its result as JSON."""
    if list_all:
        _list_operations(json=json)
    elif wants_help and operation is not None:
        _describe(_find_operation(catalogue_of(KINDS), operation))
    elif operation is None:
        show(context.get_help())
        if not wants_help:
            raise Failure("Which operation? trellis run --list lists them.", MISUSED)
    else:
        _run(operation, parameters or [], reason, json=json)


def _run(name: str, parameters: list[str], reason: str | None, *, json: bool) -> None:
    with community(Settings.load()) as gate:
        found = _find_operation(gate.catalogue, name)
        target, raw = _parse_arguments(gate.catalogue, found, parameters)
        with progress_of(f"Running {found.name}") as progress:
            answer = act(gate, found.name, raw, target, reason=reason, progress=progress)
            if found.verb is not None and found.verb.response is Response.FEED:
                answer = _wait_for_events(gate, found, raw, answer)
    if isinstance(answer.value, RawText):
        show_document(answer.value.text)
    else:
        show_json(answer.value, coloured=not json)


def _wait_for_events(gate: Gate, feed: Operation, raw: Mapping[str, Any], first: Result) -> Result:
    """Read a feed again until it is not empty, for at most as long as its parameter `wait` says, and return the last answer."""
    until, last = monotonic() + feed.form.read(raw).get("wait", 0), first
    while not (last.value["results"] or last.value["more"]) and monotonic() < until:
        sleep(_LOOK_EVERY)
        last = act(gate, feed.name, raw)
    return last


def _list_operations(*, json: bool) -> None:
    found = catalogue_of(KINDS).values()
    if json:
        show_json([{"operation": operation.name, "summary": operation.summary} for operation in found])
    else:
        show_table(("Operation", "What it does"), ((operation.name, operation.summary) for operation in found))


def _describe(operation: Operation) -> None:
    """Print what an operation does, and which parameters it takes."""
    fields = [field for field in operation.takes if not field.read_only]
    show(f"trellis run {operation.name}{' ID' if operation.has_target else ''}{' NAME=VALUE…' if fields else ''}", style="bold")
    show()
    show(f"{operation.summary}. {operation.doc}".strip())
    if fields:
        show()
        show_table(("Parameter", "Value", "Default", "What it is"), map(_describe_field, fields))


def _describe_field(field: Field) -> tuple[str, str, str, str]:
    default = "required" if field.required else "" if field.default is None else json_text.dumps(field.default, ensure_ascii=False)
    return field.name, type_in_words(field).replace("`", ""), default, field.doc.replace("`", "")


def _find_operation(catalogue: Catalogue, name: str) -> Operation:
    if name not in catalogue and (hint := Suggestions(catalogue).suggest(name)):
        raise Refused("UNKNOWN_OPERATION", f"There is no operation '{name}'.{hint}")
    return catalogue.find(name)


def _parse_arguments(catalogue: Catalogue, operation: Operation, parameters: list[str]) -> tuple[int | None, dict[str, Any]]:
    """Parse the arguments: the id of the record that the operation is about, and the parameters by name."""
    if operation.has_target and any("=" not in parameter and not parameter.isdigit() for parameter in parameters):
        raise _refuse_target(catalogue, operation)  # it may be the name of a record
    pairs = [_pair(f"id={parameter}" if operation.has_target and parameter.isdigit() else parameter) for parameter in parameters]
    # Brackets are parsed as in a form, with numbers as placeholders for the values, which may be any JSON.
    raw = parse_query(urlencode([(name, place) for place, (name, _) in enumerate(pairs)]).encode())
    raw = take_secrets(operation, {name: _fill_placeholders(part, [value for _, value in pairs]) for name, part in raw.items()})
    if not operation.has_target:
        return None, raw
    target = parse_whole_number(raw.pop("id", None))
    if target is None:
        raise _refuse_target(catalogue, operation)
    return target, raw


def _refuse_target(catalogue: Catalogue, operation: Operation) -> Failure:
    listing = f"{operation.resource}.list"
    where = f" `trellis run {listing}` lists the ids." if listing in catalogue else ""
    return Failure(f"{operation.name} is about one record: pass its id as a whole number, such as id=5.{where}", MISUSED)


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
