"""The nodes of a kind: its tree or list, a level of it for scripts, and the search behind every picker.

`pages` returns the pages of one kind; everything that they show is built from its declaration.
"""

from dataclasses import asdict
from functools import partial
from typing import Final

from starlette.responses import Response

from trellis.admin.forms import read_ids
from trellis.admin.nodes import access, action, delete, move, node
from trellis.admin.nodes.form import format_value
from trellis.admin.nodes.names import fetch_by_name, fetch_groups
from trellis.admin.nodes.node import KindPage, of_node, show_missing
from trellis.admin.nodes.picker import clean_search, find_options
from trellis.admin.nodes.tree import MOST_OPEN, TreeQuery, read_level
from trellis.admin.page import Page, PageRequest
from trellis.admin.submitted import find_last_page
from trellis.core.catalogue import Catalogue
from trellis.core.fields import Boolean, Choice, Color, Field, Groups, Text, parse_whole_number
from trellis.core.nodes import NodeKind

_MAX_COLUMNS: Final = 3


def pages(catalogue: Catalogue, kind: NodeKind) -> tuple[Page, ...]:
    """Return the pages of one kind."""
    here, one = f"/{kind.name}", f"/{kind.name}/{{id:int}}"

    def page(method: str, path: str, run: KindPage, verb: str, *more: str, live: tuple[str, ...] = ()) -> Page:
        return Page(method, path, partial(run, kind), kind.name, live=live, needs=(kind.operation(verb), *more))

    found = [
        page("GET", here, index, "list", live=(f"events/{kind.name}",)),
        page("GET", f"{here}/find", find, "list"),
        page("GET", f"{here}/new", node.new, "create"),
        page("POST", f"{here}/new", node.create, "create"),
        page("GET", one, of_node(node.show), "get"),
        page("POST", one, of_node(node.update, partial(show_missing, keeps=True)), "update"),
        page("GET", f"{one}/delete", of_node(delete.show, delete.redirect_if_deleted), "delete"),
        page("POST", f"{one}/delete", of_node(delete.delete, delete.redirect_if_deleted), "delete"),
    ]
    if kind.ordered:
        found += [
            page("GET", f"{here}/level", level, "list"),
            page("GET", f"{one}/move", of_node(move.show), "update"),
            page("POST", f"{one}/move", of_node(move.move), "update"),
        ]
    for its in action.find_actions(catalogue, kind):
        path, verb = f"{one}/{its.verb.name}", its.verb.name
        found.append(page("GET", path, of_node(partial(action.show, its)), verb))
        found.append(page("POST", path, of_node(partial(action.run, its)), verb))
    if kind.is_group:
        found.append(page("GET", f"{one}/access", of_node(access.show), "get", "access.view"))
    return tuple(found)


async def index(kind: NodeKind, request: PageRequest) -> Response:
    """Show the tree, the list, or the results of a search."""
    search = clean_search(request.query.get("search", ""))
    if search or not kind.ordered:
        return await _show_list(kind, request, search)
    query = TreeQuery.parse(request.query)
    above = await request.fetch(kind.operation("get"), target=query.under) if query.under and kind.tree else None
    shown = await read_level(request, kind, query)
    paged = {"page": shown.page, "totalPages": shown.pages}
    if (last := find_last_page(request.query, paged)) is not None:
        return request.redirect(f"/{kind.name}{last}")
    return request.page(
        "nodes/tree.html",
        title=above["name"] if above else kind.title,
        kind=kind,
        above=above,
        level=shown,
        search="",
        total=await _count(kind, request),
        paged=paged,
        most_open=MOST_OPEN,
    )


async def level(kind: NodeKind, request: PageRequest) -> Response:
    """Return a level of the tree, or a further page of it, for a script to insert."""
    query = TreeQuery.parse(request.query)
    depth = min(parse_whole_number(request.query.get("depth", "0")) or 0, 100)
    return request.page("nodes/level.html", kind=kind, level=await read_level(request, kind, query, depth), depth=depth)


async def find(kind: NodeKind, request: PageRequest) -> Response:
    """Return the nodes that a picker offers, for a script."""
    query = request.query
    exclude = read_ids([query.get("not", "")])
    search = clean_search(query.get("search", ""))
    options, more = await find_options(request, kind, search, parents=query.get("parents") == "1", exclude=exclude)
    return request.json({"results": [asdict(option) for option in options], "more": more})


async def _show_list(kind: NodeKind, request: PageRequest, search: str) -> Response:
    found = await fetch_by_name(request, kind, search)
    if (last := find_last_page(request.query, found)) is not None:
        return request.redirect(f"/{kind.name}{last}")
    columns = _columns(kind)
    groups = await fetch_groups(request) if any(isinstance(f.type, Groups) for f in columns) else {}
    rows = [(record, [(f, format_value(f, record.get(f.name), groups)) for f in columns]) for record in found["results"]]
    return request.page(
        "nodes/list.html",
        title=kind.title,
        kind=kind,
        found=found,
        rows=rows,
        columns=columns,
        search=search,
        total=await _count(kind, request),
    )


async def _count(kind: NodeKind, request: PageRequest) -> int:
    return int((await request.fetch(kind.operation("list"), {"perPage": 1}))["totalResults"])


def _columns(kind: NodeKind) -> tuple[Field, ...]:
    """Choose the fields that a list shows: the first few that fit into a word or two."""
    short = (Boolean, Choice, Color, Groups)
    readable = [f for f in kind.fields if not (f.write_only or f.read_only)]
    fitting = [f for f in readable if isinstance(f.type, short) or (isinstance(f.type, Text) and not f.type.lines)]
    return tuple(fitting[:_MAX_COLUMNS])
