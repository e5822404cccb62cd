"""Names for ids: operations refer to nodes by their ids, and pages show their names."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from trellis.admin.page import PageRequest
from trellis.admin.submitted import parse_page_number
from trellis.core.nodes import NodeKind
from trellis.core.paging import MOST_PER_PAGE, join_pages, number_pages

PER_PAGE: Final = 50  # of a list of nodes by name
_AT_ONCE: Final = 50  # nodes that are read in one request: each has all its texts, which may be long
GroupNames = Mapping[int, str]  # by the groups' ids


async def fetch_by_name(request: PageRequest, kind: NodeKind, search: str) -> dict[str, Any]:
    """Return the page that the address asks for of a list by name: of the nodes whose names contain `search`, or of all."""
    raw = {"search": search, "sortBy": "name", "perPage": PER_PAGE, "page": parse_page_number(request.query)}
    found: dict[str, Any] = await request.fetch(kind.operation("list"), raw)
    return found


async def fetch_names(request: PageRequest, kind: NodeKind, ids: Sequence[int]) -> list[tuple[int, str]]:
    """Return nodes of a kind as (id, path or name), in the order of `ids`; nodes that do not exist are left out."""
    names: dict[int, str] = {}
    for first in range(0, len(ids), _AT_ONCE):
        some = list(ids[first : first + _AT_ONCE])
        found = (await request.fetch(kind.operation("list"), {"ids": some, "perPage": len(some)}))["results"]
        names |= {record["id"]: record.get("path", record["name"]) for record in found}
    return [(one, names[one]) for one in ids if one in names]


def path_above(record: Mapping[str, Any]) -> str:
    """Return the names of the nodes above a node, as its path has them; "" at the top level and in a kind that is no tree."""
    name = record["name"]
    return str(record.get("path", name)).removesuffix(name).removesuffix(" > ")


async def fetch_line(request: PageRequest, kind: NodeKind, record: Mapping[str, Any]) -> list[tuple[int, str]]:
    """Return the nodes above a node as (id, name), from the top level down."""
    if not kind.tree or record["parentId"] is None:
        return []
    path = (await request.fetch(f"{kind.name}.ancestors", {"ids": [record["id"]]}))[record["id"]]
    return [(one["id"], one["name"]) for one in path[:-1]]


async def fetch_record_names(request: PageRequest, records: Sequence[tuple[str, int]]) -> list[tuple[str, str, int]]:
    """Return nodes of any kind as (resource, path or name, id), kind by kind; nodes that do not exist are left out.

    They may be of a kind that this community no longer has, as in an old event or proposal.
    """
    kinds = {kind.name: kind for kind in request.kinds}
    found: list[tuple[str, str, int]] = []
    for resource in dict.fromkeys(resource for resource, _ in records if resource in kinds):
        ids = [number for name, number in records if name == resource]
        found += [(resource, name, number) for number, name in await fetch_names(request, kinds[resource], ids)]
    return found


async def fetch_groups(request: PageRequest) -> GroupNames:
    """Return the names of all groups, by id."""
    is_group = next((kind for kind in request.kinds if kind.is_group), None)
    if is_group is None:
        return {}

    async def read(page: int) -> Mapping[str, Any]:
        found: Mapping[str, Any] = await request.fetch(is_group.operation("list"), {"perPage": MOST_PER_PAGE, "page": page})
        return found

    first = await read(1)
    pages = [first] if first["totalPages"] == 1 else [await read(page) for page in number_pages(first)]
    return {group["id"]: group["name"] for group in join_pages(pages)}
