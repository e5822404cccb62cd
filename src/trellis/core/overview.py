"""The overview: how much there is, what was asked of the API in the last day, and which keys and webhooks want looking at."""

from datetime import datetime, timedelta
from typing import Any, Final

from trellis.core.fields import moment
from trellis.core.keys import written
from trellis.core.operation import Act, Operation, Outcome
from trellis.core.webhooks import written as webhook_written
from trellis.store import overview
from trellis.store.webhooks import endpoints

HOURS: Final = 24
_SOON: Final = timedelta(days=30)
_UNUSED: Final = timedelta(days=30)
_FEW: Final = 5
_CLASSES: Final = ("2xx", "3xx", "4xx", "5xx")


def operations() -> tuple[Operation, ...]:
    """Give the one operation of the overview."""
    return (
        Operation(
            "overview.get",
            "Look at everything at once",
            "Counts of nodes, requests of the last 24 hours by hour and class of status, and the keys and webhooks that want "
            "looking at.",
            _get,
        ),
    )


def _get(act: Act) -> Outcome:
    act.given.demand()
    now = datetime.fromisoformat(act.now)
    counted = overview.totals(act.tx)
    expiring, soon = overview.expiring(act.tx, act.now, moment(now + _SOON), _FEW)
    idle, unused = overview.unused(act.tx, act.now, moment(now - _UNUSED), _FEW)
    failing = endpoints.failing(act.tx)
    return Outcome(
        {
            "nodes": {kind.name: counted.get(kind.name, 0) for kind in act.world.kinds},
            "hours": _hours(act, now),
            "keys": overview.keys_in_use(act.tx, act.now),
            "expiring": {"count": expiring, "keys": [written(key, act.now) for key in soon]},
            "unused": {"count": idle, "keys": [written(key, act.now) for key in unused]},
            "webhooks": endpoints.count(act.tx),
            "failing": {"count": len(failing), "webhooks": [webhook_written(one, act.now) for one in failing[:_FEW]]},
        }
    )


def _hours(act: Act, now: datetime) -> list[dict[str, Any]]:
    """Count the requests of each of the last hours, this one included, by class of status."""
    first = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=HOURS - 1)
    counted = overview.requests_by_hour(act.tx, moment(first))
    hours = [moment(first + timedelta(hours=number)) for number in range(HOURS)]
    return [{"at": hour, **{name: counted.get((hour[:13], int(name[0])), 0) for name in _CLASSES}} for hour in hours]
