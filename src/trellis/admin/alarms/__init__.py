"""Alarms: events that somebody should look at."""

from trellis.admin.alarms.pages import PAGES, fetch_unread
