"""A row of the request log."""

from typing import NamedTuple


class Request(NamedTuple):
    """A completed request. `path` has no query, `duration` is in microseconds, `error` is an errorCode."""

    at: str
    method: str
    path: str
    operation: str | None
    key_id: int | None
    address: str
    status: int
    duration: int
    request_id: str
    error: str | None
