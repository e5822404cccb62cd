"""Outages of the database: how they are logged, and the refusals of what could not be done.

The log has the beginning of an outage, then at most once a minute the number of failures, and its end.
"""

import logging
import threading
from time import monotonic
from typing import Final

from trellis.errors import NO_MEMORY, Refused
from trellis.sentences import say
from trellis.store import sqlite
from trellis.store.engine.faults import Faults, describe_lack

log = logging.getLogger(__name__)

_EVERY: Final = 60.0  # seconds between two lines in the log, at least
_QUIET: Final = 2.0  # seconds without a failure after which one success ends the outage


class Unacknowledged(Exception):
    """PostgreSQL did not acknowledge a commit: the connection was lost, or no answer came in time. It may have been made."""


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
    error = getattr(error, "orig", None) or error
    text = NO_MEMORY if sqlite.is_out_of_memory(error) else " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith(".") else text + "."


def refuse_busy(error: BaseException, faults: Faults, outage: Outage) -> Refused:
    """Log an error of the database, and return the refusal, which names the reason if it is a fault or if something is missing."""
    if isinstance(error, Unacknowledged):
        return _refuse_unacknowledged(error, outage)
    if (reason := faults.record(error)) is None:
        outage.record_failure(error)
        reason = describe_lack(error) or say("The database is busy or cannot be reached.")
    refused = Refused("BUSY", say("{reason} As far as we know, nothing was changed; try again.", reason=reason))
    refused.__cause__ = error  # the terminal shows more of it
    return refused


def _refuse_unacknowledged(error: Unacknowledged, outage: Outage) -> Refused:
    outage.record_failure(error.__cause__ or error)
    refused = Refused(
        "BUSY",
        say(
            "The connection to the database was lost during the commit, so this write may have been made. Look before you send it "
            "again. With the same Idempotency-Key, a create can be sent again as it is."
        ),
    )
    refused.__cause__ = error.__cause__
    return refused


def refuse_late() -> Refused:
    """Return the refusal of a write that has waited too long for its turn."""
    return Refused(
        "BUSY", say("The database is busy: this write has waited too long for its turn. Nothing was changed; try again.")
    )


def refuse_closed() -> Refused:
    """Return the refusal of a write that comes after the writer was closed."""
    return Refused("BUSY", say("The service is stopping. Nothing was changed; try again in a moment."))


def refuse_unfinished() -> Refused:
    """Return the refusal of a write that has begun and is not waited for any longer."""
    return Refused(
        "BUSY",
        say(
            "The service is stopping before this write has ended, so it may have been made. Look before you send it again. "
            "With the same Idempotency-Key, a create can be sent again as it is."
        ),
    )


def refuse_full() -> Refused:
    """Return the refusal of a write for which the queue has no room."""
    return Refused("BUSY", say("Too many writes are already waiting. Nothing was changed; try again in a moment."))
