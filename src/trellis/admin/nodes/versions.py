"""Versions of nodes that forms carry, and the comparison of two versions when two administrators have changed the same node."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from trellis.admin.conflicts import VERSION, fetch_last_events
from trellis.admin.page import PageRequest
from trellis.core.actor import describe_actor
from trellis.core.nodes import NodeKind
from trellis.core.version import compute_version

_MAX_EVENTS: Final = 50
# Members of a record that change with its siblings, its ancestors, the nodes below it or the community's address.
_SET_BY_OTHERS: Final = frozenset({"position", "path", "url", "children"})
_PLACE: Final = _SET_BY_OTHERS | {"parentId", "updatedAt"}


def node_version(record: Mapping[str, Any]) -> str:
    """Return a version that stays the same when siblings shift the node, a node above it is renamed, or nodes below it change."""
    return _version(record, _SET_BY_OTHERS)


def content_version(record: Mapping[str, Any]) -> str:
    """Return the version of what a node's form shows, which stays the same when the node is moved."""
    return _version(record, _PLACE)


def _version(record: Mapping[str, Any], without: frozenset[str]) -> str:
    kept = {name: value for name, value in record.items() if name not in without}
    return compute_version(orjson.dumps(kept, option=orjson.OPT_SORT_KEYS))  # PostgreSQL reorders the members of records in events


@dataclass(frozen=True, slots=True)
class LastChange:
    """The last change of a record, by somebody else."""

    who: str
    at: str
    base: Mapping[str, Any] | None  # the record when the form was made, if it is still in the events


async def last_change(request: PageRequest, kind: NodeKind, node: int) -> LastChange | None:
    """Return who changed a record last, and its state when the sent form was rendered; None if no event is about it."""
    events = await fetch_last_events(request, kind.name, node, _MAX_EVENTS)
    if not events:
        return None
    shown = request.form.get(VERSION, "")
    states = (state for event in events for state in (event["after"], event["before"]) if state is not None)
    base = next((state for state in states if content_version(state) == shown), None)
    return LastChange(describe_actor(events[0]["actor"]), str(events[0]["at"]), base)


@dataclass(frozen=True, slots=True)
class ComparedField:
    """One field in both versions, as text. `changed_by` is "you", "them", "both" or ""."""

    label: str
    before: str | None
    theirs: str
    mine: str
    differs: bool
    changed_by: str


def compare_versions(rows: Iterable[tuple[str, str | None, str, str]]) -> list[ComparedField]:
    """Compare fields given as (label, before, theirs, mine); those in which the versions differ come first."""
    compared = [
        ComparedField(label, before, theirs, mine, theirs != mine, _changed_by(before, theirs, mine))
        for label, before, theirs, mine in rows
    ]
    return sorted(compared, key=lambda row: not row.differs)


def _changed_by(before: str | None, theirs: str, mine: str) -> str:
    if before is None or theirs == mine:
        return ""
    if before == theirs:
        return "you"
    return "them" if before == mine else "both"
