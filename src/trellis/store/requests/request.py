"""A request as the request log stores it, and its shape: what it has in common with others."""

from operator import itemgetter
from typing import Final, NamedTuple

# Microseconds that fit into the log's column; a slow caller may take longer to read a large answer.
LONGEST_DURATION: Final = 2**31 - 1


class Request(NamedTuple):
    """A completed request. `path` has no query, `duration` is in microseconds, `error` is an errorCode.

    `is_example` marks a request without a valid key: all such requests are counted elsewhere, and only some are logged, as
    examples. `key_id` of an example is the key that was sent if its secret was right but it may not be used, or else None.
    """

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
    is_example: bool = False


class Shape(NamedTuple):
    """The members that many requests have in common, so that they are stored once for all of them."""

    key_id: int | None
    operation: str | None
    method: str
    address: str
    status: int
    error: str | None


# Returns the shape of a request as a plain tuple, in the order of Shape.
find_shape: Final = itemgetter(*(Request._fields.index(name) for name in Shape._fields))

# Each returns a member of a request.
get_at, get_path, get_duration, get_request_id, get_is_example = (
    itemgetter(Request._fields.index(name)) for name in ("at", "path", "duration", "request_id", "is_example")
)
