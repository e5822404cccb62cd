"""Alarms: the rules that decide which events somebody should look at, and the operation that lists them."""

from trellis.core.alarms.crud import count_unread, mark_read, operations
from trellis.core.alarms.message import ALARM_TYPES, MESSAGE, alarm_type, build_alarm_message
from trellis.core.alarms.table import ALARMS, find_alarm, tell_outside
