"""The operation that lists what a group may do, node by node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from trellis.core.fields import EVERYONE, Field, Text, invalid_id
from trellis.core.kind import NodeKind
from trellis.core.nodes.record import serialize_nodes
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.paging import PAGING, PER_PAGE, serialize_page
from trellis.core.verbs import GET
from trellis.errors import Refused
from trellis.store import lists, nodes
from trellis.store.nodes import Node, outline

_FIELDS: Final = (
    *PAGING,
    Field("resource", Text(100), "The kind of nodes, such as forums. The default is the first kind that has permissions."),
    Field("right", Text(100), "Only nodes in which the group has this right, such as read. The default is any right."),
)


@dataclass(frozen=True, slots=True)
class _Right:
    """Something that a node can allow a group: an option of its permissions, or a field that names groups."""

    name: str
    doc: str
    in_permissions: bool

    def holders(self, node: Node) -> Any:
        return (node.permissions if self.in_permissions else node.fields).get(self.name)


def operations(kind: NodeKind) -> tuple[Operation, ...]:
    """Return the operation that lists what a group may do, for the kind of the groups."""
    if not kind.is_group:
        return ()
    access = Operation(
        f"{kind.name}.access",
        f"List what a {kind.singular} may do",
        f"Returns one page of the nodes of a kind in which a {kind.singular} has a right, each of its rights there (`by name`, "
        "`everyone` or empty), and the number of nodes in which it has each right.",
        partial(_access, kind),
        _FIELDS,
        has_target=True,
        kind=kind,
    )
    return (access,)


def _access(kind: NodeKind, context: Context) -> Outcome:
    given, target = context.input, context.call.target or 0
    given.raise_faults()
    group = nodes.find(context.tx, kind.name, target)
    if group is None:
        raise invalid_id(kind.singular, target, kind.missing_code(GET))
    kinds = [one for one in context.environment.kinds if _rights(one)]
    if not kinds:
        raise Refused("NO_ENDPOINT", "No kind of node has permissions.")
    chosen = next((one for one in kinds if one.name == given.get("resource")), kinds[0])
    rights = _rights(chosen)
    wanted = next((right for right in rights if right.name == given.get("right")), None)
    counts, ids, total = _scan(context, chosen.name, rights, wanted, group.id)
    per_page = given.get("perPage", PER_PAGE)
    page = min(given.get("page", 1), max(1, -(-len(ids) // per_page)))
    ids_here = ids[(page - 1) * per_page : page * per_page]
    _, found = lists.read_page(context.tx, chosen.name, lists.Query({"ids": ids_here}, limit=per_page))
    return Outcome(
        serialize_page(serialize_nodes(context.tx, chosen, found, context.environment.community_url), len(ids), page, per_page)
        | {
            "resources": [one.name for one in kinds],
            "resource": chosen.name,
            "rights": [{"name": right.name, "doc": right.doc, "nodes": counts[right.name]} for right in rights],
            "right": wanted.name if wanted else None,
            "access": [[_describe_right(right.holders(node), group.id) for right in rights] for node in found],
            "total": total,
        }
    )


def _rights(kind: NodeKind) -> tuple[_Right, ...]:
    options = tuple(_Right(name, doc, in_permissions=True) for name, doc in kind.options.items())
    return options + tuple(_Right(f.name, f.doc.partition(":")[0] + ".", in_permissions=False) for f in kind.group_fields)


def _describe_right(holders: Any, group: int) -> str:
    return "everyone" if holders == EVERYONE else ("by name" if group in (holders or ()) else "")


def _scan(
    context: Context, kind: str, rights: Sequence[_Right], wanted: _Right | None, group: int
) -> tuple[Mapping[str, int], list[int], int]:
    """Count the nodes in which a group has each right; return the ids of those in which it has the wanted or any right."""
    counts = dict.fromkeys((right.name for right in rights), 0)
    found: set[int] = set()
    total = 0
    for in_permissions in dict.fromkeys(right.in_permissions for right in rights):
        names = [right.name for right in rights if right.in_permissions == in_permissions]
        known: dict[int, list[str]] = {}  # by the identity of the decoded value, since equal texts share one
        kept_alive = []
        total = 0
        for node, held in outline.read_column(context.tx, kind, "permissions" if in_permissions else "fields"):
            total += 1
            if (held_rights := known.get(id(held))) is None:
                held_rights = known[id(held)] = [name for name in names if _describe_right(held.get(name), group)]
                kept_alive.append(held)
            for name in held_rights:
                counts[name] += 1
            if wanted.name in held_rights if wanted is not None else held_rights:
                found.add(node)
    return counts, sorted(found), total
