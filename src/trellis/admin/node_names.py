"""Names for ids: what an answer lists by number, a page tells by name."""

from collections.abc import Sequence

from trellis.admin.page import Visit
from trellis.core.nodes import NodeKind


async def named(visit: Visit, kind: NodeKind, ids: Sequence[int]) -> list[tuple[int, str]]:
    """Give nodes of a kind with their paths or names, in the order of their ids; those that are not there are left out."""
    if not ids:
        return []
    found = (await visit.perform(kind.operation("list"), {"ids": list(ids), "perPage": len(ids)})).value["results"]
    names = {record["id"]: record.get("path", record["name"]) for record in found}
    return [(one, names[one]) for one in ids if one in names]


async def touched(visit: Visit, changed: Sequence[tuple[str, int]]) -> list[tuple[str, str, int]]:
    """Give nodes of any kind as (resource, path or name, id), kind by kind; those that are not there are left out."""
    kinds = {kind.name: kind for kind in visit.house.gate.environment.kinds}
    found: list[tuple[str, str, int]] = []
    for resource in dict.fromkeys(resource for resource, _ in changed):
        ids = [number for name, number in changed if name == resource]
        found += [(resource, name, number) for number, name in await named(visit, kinds[resource], ids)]
    return found
