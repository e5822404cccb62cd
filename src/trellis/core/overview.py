"""The overview: the size of the community, the API requests of the last day, and keys and webhooks that need attention."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from trellis.core.fields import format_timestamp, shift_timestamp
from trellis.core.keys import serialize_key
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.requests import CLASSES
from trellis.core.webhooks import serialize_webhook
from trellis.store import keys, last_runs, requests
from trellis.store.counters import read_counters
from trellis.store.webhooks import endpoints
from trellis.timestamps import MOST_AHEAD

HOURS: Final = 24
_SOON: Final = timedelta(days=30)
_UNUSED: Final = timedelta(days=30)
_BRIEF: Final = timedelta(hours=1)  # a key made less than this ago that ends in less than this, to try something, needs no reminder
_FEW: Final = 5
_OLDEST_BACKUP: Final = timedelta(days=7)


def operations() -> tuple[Operation, ...]:
    """Return the operation of the overview."""
    return (
        Operation(
            "overview.get",
            "Get an overview",
            "Returns the numbers of nodes, the requests of the last 24 hours by hour and class of status, and the keys and "
            "webhooks that need attention.",
            _get,
        ),
    )


def _get(context: Context) -> Outcome:
    may = context.call.actor.may
    return Outcome(
        {"nodes": _count_nodes(context)}
        | {member: find(context) if may(operation) else None for member, (operation, find) in _MEMBERS.items()}
    )


def _count_nodes(context: Context) -> dict[str, int]:
    totals = {name: total for name, (_, total) in read_counters(context.tx).items()}
    return {kind.name: totals.get(kind.name, 0) for kind in context.environment.kinds if context.call.actor.sees(kind.name)}


def _requests_by_hour(context: Context) -> list[dict[str, Any]]:
    """Count the requests of each of the last hours, including the current one, by class of status."""
    first = datetime.fromisoformat(context.now).replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    counted = requests.count_by_hour(context.tx, format_timestamp(first))
    hours = [format_timestamp(first + timedelta(hours=number)) for number in range(HOURS)]
    return [{"at": hour, **{name: counted.get((hour[:13], int(name[0])), 0) for name in CLASSES}} for hour in hours]


def _find_expiring(context: Context) -> dict[str, Any]:
    soon = shift_timestamp(context.now, _SOON)
    brief = shift_timestamp(context.now, -_BRIEF), shift_timestamp(context.now, _BRIEF)
    count, found, left_out = keys.find_expiring(context.tx, context.now, soon, _FEW, brief=brief)
    return {"count": count, "keys": [serialize_key(key, context.now) for key in found], "brief": left_out}


def _find_unused(context: Context) -> dict[str, Any]:
    since = shift_timestamp(context.now, -_UNUSED)
    count, found = keys.find_unused(context.tx, context.now, since, _FEW)
    return {"count": count, "keys": [serialize_key(key, context.now) for key in found]}


def _find_failing(context: Context) -> dict[str, Any]:
    found = endpoints.list_failing(context.tx)
    return {"count": len(found), "webhooks": [serialize_webhook(one, context.now) for one in found[:_FEW]]}


def _find_backup(context: Context) -> dict[str, Any]:
    """Return when `trellis backup` last copied the database; null if it never has."""
    last = last_runs.find(context.tx, last_runs.BACKUP)
    return {"at": None if last is None else format_timestamp(datetime.fromtimestamp(last / 1000, UTC))}


def is_recent_backup(made: datetime, now: datetime) -> bool:
    """Return whether a backup is recent enough not to need attention. One from the future was made while the clock was ahead."""
    return -MOST_AHEAD <= now - made <= _OLDEST_BACKUP


# Each member except `nodes`: the operation that shows it (an actor who may not run that gets null), and the function that finds it.
_MEMBERS: Final[Mapping[str, tuple[str, Callable[[Context], Any]]]] = {
    "hours": ("requests.summary", _requests_by_hour),
    "keys": ("keys.list", lambda context: keys.count_active(context.tx, context.now)),
    "expiring": ("keys.list", _find_expiring),
    "unused": ("keys.list", _find_unused),
    "webhooks": ("webhooks.list", lambda context: endpoints.count(context.tx)),
    "failing": ("webhooks.list", _find_failing),
    "backup": ("check.list", _find_backup),
}
