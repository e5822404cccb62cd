"""Patterns over the types of events that webhooks subscribe to. Alarms are only covered by patterns that name them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

EVERYTHING: Final = "*"
ALARM: Final = "alarm"  # the first part of the types of alarms: `alarm.new_key`


def is_subscribed(patterns: Iterable[str], event_type: str) -> bool:
    """Return whether one of these patterns covers an event. `*` covers no alarms: these are about people and their sign-ins."""
    wide = {f"{event_type.partition('.')[0]}.*", event_type} | (set() if is_alarm(event_type) else {EVERYTHING})
    return any(pattern in wide for pattern in patterns)


def is_alarm(event_type: str) -> bool:
    """Return whether a type is that of an alarm, or a pattern over types of alarms."""
    return event_type.partition(".")[0] == ALARM


def find_alarm_patterns(patterns: Iterable[str]) -> frozenset[str]:
    """Return the patterns that cover alarms."""
    return frozenset(filter(is_alarm, patterns))


def is_webhook_widened(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a change makes a webhook send its events elsewhere, or send more of them."""
    return after["url"] != before["url"] or not all(is_subscribed(before["events"], pattern) for pattern in after["events"])


def event_patterns(types: Iterable[str]) -> tuple[str, ...]:
    """Return everything that an endpoint can subscribe to: each event, all events of a resource, and all events."""
    types = tuple(types)
    return (EVERYTHING, *dict.fromkeys(f"{name.partition('.')[0]}.*" for name in types), *types)
