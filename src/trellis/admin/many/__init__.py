"""Changing many nodes at once: nodes ticked in a tree or list, all nodes below a node, or nodes in which a group has rights."""

from functools import partial
from typing import Any

from trellis.admin.many import access, below, dragging, selection
from trellis.admin.many.plan import (
    BATCH,
    MOST,
    BatchPlan,
    Write,
    find_done,
    find_way_back,
    plan_or_carry_out,
    read_former_address,
)
from trellis.admin.many.selection import IDS, find_many_actions
from trellis.admin.nodes import of_node, show_missing
from trellis.admin.page import Page
from trellis.core.catalogue import Catalogue
from trellis.core.nodes import NodeKind


def pages(catalogue: Catalogue, kind: NodeKind) -> tuple[Page, ...]:
    """Return the pages of one kind."""
    one = f"/{kind.name}/{{id:int}}"
    reads, changes = (kind.operation("list"),), (kind.operation("update"), BATCH)
    rows: list[tuple[str, str, Any, tuple[str, ...]]] = [("GET", f"/{kind.name}/many", selection.index, reads)]
    for action in find_many_actions(catalogue, kind):
        path = f"/{kind.name}/many/{action.name}"
        needs = (kind.operation(action.verb), BATCH)
        rows += [("GET", path, selection.index, reads), ("POST", path, partial(selection.run, action), needs)]
    if kind.ordered:
        rows.append(("POST", f"/{kind.name}/many/drag", dragging.run, changes))
    if kind.tree and kind.options:
        rows += [("GET", f"{one}/below", below.index, changes)]
        rows += [("POST", f"{one}/below", of_node(below.run, partial(show_missing, keeps=True)), changes)]
    if kind.is_group:
        rows += [("POST", f"{one}/access", of_node(access.run), (BATCH,))]
    return tuple(Page(method, path, partial(run, kind), kind.name, needs=needs) for method, path, run, needs in rows)
