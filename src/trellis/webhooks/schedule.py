"""When a message is tried again, and how long an endpoint is left alone that seems to be down."""

import random
from typing import Final

_MINUTE: Final = 60
_HOUR: Final = 3600
# How long after the attempt before it each attempt is made: those that Standard Webhooks recommends.
STEPS: Final = (0, 5, 5 * _MINUTE, 30 * _MINUTE, *(hours * _HOUR for hours in (2, 5, 10, 14, 20, 24)))
WEEK: Final = 7 * 24 * _HOUR
LONGEST_RETRY_AFTER: Final = 24 * _HOUR
_JITTER: Final = 0.1
_LONGEST_REST: Final = _MINUTE
_NOBODY_THERE: Final = frozenset({None, 408, 425, 429, 502, 503, 504})


def delay(step: int) -> float | None:
    """Give the seconds until the next attempt when so many have been made; None when that was the last."""
    return None if step >= len(STEPS) else STEPS[step] * random.uniform(1, 1 + _JITTER)  # noqa: S311  # jitter, not a secret


def rest(failures: int, status: int | None) -> float:
    """Give the seconds for which nothing is sent to an endpoint after so many failures in a row, the last with this status.

    An endpoint where nobody is there is left alone at once; one that answers may have stumbled over this message only, and
    is left alone when it stumbles over message after message.
    """
    borne = 0 if status in _NOBODY_THERE else 2 if status is not None and status >= 500 else 9
    return min(_LONGEST_REST, 5 * 2 ** min(failures - borne - 1, 8)) if failures > borne else 0
