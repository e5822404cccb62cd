"""The limits, taken from the settings and from the number of descriptors that the process may have."""

import resource
from dataclasses import dataclass
from typing import Final

from trellis.core.networks import list_forms
from trellis.http.policy import NO_SNIFFING, POLICY
from trellis.settings import Settings

_OTHERS: Final = 96  # descriptors kept for logs, webhooks, static files and refusals
_OPEN_MAX: Final = 10_240  # of macOS, where an infinite hard limit is usual, but setrlimit(2) rejects an infinite soft limit
_FOR_METRICS: Final = 16  # connections to the metrics where they have a port of their own, however many the other port has


@dataclass(frozen=True, slots=True)
class Limits:
    """The most connections of a process, and the seconds for a head, a body, the next request, and an answer to be read.

    `for_metrics` is the number of connections reserved for a port of the metrics. `headers` are the headers of responses that the
    server sends in the application's place, besides those that describe the body, and `base_url` is the address of the service in
    these, if it is known; `logs`: such responses are logged.
    """

    connections: int
    head: float
    body: float
    idle: float
    send: float
    proxies: tuple[str, ...] = ()
    headers: tuple[tuple[bytes, bytes], ...] = ()
    base_url: str = ""
    logs: bool = False
    for_metrics: int = _FOR_METRICS


def raise_descriptors() -> int:
    """Raise the limit of descriptors as far as this process may; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = find_most_descriptors()
    if soft != most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most


def find_most_descriptors() -> int:
    """Return the number to which this process may raise its limit of descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft, _OPEN_MAX) if hard == resource.RLIM_INFINITY else hard


def count_descriptors(settings: Settings) -> int:
    """Return how many descriptors a process needs in order to have as many connections as it may."""
    return settings.connections + _count_others(settings)


def limits_of(settings: Settings, descriptors: int) -> Limits:
    """Return the limits from the settings; connections stay below the descriptors, some of which are kept for the database."""
    most = min(settings.connections, max(descriptors - _count_others(settings), descriptors // 4))
    times = settings.head_timeout, settings.body_timeout, settings.idle_timeout, settings.send_timeout
    headers = (POLICY, NO_SNIFFING, *settings.transport_headers)
    return Limits(
        most, *times, tuple(list_forms(settings.trusted_proxies)), headers, settings.public_url or "", settings.access_log
    )


def _count_others(settings: Settings) -> int:
    return _OTHERS + 2 * settings.database_pool + (_FOR_METRICS if settings.metrics_listen is not None else 0)
