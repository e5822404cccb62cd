"""Trees and order: paths, places among siblings, and moves."""

from collections.abc import Iterable, Sequence
from typing import Any

from fastapi import HTTPException
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from bench.peers.fastapi_peer.models import Tree


def set_paths(session: Session, model: Any, found: Sequence[Tree]) -> None:
    """Set the path of each of these nodes; their ancestors are read with one recursive query."""
    parents = {node.parent_id for node in found if node.parent_id is not None}
    line = ancestors(session, model, parents) if parents else {}
    for node in found:
        names, at = [node.name], node.parent_id
        while at is not None:
            at, name = line[at]
            names.append(name)
        node.path = " > ".join(reversed(names))


def ancestors(session: Session, model: Any, ids: Iterable[int]) -> dict[int, tuple[int | None, str]]:
    """Read these nodes and all above them: id → (parent's id, name)."""
    up = select(model.id, model.parent_id, model.name).where(model.id.in_(ids)).cte("up", recursive=True)
    up = up.union(select(model.id, model.parent_id, model.name).where(model.id == up.c.parent_id))
    return {row.id: (row.parent_id, row.name) for row in session.execute(select(up))}


def descendants(session: Session, model: Any, top: int) -> list[int]:
    """Return the ids of all nodes below one, the nearer before the farther."""
    down = select(model.id).where(model.parent_id == top).cte("down", recursive=True)
    down = down.union_all(select(model.id).where(model.parent_id == down.c.id))
    return list(session.scalars(select(down.c.id)))


def under(model: Any, parent: int | None) -> Any:
    """Select the siblings under a parent; in what has no parents, all."""
    if not hasattr(model, "parent_id"):
        return True
    return model.parent_id.is_(None) if parent is None else model.parent_id == parent


def count(session: Session, model: Any, parent: int | None) -> int:
    """Count the siblings under a parent: their places are dense."""
    last = session.scalar(select(func.max(model.position)).where(under(model, parent)))
    return 0 if last is None else int(last) + 1


def shift(session: Session, model: Any, parent: int | None, first: int, by: int) -> None:
    """Move the siblings from a place on."""
    session.execute(
        update(model).where(under(model, parent), model.position >= first).values(position=model.position + by),
        execution_options={"synchronize_session": False},
    )


def enter(session: Session, model: Any, node: Any, parent: int | None, place: int | None) -> None:
    """Put a node under a parent, in a place or last."""
    siblings = count(session, model, parent)
    at = siblings if place is None else min(place, siblings)
    if at < siblings:
        shift(session, model, parent, at, 1)
    node.position = at
    if hasattr(model, "parent_id"):
        node.parent_id = parent


def judge_parent(session: Session, model: Any, parent: int | None, node: int | None) -> Any:
    """Return the parent; refuse one that does not exist, or that is the node itself or below it."""
    if parent is None:
        return None
    found = session.get(model, parent)
    if found is None or (node is not None and node in ancestors(session, model, (parent,))):
        raise HTTPException(400, f"INVALID_PARENT: {parent}")
    return found


def move(session: Session, model: Any, node: Any, parent: int | None, place: int | None) -> None:
    """Move a node to a place under a parent."""
    old, was = getattr(node, "parent_id", None), node.position
    if old == parent and place == was:
        return
    judge_parent(session, model, parent, node.id)
    node.position = -1
    session.flush()
    shift(session, model, old, was + 1, -1)
    enter(session, model, node, parent, place)
