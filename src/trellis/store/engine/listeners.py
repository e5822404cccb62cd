"""On PostgreSQL: the processes that remember keys, and waiting until all of them have dropped what a commit has changed.

A commit that changes a key records its data version as 'key version' and says so in its notification. Each process that follows
the commits has a row in the counters, 'listener …', with the newest key version up to which it has dropped what it remembered. The
commit is acknowledged once no row is behind it, or after LEASE. Why no process honours a changed key after that:

- *What a process remembers is valid for less than LEASE* from the beginning of a reading that found its own row there, and not
  behind. A reading from before the commit has ended by then.
- *A reading from after the commit* shows the new key version, and makes nothing valid before the process has dropped what it
  remembered and written so in its row.
- *The row of a process that does not answer is deleted* after LEASE, so that it delays nobody twice. What it remembered is no
  longer valid then, and its next reading does not find the row: it begins anew, with another one.
- *A new process* writes its row first and reads then. Whoever did not see the row has committed before that reading.
"""

import logging
import os
import time
from typing import Any, Final, NamedTuple

log = logging.getLogger(__name__)

LEASE: Final = 1.0  # seconds after a commit from which on no process remembers what was before it, whatever has become of it
VALID_FOR: Final = 0.9  # seconds for which a reading makes valid what is remembered: shorter, since no two clocks run alike
_FIRST_PAUSE: Final = 0.001  # seconds between two looks at the rows; it doubles
_LONGEST_PAUSE: Final = 0.02

_READ: Final = """
    SELECT coalesce(max(last) FILTER (WHERE name = 'data version'), 0),
        coalesce(max(total) FILTER (WHERE name = 'data version'), 0), coalesce(max(last) FILTER (WHERE name = 'key version'), 0),
        max(last) FILTER (WHERE name = %(me)s)
    FROM counters WHERE name IN ('data version', 'key version', %(me)s)
"""
_REGISTER: Final = "INSERT INTO counters (name, last, total) VALUES (%(me)s, 0, 0) ON CONFLICT (name) DO NOTHING"
_DROPPED: Final = "UPDATE counters SET last = %(number)s WHERE name = %(me)s"
_LEAVE: Final = "DELETE FROM counters WHERE name = %(me)s"
_OTHERS: Final = "starts_with(name, 'listener ') AND name <> %(me)s AND last < %(number)s"
_COUNT_BEHIND: Final = f"SELECT count(*) FROM counters WHERE {_OTHERS}"  # noqa: S608  # our own text
_GIVE_UP: Final = f"DELETE FROM counters WHERE {_OTHERS}"  # noqa: S608  # our own text


class Reading(NamedTuple):
    """The data version, the last entry of the change journal as of it, and two key versions.

    They are the newest, and the one up to which this process has dropped what it remembered: None where it has no row.
    """

    number: int
    seq: int
    keys: int
    dropped: int | None


class Listeners:
    """The rows of all processes, as one of them sees them. Its methods take a connection in autocommit mode."""

    def __init__(self) -> None:
        self._me = f"listener {os.urandom(8).hex()}"

    def register(self, connection: Any) -> None:
        """Write the row of this process, unless it is there. Nothing may be valid before the next reading."""
        connection.execute(_REGISTER, {"me": self._me})

    def read(self, connection: Any) -> Reading:
        """Read the versions and the row of this process, as they were at one moment."""
        return Reading(*connection.execute(_READ, {"me": self._me}).fetchone())

    def confirm(self, connection: Any, number: int) -> bool:
        """Write that this process has dropped what it remembered before a key version; False where it has no row any more."""
        return bool(connection.execute(_DROPPED, {"me": self._me, "number": number}).rowcount)

    def leave(self, connection: Any) -> None:
        """Delete the row of this process, which remembers nothing any more."""
        connection.execute(_LEAVE, {"me": self._me})

    def wait_for_others(self, connection: Any, number: int, until: float) -> None:
        """Wait until every other process has dropped what it remembered before a key version.

        `until`, on the monotonic clock, is LEASE after its commit: then the rows of those that have not answered are deleted.
        """
        named = {"me": self._me, "number": number}
        pause = _FIRST_PAUSE
        while behind := connection.execute(_COUNT_BEHIND, named).fetchone()[0]:
            if (left := until - time.monotonic()) <= 0:
                connection.execute(_GIVE_UP, named)
                log.warning("A change of a key took the whole second: %d processes have ended or do not answer.", behind)
                return
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE)
