"""Subscriptions: the patterns that a webhook can subscribe to, and the events that each covers."""

from trellis.core.subscriptions.patterns import (
    ALARM,
    EVERYTHING,
    event_patterns,
    find_alarm_patterns,
    is_alarm,
    is_subscribed,
    is_webhook_widened,
)
