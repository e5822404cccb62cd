"""Which of the records that a call has come upon its caller may know of."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from trellis.core.bounds import find_reach
from trellis.core.operation.operation import Context
from trellis.core.verbs import GET, LIST
from trellis.store import nodes


def select_readable(context: Context, records: Iterable[Mapping[str, Any]], own: str = "") -> list[Mapping[str, Any]]:
    """Return the records, each with the members `resource` and `id`, that the caller may read by a grant to get or to list them.

    Of the others, a caller learns at most how many there are: for example of those that name a group, from its delete. Records of
    the resource `own`, which the call or event is about, stay in any case.
    """
    found = list(records)
    if context.call.actor.type != "key":  # the role of an administrator decides instead
        return [one for one in found if one["resource"] == own or context.call.actor.sees(one["resource"])]
    ids: dict[str, set[int]] = defaultdict(set)
    for one in found:
        ids[one["resource"]].add(one["id"])
    known = {name: wanted if name == own else _find_readable(context, name, wanted) for name, wanted in ids.items()}
    return [one for one in found if one["id"] in known[one["resource"]]]


def _find_readable(context: Context, resource: str, ids: set[int]) -> set[int]:
    actor = context.call.actor
    readable: set[int] = set()
    for operation in (f"{resource}.{read.name}" for read in (GET, LIST)):
        if actor.may_at(operation, context.now):
            reach = find_reach(actor, operation, resource)
            readable |= ids if reach is None else nodes.find_inside(context.tx, resource, reach.roots, ids)
    return readable
