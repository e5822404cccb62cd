"""How far a document may reach if the grants of its caller are limited to some of the nodes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from trellis.core.actor import Actor
from trellis.core.bounds import Bound, Reach, find_reach
from trellis.core.kind import NodeKind
from trellis.core.operation import Context
from trellis.core.verbs import CREATE, DELETE, LIST, UPDATE
from trellis.sentences import say
from trellis.store import events, nodes
from trellis.store.engine import Transaction
from trellis.store.events import RecordEvent

_RUN: Final = (CREATE.name, UPDATE.name, DELETE.name)  # the verbs that a document runs


def find_section_reach(context: Context, kind: NodeKind) -> Reach | None:
    """Return the nodes that a section may cover: those for which both the operation and listing the kind are granted.

    None means all nodes.
    """
    return _narrow(context.tx, context.find_reach(kind), context.find_reach(kind, kind.operation(LIST.name)))


def find_under(context: Context, kind: NodeKind, under: str, reach: Reach | None) -> int | None:
    """Return the id of the node that `under` of a section names; None if there is none, or if it is out of reach."""
    root = nodes.find_by_external_ids(context.tx, kind.name, (under,)).get(under)
    return root if reach is None or reach.contains(context.tx, root) else None


def tell_no_such(kind: NodeKind, under: str) -> str:
    """Describe the fault of a section below a node that does not exist."""
    return say("under: there is no {singular} with the external id '{under}'.", singular=kind.singular, under=under)


def limit_actor(context: Context, kinds: Iterable[NodeKind], *, planned: bool) -> Actor:
    """Return the actor that runs the operations of a document: its caller, with each grant limited to what the sections may cover.

    For a plan, a key gets all grants. A role is not widened for a plan, since a plan also lists what the role cannot see, such as
    the nodes that name a group.
    """
    actor, kinds = context.call.actor, tuple(kinds)
    if actor.permit is not None:
        return actor
    limited = widen_actor(actor) if planned else actor
    bounds = dict(limited.bounds)
    for kind in kinds if actor.bounds else ():
        section = find_section_reach(context, kind)
        for name in map(kind.operation, _RUN):
            reach = _narrow(context.tx, find_reach(actor, name, kind.name), section)
            if reach is not None:
                under = tuple(f"{kind.name}:{root}" for root in reach.roots)
                bounds[name] = replace(bounds.get(name, Bound()), under=under)
    return replace(limited, bounds=bounds)


def widen_actor(actor: Actor) -> Actor:
    """Return an actor with all grants, and only the limits to some nodes of its bounds."""
    return replace(actor, grants=None, bounds={name: Bound(under=bound.under) for name, bound in actor.bounds.items()})


def list_missing(actor: Actor, needed: Iterable[str], now: str) -> list[str]:
    """Return the `needed` operations that an actor may not run now, because it has not been granted them or its grant has ended."""
    return sorted(name for name in needed if not actor.may_at(name, now))


def hide_outside(context: Context, kinds: Mapping[str, NodeKind], changes: Iterable[RecordEvent]) -> list[RecordEvent]:
    """Return the changes without those of records that are out of reach."""
    found = list(changes)
    inside: dict[str, set[int]] = {}
    for name, kind in kinds.items():
        if (reach := find_section_reach(context, kind)) is not None:
            ids = {change.id for change in found if change.resource == name and change.id is not None}
            inside[name] = events.find_inside_or_deleted(context.tx, name, reach.roots, ids)
    return [change for change in found if change.resource not in inside or change.id in inside[change.resource]]


def _narrow(tx: Transaction, one: Reach | None, other: Reach | None) -> Reach | None:
    if one is None or other is None:
        return one or other
    return one.narrow(tx, other)
