"""The overview: the size of the community, the API requests of the last day, and keys and webhooks that need attention."""

from datetime import datetime, timedelta
from typing import Any, Final

from trellis.core.fields import format_timestamp
from trellis.core.keys import serialize_key
from trellis.core.operation import Context, Operation, Outcome
from trellis.core.webhooks import serialize_webhook as webhook_written
from trellis.store import overview
from trellis.store.webhooks import endpoints

HOURS: Final = 24
_SOON: Final = timedelta(days=30)
_UNUSED: Final = timedelta(days=30)
_FEW: Final = 5
_SHOWS: Final = {  # what a member shows of, if not of nodes: an actor who may not read that gets null
    "hours": "requests.summary",
    "keys": "keys.list",
    "expiring": "keys.list",
    "unused": "keys.list",
    "webhooks": "webhooks.list",
    "failing": "webhooks.list",
}
_CLASSES: Final = ("2xx", "3xx", "4xx", "5xx")


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
    context.input.raise_faults()
    now = datetime.fromisoformat(context.now)
    actor, counted = context.call.actor, overview.count_nodes(context.tx)
    expiring, soon = overview.find_expiring_keys(context.tx, context.now, format_timestamp(now + _SOON), _FEW)
    idle, unused = overview.find_unused_keys(context.tx, context.now, format_timestamp(now - _UNUSED), _FEW)
    failing = endpoints.list_failing(context.tx)
    found: dict[str, Any] = {
        "nodes": {kind.name: counted.get(kind.name, 0) for kind in context.environment.kinds if actor.sees(kind.name)},
        "hours": _requests_by_hour(context, now),
        "keys": overview.count_active_keys(context.tx, context.now),
        "expiring": {"count": expiring, "keys": [serialize_key(key, context.now) for key in soon]},
        "unused": {"count": idle, "keys": [serialize_key(key, context.now) for key in unused]},
        "webhooks": endpoints.count(context.tx),
        "failing": {"count": len(failing), "webhooks": [webhook_written(one, context.now) for one in failing[:_FEW]]},
    }
    return Outcome({name: None if _SHOWS.get(name, "") and not actor.may(_SHOWS[name]) else one for name, one in found.items()})


def _requests_by_hour(context: Context, now: datetime) -> list[dict[str, Any]]:
    """Count the requests of each of the last hours, including the current one, by class of status."""
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    counted = overview.count_requests_by_hour(context.tx, format_timestamp(first))
    hours = [format_timestamp(first + timedelta(hours=number)) for number in range(HOURS)]
    return [{"at": hour, **{name: counted.get((hour[:13], int(name[0])), 0) for name in _CLASSES}} for hour in hours]
