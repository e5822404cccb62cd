"""The commands `trellis import invision` and `trellis export invision`."""

import math
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from trellis.cli.community import act, community, require_other_names
from trellis.cli.invision.key import read_key
from trellis.cli.structure import export, write_whole
from trellis.cli.terminal import Failure, interrupted_by_signals, make_app, print_message, progress_at_terminal, show
from trellis.core.kind import NodeKind
from trellis.invision import (
    Answers,
    Options,
    ReadingFailed,
    Report,
    check_folder,
    choose_known,
    export_answers,
    find_paths,
    name_answers,
    read_present,
    read_saved,
    translate,
    write_html,
    write_saved,
    write_text,
)
from trellis.kinds import KINDS
from trellis.settings import Settings

_GROUP: Final = re.compile(r"([0-9]{1,18})=(\S+)", re.ASCII)
_KNOWN: Final = choose_known(KINDS)
_SHOWN: Final = 20


def _refuse_nan(value: float) -> float:
    """Refuse NaN, which is neither too small nor too large."""
    if math.isnan(value):
        raise typer.BadParameter("give a number.")
    return value


Url = Annotated[
    str | None, typer.Argument(metavar="[URL]", help="The address of the old community's front page.", show_default=False)
]
KeyFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The file with an API key of the old community; `-` is standard input.", show_default=False),
]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="SAVED", help="Read saved answers, from a folder or a file.", show_default=False),
]
Save = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Save the answers in this new folder, for --from.", show_default=False)
]
Output = Annotated[Path, typer.Option(metavar="FILE", help="Write the document to this file.")]
Reports = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="Write what is lost, by node: as HTML if the name ends in .html, otherwise as text. Repeat as needed."
    ),
]
Sections = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="A section to write, such as forums. Repeat as needed. By default all.")
]
Clubs = Annotated[bool, typer.Option("--clubs", help="Include what belongs to clubs, which is left out by default.")]
Groups = Annotated[
    list[str] | None,
    typer.Option(metavar="OLD=OURS", help="Treat the group with this id as the one with this external id here. Repeat as needed."),
]
Rate = Annotated[
    float,
    typer.Option(metavar="N", min=0.01, max=1000, callback=_refuse_nan, help="The most requests to send per second."),
]
Timeout = Annotated[
    float,
    typer.Option(metavar="SECONDS", min=0.1, max=600, callback=_refuse_nan, help="How long the old community may take to answer."),
]
PerPage = Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="How many records to read per page.")]
PlainHttp = Annotated[bool, typer.Option("--plain-http", help="Allow an address with http://, which sends the key unencrypted.")]

import_app: Final = make_app(no_args_is_help=True)
export_app: Final = make_app()
export_app.callback(invoke_without_command=True)(export)


@import_app.callback()
def _import() -> None:
    """Import a community from another product, as a structure document to plan and apply."""


@import_app.command("invision")
def import_invision(  # noqa: PLR0917  # Typer needs one parameter per option
    url: Url = None,
    key_file: KeyFile = None,
    from_: From = None,
    save: Save = None,
    output: Output = Path("invision.yaml"),
    report: Reports = None,
    section: Sections = None,
    clubs: Clubs = False,
    group: Groups = None,
    rate: Rate = 2,
    timeout: Timeout = 30,
    per_page: PerPage = 200,
    plain_http: PlainHttp = False,
) -> None:
    """Read a community of Invision Community 4 and write it as a structure document, for `trellis plan` and `trellis apply`.

    It can be repeated until the day of the move: each node keeps its external id, such as `invision:forum:12`.
    """
    options = Options(_choose_sections(section or []), clubs, _parse_groups(group or []))
    _check_files([output, *(report or [])], [save, from_, key_file])
    needed = {kind.name: find_paths(kind) for kind in _KNOWN if kind.is_group or kind in options.sections}
    settings = Settings.load()
    require_other_names(settings, output, save, *(report or []))
    try:
        with community(settings) as gate:
            if save is not None:
                check_folder(save)
            if from_ is None:
                answers, source = _read_live(url, key_file, needed, _Pace(rate, timeout, per_page), plain=plain_http)
            else:
                answers, source = _read_saved(from_, needed, url, key_file)
            if save is not None:
                _write_folder(save, name_answers(answers))
                print_message(f"Saved the answers in {save}.")
            present = read_present(lambda name, raw: act(gate, name, raw).value, _KNOWN)
        with progress_at_terminal("Translating"):
            translation = translate(answers, source, present, _KNOWN, options)
            text = translation.write()
    except ReadingFailed as failed:
        raise Failure(str(failed)) from None
    except RecursionError:
        raise Failure("An answer is nested too deeply, which no community's is. Nothing was written.") from None
    write_whole(output, text)
    for file in report or []:
        write_whole(file, (write_html if file.suffix.lower() in {".html", ".htm"} else write_text)(translation.report))
    _show(translation.report, output, report or [])


@export_app.command("invision")
def export_invision(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder for the answers.", show_default=False)],
    per_page: PerPage = 25,
) -> None:
    """Write the community as the answers that Invision Community 4 would give: each list page by page, and each record.

    `trellis import invision --from FOLDER` reads them.
    """
    settings = Settings.load()
    require_other_names(settings, folder)
    try:
        check_folder(folder)
        with community(settings) as gate, progress_at_terminal("Exporting") as progress:
            count = _write_folder(folder, export_answers(lambda name, raw: act(gate, name, raw).value, KINDS, per_page, progress))
    except ReadingFailed as failed:
        raise Failure(str(failed)) from None
    show(f"Wrote {count:,} answers to {folder}.")


# --- what is asked for --------------------------------------------------------------------------------------------


def _choose_sections(names: Sequence[str]) -> list[NodeKind]:
    known = {kind.name: kind for kind in _KNOWN}
    if unknown := [name for name in names if name not in known]:
        raise Failure(f"There is no section {unknown[0]!r}; there are {', '.join(known)}.")
    return [kind for kind in _KNOWN if not names or kind.name in names]


def _check_files(written: Sequence[Path], others: Sequence[Path | None]) -> None:
    """Refuse what could not be written after everything has been read, or would overwrite what another option names."""
    try:
        targets = [Path(os.path.realpath(file)) for file in written]
        taken = {Path(os.path.realpath(file)) for file in others if file is not None}
    except OSError as error:  # this folder was deleted
        raise Failure(f"{written[0]} cannot be written: {error.strerror}.") from None
    if len({*targets}) < len(written):
        raise Failure("The document and each report need their own file: one would overwrite another.")
    for file, target in zip(written, targets, strict=True):
        if target in taken:
            raise Failure(f"{file} is also named by another option, and would be overwritten: choose another name.")
        if os.path.isdir(target):  # noqa: PTH112  # is_dir() raises an error if the name is too long
            raise Failure(f"{file} is a folder: name a file in it.")
        made = any(one.is_relative_to(target.parent) for one in taken)  # with the folder of --save
        if not made and not os.path.isdir(target.parent):  # noqa: PTH112  # as above
            raise Failure(f"{file} cannot be written: there is no folder {target.parent}. Create it, or choose another name.")


def _parse_groups(given: Sequence[str]) -> dict[int, str]:
    groups: dict[int, str] = {}
    for one in given:
        match = _GROUP.fullmatch(one)
        if match is None:
            raise Failure(
                f"--group {one}: give the id of a group in the old community and an external id here, such as 8=moderators."
            )
        if groups.setdefault(int(match[1]), match[2]) != match[2]:
            raise Failure(f"--group {one}: {groups[int(match[1])]} was chosen for this group as well; leave one of them out.")
    return groups


# --- reading ------------------------------------------------------------------------------------------------------


def _read_saved(saved: Path, lists: Mapping[str, Sequence[str]], url: str | None, key_file: Path | None) -> tuple[Answers, str]:
    if url is not None or key_file is not None:
        raise Failure("Give either an address with --key-file, or --from: saved answers need neither.")
    shown = os.fsencode(saved).decode("utf-8", "replace")
    with progress_at_terminal(f"Reading {shown}"):
        return read_saved(saved, [path for paths in lists.values() for path in paths]), shown


def _read_live(
    url: str | None, key_file: Path | None, lists: Mapping[str, Sequence[str]], pace: "_Pace", *, plain: bool
) -> tuple[Answers, str]:
    if url is None or key_file is None:
        raise Failure("Give the address of the old community and a file with its key (--key-file), or saved answers with --from.")
    from trellis.invision.live import (  # noqa: PLC0415  # start-up time: httpx is slow to load
        Client,
        Reader,
        check_url,
        find_private_address,
    )

    address = check_url(url, plain=plain)
    key = read_key(key_file)
    if (private := find_private_address(address)) is not None:
        print_message(f"{address} is {private}, an address of this machine or of a private network.")
    with (
        progress_at_terminal(f"Reading {address}") as progress,
        closing(Client(address, key, rate=pace.rate, timeout=pace.timeout, tell=print_message)) as client,
    ):
        return Reader(client, pace.per_page, progress).read(lists), address


class _Pace(NamedTuple):
    """The pace at which a community is read: requests per second, seconds to wait for an answer, records per page."""

    rate: float
    timeout: float
    per_page: int


# --- writing ------------------------------------------------------------------------------------------------------


def _write_folder(folder: Path, answers: Iterable[tuple[str, Any]]) -> int:
    try:
        with interrupted_by_signals():
            return write_saved(folder, answers)
    except OSError as error:
        raise Failure(f"{folder} could not be written: {error.strerror or error}.") from None


def _show(report: Report, output: Path, files: Sequence[Path]) -> None:
    """Print what was written, and what needs a look if no report was asked for."""
    for caution in report.cautions:
        print_message(caution, style="yellow")
    show(f"Wrote {output}: {report.describe_counts()}.")
    if files:
        show(f"{report.describe_looks()}: see {' and '.join(map(str, files))}.")
    else:
        _show_looks(report)
    show(f"Next: trellis plan {shlex.quote(str(output))}", style="bold")


def _show_looks(report: Report) -> None:
    looks = [(section, row) for section in report.sections for row in section.rows if row.looks]
    for section, row in looks[:_SHOWN]:
        show(f"{section.name} {row.id} {row.label}: {' '.join(row.looks)}")
    more = f"{len(looks) - _SHOWN:,} more need a look. " if len(looks) > _SHOWN else ""
    show(f"{more}--report FILE writes what is lost, node by node.")
