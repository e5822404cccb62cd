"""Parents that lead in a circle, as only rows written by hand do: whatever is called there ends, and a move leads out of it."""

from contextlib import suppress
from itertools import cycle
from typing import Any

import pytest
import sqlalchemy as sa

from tests.database_state import DatabaseState
from tests.fixture_types import Run
from trellis.core.actor import TERMINAL, Actor
from trellis.core.gate import Gate
from trellis.core.operation import Call
from trellis.errors import Refused
from trellis.store.tables import nodes

Forums = dict[str, int]
DOCUMENT = {"format": "trellis/1", "name": "one", "under": "inner", "forums": [{"externalId": "leaf", "name": "New name"}]}


def calls(forums: Forums) -> list[tuple[str, int | None, dict[str, Any]]]:
    """Return what there is to be called: operation, target and what is given."""
    part, inner, leaf, other = (forums[name] for name in ("Part", "Inner", "Leaf", "Other"))
    reads = [
        *(("forums.list", None, given) for given in ({"search": "leaf"}, {"sortBy": "name", "perPage": 1}, {"under": inner})),
        *(("forums.get", one, {}) for one in (part, inner, leaf)),
        *(("forums.tree", None, given) for given in ({}, {"root": inner}, {"root": part})),
        ("forums.ancestors", None, {"ids": [leaf, other]}),
        ("forums.level", None, {"parentId": inner}),
        *(("structure.export", None, given) for given in ({}, {"sections": ["forums"], "under": "inner"})),
        ("structure.plan", None, {"document": DOCUMENT}),
        ("events.list", None, {}),
        ("check.list", None, {}),
    ]
    writes = [
        ("forums.create", None, {"name": "New", "parentId": leaf}),
        *(("forums.update", leaf, given) for given in ({"name": "New name"}, {"position": 0}, {"parentId": other})),
        *(("forums.update", inner, {"parentId": parent}) for parent in (part, other, leaf)),
        ("forums.update", other, {"parentId": leaf}),
        *(("forums.copy", one, {"withChildren": True, "parentId": other}) for one in (part, inner, leaf)),
        *(("forums.delete", one, {"deleteChildrenOrMove": fate}) for one in (part, inner, leaf) for fate in (-1, other)),
        ("forums.order", None, {"parentId": inner, "ids": [leaf]}),
        ("structure.apply", None, {"document": DOCUMENT}),
    ]
    return [*reads, *((operation, target, given | {"dryRun": True}) for operation, target, given in writes)]


def lead_in_a_circle(gate: Gate, forum: int, parent: int) -> None:
    """Put a forum below one that is below it, or below itself, by hand."""
    damaged = sa.update(nodes).where(nodes.c.kind == "forums", nodes.c.id == forum).values(parent_id=parent)
    gate.store.write(lambda tx: tx.connection.execute(damaged)).result()


@pytest.mark.slow
@pytest.mark.parametrize(("forum", "parent"), [("Inner", "Leaf"), ("Part", "Leaf"), ("Leaf", "Leaf")])
def test_all_that_is_called_in_a_circle_ends(
    gate: Gate, run: Run, bot: Actor, forums: Forums, database: DatabaseState, forum: str, parent: str
) -> None:
    lead_in_a_circle(gate, forums[forum], forums[parent])
    callers = (bot, TERMINAL) if forum == "Part" else (TERMINAL, bot)  # each calls all, in one circle or another
    with database.unchanged():
        for caller, (operation, target, given) in zip(cycle(callers), calls(forums), strict=False):
            with suppress(Refused):
                gate.run(Call(operation, caller, given, target))
    run("forums.update", forums[forum], parentId=None)
    assert {one["problem"] for one in run("check.list")["problems"]} <= {"order"}  # where it was taken from by hand
    run("check.repair")
    assert run("check.list")["problems"] == []
    assert run("forums.get", forums["Leaf"])["path"].endswith("Leaf")


def test_what_is_below_a_forum_in_a_circle_is_found_once(gate: Gate, run: Run, forums: Forums) -> None:
    lead_in_a_circle(gate, forums["Part"], forums["Leaf"])
    below = {forums[name] for name in ("Inner", "Leaf", "Other")}
    tree = run("forums.tree", root=forums["Part"])
    assert (tree["total"], {one["id"] for one in tree["children"]}) == (3, {forums["Inner"], forums["Other"]})
    assert {one["id"] for one in run("forums.list", under=forums["Part"])["results"]} == below
    run("forums.delete", forums["Part"], deleteChildrenOrMove=-1)
    assert [one["id"] for one in run("forums.list", ids=[forums["Part"], *below])["results"]] == []
