"""The request log: every answered request of the API, and how often keys use what.

`append` writes a batch, `search` and `find` read, `uses` and `uses_by_day` count, `purge` deletes what is older than it is kept.
"""

from trellis.store.requests.history import Logged, Place, Use, estimate, find, of_operation, search, uses, uses_by_day
from trellis.store.requests.log import Request, append, purge

__all__ = [
    "Logged",
    "Place",
    "Request",
    "Use",
    "append",
    "estimate",
    "find",
    "of_operation",
    "purge",
    "search",
    "uses",
    "uses_by_day",
]
