"""The nodes of a kind: its tree or list, a level of it for scripts, and the search behind every choice of a node.

`pages` gives the routes of one kind; everything that they show and ask is drawn from its declaration.
"""

from dataclasses import asdict
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.nodes import access, action, delete, move, node
from trellis.admin.nodes.form import groups_of, in_words
from trellis.admin.nodes.outline import Wish, level
from trellis.admin.page import Page, Visit
from trellis.admin.picker import offers, searchable
from trellis.core.catalogue import Catalogue
from trellis.core.fields import Boolean, Choice, Color, Field, Groups, Text, parse_whole_number
from trellis.core.nodes import NodeKind

_PER_PAGE: Final = 50
_COLUMNS: Final = 3


def pages(catalogue: Catalogue, kind: NodeKind) -> tuple[Page, ...]:
    """Give the pages of one kind."""
    here, one = f"/{kind.name}", f"/{kind.name}/{{id:int}}"
    rows: list[tuple[str, str, Any]] = [
        ("GET", here, index),
        ("GET", f"{here}/find", find),
        ("GET", f"{here}/new", node.new),
        ("POST", f"{here}/new", node.create),
        ("GET", one, node.show),
        ("POST", one, node.update),
        ("GET", f"{one}/delete", delete.ask),
        ("POST", f"{one}/delete", delete.delete),
    ]
    if kind.ordered:
        rows += [
            ("GET", f"{here}/level", part),
            ("GET", f"{one}/move", move.ask),
            ("POST", f"{one}/move", move.move),
        ]
    for what in action.actions_of(catalogue, kind):
        path = f"{one}/{what.verb.name}"
        rows += [("GET", path, partial(action.ask, what)), ("POST", path, partial(action.act, what))]
    if kind.is_group:
        rows.append(("GET", f"{one}/access", access.show))
    return tuple(Page(method, path, partial(run, kind), kind.name) for method, path, run in rows)


async def index(kind: NodeKind, visit: Visit) -> Response:
    """Show the tree, the list, or what a search has found."""
    query = visit.query
    search = searchable(query.get("search", ""))
    if search or not kind.ordered:
        return await _listed(kind, visit, search)
    wish = Wish.of(query)
    above = (await visit.perform(kind.operation("get"), target=wish.under)).value if wish.under and kind.tree else None
    shown = await level(visit, kind, wish)
    return visit.page(
        "nodes/tree.html",
        title=above["name"] if above else kind.title,
        kind=kind,
        above=above,
        level=shown,
        wish=wish,
        search="",
        total=await _total(kind, visit),
        paged={"page": shown.page, "totalPages": shown.pages},
    )


async def part(kind: NodeKind, visit: Visit) -> Response:
    """Give a level of the tree, or more of it, for a script to put in its place."""
    wish = Wish.of(visit.query)
    depth = min(parse_whole_number(visit.query.get("depth", "0")) or 0, 100)
    return visit.page("nodes/level.html", kind=kind, level=await level(visit, kind, wish, depth), depth=depth)


async def find(kind: NodeKind, visit: Visit) -> Response:
    """Give the nodes that can be chosen, for a script."""
    query = visit.query
    without = max(0, parse_whole_number(query.get("not", "0")) or 0)
    found, more = await offers(
        visit, kind, searchable(query.get("search", "")), parents=query.get("parents") == "1", without=without
    )
    return visit.json({"results": [asdict(offer) for offer in found], "more": more})


async def _listed(kind: NodeKind, visit: Visit, search: str) -> Response:
    page = min(max(1, parse_whole_number(visit.query.get("page", "1")) or 1), 1_000_000)
    asked: dict[str, Any] = {"sortBy": "name", "perPage": _PER_PAGE, "page": page} | ({"search": search} if search else {})
    found = (await visit.perform(kind.operation("list"), asked)).value
    columns = _columns(kind)
    groups = await groups_of(visit) if any(isinstance(f.type, Groups) for f in columns) else {}
    rows = [(record, [(f, in_words(f, record.get(f.name), groups)) for f in columns]) for record in found["results"]]
    return visit.page(
        "nodes/list.html",
        title=kind.title,
        kind=kind,
        found=found,
        rows=rows,
        columns=columns,
        search=search,
        total=await _total(kind, visit),
    )


async def _total(kind: NodeKind, visit: Visit) -> int:
    return int((await visit.perform(kind.operation("list"), {"perPage": 1})).value["totalResults"])


def _columns(kind: NodeKind) -> tuple[Field, ...]:
    """Choose the fields that stand in a list: the first few that can be told in a word or two."""
    short = (Boolean, Choice, Color, Groups)
    told = [f for f in kind.fields if not (f.write_only or f.read_only)]
    fits = [f for f in told if isinstance(f.type, short) or (isinstance(f.type, Text) and not f.type.lines)]
    return tuple(fits[:_COLUMNS])
