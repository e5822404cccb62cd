"""Alarms, which mark events that somebody should look at, and the newest alarm that each administrator has read."""

from trellis.store.alarms.rows import Alarm, count_unread, find_between, find_read, insert, mark_read, purge, read_newest
