"""Describes what a plan would do, as the page shows it: a row for each change, with names in place of ids."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from trellis.admin.events import Change, Effort, compare_states
from trellis.admin.nodes import fetch_groups, fetch_names
from trellis.admin.page import PageRequest
from trellis.core.nodes import NodeKind
from trellis.core.verbs import singular_of
from trellis.errors import Refused
from trellis.sentences import say

MAX_ROWS: Final = 500
_MAX_NAMES: Final = 8  # of the nodes that are kept, the first are named
_LINE: Final = re.compile(r"(?:.*, )?line (\d{1,9}): ", re.DOTALL)
_PARENT: Final = "parentId"
_PARENT_LABEL: Final = "Parent id"  # as in events
_DERIVED: Final = frozenset({"url"})  # it follows from the name


@dataclass(frozen=True, slots=True)
class Row:
    """One change. `record` is the path of the record's page, without /admin, if the record exists already.

    `drift` is the event that has changed the record since the last apply. A delete removes `deleted` nodes, including those below,
    and changes `touched` others.
    """

    action: str
    noun: str
    path: str
    external_id: str
    record: str
    line: int | None
    changes: tuple[Change, ...]
    adopted: bool
    drift: int | None
    deleted: int
    touched: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan: its `token`, how many changes of each action there are, the first changes as `rows`, and how many `more` there are.

    `kept` are the first nodes that the document does not have, each with its type, name and id, and `kept_count` is how many there
    are. `adoptable` is how many entries have the path of a node that could be taken over.
    """

    token: str
    name: str
    counts: Mapping[str, int]
    deletes: int
    rows: tuple[Row, ...]
    more: int
    kept: tuple[tuple[str, str, int], ...]
    kept_count: int
    adoptable: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be changed."""
        return not self.rows


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of the document: the line with the fault, if known, and a sentence."""

    line: int | None
    detail: str


def list_problems(refused: Refused) -> tuple[Problem, ...]:
    """Return the faults of a refused document, from its first line to its last."""
    found = [(_LINE.match(fault.detail), fault.detail) for fault in refused.faults]
    problems = [Problem(int(match[1]) if match else None, detail) for match, detail in found]
    return tuple(sorted(problems, key=lambda problem: problem.line or 0))


async def describe_plan(request: PageRequest, result: Mapping[str, Any]) -> Plan:
    """Describe the result of `structure.plan`."""
    kinds = {kind.name: kind for kind in request.kinds}
    shown: Sequence[Mapping[str, Any]] = result["changes"][:MAX_ROWS]
    created = {(one["resource"], one["id"]): one["path"] for one in result["changes"] if one["action"] == "create"}
    is_group = {kind.name for kind in request.kinds if kind.is_group}
    groups = {**await fetch_groups(request), **{i: path for (resource, i), path in created.items() if resource in is_group}}
    parents = created | await _fetch_parents(request, kinds, shown)
    effort = Effort()
    return Plan(
        token=result["plan"],
        name=result["name"],
        counts=result["counts"],
        deletes=result["deletes"],
        rows=tuple(_describe(one, kinds, groups, parents, effort) for one in shown),
        more=len(result["changes"]) - len(shown),
        kept=tuple((_find_noun(kinds, one["resource"]), one["name"], one["id"]) for one in result["kept"][:_MAX_NAMES]),
        kept_count=result["keptCount"],
        adoptable=result["adoptable"],
    )


def _find_noun(kinds: Mapping[str, NodeKind], resource: str) -> str:
    """Return the name of a single record: a node, a key, or one of a kind that this community no longer has."""
    return kinds[resource].singular if resource in kinds else singular_of(resource)


async def _fetch_parents(
    request: PageRequest, kinds: Mapping[str, NodeKind], changes: Iterable[Mapping[str, Any]]
) -> dict[tuple[str, int], str]:
    """Return the paths of the nodes from which or to which others move."""
    wanted: dict[str, dict[int, None]] = {}
    for one in changes:
        for difference in one["differences"]:
            if difference["member"] == _PARENT and one["resource"] in kinds:
                sides = (difference["before"], difference["after"])
                wanted.setdefault(one["resource"], {}).update((number, None) for number in sides if number is not None)
    found: dict[tuple[str, int], str] = {}
    for resource, numbers in wanted.items():
        names = await fetch_names(request, kinds[resource], list(numbers))
        found |= {(resource, number): name for number, name in names}
    return found


def _describe(
    change: Mapping[str, Any],
    kinds: Mapping[str, NodeKind],
    groups: Mapping[int, str],
    parents: Mapping[tuple[str, int], str],
    effort: Effort,
) -> Row:
    exists = change["action"] != "create" and change["id"] is not None
    return Row(
        action=change["action"],
        noun=_find_noun(kinds, change["resource"]),
        path=change["path"],
        external_id=change["externalId"] or "",
        record=f"/{change['resource']}/{change['id']}" if exists else "",
        line=change["line"],
        changes=_compare(change, kinds.get(change["resource"]), groups, parents, effort),
        adopted=change["adopted"],
        drift=change["drift"] and change["drift"]["event"],
        deleted=change["deleted"],
        touched=len(change["touched"]),
    )


def _compare(
    change: Mapping[str, Any],
    kind: NodeKind | None,
    groups: Mapping[int, str],
    parents: Mapping[tuple[str, int], str],
    effort: Effort,
) -> tuple[Change, ...]:
    """Present the differences of a change like those of an event."""
    states: dict[str, dict[str, Any]] = {"before": {}, "after": {}}
    names: dict[str, None] = {}
    secrets = {field.name for field in kind.secrets} if kind is not None else set()
    for one in change["differences"]:
        name, _, option = one["member"].partition(".")
        if name in _DERIVED:
            continue
        names[name] = None
        for side, state in states.items():
            value = one[side]
            if name == _PARENT:
                value = parents.get((change["resource"], value), value) if value is not None else say("the top level")
            if option:
                state.setdefault(name, {})[option] = value
            elif name not in secrets:
                state[name] = value
    shown = compare_states(names, states["before"], states["after"], kind, groups, effort)
    return tuple(replace(one, label=say("Under")) if one.label == _PARENT_LABEL else one for one in shown)
