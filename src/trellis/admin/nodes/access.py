"""The page that shows what a group can see and do, node by node."""

from typing import Final

from starlette.responses import Response

from trellis.admin.nodes.node import show_missing
from trellis.admin.page import PageRequest
from trellis.core.fields import parse_whole_number
from trellis.core.nodes import NodeKind
from trellis.errors import Refused

_PER_PAGE: Final = 50


async def show(kind: NodeKind, request: PageRequest) -> Response:
    """Show one kind's nodes in which the group has a right, or a certain one."""
    number, query = request.number("id"), request.query
    raw = {
        "resource": query.get("kind", "")[:100],
        "right": query.get("option", "")[:100],
        "perPage": _PER_PAGE,
        "page": min(max(1, parse_whole_number(query.get("page", "1")) or 1), 1_000_000),
    }
    try:
        group = await request.fetch(kind.operation("get"), target=number)
        access = await request.fetch("access.view", raw | {"group": number})
    except Refused as refused:
        if refused.status != 404:
            raise
        return await show_missing(kind, request)
    return request.page("nodes/access.html", title=group["name"], kind=kind, group=group, access=access)
