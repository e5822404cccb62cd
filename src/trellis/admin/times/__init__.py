"""Times as an administrator sees and types them: in one time zone on every page."""

from trellis.admin.times.zone import EXACT, UTC_CLOCK, Clock, find_clock
