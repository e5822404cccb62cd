"""The activity of a key, day by day: changes from the event log, proposals, and refused requests from the request log."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

from starlette.responses import Response

from trellis.admin.page import Page, PageRequest
from trellis.admin.times import Clock
from trellis.core.fields import isolate, parse_whole_number
from trellis.core.requests import CLASSES
from trellis.sentences import say

_HERE: Final = "/keys/{id:int}/activity"
_ROWS: Final = 50  # per page
_END: Final = "end"  # the cursor of a source that has no more entries


@dataclass(frozen=True, slots=True)
class ActivityEntry:
    """Something that a key did or tried: the source that lists it, its time, and the cursor from which the next entry is read."""

    source: str
    at: str
    cursor: str
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Part:
    """Entries of one source, the newest first. `next` is the cursor for the entries that follow.

    `searched_to` is the time back to which the source was searched, if the search took so long that it stopped before the page was
    full; otherwise "".
    """

    entries: Sequence[ActivityEntry]
    next: str
    searched_to: str = ""


@dataclass(frozen=True, slots=True)
class Day:
    """One day: its entries, how many requests the key made (None if unknown), and how many of these were refused."""

    date: str
    entries: Sequence[ActivityEntry]
    requests: int | None
    refused: int


async def _read_events(request: PageRequest, key: int, cursor: str) -> Part:
    raw = {"actorType": "key", "actorId": key, "limit": _ROWS} | ({"before": cursor} if cursor else {})
    found = await request.fetch("events.search", raw, slow=True)
    entries = [ActivityEntry("did", one["at"], str(one["seq"]), one) for one in found["results"]]
    if found["next"] is None:
        return Part(entries, _END)
    return Part(entries, str(found["next"]), found["searchedTo"] or "")


async def _read_refusals(request: PageRequest, key: int, cursor: str) -> Part:
    raw = {"key": key, "status": "4xx", "limit": _ROWS} | ({"before": cursor} if cursor else {})
    found = await request.fetch("requests.list", raw, slow=True)
    entries = [ActivityEntry("refused", one["at"], f"{one['at']}_{one['id']}", one) for one in found["results"]]
    return Part(entries, found["next"] or _END, found["searchedTo"] or "")


async def _read_proposals(request: PageRequest, key: int, cursor: str) -> Part:
    """Read proposals. The cursor is the number of newer proposals; there may be more of them when the next page is requested."""
    first = max(0, parse_whole_number(cursor) or 0)
    found: list[ActivityEntry] = []
    for page in (first // _ROWS + 1, first // _ROWS + 2):
        listed = await request.fetch("proposals.list", {"keyId": key, "page": page, "perPage": _ROWS})
        numbered = enumerate(listed["results"], (page - 1) * _ROWS + 1)
        found += [ActivityEntry("proposed", one["createdAt"], str(number), one) for number, one in numbered if number > first]
        if page >= listed["totalPages"]:
            return Part(found[:_ROWS], _END if len(found) <= _ROWS else found[_ROWS - 1].cursor)
    return Part(found[:_ROWS], str(first + _ROWS))


Read = Callable[[PageRequest, int, str], Awaitable[Part]]
SOURCES: Final[Mapping[str, Read]] = MappingProxyType({"did": _read_events, "proposed": _read_proposals, "refused": _read_refusals})


async def show(request: PageRequest) -> Response:
    """Show one page of the activity."""
    key = await request.fetch("keys.get", target=request.number("id"))
    cursors = {name: request.query.get(name, "") for name in SOURCES}
    parts = {name: await read(request, key["id"], cursors[name]) for name, read in SOURCES.items() if cursors[name] != _END}
    entries, reached = merge(parts)
    summary = await request.fetch("requests.summary", {"key": key["id"], "zone": request.clock.name}, slow=True)
    further = {name: _move_cursor(cursors[name], parts.get(name), entries) for name in SOURCES}
    return request.page(
        "keys/activity.html",
        title=say("Activity of {name}", name=isolate(key["name"])),
        key=key,
        days=_group(entries, summary["days"], request.clock),
        older=further if any(cursor != _END for cursor in further.values()) else None,
        is_newest=not any(cursors.values()),
        reached=request.clock.short(reached) if reached else "",
    )


def merge(parts: Mapping[str, Part]) -> tuple[list[ActivityEntry], str]:
    """Merge the sources: return the newest entries, at most a page, and the time back to which all sources were searched.

    The time is "" if the page is full or no search stopped early. Entries that are older than this time are left for the next page,
    since a source may have entries in between that were not found yet.
    """
    reached = max((part.searched_to for part in parts.values()), default="")
    found = [entry for part in parts.values() for entry in part.entries if entry.at >= reached]
    found.sort(key=lambda entry: entry.at, reverse=True)
    return found[:_ROWS], reached if len(found) <= _ROWS else ""


def _move_cursor(cursor: str, part: Part | None, shown: Sequence[ActivityEntry]) -> str:
    """Return the cursor of a source for the next page."""
    if part is None:
        return _END
    last = next((entry for entry in reversed(shown) if entry in part.entries), None)
    if not part.entries or last is part.entries[-1]:
        return part.next
    return cursor if last is None else last.cursor


def _group(entries: Sequence[ActivityEntry], counted: Sequence[Mapping[str, Any]], clock: Clock) -> list[Day]:
    counts = {clock.day(one["at"]): (sum(one[name] for name in CLASSES), one["4xx"]) for one in counted}
    return [
        Day(clock.language.long_date(datetime.fromisoformat(date)), tuple(group), *counts.get(date, (None, 0)))
        for date, group in groupby(entries, lambda entry: clock.day(entry.at))
    ]


PAGES: Final = (Page("GET", _HERE, show, "keys", needs=("keys.get", "requests.list")),)
