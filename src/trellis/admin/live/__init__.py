"""Streams of news to pages that are kept up to date: one watcher for all of a process, and the response to each."""

from trellis.admin.live.stream import EventStream, describe_news
from trellis.admin.live.watcher import Watcher

__all__ = ["EventStream", "Watcher", "describe_news"]
