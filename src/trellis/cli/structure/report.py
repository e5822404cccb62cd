"""Prints a plan for people: its changes in a table, its differences by member, what it leaves alone, and its counts."""

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from orjson import dumps

from trellis.cli.structure.labels import Labels
from trellis.cli.terminal import show, show_table

_NARROW: Final = 80  # columns below which a terminal has no room for a table
_LONGEST: Final = 60  # characters of a value that are shown
_FEW: Final = 5  # names that a hint lists
_MANAGED_BY: Final = "managedBy"
_COLUMNS: Final = ("", "Kind", "Path", "Differences")


class _Look(NamedTuple):
    """How an action is shown: its sign, its colour, and its word in a report."""

    sign: str
    colour: str
    done: str


_LOOKS: Final = {
    "create": _Look("+", "green", "created"),
    "update": _Look("~", "yellow", "updated"),
    "move": _Look("→", "cyan", "moved"),
    "delete": _Look("\N{MINUS SIGN}", "red", "deleted"),
}


def show_changes(plan: Mapping[str, Any], labels: Labels) -> None:
    """Print the changes of a plan: in a table on a wide terminal, otherwise one below the other."""
    changes = plan["changes"]
    if not changes:
        return
    looks = [_LOOKS[change["action"]] for change in changes]
    notes = [list(_describe(change, labels)) for change in changes]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    if width >= _NARROW:
        rows = [
            (f"{look.sign} {change['action']}", change["resource"], change["path"], "\n".join(lines))
            for look, change, lines in zip(looks, changes, notes, strict=True)
        ]
        show_table(_COLUMNS, rows, [look.colour for look in looks])
        return
    kinds = max(len(change["resource"]) for change in changes)
    for look, change, lines in zip(looks, changes, notes, strict=True):
        show(f"{look.sign} {change['action']:<6}  {change['resource']:<{kinds}}  {change['path']}", look.colour)
        for line in lines:
            show(_indent(line, width))


def _indent(line: str, width: int) -> str:
    return textwrap.fill(line, width, initial_indent="    ", subsequent_indent="      ") if width else f"    {line}"


def _describe(change: Mapping[str, Any], labels: Labels) -> Iterator[str]:
    """Yield the lines that describe a change."""
    if change["adopted"]:
        yield f"adopted: {change['resource']} {change['id']} has this path"
    for difference in change["differences"]:
        name, before, after = difference["member"], difference["before"], difference["after"]
        if name == _MANAGED_BY and before is None and len(change["differences"]) > 1:
            continue  # every node that is new to the document has this difference
        if before is None and after is None:  # a password, which a plan does not show
            yield f"{name}: changed"
            continue
        values = _shorten(*(_format(labels.describe(change["resource"], name, value)) for value in (before, after)))
        yield f"{name}: {values[0]} → {values[1]}"
    if (below := change["deleted"] - 1) > 0:
        yield f"with {below:,} below it"
    if touched := len(change["touched"]):
        yield f"leaves the permissions of {touched:,} {'record' if touched == 1 else 'records'}"
    if drift := change["drift"]:
        yield f"changed by hand since the last apply: event {drift['event']}, {drift['operation']}, {drift['at'][:16]}Z"


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    if isinstance(value, Mapping):  # the bounds of a key
        return dumps(value).decode() if value else "–"
    return "–" if value in {None, ""} else " ".join(str(value).split())


def _shorten(before: str, after: str) -> tuple[str, str]:
    """Shorten two values, so that their difference can be seen."""
    shared = min(len(before), len(after))
    same = next((at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other), shared)
    skipped = max(0, same - _LONGEST // 2) if max(len(before), len(after)) > _LONGEST else 0
    return _cut(before, skipped), _cut(after, skipped)


def _cut(text: str, skipped: int) -> str:
    rest = text[skipped:]
    return ("…" if skipped else "") + (rest[: _LONGEST - 1] + "…" if len(rest) > _LONGEST else rest)


def show_summary(plan: Mapping[str, Any], *, done: bool = False) -> None:
    """Print how many changes are to be made, or were made."""
    if not plan["changes"]:
        show("Nothing to do: the community matches the document.", style="green")
        return
    counts = {**plan["counts"], "delete": plan["deletes"]}
    show(", ".join(f"{counts[action]:,} {look.done if done else f'to {action}'}" for action, look in _LOOKS.items()) + ".", "bold")


def show_hints(plan: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Print what the document leaves alone, and the option that would change it."""
    if count := plan["keptCount"]:
        named = _name(plan["kept"], count)
        one = count == 1
        why = "" if options["prune"] else " --prune deletes nodes that no other document manages."
        told = f"{count:,} {'node is' if one else 'nodes are'} not in the document and {'stays' if one else 'stay'}: {named}."
        show(told + why)
    if count := plan["adoptable"]:
        have = "1 entry has" if count == 1 else f"{count:,} entries have"
        show(f"{have} the path of a node without an external id. --adopt takes it over instead of creating another beside it.")


def _name(kept: Sequence[Mapping[str, Any]], count: int) -> str:
    named = ", ".join(f"{one['name']} ({one['resource']} {one['id']})" for one in kept[:_FEW])
    return f"{named}, …" if count > _FEW else named
