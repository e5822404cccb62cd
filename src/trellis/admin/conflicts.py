"""Two administrators at one record: noticing that it has changed since a page showed it, and telling both versions apart."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from trellis.admin.page import Visit
from trellis.core.gate import Result
from trellis.core.nodes import NodeKind
from trellis.core.version import compute_version, encode_json
from trellis.errors import Refused

SEEN: Final = "_seen"  # the name under which a form carries what it was made from
_TRIES: Final = 5
_EVENTS: Final = 50
# What the siblings, the ancestors and the community's address change in a record.
_OTHERS: Final = frozenset({"position", "path", "url"})
_PLACE: Final = _OTHERS | {"parentId", "updatedAt"}


def whole(record: Mapping[str, Any]) -> str:
    """Give the version that If-Match takes."""
    return compute_version(encode_json(record))


def own(record: Mapping[str, Any]) -> str:
    """Give the version of what is a node's own: a shift among its siblings or another name above it makes no new one."""
    return _version(record, _OTHERS)


def content(record: Mapping[str, Any]) -> str:
    """Give the version of what a node's form shows: moving it makes no new one."""
    return _version(record, _PLACE)


def _version(record: Mapping[str, Any], without: frozenset[str]) -> str:
    kept = {name: value for name, value in record.items() if name not in without}
    return compute_version(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS))  # PostgreSQL gives what an event keeps in its own order


class Conflict(Exception):
    """The record is not the one that the page showed; `theirs` is how it is now."""

    def __init__(self, theirs: Mapping[str, Any]) -> None:
        super().__init__()
        self.theirs = theirs


async def guarded(visit: Visit, kind: NodeKind, node: int, raw: Mapping[str, Any], *, place: bool = False) -> Result:
    """Update a node if what the form showed of it still holds; raises Conflict otherwise, and Refused.

    `place` is for a form that moves: it wants nothing of the node itself to have changed. What the form did not show may
    change meanwhile: then the update is tried again on the newest version.
    """
    visit.demand_fresh()
    seen = visit.form.get(SEEN, "")
    for _ in range(_TRIES):
        record = (await visit.perform(kind.operation("get"), target=node)).value
        if seen != (own(record) if place else content(record)):
            raise Conflict(record)
        try:
            return await visit.perform(kind.operation("update"), raw, node, expected=(whole(record),))
        except Refused as refused:
            if refused.status != 412:
                raise
    raise Refused("BUSY", "Others change this record all the time. Nothing was saved: send it again.")


@dataclass(frozen=True, slots=True)
class Change:
    """Somebody's last change of a record."""

    who: str
    at: str
    base: Mapping[str, Any] | None  # how the record was when the form was made, if the events still tell


async def last_change(visit: Visit, kind: NodeKind, node: int) -> Change | None:
    """Say who changed a record last, and how it was when the form that was sent was made."""
    asked = {"resource": kind.name, "resourceId": node, "order": "newest", "limit": _EVENTS}
    events = (await visit.perform("events.list", asked)).value["results"]
    if not events:
        return None
    seen = visit.form.get(SEEN, "")
    states = (state for event in events for state in (event["after"], event["before"]) if state is not None)
    base = next((state for state in states if content(state) == seen), None)
    return Change(str(events[0]["actor"]["name"]), str(events[0]["at"]), base)


@dataclass(frozen=True, slots=True)
class Row:
    """One field in both versions, in words. `mine` says that it differs from theirs; `touched` who changed it."""

    label: str
    was: str | None
    theirs: str
    mine: str
    differs: bool
    touched: str


def compare(rows: Iterable[tuple[str, str | None, str, str]]) -> list[Row]:
    """Put fields as (label, was, theirs, mine) side by side; those in which the versions differ come first."""
    compared = [Row(label, was, theirs, mine, theirs != mine, _touched(was, theirs, mine)) for label, was, theirs, mine in rows]
    return sorted(compared, key=lambda row: not row.differs)


def _touched(was: str | None, theirs: str, mine: str) -> str:
    if was is None or theirs == mine:
        return ""
    if was == theirs:
        return "you"
    return "them" if was == mine else "both"
