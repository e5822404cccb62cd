"""Times as an administrator sees and types them: in one time zone on every page."""

from trellis.admin.times.zone import EXACT, UTC_CLOCK, ZONE, Clock, find_clock

__all__ = ["EXACT", "UTC_CLOCK", "ZONE", "Clock", "find_clock"]
