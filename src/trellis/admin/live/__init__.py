"""Streams of news to pages that are kept up to date: one watcher for each process, and one response for each page."""

from trellis.admin.live.stream import EventStream, describe_news
from trellis.admin.live.watcher import Watcher
