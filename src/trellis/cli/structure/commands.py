"""The commands `trellis export`, `trellis plan`, `trellis apply` and `trellis schema`."""

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from orjson import OPT_APPEND_NEWLINE, OPT_INDENT_2, JSONDecodeError, dumps, loads
from typer.core import TyperCommand

from trellis.cli.community import Reason, act, community, require_other_names
from trellis.cli.structure.files import DocumentFiles, read_files, write_whole
from trellis.cli.structure.keys_file import KeysFile, open_keys_file
from trellis.cli.structure.labels import Labels
from trellis.cli.structure.report import show_changes, show_hints, show_summary
from trellis.cli.terminal import (
    FAILED,
    MISUSED,
    STDIN,
    Failure,
    Json,
    make_app,
    print_message,
    progress_at_terminal,
    show,
    show_document,
    show_json,
)
from trellis.core.gate import Gate, Result
from trellis.core.structure import MAX_DELETES, build_schema
from trellis.errors import Refused
from trellis.kinds import KINDS
from trellis.settings import Settings, SettingsError

CHANGES: Final = 2  # the exit code of a plan with changes
_LONGEST_PLAN: Final = 256 * 2**20  # bytes in its file; a device may have no end
_TOKEN: Final = re.compile(r"[0-9]+-[0-9a-f]+", re.ASCII)


class ApplyCommand(TyperCommand):
    """A command whose exit code 2 has a meaning of its own, so that invalid arguments and settings end with 1."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        try:
            return super().make_context(*arguments, **options)
        except typer.TyperException as error:
            error.exit_code = FAILED
            raise

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SettingsError as error:
            raise Failure(str(error)) from None


class MissingIds(StrEnum):
    """What to do with nodes that have no external id."""

    PATH = "path"
    FAIL = "fail"


plan_app: Final = make_app()
apply_app: Final = make_app()

Files = Annotated[
    list[str], typer.Argument(metavar="FILE…", help="The document, in YAML or JSON; `-` is standard input.", show_default=False)
]
Prune = Annotated[bool, typer.Option("--prune", help="Delete what the document does not have, in the sections that it has.")]
MaxDeletes = Annotated[
    int, typer.Option(metavar="N", min=0, help="How many nodes may be deleted; if there are more, nothing is done.")
]
AllowEmpty = Annotated[bool, typer.Option("--allow-empty", help="Allow an empty document, or an empty section.")]
Adopt = Annotated[
    bool,
    typer.Option("--adopt", help="Take over nodes without an external id that have an entry's path, and other documents' nodes."),
]


def export(
    context: typer.Context,
    section: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A section to write, such as forums. Repeat as needed. By default all.")
    ] = None,
    under: Annotated[
        str | None,
        typer.Option(metavar="EXTERNAL_ID", help="Only what is below this node; needs one --section.", show_default=False),
    ] = None,
    external_ids: Annotated[
        MissingIds,
        typer.Option(help="For nodes without an external id: make one from the names in the path, or fail."),
    ] = MissingIds.PATH,
    json: Json = False,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write to this file.", show_default=False)] = None,
) -> None:
    """Write the groups, nodes and their order as a document that `plan` and `apply` take. Passwords are left out."""
    if context.invoked_subcommand is not None:
        if section or under is not None or json or output is not None or external_ids is not MissingIds.PATH:
            raise Failure(f"The options before {context.invoked_subcommand} are about documents: leave them out.", MISUSED)
        return
    raw: dict[str, Any] = {"externalIds": external_ids.value, "format": "json" if json else "yaml"}
    raw |= {"sections": section} if section else {}
    raw |= {"under": under} if under is not None else {}
    settings = Settings.load()
    require_other_names(settings, output)
    with community(settings) as gate, progress_at_terminal("Exporting"):
        value = act(gate, "structure.export", raw).value
    text = dumps(value, option=OPT_INDENT_2 | OPT_APPEND_NEWLINE).decode() if json else value.text
    if output is not None:
        write_whole(output, text)
        print_message(f"Wrote {output}.")
    else:
        show_document(text)


def schema() -> None:
    """Print the JSON Schema of documents, for editors."""
    Settings.load()
    show_json(build_schema(KINDS))


@plan_app.command(cls=ApplyCommand)
def plan(
    files: Files,
    prune: Prune = False,
    max_deletes: MaxDeletes = MAX_DELETES.default,
    allow_empty: AllowEmpty = False,
    adopt: Adopt = False,
    json: Json = False,
    output: Annotated[
        Path | None, typer.Option(metavar="PLAN.json", help="Write the plan to this file, for `apply --plan`.", show_default=False)
    ] = None,
) -> None:
    """Show what `apply` would do, without doing it. Exit 0: nothing to do; 2: there are changes; 1: refused."""
    options = _gather_options(prune, max_deletes, allow_empty, adopt)
    if output is not None and os.path.realpath(output) in [os.path.realpath(name) for name in files if name != STDIN]:
        raise Failure(f"{output} is the document, and would be overwritten by the plan: choose another name for the plan.")
    settings, documents = Settings.load(), read_files(files, KINDS)
    require_other_names(settings, output)
    with community(settings) as gate:
        found = _run(gate, "structure.plan", documents, options).value
        if output is not None:
            write_whole(output, dumps(found, option=OPT_INDENT_2 | OPT_APPEND_NEWLINE).decode())
        if json:
            show_json(found)
        else:
            _show_plan(gate, found, options)
    if found["changes"]:
        if not json:
            show(f"To do exactly this: {_command(files, options, output, found['plan'])}")
        raise typer.Exit(CHANGES)


@apply_app.command(cls=ApplyCommand)
def apply(  # noqa: PLR0917  # Typer needs one parameter per option
    files: Files,
    prune: Prune = False,
    max_deletes: MaxDeletes = MAX_DELETES.default,
    allow_empty: AllowEmpty = False,
    adopt: Adopt = False,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan", metavar="PLAN", help="Do what this plan says and nothing else: its name, or the file of `plan --output`."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    keys_to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write new keys to this new file, which only you may read.", show_default=False),
    ] = None,
    reason: Reason = None,
    json: Json = False,
) -> None:
    """Make the community match the document, all or nothing. Without --plan it shows a plan first, and asks."""
    asks = plan is None and not yes
    if asks and (json or STDIN in files or not sys.stdin.isatty()):
        raise Failure("Nobody can be asked here. Apply a plan from `trellis plan` with --plan, or apply without asking with --yes.")
    options = _gather_options(prune, max_deletes, allow_empty, adopt)
    settings, token = Settings.load(), None if plan is None else _read_token(plan)
    documents = read_files(files, KINDS)
    require_other_names(settings, keys_to)
    with open_keys_file(keys_to) as keys_file, community(settings) as gate:
        if token is None:
            planned = _run(gate, "structure.plan", documents, options).value
            token = planned["plan"]
            if not json:
                _show_plan(gate, planned, options)
            if planned["changes"] and asks and not typer.confirm("Do this?", err=True):
                raise Failure("Nothing was done.")
            if not planned["changes"] and not json:
                return
        done = _run(gate, "structure.apply", documents, options | {"plan": token}, reason)
        _report(gate, done, keys_file, json=json, table=plan is not None)


def _gather_options(prune: bool, max_deletes: int, allow_empty: bool, adopt: bool) -> dict[str, Any]:
    return {"prune": prune, "maxDeletes": max_deletes, "allowEmpty": allow_empty, "adopt": adopt}


def _run(gate: Gate, operation: str, documents: DocumentFiles, options: Mapping[str, Any], reason: str | None = None) -> Result:
    """Plan or apply documents. Raises Failure with everything that is wrong, one line each."""
    what = "Planning" if documents.faults or operation.endswith("plan") else "Applying"
    name = "structure.plan" if documents.faults else operation  # with faults nothing is applied, but a plan may find others
    try:
        with progress_at_terminal(what) as progress:
            raw = {**options, "document": documents.sent}
            raw = raw if name == operation else {name: value for name, value in raw.items() if name != "plan"}
            result = act(gate, name, raw, reason=reason, progress=progress)
    except Refused as refused:
        if refused.status >= 500 or not (documents.faults or refused.faults or refused.facts.get("changes")):
            raise
        raise _explain(refused, documents) from None
    if documents.faults:
        raise Failure("\n".join(documents.faults))
    return result


def _explain(refused: Refused, documents: DocumentFiles) -> Failure:
    """Return a refusal as a message: its faults with file and line, or what has changed since."""
    starts = tuple(documents.files)
    lines = [f.detail if f.detail.startswith(starts) else f"{f.field}: {f.detail}" for f in refused.faults]
    lines += [f"… and {refused.more_faults:,} more."] if refused.more_faults else []
    lines += documents.faults
    if not refused.faults:
        lines.append(f"{refused.message}: {refused.detail}")
    for one in refused.facts.get("changes", ()):
        lines.append(f"  event {one['event']}, {one['at']}: {one['operation']} of {one['resource']} {one['id']}")
    return Failure("\n".join(lines))


def _show_plan(gate: Gate, found: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    show_changes(found, Labels(gate, KINDS, found["changes"]))
    show_hints(found, options)
    show_summary(found)


def _report(gate: Gate, done: Result, keys_file: KeysFile | None, *, json: bool, table: bool) -> None:
    """Print what was done, how to undo it, and the new keys, which are shown only here."""
    value = {name: one for name, one in done.value.items() if name != "secrets"}
    secrets: Sequence[Mapping[str, Any]] = done.value.get("secrets", ())
    is_kept = keys_file is not None and bool(secrets) and keys_file.write(secrets)
    if json:
        kept = {"secrets": secrets} if secrets and not is_kept else {}
        show_json(value | {"event": done.event, "changeSet": done.change_set} | kept)
        return
    if table:
        show_changes(value, Labels(gate, KINDS, value["changes"]))
    show_summary(value, done=True)
    if done.change_set is not None:
        has_keys = any(change["resource"] == "keys" for change in value["changes"])
        keys = " --skip-conflicts  (new keys stay)" if has_keys else ""
        show(f"To undo it: trellis restore --change-set {done.change_set}{keys}")
    if not secrets or is_kept:
        return
    show("Save the new keys now: they will not be shown again.")
    for key in secrets:
        show(f"{key['name']}\t{key['key']}", style="bold")


def _read_token(plan: str) -> str:
    """Return the name of a plan, given as the name itself or as the plan's file. Raises Failure."""
    if _TOKEN.fullmatch(plan):
        return plan
    try:
        with Path(plan).open("rb") as file:
            token = loads(file.read(_LONGEST_PLAN))["plan"]
    except OSError as error:
        raise Failure(f"{plan} is neither the name of a plan nor a file that can be read: {error.strerror}.") from None
    except (JSONDecodeError, KeyError, TypeError):
        token = None
    if not isinstance(token, str):
        raise Failure(f"{plan} is not a plan: create one with `trellis plan FILE --output {plan}`.")
    return token


def _command(files: Sequence[str], options: Mapping[str, Any], output: Path | None, token: str) -> str:
    """Return the command that applies a plan."""
    flags = [flag for flag, name in (("--prune", "prune"), ("--allow-empty", "allowEmpty"), ("--adopt", "adopt")) if options[name]]
    flags += ["--max-deletes", str(options["maxDeletes"])] if options["maxDeletes"] != MAX_DELETES.default else []
    return shlex.join(["trellis", "apply", *files, *flags, "--plan", str(output) if output is not None else token])
