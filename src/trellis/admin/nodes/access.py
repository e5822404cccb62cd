"""The page that shows what a group can see and do, node by node."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.nodes.picker import clean_search
from trellis.admin.page import PageRequest
from trellis.admin.submitted import find_last_page
from trellis.core.access import describe_right
from trellis.core.fields import parse_whole_number
from trellis.core.nodes import NodeKind
from trellis.core.version import compute_version
from trellis.errors import Refused

_PER_PAGE: Final = 50


async def show(kind: NodeKind, request: PageRequest, group: Mapping[str, Any]) -> Response:
    """Show the nodes of one kind: those in which the group has any right, or a chosen right, or all of them."""
    number, query = group["id"], request.query
    page = min(max(1, parse_whole_number(query.get("page", "1")) or 1), 1_000_000)
    chosen = {"resource": query.get("kind", "")[:100], "right": query.get("option", "")[:100]}
    raw: dict[str, Any] = {"group": number, "perPage": _PER_PAGE, "page": page}
    search = clean_search(query.get("search", ""))
    is_all = bool(search) or query.get("all", "") == "1"
    access = await _fetch_rights(request, raw, chosen)
    if is_all:
        access = access | await _fetch_all(request, access, search, page, number) | {"right": None}
    if (last := find_last_page(query, access)) is not None:
        return request.redirect(f"/{kind.name}/{number}/access{last}")
    shown = next(one for one in request.kinds if one.name == access["resource"])
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


async def _fetch_all(request: PageRequest, access: Mapping[str, Any], search: str, page: int, group: int) -> dict[str, Any]:
    """Return a page of all nodes of a kind, or of those whose names match a search, with the group's rights in each."""
    raw: dict[str, Any] = {"sortBy": "name", "perPage": _PER_PAGE, "page": page} | ({"search": search} if search else {})
    found = await request.fetch(f"{access['resource']}.list", raw)
    names = [right["name"] for right in access["rights"]]
    held = [
        [describe_right(record.get("permissions", {}).get(name, record.get(name)), group) for name in names]
        for record in found["results"]
    ]
    return {**found, "access": held}


def describe_state(kind: NodeKind, records: Iterable[Mapping[str, Any]], group: int) -> str:
    """Return a version of a group's rights in some nodes, by which a form detects whether they have changed since."""
    rights = {
        record["id"]: [describe_right(record["permissions"].get(name), group) for name in kind.options]
        for record in records
        if kind.options
    }
    return compute_version(repr(sorted(rights.items())).encode())
