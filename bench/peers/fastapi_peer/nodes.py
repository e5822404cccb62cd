"""The operations on nodes, as a router for each kind."""

from dataclasses import dataclass
from math import ceil
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, HTTPException, Query, Request, Response
from pydantic import BaseModel
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from bench.peers.fastapi_peer import tree
from bench.peers.fastapi_peer.access import may
from bench.peers.fastapi_peer.database import Reading, Writing
from bench.peers.fastapi_peer.models import Event, Group, Key, now
from bench.peers.fastapi_peer.schemas import In, Out, Page

_SORT = {"id": "id", "name": "name", "position": "position", "createdAt": "created_at", "updatedAt": "updated_at"}


@dataclass(frozen=True)
class Kind:
    """A kind of node: its name in operations, its path, its model, and what is sent and answered."""

    name: str
    path: str
    model: Any
    out: type[Out]
    given: type[In] | None = None

    @property
    def tree(self) -> bool:
        """Whether it stands in a tree."""
        return hasattr(self.model, "parent_id")


def found(session: Session, kind: Kind, node: int) -> Any:
    """Read one node; 404 if there is none."""
    record = session.get(kind.model, node)
    if record is None:
        raise HTTPException(404, "INVALID_ID")
    return record


def shown(session: Session, kind: Kind, records: list[Any]) -> list[Any]:
    """Write records as they are answered."""
    if kind.tree:
        tree.set_paths(session, kind.model, records)
    return [kind.out.model_validate(record) for record in records]


def record(session: Session, kind: Kind, verb: str, key: Key, node: int, states: tuple[Any, Any]) -> None:
    """Note a change, in its own transaction."""
    before, after = (None if state is None else state.model_dump(mode="json", by_alias=True) for state in states)
    operation = f"{kind.name}.{verb}"
    session.add(
        Event(operation=operation, key_id=key.id, resource=kind.name, resource_id=node, before=before, after=after, at=now())
    )


def judge_groups(session: Session, permissions: dict[str, Any]) -> None:
    """Refuse permissions that name groups which do not exist."""
    named = {group for who in permissions.values() if who != "*" for group in who}
    if named and named - set(session.scalars(select(Group.id).where(Group.id.in_(named)))):
        raise HTTPException(400, "INVALID_GROUP")


def add_list(router: APIRouter, kind: Kind) -> None:
    """Serve pages."""
    model = kind.model

    @router.get(kind.path, dependencies=[may(f"{kind.name}.list")])
    async def list_nodes(  # one for each parameter of the contract
        session: Reading,
        page: Annotated[int, Query(ge=1)] = 1,
        perPage: Annotated[int, Query(ge=1, le=1000)] = 25,  # noqa: N803  # the contract's name
        sortBy: Literal["id", "name", "position", "createdAt", "updatedAt"] = "id",  # noqa: N803
        sortDir: Literal["asc", "desc"] = "asc",  # noqa: N803
        parentId: str | None = None,  # noqa: N803
        search: str | None = None,
    ) -> Page[kind.out]:  # type: ignore[name-defined]  # made for each kind
        where = []
        if parentId is not None and kind.tree:
            where.append(tree.under(model, None if parentId == "root" else int(parentId)))
        if search:
            where.append(model.name.icontains(search, autoescape=True))
        column = getattr(model, _SORT[sortBy])
        order = column.desc() if sortDir == "desc" else column.asc()
        total = session.scalar(select(func.count()).select_from(model).where(*where)) or 0
        rows = session.scalars(select(model).where(*where).order_by(order, model.id).limit(perPage).offset((page - 1) * perPage))
        return Page[kind.out](  # type: ignore[name-defined]
            page=page,
            per_page=perPage,
            total_results=total,
            total_pages=max(1, ceil(total / perPage)),
            results=shown(session, kind, list(rows)),
        )


def add_get(router: APIRouter, kind: Kind) -> None:
    """Serve one record."""

    @router.get(kind.path + "/{node}", dependencies=[may(f"{kind.name}.get")], response_model=kind.out)
    async def get_node(
        session: Reading, node: int, response: Response, if_none_match: Annotated[str | None, Header()] = None
    ) -> Any:
        record = found(session, kind, node)
        if if_none_match == record.etag:
            return Response(status_code=304, headers={"ETag": record.etag})
        response.headers["ETag"] = record.etag
        return shown(session, kind, [record])[0]


def add_create(router: APIRouter, kind: Kind, given: type[In]) -> None:
    """Make records."""
    model = kind.model

    @router.post(kind.path, status_code=201, response_model=kind.out)
    async def create_node(
        session: Writing,
        key: Annotated[Key, may(f"{kind.name}.create")],
        body: given,  # type: ignore[valid-type]  # made for each kind
        request: Request,
        response: Response,
    ) -> Any:
        sent = {name: value for name, value in body.sent().items() if value is not None}  # type: ignore[attr-defined]
        if "name" not in sent:
            raise HTTPException(400, "NO_TITLE")
        place, parent_id = sent.pop("position", None), sent.pop("parent_id", None)
        parent = tree.judge_parent(session, model, parent_id, None) if kind.tree else None
        judge_groups(session, sent.get("permissions", {}))
        base = parent.permissions if parent is not None else {}
        node = model(**_plain(sent) | {"permissions": base | sent.get("permissions", {})})
        tree.enter(session, model, node, parent_id, place)
        session.add(node)
        session.flush()
        after = shown(session, kind, [node])[0]
        record(session, kind, "create", key, node.id, (None, after))
        session.commit()
        response.headers["ETag"] = node.etag
        response.headers["Location"] = f"{request.url.path}/{node.id}"
        return after


def add_update(router: APIRouter, kind: Kind, given: type[In]) -> None:
    """Change and move records."""

    @router.post(kind.path + "/{node}", response_model=kind.out)
    async def update_node(
        session: Writing,
        key: Annotated[Key, may(f"{kind.name}.update")],
        node: int,
        body: given,  # type: ignore[valid-type]
        response: Response,
    ) -> Any:
        old = found(session, kind, node)
        before = shown(session, kind, [old])[0]
        sent = body.sent()  # type: ignore[attr-defined]
        if "position" in sent or "parent_id" in sent:
            own = getattr(old, "parent_id", None)
            tree.move(session, kind.model, old, sent.pop("parent_id", own), sent.pop("position", None))
        if permissions := sent.get("permissions"):
            judge_groups(session, permissions)
            sent["permissions"] = old.permissions | permissions
        for name, value in _plain(sent).items():
            setattr(old, name, value)
        if session.is_modified(old):
            old.version += 1
            old.updated_at = now()
        session.flush()
        after = shown(session, kind, [old])[0]
        if after != before:
            record(session, kind, "update", key, node, (before, after))
        session.commit()
        response.headers["ETag"] = old.etag
        return after


def add_delete(router: APIRouter, kind: Kind) -> None:
    """Delete records: alone, with all below them, or with their children moved."""
    model = kind.model

    @router.delete(kind.path + "/{node}")
    async def delete_node(
        session: Writing,
        key: Annotated[Key, may(f"{kind.name}.delete")],
        node: int,
        deleteChildrenOrMove: int | None = None,  # noqa: N803
    ) -> None:
        old = found(session, kind, node)
        if getattr(old, "built_in", False):
            raise HTTPException(403, "CANNOT_DELETE")
        before = shown(session, kind, [old])[0]
        below = tree.descendants(session, model, node) if kind.tree else []
        if below and deleteChildrenOrMove is None:
            raise HTTPException(409, "HAS_CHILDREN")
        if below and deleteChildrenOrMove == -1:
            session.execute(delete(model).where(model.id.in_(below)))
        elif below and deleteChildrenOrMove is not None:
            tree.judge_parent(session, model, deleteChildrenOrMove, node)
            for child in session.scalars(select(model).where(model.parent_id == node).order_by(model.position)):
                tree.enter(session, model, child, deleteChildrenOrMove, None)
                session.flush()
        session.delete(old)
        session.flush()
        if hasattr(model, "position"):
            tree.shift(session, model, getattr(old, "parent_id", None), old.position, -1)
        record(session, kind, "delete", key, node, (before, None))
        session.commit()


def _plain(sent: dict[str, Any]) -> dict[str, Any]:
    """Write what Pydantic has made more of as it is kept."""
    return {name: str(value) if name == "redirect_url" and value is not None else value for name, value in sent.items()}


def router_of(kind: Kind, verbs: str) -> APIRouter:
    """Return the router of a kind, with these of its operations."""
    router = APIRouter()
    if "list" in verbs:
        add_list(router, kind)
    if "get" in verbs:
        add_get(router, kind)
    if kind.given is not None:
        add_create(router, kind, kind.given)
        add_update(router, kind, kind.given)
    add_delete(router, kind)
    return router


class Refusal(BaseModel):
    """What a refused caller gets."""

    status: int
    title: str
    detail: str
