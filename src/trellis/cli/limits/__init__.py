"""Connections: taking new ones, and limits set around uvicorn's parser: how many, how long each step takes, how large a head is.

uvicorn limits the time between requests and nothing else: a head or a body that never ends and a reader that does not read would
each hold a descriptor and memory for ever. What a connection waits for is known from the calls of the parser; bytes are looked
at only in order to know the head of a write again that has just been refused.
"""

from trellis.cli.limits.accepting import Acceptor
from trellis.cli.limits.heap import keep_heap_small
from trellis.cli.limits.limits import Limits, count_descriptors, limits_of, raise_descriptors
from trellis.cli.limits.once_per_minute import OncePerMinute
from trellis.cli.limits.protocol import make_protocol

__all__ = [
    "Acceptor",
    "Limits",
    "OncePerMinute",
    "count_descriptors",
    "keep_heap_small",
    "limits_of",
    "make_protocol",
    "raise_descriptors",
]
