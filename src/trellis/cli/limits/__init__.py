"""Connections: taking new ones, and limits set around uvicorn's parser: how many, how long each step takes, how large a head is.

uvicorn limits the time between requests and nothing else: a head or a body that never ends and a reader that does not read would
each hold a descriptor and memory for ever. Nothing here looks at a byte that comes; what a connection waits for is known from the
calls of the parser.
"""

from trellis.cli.limits.accepting import Acceptor
from trellis.cli.limits.limits import Limits, count_descriptors, limits_of, raise_descriptors
from trellis.cli.limits.once_per_minute import OncePerMinute
from trellis.cli.limits.protocol import make_protocol

__all__ = ["Acceptor", "Limits", "OncePerMinute", "count_descriptors", "limits_of", "make_protocol", "raise_descriptors"]
