"""The operation that lists what a group may do, node by node."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from trellis.core.access.rights import MISSING, Right, describe_right, find_group, list_rights
from trellis.core.fields import Anything, Field, Input, Integer, ListOf, NodeId, Nullable, Text, TextList, quote
from trellis.core.nodes import serialize_nodes
from trellis.core.operation import GRANTED, Context, Operation, Outcome
from trellis.core.paging import PAGING, parse_paging, refusing_large_pages, serialize_page
from trellis.core.verbs import Response, Verb
from trellis.errors import Refused, refuse_fault
from trellis.refusals import with_codes
from trellis.sentences import say
from trellis.store import lists
from trellis.store.nodes import outline

T = TypeVar("T")

_FIELDS: Final = (
    *PAGING,
    Field("group", NodeId(), "The group: its id.", required=True, example=3),
    Field("resource", Text(100), "The kind of nodes, such as forums. The default is the first kind that has permissions."),
    Field("right", Text(100), "Only nodes in which the group has this right, such as read. The default is any right."),
)


def _view(context: Context) -> Outcome:
    given = context.input
    group = find_group(context, given.values["group"])
    kinds = [one for one in context.environment.kinds if list_rights(one) and context.call.actor.sees(one.name)]
    if not kinds:
        raise Refused("NO_ENDPOINT", say("No kind of node has permissions."))
    chosen = _choose("resource", given, {one.name: one for one in kinds}) or kinds[0]
    rights = list_rights(chosen)
    wanted = _choose("right", given, {right.name: right for right in rights})
    counts, ids, total = _scan(context, chosen.name, rights, wanted, group.id)
    page, per_page = parse_paging(given)
    ids_here = ids[(page - 1) * per_page : page * per_page]
    with refusing_large_pages():
        _, found = lists.read_page(context.tx, chosen.name, lists.Query({"ids": ids_here}, limit=per_page))
    return Outcome(
        serialize_page(serialize_nodes(chosen, context, found), len(ids), page, per_page)
        | {
            "resources": [one.name for one in kinds],
            "resource": chosen.name,
            "rights": [{"name": right.name, "doc": right.doc, "nodes": counts[right.name]} for right in rights],
            "right": wanted.name if wanted else None,
            "access": [[describe_right(right.holders(node), group.id) for right in rights] for node in found],
            "total": total,
        }
    )


def _choose(name: str, given: Input, known: Mapping[str, T]) -> T | None:
    """Return the value that a parameter names; None if the parameter was not sent. Raises Refused (INVALID_VALUE)."""
    if not (sent := given.get(name)):
        return None
    if sent not in known:
        detail = say("must be one of {words}, not {raw}.", words=", ".join(known), raw=quote(sent))
        raise refuse_fault(name, "INVALID_VALUE", say("{name} {detail}", name=name, detail=detail))
    return known[sent]


def _scan(
    context: Context, kind: str, rights: Sequence[Right], wanted: Right | None, group: int
) -> tuple[Mapping[str, int], list[int], int]:
    """Count the nodes in which a group has each right, find those in which it has the wanted or any right, and count all."""
    counts = dict.fromkeys((right.name for right in rights), 0)
    found: set[int] = set()
    total = 0
    for in_permissions in dict.fromkeys(right.in_permissions for right in rights):
        names = [right.name for right in rights if right.in_permissions == in_permissions]
        total = 0

        def list_held(value: Mapping[str, Any], names: Sequence[str] = names) -> list[str]:
            return [name for name in names if describe_right(value.get(name), group)]

        for node, held_rights in outline.examine_column(context.tx, kind, "permissions" if in_permissions else "fields", list_held):
            total += 1
            for name in held_rights:
                counts[name] += 1
            if wanted.name in held_rights if wanted is not None else held_rights:
                found.add(node)
    return counts, sorted(found), total


VIEW: Final = Verb(
    name="view", method="GET", tail="/view", response=Response.ANSWER, answer="One page, with the rights.", has_pages=True
)
OPERATION: Final = Operation(
    "access.view",
    "List what a group may do",
    "Returns one page of the nodes of a kind in which a group has a right, each of its rights there (`by name`, `everyone` or "
    "empty), and the number of nodes in which it has each right.",
    _view,
    _FIELDS,
    access=GRANTED,
    verb=VIEW,
    path="/core/access",
    refusals=(("INVALID_ID", MISSING), *with_codes("PAGE_TOO_LARGE")),
    response_fields=(
        Field("page", Integer(0), "The number of this page.", example=1),
        Field("perPage", Integer(0), "How many nodes are on a page.", example=25),
        Field("totalResults", Integer(0), "How many nodes there are on all pages.", example=5),
        Field("totalPages", Integer(0), "How many pages there are.", example=1),
        Field("results", ListOf(()), "The nodes.", example=[]),
        Field("resources", TextList(), "The kinds of nodes that have permissions.", example=["forums"]),
        Field("resource", Text(), "The kind of these nodes.", example="forums"),
        Field("rights", ListOf(()), "The rights: name, what it is for, and in how many nodes the group has it.", example=[]),
        Field("right", Nullable(Text()), "The right that was asked for.", example=None),
        Field("access", Anything(), "For each node on the page, how the group has each of the rights.", example=[["everyone"]]),
        Field("total", Integer(0), "How many nodes of this kind there are.", example=7),
    ),
    slow=True,
)
