"""The rows of the logs after a position: events, requests and messages to webhooks."""

from trellis.store.news.heads import Heads, find_events, find_heads, find_keys_of_requests
