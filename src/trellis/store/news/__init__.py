"""What is newer than a position in the logs: events, requests, messages to webhooks."""

from trellis.store.news.heads import Heads, find_events, find_heads, find_keys_of_requests

__all__ = ["Heads", "find_events", "find_heads", "find_keys_of_requests"]
