"""What a group can see and do, node by node."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.nodes.node import gone
from trellis.admin.page import Visit
from trellis.core.fields import EVERYONE, parse_whole_number
from trellis.core.nodes import NodeKind
from trellis.errors import Refused
from trellis.store.engine import Transaction
from trellis.store.nodes import outline

_PER_PAGE: Final = 50


@dataclass(frozen=True, slots=True)
class Right:
    """Something that nodes of a kind allow: an option of its permissions, or a field that names groups."""

    name: str
    doc: str
    column: str

    def of(self, record: Mapping[str, Any]) -> Any:
        """Give whom a record allows it."""
        return record["permissions"][self.name] if self.column == "permissions" else record[self.name]


def rights_of(kind: NodeKind) -> tuple[Right, ...]:
    """Give what nodes of a kind can allow."""
    options = tuple(Right(name, doc, "permissions") for name, doc in kind.options.items())
    return options + tuple(Right(f.name, f.doc.partition(":")[0] + ".", "fields") for f in kind.group_fields)


def allows(who: Any, group: int) -> str:
    """Say how a group is allowed something: "by name", "everyone" or ""."""
    return "everyone" if who == EVERYONE else ("by name" if group in (who or ()) else "")


async def show(kind: NodeKind, visit: Visit) -> Response:
    """Show one kind's nodes in which the group may do something, or a certain thing."""
    number = visit.number("id")
    try:
        group = (await visit.perform(kind.operation("get"), target=number)).value
    except Refused as refused:
        if refused.status != 404:
            raise
        return await gone(kind, visit)
    query = visit.query
    kinds = [one for one in visit.house.gate.environment.kinds if rights_of(one)]
    which = next((one for one in kinds if one.name == query.get("kind")), kinds[0] if kinds else None)
    if which is None:
        raise Refused("NO_ENDPOINT", "Nothing here gives permissions to groups.")
    rights = rights_of(which)
    chosen = next((right for right in rights if right.name == query.get("option")), None)
    counts, ids, total = await visit.read(lambda tx: _scan(tx, which, rights, chosen, number))
    pages = max(1, -(-len(ids) // _PER_PAGE))
    page = min(max(1, parse_whole_number(query.get("page", "1")) or 1), pages)
    return visit.page(
        "nodes/access.html",
        title=group["name"],
        kind=kind,
        group=group,
        kinds_here=kinds,
        which=which,
        rights=rights,
        chosen=chosen,
        counts=counts,
        found=len(ids),
        total=total,
        rows=await _rows(visit, which, rights, ids[(page - 1) * _PER_PAGE : page * _PER_PAGE], number),
        paged={"page": page, "totalPages": pages},
        values={"kind": which.name, "option": chosen.name if chosen else None},
    )


def _scan(
    tx: Transaction, kind: NodeKind, rights: tuple[Right, ...], chosen: Right | None, group: int
) -> tuple[dict[str, int], list[int], int]:
    """Count in how many nodes a group may do each thing; give the ids of those where it may do the chosen or any one."""
    counts = dict.fromkeys((right.name for right in rights), 0)
    found: set[int] = set()
    total = 0
    for column in dict.fromkeys(right.column for right in rights):
        here = [right for right in rights if right.column == column]
        judged: dict[int, list[str]] = {}  # by the identity of a decoded value, which equal texts share
        held_alive = []
        total = 0
        for node, held in outline.read_column(tx, kind.name, "permissions" if column == "permissions" else "fields"):
            total += 1
            if (may := judged.get(id(held))) is None:
                may = judged[id(held)] = [right.name for right in here if allows(held.get(right.name), group)]
                held_alive.append(held)
            for name in may:
                counts[name] += 1
            if chosen.name in may if chosen is not None else may:
                found.add(node)
    return counts, sorted(found), total


async def _rows(
    visit: Visit, kind: NodeKind, rights: tuple[Right, ...], ids: list[int], group: int
) -> list[tuple[Mapping[str, Any], list[str]]]:
    if not ids:
        return []
    found = (await visit.perform(kind.operation("list"), {"ids": ids, "perPage": len(ids)})).value["results"]
    return [(record, [allows(right.of(record), group) for right in rights]) for record in found]
