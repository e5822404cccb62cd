"""The page that shows what a group can see and do, node by node."""

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.responses import Response

from trellis.admin.nodes.names import PER_PAGE, fetch_by_name
from trellis.admin.nodes.picker import clean_search
from trellis.admin.page import PageRequest
from trellis.admin.submitted import find_last_page, parse_page_number
from trellis.core.access import describe_right
from trellis.core.nodes import NodeKind
from trellis.core.version import compute_version
from trellis.errors import Refused


async def show(kind: NodeKind, request: PageRequest, group: Mapping[str, Any]) -> Response:
    """Show the nodes of one kind: those in which the group has any right, or a chosen right, or all of them."""
    number, query = group["id"], request.query
    chosen = {"resource": query.get("kind", "")[:100], "right": query.get("option", "")[:100]}
    raw: dict[str, Any] = {"group": number, "perPage": PER_PAGE, "page": parse_page_number(query)}
    search = clean_search(query.get("search", ""))
    is_all = bool(search) or query.get("all", "") == "1"
    access = await _fetch_rights(request, raw, chosen)
    shown = next(one for one in request.kinds if one.name == access["resource"])
    if is_all:
        found = await fetch_by_name(request, shown, search)
        access = access | found | {"right": None, "access": _list_rights(access["rights"], found["results"], number)}
    if (last := find_last_page(query, access)) is not None:
        return request.redirect(f"/{kind.name}/{number}/access{last}")
    update = request.catalogue.get(shown.operation("update"))
    return request.page(
        "nodes/access.html",
        title=group["name"],
        kind=kind,
        group=group,
        access=access,
        search=search,
        is_all=is_all,
        is_editable=bool(shown.options) and update is not None and update.path is not None,
        seen=describe_state(shown, access["results"], number),
    )


async def _fetch_rights(request: PageRequest, raw: Mapping[str, Any], chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of the nodes in which a group has a right. If the chosen kind or right is invalid, use the defaults."""
    try:
        found: dict[str, Any] = await request.fetch("access.view", {**raw, **chosen}, slow=True)
    except Refused as refused:
        if not refused.faults:
            raise
        found = await request.fetch("access.view", raw, slow=True)
    return found


def _list_rights(rights: Iterable[Mapping[str, Any]], records: Iterable[Mapping[str, Any]], group: int) -> list[list[str]]:
    """Return a group's rights in each of some nodes, in the order of `rights`."""
    names = [right["name"] for right in rights]
    return [[describe_right(one.get("permissions", {}).get(name, one.get(name)), group) for name in names] for one in records]


def describe_state(kind: NodeKind, records: Iterable[Mapping[str, Any]], group: int) -> str:
    """Return a version of a group's rights in some nodes, by which a form detects whether they have changed since."""
    rights = {
        record["id"]: [describe_right(record["permissions"].get(name), group) for name in kind.options]
        for record in records
        if kind.options
    }
    return compute_version(repr(sorted(rights.items())).encode())
