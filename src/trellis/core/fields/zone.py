"""Time zones: their names, and the days that begin at midnight in one of them."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from trellis.core.fields.type import Invalid, quote
from trellis.sentences import say

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

PLAIN_ZONE: Final = "UTC"


@dataclass(frozen=True, slots=True)
class ZoneName:
    """The name of a time zone, such as Europe/Berlin."""

    widget: str = "select"

    def parse(self, raw: Any) -> str:
        if find_zone(raw) is None:
            raise Invalid(say("must be the name of a time zone, such as Europe/Berlin or UTC, not {raw}.", raw=quote(raw)))
        return str(raw)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "examples": ["Europe/Berlin"]}


@cache
def list_zones() -> tuple[str, ...]:
    """Return the names of all time zones, sorted. They come from the package tzdata, so that they are the same everywhere."""
    return tuple(sorted((files("tzdata") / "zones").read_text("utf-8").split()))


def find_zone(name: Any) -> "ZoneInfo | None":
    """Return the time zone with a name; None if there is none."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415  # start-up time: few commands know of time zones

    return ZoneInfo(name) if name in list_zones() else None


def find_midnights(now: str, zone: "ZoneInfo", days: int) -> list[datetime]:
    """Return when each of the last days began in a time zone, and when today ends: one time more than there are days, in UTC.

    A day on which the clocks change has 23 or 25 hours. A day on which they skip midnight begins at its first moment.
    """
    today = datetime.fromisoformat(now).astimezone(zone).date()
    return [_midnight(today - timedelta(days=back), zone) for back in range(days - 1, -2, -1)]


def _midnight(day: date, zone: "ZoneInfo") -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)
