"""Retries: when a message is tried again, and how long an endpoint that seems to be down is paused."""

import random
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from trellis.core.fields import shift_timestamp
from trellis.sentences import say
from trellis.store.webhooks import Delivery, Webhook, reasons
from trellis.timestamps import CLOCKS_DIFFER

_MINUTE: Final = 60
_HOUR: Final = 3600
# The delay of each attempt after the previous one, as Standard Webhooks recommends.
DELAYS: Final = (0, 5, 5 * _MINUTE, 30 * _MINUTE, *(hours * _HOUR for hours in (2, 5, 10, 14, 20, 24)))
MOST_TRIALS: Final = 4  # early attempts by which one message may delay later messages
MOST_EARLY: Final = 8  # early attempts of one message in total
_WEEK: Final = 7 * 24 * _HOUR
_UNTRIED: Final = 30 * _HOUR  # longer than the wait for any retry, so the service did not run, or there was nothing to send
_JITTER: Final = 0.1
_FIRST_PAUSE: Final = 5
_LONGEST_PAUSE: Final = _MINUTE
_NOBODY_THERE: Final = frozenset({None, 408, 425, 429, 502, 503, 504})
_GONE: Final = 410


class AttemptResult(NamedTuple):
    """The outcome of an attempt. `duration` is in milliseconds, `retry_after` in seconds, as the endpoint requested.

    `reached` is False if there was not even a connection, so the message cannot be the cause. `unsendable` means that the message
    was not sent and cannot be sent later either.
    """

    duration: int
    status: int | None = None
    error: str | None = None
    answer: str | None = None
    retry_after: float = 0.0
    reached: bool = True
    unsendable: bool = False

    @property
    def delivered(self) -> bool:
        """Whether the response was a success and complete."""
        return self.error is None and self.status is not None and 200 <= self.status < 300


def retry_delay(attempts: int) -> float | None:
    """Return the seconds until the next attempt after so many scheduled attempts; None if that was the last one."""
    return None if attempts >= len(DELAYS) else DELAYS[attempts] * random.uniform(1, 1 + _JITTER)  # noqa: S311  # jitter, not a secret


def pause_length(failures: int, status: int | None) -> float:
    """Return the seconds to pause an endpoint after this many failures in a row, the last with this status.

    An endpoint that cannot be reached is paused at once. An endpoint that responds may have failed only on this message, so it is
    paused only after several failures in a row.
    """
    tolerated = 0 if status in _NOBODY_THERE else 2 if status is not None and status >= 500 else 9
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures - tolerated - 1, 8)) if failures > tolerated else 0


def clock_limit(now: str) -> str:
    """Return the latest plausible time of an attempt; later ones come from a clock that has been set back since."""
    return shift_timestamp(now, CLOCKS_DIFFER)


def is_paused(webhook: Webhook, now: str) -> bool:
    """Return whether an endpoint is paused. A pause that began in the future is over: the clock has been set back."""
    if webhook.paused_until is None or webhook.paused_until <= now:
        return False
    return webhook.attempted_at is not None and webhook.attempted_at <= clock_limit(now)


def update_delivery(delivery: Delivery, result: AttemptResult, at: str, done: str) -> None:
    """Schedule the next attempt of a message, if any, after an attempt that began and ended at these times."""
    set_back = delivery.attempted_at is not None and delivery.attempted_at > clock_limit(at)
    early = delivery.scheduled_attempts > 0 and delivery.due_at is not None and delivery.due_at > at and not set_back
    delivery.attempted_at = at
    if result.delivered or result.unsendable:
        delivery.state, delivery.due_at = "delivered" if result.delivered else "failed", None
        return
    if early:
        delivery.early_attempts += result.reached  # without a connection, the message is not the cause
        return
    delivery.scheduled_attempts += 1
    wait = retry_delay(delivery.scheduled_attempts)
    if wait is None:
        delivery.state, delivery.due_at = "failed", None
    else:
        delivery.due_at = shift_timestamp(done, timedelta(seconds=max(wait, result.retry_after)))


def update_endpoint(webhook: Webhook, delivery: Delivery, result: AttemptResult, at: str, done: str) -> str | None:
    """Update the state of an endpoint after an attempt; return the reason to switch it off, if there is one."""
    idle = 0.0 if webhook.attempted_at is None else _count_seconds(webhook.attempted_at, at)
    webhook.attempted_at = at
    if result.delivered:
        webhook.failures, webhook.failing_since, webhook.tried_since, webhook.paused_until = 0, None, None, None
        return None
    webhook.failures += 1
    _count_failing(webhook, at, idle if idle > _UNTRIED else 0.0)
    webhook.paused_until = None
    if seconds := max(pause_length(webhook.failures, result.status), result.retry_after):
        until = shift_timestamp(done, timedelta(seconds=seconds))
        soon = delivery.due_at is not None and until < delivery.due_at <= shift_timestamp(until, timedelta(seconds=1))
        # So that no message overtakes one that is about to be tried again.
        webhook.paused_until = delivery.due_at if soon else until
    if result.status == _GONE:
        return say(reasons.GONE)
    return say(reasons.FAILED_FOR_A_WEEK) if _count_seconds(webhook.tried_since or at, done) >= _WEEK else None


def _count_failing(webhook: Webhook, at: str, untried: float) -> None:
    """Record since when an endpoint has been failing. Time without attempts, given as `untried` seconds, does not count."""
    if webhook.failing_since is None:
        webhook.failing_since = webhook.tried_since = at
        return
    tried = webhook.tried_since or webhook.failing_since
    webhook.tried_since = min(shift_timestamp(tried, timedelta(seconds=untried)), at)
    webhook.failing_since = at if untried else min(webhook.failing_since, at)


def _count_seconds(since: str, until: str) -> float:
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()
