"""On PostgreSQL: the processes that remember keys, and waiting until all of them have dropped the keys that a commit has changed.

A commit that changes a key records its data version as 'key version' and sends a second notification for it. Each process that
follows the commits has a row in the counters, 'listener …', with the newest key version up to which it has dropped the keys that it
remembered. The commit is acknowledged once no row is behind it, or after LEASE. After that no process honours a changed key:

- *What a process remembers is valid for less than LEASE* from the beginning of a reading that found its own row, and found it up to
  date. What a reading from before the commit made valid has expired by then.
- *A reading from after the commit* shows the new key version, and makes nothing valid until the process has dropped what it
  remembered and recorded that in its row.
- *The row of a process that does not answer is deleted* after LEASE, so that it delays nobody twice. What it remembered is no
  longer valid by then. Its next reading does not find the row, and the process registers again.
- *A new process* writes its row before its first reading. A commit that did not see the row was made before that reading.
"""

import logging
import os
import time
from typing import Any, Final, NamedTuple

log = logging.getLogger(__name__)

LEASE: Final = 1.0  # seconds after a commit from which on no process relies on older keys, whatever happened to the process
VALID_FOR: Final = 0.9  # seconds for which a reading makes valid what is remembered: less than LEASE, since no two clocks run alike
_FIRST_PAUSE: Final = 0.001  # seconds between the first two looks at the rows; it doubles each time
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


class VersionRow(NamedTuple):
    """The data version, the last entry of the change journal as of it, and two key versions.

    `keys` is the newest key version, `dropped` the one up to which this process has dropped what it remembered; None without a row.
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
        """Insert the row of this process, unless it exists. Nothing may count as valid until the next reading."""
        connection.execute(_REGISTER, {"me": self._me})

    def read(self, connection: Any) -> VersionRow:
        """Read the versions and the row of this process in one statement, so that they belong together."""
        return VersionRow(*connection.execute(_READ, {"me": self._me}).fetchone())

    def confirm(self, connection: Any, number: int) -> bool:
        """Record that this process has dropped what it remembered before a key version; return False if its row is gone."""
        return bool(connection.execute(_DROPPED, {"me": self._me, "number": number}).rowcount)

    def leave(self, connection: Any) -> None:
        """Delete the row of this process, which no longer remembers any keys."""
        connection.execute(_LEAVE, {"me": self._me})

    def wait_for_others(self, connection: Any, number: int, until: float) -> None:
        """Wait until every other process has dropped what it remembered before a key version.

        `until`, on the monotonic clock, is LEASE after the commit. Then the rows of processes that have not answered are deleted.
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
