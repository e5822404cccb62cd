"""Retries: when a message is tried again, and for how long nothing is sent to an endpoint that seems to be down."""

import random
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from trellis.core.fields import format_timestamp
from trellis.store.webhooks import Delivery, Webhook

_MINUTE: Final = 60
_HOUR: Final = 3600
# How long after the attempt before it each attempt is made: those that Standard Webhooks recommends.
STEPS: Final = (0, 5, 5 * _MINUTE, 30 * _MINUTE, *(hours * _HOUR for hours in (2, 5, 10, 14, 20, 24)))
MOST_TRIALS: Final = 4  # early attempts by which one message may hold up those behind it
MOST_EARLY: Final = 8  # early attempts of one message in all
_WEEK: Final = 7 * 24 * _HOUR
_JITTER: Final = 0.1
_FIRST_PAUSE: Final = 5
_LONGEST_PAUSE: Final = _MINUTE
_CLOCKS_DIFFER: Final = 60  # seconds, at most, between two machines
_NOBODY_THERE: Final = frozenset({None, 408, 425, 429, 502, 503, 504})
_GONE: Final = 410


class Result(NamedTuple):
    """What came of an attempt. `duration` is in milliseconds, `retry_after` in seconds, as the endpoint asked.

    `reached` is false where there was not even a connection: then it cannot have been the message's fault. `unsendable` says
    that nothing was sent, and that nothing can be sent later either.
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
        """Whether it was answered with success. An answer that broke off is none."""
        return self.error is None and self.status is not None and 200 <= self.status < 300


def retry_delay(step: int) -> float | None:
    """Give the seconds until the next attempt when so many have been made; None when that was the last."""
    return None if step >= len(STEPS) else STEPS[step] * random.uniform(1, 1 + _JITTER)  # noqa: S311  # jitter, not a secret


def pause_length(failures: int, status: int | None) -> float:
    """Give the seconds for which nothing is sent to an endpoint after so many failures in a row, the last with this status.

    An endpoint where nobody is there is paused at once; one that answers may have failed over this message only, and is paused
    when it fails over message after message.
    """
    tolerated = 0 if status in _NOBODY_THERE else 2 if status is not None and status >= 500 else 9
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(failures - tolerated - 1, 8)) if failures > tolerated else 0


def add_seconds(timestamp: str, seconds: float) -> str:
    """Give the timestamp that lies so many seconds after another."""
    return format_timestamp(datetime.fromisoformat(timestamp) + timedelta(seconds=seconds))


def clock_limit(now: str) -> str:
    """Give the timestamp after which an attempt can only have been made by a clock that was set back since."""
    return add_seconds(now, _CLOCKS_DIFFER)


def is_paused(webhook: Webhook, now: str) -> bool:
    """Say whether nothing is sent to an endpoint. A pause that began ahead of the clock is over: the clock was set back."""
    if webhook.paused_until is None or webhook.paused_until <= now:
        return False
    return webhook.attempted_at is not None and webhook.attempted_at <= clock_limit(now)


def update_delivery(delivery: Delivery, result: Result, at: str, done: str) -> None:
    """Set when a message is tried again after an attempt that began at one time and was done at another, or that it is not."""
    set_back = delivery.attempted_at is not None and delivery.attempted_at > clock_limit(at)
    early = delivery.step > 0 and delivery.due_at is not None and delivery.due_at > at and not set_back
    delivery.attempted_at = at
    if result.delivered or result.unsendable:
        delivery.state, delivery.due_at = "delivered" if result.delivered else "failed", None
        return
    if early:
        delivery.early_attempts += result.reached  # where there was no connection, the message is not to blame
        return
    delivery.step += 1
    wait = retry_delay(delivery.step)
    if wait is None:
        delivery.state, delivery.due_at = "failed", None
    else:
        delivery.due_at = add_seconds(done, max(wait, result.retry_after))


def update_endpoint(webhook: Webhook, delivery: Delivery, result: Result, at: str, done: str) -> str | None:
    """Set how an endpoint does after an attempt; give the reason to switch it off, if there is one."""
    webhook.attempted_at = at
    if result.delivered:
        webhook.failures, webhook.failing_since, webhook.paused_until = 0, None, None
        return None
    webhook.failures += 1
    webhook.failing_since = min(webhook.failing_since or at, at)
    webhook.paused_until = None
    if seconds := max(pause_length(webhook.failures, result.status), result.retry_after):
        until = add_seconds(done, seconds)
        soon = delivery.due_at is not None and until < delivery.due_at <= add_seconds(until, 1)
        webhook.paused_until = delivery.due_at if soon else until  # so that nothing overtakes what is about to be tried again
    if result.status == _GONE:
        return "The endpoint answered 410: it is gone."
    failing = datetime.fromisoformat(done) - datetime.fromisoformat(webhook.failing_since)
    return "Every attempt of a week has failed." if failing.total_seconds() >= _WEEK else None
