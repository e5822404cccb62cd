"""What webhooks subscribe to: patterns over types of events, and alarms, which are never meant unless they are named."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

EVERYTHING: Final = "*"
ALARM: Final = "alarm"  # what the types of alarms begin with: `alarm.new_key`


def is_subscribed(patterns: Iterable[str], event_type: str) -> bool:
    """Return whether one of these patterns covers an event. `*` covers no alarm: these tell of people and how they sign in."""
    wide = {f"{event_type.partition('.')[0]}.*", event_type} | (set() if is_alarm(event_type) else {EVERYTHING})
    return any(pattern in wide for pattern in patterns)


def is_alarm(event_type: str) -> bool:
    """Return whether a type is that of an alarm, or a pattern over such."""
    return event_type.partition(".")[0] == ALARM


def find_alarm_patterns(patterns: Iterable[str]) -> frozenset[str]:
    """Return those of some patterns that cover alarms."""
    return frozenset(filter(is_alarm, patterns))


def is_webhook_widened(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a change of a webhook sends its events elsewhere, or more of them."""
    return after["url"] != before["url"] or not all(is_subscribed(before["events"], pattern) for pattern in after["events"])


def event_patterns(types: Iterable[str]) -> tuple[str, ...]:
    """Return everything that an endpoint can subscribe to: each event, all events of a resource, and all events."""
    types = tuple(types)
    return (EVERYTHING, *dict.fromkeys(f"{name.partition('.')[0]}.*" for name in types), *types)
