"""The request log for administrators: search, one request with its event, and the usage of a key."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Final
from zoneinfo import ZoneInfo

from trellis.core.events import LONGEST_DELAY, list_caused, may_be_purged
from trellis.core.fields import (
    PLAIN_ZONE,
    Choice,
    Field,
    Ids,
    Integer,
    Invalid,
    IpAddress,
    Text,
    Timestamp,
    Type,
    ZoneName,
    find_midnights,
    find_zone,
    format_timestamp,
    quote,
    require_found,
    shift_timestamp,
)
from trellis.core.keys import find_key
from trellis.core.networks import find_network
from trellis.core.operation import Context, Operation, Outcome
from trellis.sentences import say
from trellis.store import events, requests
from trellis.store.keys import Key
from trellis.store.requests import LoggedRequest, LogPosition, Request

DAYS: Final = 30
_MOST_CHANGES: Final = 500  # of a key, which are read to tell what it could do in these days
CLASSES: Final = ("2xx", "3xx", "4xx", "5xx")
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True, slots=True)
class Status(Type):
    """An HTTP status such as 404, or a class such as 4xx."""

    def parse(self, raw: Any) -> str | None:
        text = str(raw if raw is not None else "").strip().lower()
        if not text:
            return None
        if text in CLASSES or (len(text) == 3 and text.isdecimal() and text.isascii() and 100 <= int(text) <= 599):
            return text
        raise Invalid(say("must be a status such as 404, or 2xx, 3xx, 4xx or 5xx, not {raw}.", raw=quote(raw)))

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"], "examples": ["404", "4xx"]}


@dataclass(frozen=True, slots=True)
class LogCursor:
    """A position in the log: the `next` of a previous list."""

    widget: str = "hidden"

    def parse(self, raw: Any) -> LogPosition | None:
        if raw in (None, ""):
            return None
        at, _, number = str(raw).rpartition("_")
        if not number.isdecimal() or not number.isascii() or len(number) > 18:
            raise Invalid(say("must be the `next` of a previous list, not {raw}.", raw=quote(raw)))
        return Timestamp().parse(at) or "", int(number)

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "null"]}


FILTERS: Final = (
    Field("key", Integer(0, nullable=True), "Only requests with the key of this id; 0 means requests whose key is not known."),
    Field("operation", Text(100), "Only requests for this operation."),
    Field("method", Choice({name: f"Only {name}." for name in METHODS}), "Only requests with this method."),
    Field("status", Status(), "Only requests with this status or class of statuses: 404, 4xx."),
    Field("path", Text(200), "Only requests whose path contains this text."),
    Field("address", IpAddress(), "Only requests from this address."),
    Field("from", Timestamp(nullable=True), "Only requests at or after this time."),
    Field("to", Timestamp(nullable=True), "Only requests before this time."),
    Field("slower", Integer(0, 3_600_000, nullable=True), "Only requests that took at least this many milliseconds."),
)
_LIMIT: Final = Field("limit", Integer(1, 500), "The number of requests at most.", default=50)
_PAGE: Final = (
    _LIMIT,
    Field("before", LogCursor(), "Where to continue: the `next` of the previous list."),
)


_KEYLESS: Final = (
    *(field for field in FILTERS if field.name in {"address", "from", "to"}),
    replace(_LIMIT, doc="How many at most."),
)
_KEY: Final = Field("key", Integer(1), "The key's id.", required=True)
_KEYS: Final = Field("keys", Ids(), "The ids of the keys.", required=True, example=[1, 2])
_ZONE: Final = Field("zone", ZoneName(), "The time zone at whose midnights the days begin.", default=PLAIN_ZONE)
_DAYS: Final = Field("days", Integer(1, DAYS), "How many days, including today.", default=14)


def operations() -> tuple[Operation, ...]:
    """Return the operations of the request log, all for the panel and the terminal."""
    return (
        Operation(
            "requests.list",
            "Search the request log",
            "Returns requests to the API, newest first. A search that would take too long ends early and says where to continue.",
            _list,
            FILTERS + _PAGE,
        ),
        Operation(
            "requests.keyless",
            "Count requests without a key",
            "Returns how many requests without a valid key came from each address in each minute, newest first. The request "
            "log has only a few of them, as examples. Addresses beyond the first hundred of a minute are counted as `others`.",
            _keyless,
            _KEYLESS,
        ),
        Operation("requests.get", "Get a logged request", "Returns a request and the event that it caused.", _get, has_target=True),
        Operation(
            "requests.summary",
            "Summarise a key's requests",
            f"Returns the requests of a key by day and by operation, and the grants that it has not used for {DAYS} days.",
            _summary,
            (_KEY, _ZONE),
        ),
        Operation(
            "requests.daily",
            "Count requests by key and day",
            "Returns the number of requests of each key on each of the last days, the oldest first, including today.",
            _daily,
            (_KEYS, _DAYS, _ZONE),
        ),
    )


_SAME: Final = ("operation", "method", "path", "address")


def _list(context: Context) -> Outcome:
    given = context.input
    filters: dict[str, Any] = {name: given.get(name) for name in _SAME if given.get(name)}
    if given.get("key") is not None:
        filters["key_id"] = given.get("key")
    if status := given.get("status"):
        filters |= {"status_class": int(status[0])} if status.endswith("xx") else {"status": int(status)}
    if given.get("slower"):
        filters["slower"] = given.get("slower") * 1000
    filters |= {ours: given.get(name) for name, ours in (("from", "since"), ("to", "until")) if given.get(name)}
    result = requests.search(context.tx, filters, given.get(_LIMIT.name, _LIMIT.default), given.get("before"))
    return Outcome(
        {
            "results": [serialize_request(one) for one in result.found],
            "next": f"{result.next[0]}_{result.next[1]}" if result.next else None,
            "searchedTo": result.next[0] if result.next and not result.complete else None,
            "about": requests.estimate_count(context.tx),
        }
    )


def serialize_request(logged: LoggedRequest) -> dict[str, Any]:
    """Serialise a request, with its duration in milliseconds."""
    request = logged.request
    return {
        "id": logged.id,
        "at": request.at,
        "method": request.method,
        "path": request.path,
        "operation": request.operation,
        "keyId": request.key_id,
        "address": request.address,
        "status": request.status,
        "duration": request.duration / 1000,
        "requestId": request.request_id,
        "error": request.error,
    }


def _keyless(context: Context) -> Outcome:
    given = context.input
    address = given.get("address")
    network = find_network(address) if address else None
    counted = requests.search_keyless(
        context.tx, network, given.get("from"), given.get("to"), given.get(_LIMIT.name, _LIMIT.default)
    )
    return Outcome(
        {"results": [one._asdict() | {"minute": f"{one.minute}:00.000Z", "error": one.error or None} for one in counted]}
    )


def _get(context: Context) -> Outcome:
    target = context.call.target
    logged = require_found(requests.find(context.tx, target or 0), say("request"), target, "1T107/1")
    return Outcome(serialize_request(logged) | {"event": _find_event(context, logged.request)})


def _find_event(context: Context, request: Request) -> int | None:
    """Return the number of the event that a request caused, the first if there are several; None if there is none."""
    operations = context.environment.operations
    operation = operations.get(request.operation or "")
    if operation is None or request.key_id is None or request.status >= 400:
        return None
    caused = list_caused(operation, operations.values())
    until = shift_timestamp(request.at, timedelta(microseconds=request.duration) + LONGEST_DELAY)
    return events.find_by_request(context.tx, caused, request.key_id, request.request_id, (request.at, until))


# --- the usage of a key -------------------------------------------------------------------------------------------


def _summary(context: Context) -> Outcome:
    key = find_key(context, context.input.get("key"))
    begins = _find_days(context, DAYS)
    counted = _count_by_day(context, [key.id], begins)
    used = requests.count_uses(context.tx, key.id)
    grants = _Grants(context, used)
    return Outcome(
        {
            "days": [
                {
                    "at": format_timestamp(begin),
                    "to": format_timestamp(begins[day + 1]),
                    **{name: counted[key.id, day, int(name[0])] for name in CLASSES},
                }
                for day, begin in enumerate(begins[:-1])
            ],
            "operations": [
                {"operation": u.operation, "times": u.times, "lastAt": u.last_at, "refused": u.refused, "refusedAt": u.refused_at}
                for u in used
            ],
            "lastUses": grants.last_uses,
            "unused": _find_unused(context, key, grants),
        }
    )


def _daily(context: Context) -> Outcome:
    given = context.input
    begins = _find_days(context, given.get(_DAYS.name, _DAYS.default))
    counted = _count_by_day(context, given.get("keys"), begins)
    days = range(len(begins) - 1)
    return Outcome({key: [sum(counted[key, day, int(name[0])] for name in CLASSES) for day in days] for key in given.get("keys")})


def _find_days(context: Context, days: int) -> list[datetime]:
    zone = find_zone(context.input.get(_ZONE.name, _ZONE.default)) or ZoneInfo(PLAIN_ZONE)
    return find_midnights(context.now, zone, days)


def _count_by_day(context: Context, keys: Sequence[int], begins: Sequence[datetime]) -> Counter[tuple[int, int, int]]:
    """Count the requests of keys: (key, number of the day, first digit of the status) → number."""
    starts = [f"{begin:%Y-%m-%dT%H:%M}" for begin in begins]
    counted = Counter[tuple[int, int, int]]()
    for key, quarter, digit, times in requests.read_quarters(context.tx, keys, starts[0]):
        counted[key, bisect_right(starts, quarter) - 1, digit] += times
    return counted


class _Grants:
    """The uses of a key's grants. `last_uses` maps each grant to the time of its last use, as far as that is known."""

    def __init__(self, context: Context, used: Sequence[requests.OperationUse]) -> None:
        self._known = context.environment.operations
        self._used = [(use.operation, use.last_at) for use in used if use.last_at]
        self.last_uses: dict[str, str] = {}
        for name, at in self._used:
            for grant in self._list_needed(name):
                self.last_uses[grant] = max(at, self.last_uses.get(grant, ""))

    def _list_needed(self, name: str) -> tuple[str, ...]:
        operation = self._known.get(name)
        return (name,) if operation is None else operation.needed

    def list_used(self, since: str) -> list[str]:
        """Return the grants that were used since a time, and patterns of grants that may have been used, for example by a batch."""
        used = [name for name, at in self._used if at >= since]
        accesses = [self._known[name].access for name in used if name in self._known]
        return [grant for name in used for grant in self._list_needed(name)] + [
            may for one in accesses for may in one.runs + one.uses
        ]


def _find_unused(context: Context, key: Key, grants: _Grants) -> list[str] | None:
    """Return the grants that a key has had for DAYS and cannot have used.

    None if its requests were not logged all the time, or if not all changes of the key since then can be read.
    """
    since = shift_timestamp(context.now, -timedelta(days=DAYS))
    held, logged = set(key.grants), key.log_requests
    changes = events.search(context.tx, {"resource": "keys", "resource_id": key.id, "since": since}, _MOST_CHANGES)
    if changes.next is not None or may_be_purged(context, since):
        return None
    for event in changes.found:
        before = event.before or {"grants": [], "logRequests": True}
        held &= set(before["grants"])
        logged = logged and before["logRequests"]
    used = grants.list_used(since)
    return sorted(name for name in held if not any(fnmatchcase(name, one) for one in used)) if logged else None
