"""Finds the nodes that a request names by their external ids, and replaces these with ids."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trellis.core.fields import EVERYONE, ByExternalId, Input
from trellis.core.kind import NodeKind
from trellis.core.operation import Context
from trellis.core.verbs import LIST
from trellis.errors import Fault, Refused
from trellis.sentences import say
from trellis.store import nodes

Groups = str | tuple[int | ByExternalId, ...]


def resolve_references(kind: NodeKind, context: Context, given: Input) -> Input:
    """Return the input with ids in place of external ids: of the parent, and of groups. An unknown one is a fault."""
    values, faults = dict(given.values), list(given.faults)
    if "parentExternalId" in values:
        faults += _resolve_parent(kind, context, values)
    named = list_named(kind, values)
    wanted = {one.external_id for who in named.values() for one in _external(who)}
    if wanted:
        known = _find_groups(context, wanted)
        faults += _refuse_unknown(named, known)
        if "permissions" in values:
            values["permissions"] = {option: _replace(who, known) for option, who in values["permissions"].items()}
        values |= {f.name: _replace(values[f.name], known) for f in kind.group_fields if f.name in values}
    return Input(values, tuple(faults))


def list_named(kind: NodeKind, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the groups, or everyone, that each permission and field of an input names: its name → groups."""
    named = {f"permissions.{option}": who for option, who in (values.get("permissions") or {}).items()}
    return named | {f.name: values[f.name] for f in kind.group_fields if f.name in values}


def _resolve_parent(kind: NodeKind, context: Context, values: dict[str, Any]) -> Iterable[Fault]:
    external_id = values.pop("parentExternalId")
    if "parentId" in values:
        detail = say("parentExternalId: send either parentId or parentExternalId, not both.")
        return (Fault("parentExternalId", "INVALID_PARENT", detail),)
    parent = find_by_external_id(kind, context, external_id)
    if parent is None:
        detail = say(
            "parentExternalId: there is no {singular} with the external id '{external_id}'.",
            singular=kind.singular,
            external_id=external_id,
        )
        return (Fault("parentExternalId", "INVALID_PARENT", detail),)
    values["parentId"] = parent
    return ()


def find_by_external_id(kind: NodeKind, context: Context, external_id: str) -> int | None:
    """Return the id of the node with an external id; None if there is none, or if it is out of reach."""
    found = nodes.find_by_external_ids(context.tx, kind.name, (external_id,)).get(external_id)
    return found if found is not None and context.reaches(kind, found) else None


def _external(who: Groups) -> list[ByExternalId]:
    return [] if isinstance(who, str) else [one for one in who if isinstance(one, ByExternalId)]


def _find_groups(context: Context, wanted: Iterable[str]) -> Mapping[str, int]:
    """Return the ids of the groups with some external ids, without those that the caller may not list because of a bound."""
    groups = context.environment.group_kind
    if groups is None:
        return {}
    found = nodes.find_by_external_ids(context.tx, groups.name, wanted)
    reach = context.find_reach(groups, groups.operation(LIST.name))
    inside = set(found.values()) if reach is None else reach.find_inside(context.tx, found.values())
    return {external_id: group for external_id, group in found.items() if group in inside}


def _refuse_unknown(named: Mapping[str, Groups], known: Mapping[str, int]) -> Iterable[Fault]:
    for field, who in named.items():
        if missing := [f"'{one.external_id}'" for one in _external(who) if one.external_id not in known]:
            detail = say(
                "{field} names groups that do not exist: the external ids {missing}.", field=field, missing=", ".join(missing)
            )
            yield Fault(field, "INVALID_GROUP", detail)


def _replace(who: Groups, known: Mapping[str, int]) -> Groups:
    """Replace external ids with ids. Unknown ones are left out: the request is refused because of them."""
    if isinstance(who, str):
        return EVERYONE
    ids = (known.get(one.external_id) if isinstance(one, ByExternalId) else one for one in who)
    return tuple(sorted({one for one in ids if one is not None}))


def refuse_taken(kind: NodeKind, context: Context, external_ids: Sequence[str | None], node: int | None) -> None:
    """Refuse external ids if one of them belongs to another node than `node` or appears twice. Raises Refused.

    The external id by which structure documents know a built-in node belongs to this node unless it has been given another.
    """
    wanted = [external_id for external_id in external_ids if external_id is not None]
    built_in = [number for number, external_id in kind.built_in.items() if external_id in wanted and number != node]
    for number, found in nodes.find_by_ids(context.tx, kind.name, built_in).items() if built_in else ():
        if found.external_id is None:
            detail = say(
                "Structure documents know the {singular} {id} as '{external_id}'. Choose another id.",
                singular=kind.singular,
                id=number,
                external_id=kind.built_in[number],
            )
            raise Refused("EXTERNAL_ID_TAKEN", detail, facts={"id": number})
    for external_id, owner in nodes.find_by_external_ids(context.tx, kind.name, wanted).items():
        if owner != node and not context.reaches(kind, owner):
            detail = say(
                "Another {singular} already has the external id '{external_id}'. Choose another id.",
                singular=kind.singular,
                external_id=external_id,
            )
            raise Refused("EXTERNAL_ID_TAKEN", detail)
        if owner != node:
            raise Refused(
                "EXTERNAL_ID_TAKEN",
                say(
                    "The {singular} {owner} already has the external id '{external_id}'. Change that one, or choose another id.",
                    singular=kind.singular,
                    owner=owner,
                    external_id=external_id,
                ),
                facts={"id": owner},
            )
    if len(set(wanted)) < len(wanted):
        raise Refused("EXTERNAL_ID_TAKEN", say("Two {title} would have the same external id.", title=kind.plural))
