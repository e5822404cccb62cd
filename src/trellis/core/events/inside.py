"""Events for a caller whose grant is for a part of the nodes: everything outside of that part is hidden."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trellis.store.engine import Transaction
from trellis.store.events import NEVER, Event, find_arrivals, find_inside_or_deleted

Parts = Mapping[str, Collection[int]]  # roots by resource


def hide_outside(tx: Transaction, found: Sequence[Event], parts: Parts) -> list[Event]:
    """Return events without what is outside: touched records there, and the state of an event's own record while it was there.

    The move of a record into the part has no `before`, since the record was outside. Earlier events of those below it have neither.
    """
    touched: dict[str, set[int]] = {resource: set() for resource in parts}
    parents: dict[str, set[int]] = {resource: set() for resource in parts}
    for event in found:
        for one in event.touched:
            touched.get(one["resource"], set()).add(one["id"])
        parents[event.resource].update(_list_parents(event))
    inside = {resource: find_inside_or_deleted(tx, resource, parts[resource], ids) for resource, ids in touched.items()}
    arrivals = {resource: find_arrivals(tx, resource, parts[resource], ids) for resource, ids in parents.items()}
    return [_hide(event, inside, arrivals[event.resource], frozenset(parts[event.resource])) for event in found]


def _list_parents(event: Event) -> list[int]:
    sides = (event.before, event.after)
    return [side["parentId"] for side in sides if side is not None and side.get("parentId") is not None]


def _hide(event: Event, inside: Mapping[str, Collection[int]], arrivals: Mapping[int, int], roots: Collection[int]) -> Event:
    def show(side: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        if side is None or event.resource_id in roots or "parentId" not in side:
            return side
        return side if arrivals.get(side["parentId"], NEVER) < event.seq else None

    touched = [one for one in event.touched if one["id"] in inside.get(one["resource"], ())]
    return replace(event, before=show(event.before), after=show(event.after), touched=touched)
