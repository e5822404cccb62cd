"""The grid of permissions: a row for each group, a column for each option, and one row for groups with the same permissions."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from trellis.admin.forms import Control, split_values
from trellis.admin.submitted import Submitted
from trellis.core.fields import EVERYONE, isolate
from trellis.sentences import say

FILTER: Final = "_filter"  # what was typed into the search for groups
FILTERED: Final = "_filtered"  # the search for groups that the form was shown with
APART: Final = "_apart"  # the groups that keep a row of their own, even if others have the same permissions
APART_ACTION: Final = "apart."  # in the value of the button that unfolds a row: before the row's groups
FOLDS_FROM: Final = 13  # groups: fewer are seen at a glance
_NAMED: Final = 2  # how many groups of a row are named


@dataclass(frozen=True, slots=True)
class GridRow:
    """Groups with the same permissions, by id and name, and the options ticked for them. `is_seen`: the filter matches."""

    groups: tuple[tuple[str, str], ...]
    ticked: frozenset[str]
    is_seen: bool = True

    @property
    def value(self) -> str:
        """What its boxes send: the ids of its groups."""
        return ",".join(number for number, _ in self.groups)

    @property
    def label(self) -> str:
        """The names of its groups; of many groups, the first ones and the number of the others."""
        names = [isolate(name) for _, name in self.groups]
        if len(names) <= _NAMED + 1:
            return ", ".join(names)
        return say("{names} and {more:,} more", names=", ".join(names[:_NAMED]), more=len(names) - _NAMED)

    @property
    def is_folded(self) -> bool:
        """Whether it stands for several groups."""
        return len(self.groups) > 1


@dataclass(frozen=True, slots=True)
class PermissionGrid:
    """The rows of a grid. `everyone` are the options that every group has; `is_large`: there are enough groups to fold and filter.

    `nobody` is the first option, which is the right to see the node at all, if no group has it; otherwise "".
    """

    rows: tuple[GridRow, ...]
    everyone: frozenset[str]
    filter: str
    apart: str
    is_large: bool
    nobody: str
    named: int = _NAMED  # how many groups of a row are named, for the script that rebuilds the rows


def build_grid(control: Control, built_in: Iterable[int], typed: Submitted | None) -> PermissionGrid:
    """Build the grid for a permissions control; built-in groups always have rows of their own, at the top."""
    sent = typed or Submitted()
    action = sent.get("_action", "")
    opened = split_values([*sent.all(APART), action.removeprefix(APART_ACTION) if action.startswith(APART_ACTION) else ""])
    wanted = sent.get(FILTER, "").strip()
    is_large = len(control.choices) >= FOLDS_FROM
    chosen = {option: frozenset(values) for option, _, values in control.options}
    first, own = {str(number) for number in built_in}, set(opened)
    rows: dict[object, list[tuple[str, str]]] = {}
    rights: dict[object, frozenset[str]] = {}
    for number, name in sorted(control.choices, key=lambda choice: choice[0] not in first):
        ticked = frozenset(option for option, values in chosen.items() if number in values)
        fits = bool(wanted) and wanted.casefold() in name.casefold()
        is_own = not is_large or number in first or number in own or fits
        key: object = number if is_own else ticked
        rows.setdefault(key, []).append((number, name))
        rights[key] = ticked

    def is_seen(groups: Iterable[tuple[str, str]]) -> bool:
        return not wanted or any(wanted.casefold() in name.casefold() for _, name in groups)

    built = [GridRow(tuple(groups), rights[key], is_seen(groups)) for key, groups in rows.items()]
    built.sort(key=lambda row: row.is_folded and not row.ticked)  # groups that may do nothing come last
    return PermissionGrid(
        rows=tuple(built),
        everyone=frozenset(option for option, values in chosen.items() if EVERYONE in values),
        filter=wanted,
        apart=",".join(number for number, _ in control.choices if number in own),
        is_large=is_large,
        nobody=_find_unseen(chosen),
    )


def _find_unseen(chosen: Mapping[str, frozenset[str]]) -> str:
    option, who = next(iter(chosen.items()), ("", frozenset(("",))))
    return option if not who - {""} else ""
