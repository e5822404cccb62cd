"""Logging of an outage of the database: its beginning, then at most once a minute the number of failures, and its end."""

import logging
import threading
from time import monotonic
from typing import Final

log = logging.getLogger(__name__)

_EVERY: Final = 60.0  # seconds between two lines in the log, at least
_QUIET: Final = 2.0  # seconds without a failure after which one success ends the outage


class Outage:
    """Whether the database of a process can be used at present, as the process sees it. Any thread may call the methods."""

    def __init__(self) -> None:
        self.is_on = False
        self._lock = threading.Lock()
        self._failures = 0  # since the last line in the log
        self._total = 0
        self._logged_at = 0.0
        self._failed_at = 0.0

    def record_failure(self, error: BaseException) -> None:
        """Count a failure, and log it if it is the first of an outage, or if a minute has passed since the last line."""
        with self._lock:
            now = self._failed_at = monotonic()
            self._total += 1
            self._failures += 1
            if not self.is_on:
                self.is_on, self._total = True, 1
                log.error("The database could not be used: %s Further failures are counted.", _sentence(error))
            elif now - self._logged_at >= _EVERY:
                log.error(
                    "The database still cannot be used: %d failures since the last line. %s", self._failures, _sentence(error)
                )
            else:
                return
            self._failures, self._logged_at = 0, now

    def record_success(self) -> None:
        """Note that the database could be used, which ends an outage after two seconds without failures. Call it while `is_on`."""
        with self._lock:
            if self.is_on and monotonic() - self._failed_at >= _QUIET:
                self.is_on = False
                log.warning("The database can be used again, after %d failures.", self._total)


def _sentence(error: BaseException) -> str:
    text = " ".join(str(getattr(error, "orig", None) or error).split()) or type(error).__name__
    return text if text.endswith(".") else text + "."
