"""Alarms: which events somebody should look at, as data, and the operations that list them."""

from trellis.core.alarms.crud import count_unread, mark_read, operations
from trellis.core.alarms.table import ALARMS, AlarmRule, find_alarm

__all__ = ["ALARMS", "AlarmRule", "count_unread", "find_alarm", "mark_read", "operations"]
