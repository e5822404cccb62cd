"""Alarms: the events that somebody should look at, and how far each administrator has read them."""

from trellis.store.alarms.rows import Alarm, count_unread, find_between, find_read, insert, mark_read, purge, read_newest

__all__ = ["Alarm", "count_unread", "find_between", "find_read", "insert", "mark_read", "purge", "read_newest"]
