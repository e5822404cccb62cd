"""Limits warnings of the parser, which anybody can cause, to one a minute in the log."""

import logging
import math
import time
from typing import Final

_MESSAGES: Final = 100  # that are remembered
_QUIET: Final = 60.0  # seconds for which a message is not repeated in the log


class OncePerMinute(logging.Filter):
    """Lets each warning into the log once a minute, with how often it was left out: anybody can cause the parser's warnings."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, tuple[float, int]] = {}  # message → when it was said, and how often it was left out since

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.WARNING:
            return True
        now, message = time.monotonic(), str(record.msg)
        at, left_out = self._said.get(message, (-math.inf, 0))
        if now - at < _QUIET:
            self._said[message] = (at, left_out + 1)
            return False
        if left_out:
            record.msg = f"{message} ({left_out:,} more of these since the last one)"
        if len(self._said) >= _MESSAGES:
            self._said.clear()
        self._said[message] = (now, 0)
        return True
