"""What the limits are: from the settings, and from how many descriptors the process may have."""

import resource
import sys
from dataclasses import dataclass
from typing import Final

from trellis.http.policy import NO_SNIFFING, POLICY
from trellis.settings import Settings

_OTHERS: Final = 96  # descriptors kept for logs, webhooks, static files and refusals
_FOR_METRICS: Final = 16  # connections to the metrics where they have a port of their own, however many the other port has


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections a process holds; and seconds for a head, a body, the next request, and an answer to be read.

    `for_metrics` are connections of their own for the port of the metrics. `headers` are those of answers in the application's
    place, besides those that say what they are; `logs`: they are in the log.
    """

    connections: int
    head: float
    body: float
    idle: float
    send: float
    proxies: tuple[str, ...] = ()
    headers: tuple[tuple[bytes, bytes], ...] = ()
    logs: bool = False
    for_metrics: int = _FOR_METRICS


def raise_descriptors() -> int:
    """Raise the limit of descriptors as far as this process may; give it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def count_descriptors(settings: Settings) -> int:
    """Return how many descriptors a process needs in order to have as many connections as it may."""
    return settings.connections + _count_others(settings)


def limits_of(settings: Settings, descriptors: int) -> Limits:
    """Take the limits of the settings; connections stay below the descriptors, of which some are kept for the database."""
    most = min(settings.connections, max(descriptors - _count_others(settings), descriptors // 4))
    times = settings.head_timeout, settings.body_timeout, settings.idle_timeout, settings.send_timeout
    headers = (POLICY, NO_SNIFFING, *settings.transport_headers)
    return Limits(most, *times, settings.trusted_proxies, headers, settings.access_log)


def _count_others(settings: Settings) -> int:
    return _OTHERS + 2 * settings.database_pool + (_FOR_METRICS if settings.metrics_listen is not None else 0)
