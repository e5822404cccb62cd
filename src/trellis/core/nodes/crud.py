"""The five operations that every kind of node has: list, get, create, update and delete."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Any, Final

from trellis.core.events import changed_members
from trellis.core.fields import Field, Input
from trellis.core.kind import NodeKind, Values
from trellis.core.nodes.creation import (
    create_node,
    create_siblings,
    find_named_groups,
    find_parent_of_last,
    judge_external_id,
    merge_fields,
    settle_permissions,
)
from trellis.core.nodes.deletion import delete_doc, delete_fields, delete_leaves, delete_node, delete_refusals, moves_none
from trellis.core.nodes.edits import Edits
from trellis.core.nodes.listing import INCLUDE, build_query, list_fields, shown_by_list
from trellis.core.nodes.placement import PLACES, apply_placement, count_children_in_the_way, find_place, resolve_placement
from trellis.core.nodes.record import find_fate, get_with_path, locate, serialize_node, serialize_page_of_nodes, shown_by
from trellis.core.nodes.references import refuse_taken, resolve_references
from trellis.core.operation import GRANTED, INSIDE, Access, Basis, Context, OneByOne, Operation, Outcome, Preparation, Together
from trellis.core.paging import refusing_large_pages, serialize_page
from trellis.core.verbs import CREATE, DELETE, GET, LIST, UPDATE, Verb
from trellis.core.version import check_precondition
from trellis.errors import Fault, raise_faults
from trellis.refusals import REFUSALS
from trellis.sentences import say
from trellis.store import lists, nodes, siblings, snapshots
from trellis.store.counters import read_total
from trellis.store.nodes import Node

_MOVES: Final = frozenset(("parentId", *PLACES))
_READING: Final = frozenset(("parentExternalId", "copyPermissionsFrom"))  # these name a node that an earlier call may change


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return the five operations of a kind."""
    one, many = kind.singular, kind.title.lower()
    moves = " `parentId` with at most one of `position`, `before` and `after` moves it." if kind.tree else ""
    changes = f"Changes a {one}. Fields that are not sent keep their values. If nothing changes, no event is recorded.{moves}"
    return (
        replace(
            build_operation(
                kind,
                LIST,
                f"List {many}",
                f"Returns one page of the {many}. {kind.doc}",
                _list,
                list_fields(kind),
                ("PAGE_TOO_LARGE",),
            ),
            judges_input=True,
            slow_with="under",
        ),
        replace(build_operation(kind, GET, f"Get a {one}", f"Returns the {one} with this id.", _get), snapshot=False),
        replace(
            build_operation(
                kind, CREATE, f"Create a {one}", f"Creates a {one}.", create_node, kind.accepted, creation_refusals(kind)
            ),
            judges_input=True,
            together=Together(partial(create_siblings, kind), find_parent_of_last),
        ),
        replace(
            build_operation(kind, UPDATE, f"Change a {one}", changes, _update, kind.accepted, node_refusals(kind)),
            judges_input=True,
            preparation=Preparation(judge=partial(_find_digests, kind)),
            together=Together(partial(_update_many, kind), lambda raw: None if _READING & raw.keys() else "changes"),
        ),
        replace(
            build_operation(
                kind, DELETE, f"Delete a {one}", delete_doc(kind), delete_node, delete_fields(kind), delete_refusals(kind)
            ),
            judges_input=True,
            together=None
            if kind.is_group
            else Together(partial(delete_leaves, kind), lambda raw: "leaves" if moves_none(raw) else None),
        ),
    )


def build_operation(
    kind: NodeKind,
    verb: Verb,
    summary: str,
    doc: str,
    run: Callable[[NodeKind, Context], Outcome],
    fields: tuple[Field, ...] = (),
    refusals: Iterable[str] = (),
) -> Operation:
    """Build one operation of a kind, served over REST unless the kind's `over_rest` leaves the verb out.

    `refusals` are messages of its own. INVALID_ID is not among them: a verb with a target has it anyway, with the verb's code.
    Faults in the input, and required fields that were not sent, are refused before it runs: see `judges_input` of `Operation`.
    """
    missing = (("INVALID_ID", kind.missing_code(verb)),) if verb.has_target else ()
    declared = missing + tuple((message, kind.code_of(message) or REFUSALS[message].code) for message in refusals)
    if len(dict(declared)) < len(declared):
        raise ValueError(f"{kind.operation(verb.name)} declares a refusal twice; one with a target need not declare INVALID_ID")
    return Operation(
        name=kind.operation(verb.name),
        summary=summary,
        doc=doc,
        run=partial(run, kind),
        fields=fields,
        access=GRANTED if kind.serves(verb) else INSIDE,
        verb=verb,
        path=kind.path if kind.serves(verb) else None,
        also=kind.also,
        kind=kind,
        refusals=declared,
        recode=kind.code_of,
        find_fate=partial(find_fate, kind) if verb.creates else None,
    )


def granted_with(kind: NodeKind, needed: Sequence[Verb], operation: Operation) -> Operation:
    """Open an operation to keys that were granted all `needed` ones; over REST, only if the kind serves all of these there."""
    if not all(kind.serves(one) for one in needed):
        return replace(operation, access=INSIDE, path=None)
    needs = tuple(kind.operation(one.name) for one in needed)
    return replace(operation, access=Access(Basis.IMPLIED, needs), path=kind.path)


def node_refusals(kind: NodeKind) -> tuple[str, ...]:
    """Return the messages of the refusals that creating and changing a node may end in."""
    place = ("INVALID_PARENT",) if kind.tree else ()
    order = ("INVALID_POSITION",) if kind.ordered else ()
    groups = ("INVALID_GROUP",) if kind.options or kind.group_fields else ()
    passwords = ("TOO_MANY_PASSWORDS",) if kind.secrets else ()
    return ("NO_TITLE", "EXTERNAL_ID_TAKEN", *kind.refuses, *place, *order, *groups, *passwords)


def creation_refusals(kind: NodeKind) -> tuple[str, ...]:
    """Return the messages of the refusals that creating a node may end in."""
    return (*node_refusals(kind), "MISSING_VALUE") if kind.tree and kind.options else node_refusals(kind)


# --- reading ------------------------------------------------------------------------------------------------------


def _list(kind: NodeKind, context: Context) -> Outcome:
    given = resolve_references(kind, context, context.input)
    given.raise_faults()
    query, page, per_page = build_query(kind, given)
    if (reach := context.find_reach(kind)) is not None:
        query = replace(query, part=lists.NodePart(reach.roots, kind.tree))
    with refusing_large_pages():
        total, found = lists.read_page(context.tx, kind.name, query)
    records, shown = serialize_page_of_nodes(kind, context, found)
    if INCLUDE.name in given:
        counts = siblings.count_children_by_parent(context.tx, kind.name, [node.id for node in found])
        records = [record | {"childCount": counts.get(record["id"], 0)} for record in records]
    shown = shown_by_list(given, query, found, shown)
    recount = None if shown.up_to is None else partial(read_total, sequence=kind.name)
    return Outcome(serialize_page(records, total, page, per_page), shows=(shown,), recount=recount)


def _get(kind: NodeKind, context: Context) -> Outcome:
    found = locate(kind, context, GET)
    return Outcome(serialize_node(kind, found.node, found.above, context.environment.community_url), shows=(shown_by(kind, found),))


# --- changing ----------------------------------------------------------------------------------------------------


def _find_digests(kind: NodeKind, context: Context) -> dict[str, str | None]:
    """Return the digests of a node's passwords, so that sending one again changes nothing. Raises Refused (INVALID_ID)."""
    old, _ = get_with_path(kind, context, UPDATE)
    return {secret.name: old.fields.get(secret.name) for secret in kind.secrets}


def _update(kind: NodeKind, context: Context) -> Outcome:
    old, above = get_with_path(kind, context, UPDATE)
    before = serialize_node(kind, old, above, context.environment.community_url)
    check_precondition(context.call.expected, before)
    given = context.input
    if given.faults and not any(secret.name in given for secret in kind.secrets):  # which have no digest beside a fault
        given = given.excuse(context.call.raw, before)
    given = resolve_references(kind, context, given)
    place = resolve_placement(kind, context, given, old)
    new = _merge(kind, context, given, old, find_named_groups(kind, context, (given,)), place.faults)
    if new.external_id != old.external_id:
        refuse_taken(kind, context, (new.external_id or kind.built_in.get(old.id),), old.id)
    beside = None if place.stays else snapshots.find_neighbours(context.tx, kind.name, old)
    new = apply_placement(context.tx, kind, new, place)
    outcome = _build_outcome(kind, context, before, old, new, above if new.parent_id == old.parent_id else place.above)
    if outcome.happened:
        snapshots.save(context.tx, kind.name, old, "changed", beside)
        nodes.update(context.tx, kind.name, new)
    return outcome


def _merge(kind: NodeKind, context: Context, given: Input, old: Node, groups: AbstractSet[int], faults: Iterable[Fault]) -> Node:
    """Return a node with the values of a call, except for its place. `groups` are the existing groups among those that it names.

    `faults` are the faults of the place. Raises Refused.
    """
    fields, wrong_fields = merge_fields(kind, given, old.fields)
    permissions, wrong_groups = settle_permissions(kind, context, given, old.permissions, groups)
    children = _no_children_if_leaf_only(kind, context, old, fields)
    seen = judge_external_id(given, old.external_id)
    raise_faults((*given.faults, *seen, *faults, *wrong_fields, *wrong_groups, *children))
    return replace(
        old,
        name=given.get("name", old.name),
        external_id=given.get("externalId", old.external_id),
        managed_by=context.call.managed_by or old.managed_by,
        fields=fields,
        permissions=permissions,
    )


def _build_outcome(kind: NodeKind, context: Context, before: dict[str, Any], old: Node, new: Node, above: str) -> Outcome:
    """Return the outcome of changing a node. If anything has changed, give the node the time of the change."""
    after = serialize_node(kind, new, above, context.environment.community_url)
    secrets = tuple(f.name for f in kind.secrets if new.fields[f.name] != old.fields.get(f.name))
    changed = changed_members(before, after) + secrets
    if not changed:
        return Outcome(before, happened=False)
    new.updated_at = after["updatedAt"] = context.at
    return Outcome(after, resource_id=old.id, before=before, after=after, changed=changed)


def _update_many(kind: NodeKind, contexts: Sequence[Context]) -> list[Outcome]:
    """Run updates in their order. Raises OneByOne or Refused, before anything is written."""
    first = contexts[0]
    if any(_is_apart(context.input) for context in contexts):
        raise OneByOne
    given = {context.call.target or 0: resolve_references(kind, context, context.input) for context in contexts}
    moving = {number for number, wish in given.items() if not _MOVES.isdisjoint(wish.values)}
    if len(given) < len(contexts):
        raise OneByOne
    groups = find_named_groups(kind, first, given.values())
    edits = Edits(kind, first, [*given], moving, lambda node: given[node.id].get("parentId", node.parent_id))
    _check_reach(kind, first, {*given, *edits.parents})
    outcomes: list[Outcome] = []
    for context, (number, wish) in zip(contexts, given.items(), strict=True):
        old, above = edits.find(number)
        before = serialize_node(kind, old, above, context.environment.community_url)
        check_precondition(context.call.expected, before)
        parent = wish.get("parentId", old.parent_id)
        place, faults = find_place(kind, wish, old, parent, partial(edits.find_position, parent))
        new, neighbours = _merge(kind, context, wish, old, groups, faults), None
        if parent != old.parent_id or any(name in wish for name in PLACES):
            neighbours = edits.find_neighbours(old)
            new, above = edits.move(new, parent, place)
        outcome = _build_outcome(kind, context, before, old, new, above)
        outcomes.append(outcome)
        if outcome.happened:
            edits.change(old, new, neighbours)
    edits.write()
    return outcomes


def _is_apart(given: Input) -> bool:
    """Return whether an input has a fault, or depends on more than the node and its siblings."""
    return bool(given.faults) or not _READING.isdisjoint(given.values) or sum(name in given for name in PLACES) > 1


def _check_reach(kind: NodeKind, context: Context, ids: AbstractSet[int | None]) -> None:
    """Raise OneByOne if any of these nodes, or the top level (None), is out of reach of the grant."""
    if (reach := context.find_reach(kind)) is None:
        return
    if reach.find_inside(context.tx, [number for number in ids if number is not None]) != ids:
        raise OneByOne


def _no_children_if_leaf_only(kind: NodeKind, context: Context, old: Node, fields: Values) -> tuple[Fault, ...]:
    if not (count := count_children_in_the_way(context.tx, kind, old, fields)):
        return ()
    detail = say(
        "{field} {value} allows no children, but this {singular} has {count}: move or delete them first.",
        field=kind.leaf.field,
        value=kind.leaf.value,
        singular=kind.singular,
        count=count,
    )
    return (Fault(kind.leaf.field, "INVALID_VALUE", detail),)
