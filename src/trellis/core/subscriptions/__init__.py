"""Subscriptions: what a webhook can name, and what it gets by it."""

from trellis.core.subscriptions.patterns import (
    ALARM,
    EVERYTHING,
    event_patterns,
    find_alarm_patterns,
    is_alarm,
    is_subscribed,
    is_webhook_widened,
)

__all__ = [
    "ALARM",
    "EVERYTHING",
    "event_patterns",
    "find_alarm_patterns",
    "is_alarm",
    "is_subscribed",
    "is_webhook_widened",
]
