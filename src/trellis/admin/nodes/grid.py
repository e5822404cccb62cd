"""The grid of permissions: groups down, options across, and one row for groups that may do the same."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from trellis.admin.forms import Control, split_values
from trellis.admin.submitted import Submitted
from trellis.core.fields import EVERYONE
from trellis.sentences import say

FILTER: Final = "_filter"  # what was typed into the search for groups
FILTERED: Final = "_filtered"  # the search that the form came with
APART: Final = "_apart"  # the groups that have a row of their own, whatever the others may do
APART_ACTION: Final = "apart."  # before the groups of a row that is to be unfolded, as the value of its button
FOLDS_FROM: Final = 13  # groups: fewer are seen at a glance
_NAMED: Final = 2  # of the groups of a row, the first are named


@dataclass(frozen=True, slots=True)
class GridRow:
    """Groups that may do the same, by id and name, and the options that they are ticked for. `is_seen`: the filter fits."""

    groups: tuple[tuple[str, str], ...]
    ticked: frozenset[str]
    is_seen: bool = True

    @property
    def value(self) -> str:
        """What its boxes send: the ids of its groups."""
        return ",".join(number for number, _ in self.groups)

    @property
    def label(self) -> str:
        """Its groups in words."""
        names = [name for _, name in self.groups]
        if len(names) <= _NAMED + 1:
            return ", ".join(names)
        return say("{names} and {more:,} more", names=", ".join(names[:_NAMED]), more=len(names) - _NAMED)

    @property
    def is_folded(self) -> bool:
        """Whether it stands for several groups."""
        return len(self.groups) > 1


@dataclass(frozen=True, slots=True)
class Grid:
    """The rows of a grid. `everyone` are the options that every group may; `is_large`: there are enough groups to fold and filter.

    `nobody` is the first option, which is to see the node at all, if nobody may do that.
    """

    rows: tuple[GridRow, ...]
    everyone: frozenset[str]
    filter: str
    apart: str
    is_large: bool
    nobody: str
    named: int = _NAMED  # of the groups of a row, for the script that builds the rows again


def build_grid(control: Control, built_in: Iterable[int], typed: Submitted | None) -> Grid:
    """Build the grid of a control of permissions; built-in groups always have rows of their own, at the top."""
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
    built.sort(key=lambda row: row.is_folded and not row.ticked)  # those who may do nothing come last
    return Grid(
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
