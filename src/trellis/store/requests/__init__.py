"""The request log: every answered request of the API, and how often keys use what.

`append` writes a batch, `search` and the `find_…` functions read, `count_…` count, `purge` deletes what is older than it is kept.
"""

from trellis.store.requests.history import (
    LoggedRequest,
    LogPosition,
    OperationUse,
    count_uses,
    count_uses_by_day,
    estimate_count,
    find,
    find_by_request_id,
    search,
)
from trellis.store.requests.log import Request, append, purge

__all__ = [
    "LogPosition",
    "LoggedRequest",
    "OperationUse",
    "Request",
    "append",
    "count_uses",
    "count_uses_by_day",
    "estimate_count",
    "find",
    "find_by_request_id",
    "purge",
    "search",
]
