"""Creates nodes, one or several side by side, and merges the values of a request with existing ones, as changing a node does."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from trellis.core.fields import EVERYONE, FormMapping, Input, Invalid, check_visible, require
from trellis.core.kind import NodeKind, Values
from trellis.core.nodes.placement import PLACES, Placement, resolve_placement
from trellis.core.nodes.record import serialize_node
from trellis.core.nodes.references import list_named, refuse_taken, resolve_references
from trellis.core.operation import Context, OneByOne, Outcome
from trellis.errors import Fault, raise_faults
from trellis.sentences import say
from trellis.store import nodes
from trellis.store.counters import next_numbers
from trellis.store.nodes import Node


def create_node(kind: NodeKind, context: Context) -> Outcome:
    """Create a node. Raises Refused."""
    return create_siblings(kind, (context,))[0]


def create_siblings(kind: NodeKind, contexts: Sequence[Context]) -> list[Outcome]:
    """Create nodes side by side: the first where its call puts it, the others behind it.

    Raises OneByOne unless all calls name the same parent and only the first a place; may raise Refused. In both cases, nothing has
    been written.
    """
    first = contexts[0]
    given = [_complete(kind, context) for context in contexts]
    if any(one.get("parentId") != given[0].get("parentId") or any(name in one for name in PLACES) for one in given[1:]):
        raise OneByOne
    place = resolve_placement(kind, first, given[0], None)
    groups = find_named_groups(kind, first, given)
    drafts = [_draft(kind, context, one, place, groups) for context, one in zip(contexts, given, strict=True)]
    refuse_taken(kind, first, [node.external_id for node in drafts], None)
    numbers = next_numbers(first.tx, kind.name, len(drafts))
    drafts = [replace(node, id=number) for node, number in zip(drafts, numbers, strict=True)]
    outcomes: list[Outcome] = []
    for new in nodes.insert_siblings(first.tx, kind.name, drafts, place.place):
        after = serialize_node(kind, new, place.above, first.environment.community_url)
        outcomes.append(Outcome(after, resource_id=new.id, after=after))
    return outcomes


def find_parent_of_last(raw: Mapping[str, Any]) -> str | None:
    """Return the parent, as text, whose last child a call with these values would create; None if it names another place."""
    return None if any(name in raw for name in PLACES) else repr(raw.get("parentId"))


def _complete(kind: NodeKind, context: Context) -> Input:
    given = require((kind.name_field, *kind.fields), context.input, recode=kind.code_of)
    return resolve_references(kind, context, given)


def _draft(kind: NodeKind, context: Context, given: Input, place: Placement, groups: AbstractSet[int]) -> Node:
    """Return the node that a call asks for, without its id and position. Raises Refused."""
    fields, faults = merge_fields(kind, given, {f.name: f.default for f in kind.fields})
    base = place.parent.permissions if place.parent is not None else {}
    permissions, wrong_groups = settle_permissions(kind, context, given, base, groups)
    missing = _find_missing_options(kind, context.input) if place.parent is not None else ()
    raise_faults((*given.faults, *judge_external_id(given, None), *place.faults, *faults, *wrong_groups, *missing))
    return Node(
        id=0,
        parent_id=place.parent_id,
        position=0,
        name=given.get("name"),
        fields=fields,
        permissions=permissions,
        created_at=context.at,
        updated_at=context.at,
        external_id=given.get("externalId"),
        managed_by=context.call.managed_by,
    )


def _find_missing_options(kind: NodeKind, given: Input) -> Iterator[Fault]:
    """Yield a fault for each option that a form leaves out under a parent, unless the form says that the parent's value is meant.

    A form cannot contain an empty list: a client that means 'nobody' sends nothing, and would open what it meant to close.
    """
    sent = given.get("permissions")
    if not isinstance(sent, FormMapping) or given.get("inheritPermissions") or given.get("copyPermissionsFrom") is not None:
        return
    for option in kind.options:
        if option not in sent:
            detail = say(
                "permissions.{option} is missing. In a form, send permissions[{option}]= for nobody, or inheritPermissions=1 for "
                "the parent's value.",
                option=option,
            )
            yield Fault(f"permissions.{option}", "MISSING_VALUE", detail)


# --- shared with changing a node ----------------------------------------------------------------------------------


def merge_fields(kind: NodeKind, given: Input, base: Values) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Merge the given values into the existing ones, and validate the result by the kind's own rules."""
    fields = {f.name: given.get(f.name, base.get(f.name, f.default)) for f in kind.fields}
    fields = dict(kind.prepare({name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}))
    at_fault = {fault.field for fault in given.faults}
    return fields, tuple(fault for rule in kind.rules for fault in rule(fields) if fault.field not in at_fault)


def judge_external_id(given: Input, old: str | None) -> Iterator[Fault]:
    """Yield a fault if a node is given an external id that people cannot see whole. One that it has had before may stay."""
    if (new := given.get("externalId")) is not None and new != old:
        try:
            check_visible(new)
        except Invalid as invalid:
            yield Fault("externalId", invalid.message, say("{name} {detail}", name="externalId", detail=invalid.detail))


def find_named_groups(kind: NodeKind, context: Context, inputs: Iterable[Input]) -> AbstractSet[int]:
    """Return the existing groups among those that some inputs name."""
    groups = context.environment.group_kind
    wanted = {group for given in inputs for who in list_named(kind, given.values).values() if who != EVERYONE for group in who}
    return nodes.find_existing(context.tx, groups.name, wanted) if groups else frozenset()


def settle_permissions(
    kind: NodeKind, context: Context, given: Input, base: Values, groups: AbstractSet[int]
) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """Merge the permissions: given ones override copied ones, which override existing ones. Every group must be among `groups`."""
    faults: list[Fault] = []
    if (source_id := given.get("copyPermissionsFrom")) is not None:
        source = nodes.find(context.tx, kind.name, source_id)
        if source is None or not context.reaches(kind, source_id):
            detail = say("copyPermissionsFrom: there is no {singular} {source_id}.", singular=kind.singular, source_id=source_id)
            faults.append(Fault("copyPermissionsFrom", "INVALID_VALUE", detail))
        else:
            base = source.permissions
    sent: Mapping[str, Any] = given.get("permissions") or {}
    faults.extend(_refuse_unknown_groups(list_named(kind, given.values), groups))
    permissions = {option: sent.get(option, base.get(option, ())) for option in kind.options}
    return {option: who if who == EVERYONE else list(who) for option, who in permissions.items()}, tuple(faults)


def _refuse_unknown_groups(named: Mapping[str, Any], groups: AbstractSet[int]) -> Iterator[Fault]:
    for field, who in named.items():
        if who != EVERYONE and (missing := [str(group) for group in who if group not in groups]):
            yield Fault(
                field,
                "INVALID_GROUP",
                say("{field} names groups that do not exist: {missing}.", field=field, missing=", ".join(missing)),
            )
