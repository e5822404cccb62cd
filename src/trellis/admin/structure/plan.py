"""Describes what a plan would do, as the page shows it: a row for each change, with names in place of ids."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from trellis.admin.events import Effort, MemberChange, compare_states
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


def list_problems(refused: Refused) -> list[tuple[int | None, str]]:
    """Return the faults of a refused document as (line, sentence), from its first line to its last; the line is None if unknown."""
    found = [(_LINE.match(fault.detail), fault.detail) for fault in refused.faults]
    return sorted(((int(match[1]) if match else None, detail) for match, detail in found), key=lambda problem: problem[0] or 0)


async def describe_plan(request: PageRequest, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of `structure.plan` as pages show it.

    Added are the first changes as `rows`, each with the `noun` of its record and its `shown` differences, and the number of `more`
    changes. `kept` are only the first nodes that the document does not have, each with its type, name and id.
    """
    kinds = {kind.name: kind for kind in request.kinds}
    first: Sequence[Mapping[str, Any]] = result["changes"][:MAX_ROWS]
    created = {(one["resource"], one["id"]): one["path"] for one in result["changes"] if one["action"] == "create"}
    is_group = {kind.name for kind in request.kinds if kind.is_group}
    groups = {**await fetch_groups(request), **{i: path for (resource, i), path in created.items() if resource in is_group}}
    parents = created | await _fetch_parents(request, kinds, first)
    effort = Effort()

    def describe(change: Mapping[str, Any]) -> dict[str, Any]:
        shown = _compare(change, kinds.get(change["resource"]), groups, parents, effort)
        return {**change, "noun": _find_noun(kinds, change["resource"]), "shown": shown}

    return {
        **result,
        "rows": [describe(change) for change in first],
        "more": len(result["changes"]) - len(first),
        "kept": [(_find_noun(kinds, one["resource"]), one["name"], one["id"]) for one in result["kept"][:_MAX_NAMES]],
    }


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


def _compare(
    change: Mapping[str, Any],
    kind: NodeKind | None,
    groups: Mapping[int, str],
    parents: Mapping[tuple[str, int], str],
    effort: Effort,
) -> tuple[MemberChange, ...]:
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
