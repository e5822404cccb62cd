"""Why an event cannot be undone, and what can be done instead."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trellis.admin.events import MemberChange, compare_states
from trellis.admin.nodes import fetch_groups, fetch_names
from trellis.admin.page import PageRequest
from trellis.core.nodes import NodeKind
from trellis.errors import Refused
from trellis.sentences import drop_advice, say


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why an event cannot be undone.

    `is_purged`: the data that undo needs has been purged. `differences` are the changes of the record since the event; `later` are
    its later events, which can be undone first.
    """

    detail: str
    is_purged: bool = False
    undone_by: int | None = None
    deleted_by: int | None = None
    differences: tuple[MemberChange, ...] = ()
    later: tuple[Mapping[str, Any], ...] = ()


async def find_obstacle(request: PageRequest, kind: NodeKind | None, event: Mapping[str, Any] | None, refused: Refused) -> Obstacle:
    """Explain why undo was refused."""
    facts, detail = refused.facts, drop_advice(refused.detail)
    if kind is None or event is None or "differences" not in facts:
        return Obstacle(detail, is_purged=refused.status == 410, undone_by=facts.get("undoneBy"))
    differences = facts["differences"]
    by_fields = differences and differences[0]["field"] != "children"
    return Obstacle(
        say("Undoing this event now would lose the later changes.") if by_fields else detail,
        deleted_by=facts.get("deletedBy"),
        differences=await _compare(request, kind, differences),
        later=() if "deletedBy" in facts else tuple(await request.fetch("events.later", target=event["seq"])),
    )


async def _compare(request: PageRequest, kind: NodeKind, differences: Iterable[Mapping[str, Any]]) -> tuple[MemberChange, ...]:
    """Present the differences of a refusal like the changes of an event."""
    states: dict[str, dict[str, Any]] = {"then": {}, "now": {}}
    names: list[str] = []
    for one in differences:
        name, _, option = one["field"].partition(".")
        names += [] if name in names else [name]
        for side, state in states.items():
            if side in one and option:
                state.setdefault(name, {})[option] = one[side]
            elif side in one:
                state[name] = await _parent_name(request, kind, one[side]) if name == "parentId" else one[side]
    return compare_states(names, states["then"], states["now"], kind, await fetch_groups(request))


async def _parent_name(request: PageRequest, kind: NodeKind, parent: int | None) -> str:
    if parent is None:
        return say("the top level")
    found = await fetch_names(request, kind, [parent])
    return found[0][1] if found else say("{singular} {number}, deleted since", singular=kind.singular, number=parent)
