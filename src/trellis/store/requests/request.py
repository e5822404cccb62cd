"""A row of the request log."""

from operator import itemgetter
from typing import Final, NamedTuple

LONGEST: Final = 2**31 - 1  # microseconds for which the log has room; a caller may take more to read a large answer


class Request(NamedTuple):
    """A completed request. `path` has no query, `duration` is in microseconds, `error` is an errorCode.

    One that was not admitted is an example of many, which are counted elsewhere; `key_id` is then that of a key that was sent whole
    and may not be used, if there is one.
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
    """What many requests have in common."""

    key_id: int | None
    operation: str | None
    method: str
    address: str
    status: int
    error: str | None


# What a request has of a shape, as a plain tuple: in this order.
find_shape: Final = itemgetter(*(Request._fields.index(name) for name in Shape._fields))
