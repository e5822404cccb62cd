"""Accepts connections, and limits their number, the time that each step takes and the size of a head, around uvicorn's parser.

uvicorn limits only the time between requests: a head or a body that never ends, and a reader that does not read, would each hold a
descriptor and memory forever. The parser's callbacks show what a connection waits for; HTTP is not parsed here.
"""

from trellis.cli.limits.accepting import Acceptor
from trellis.cli.limits.heap import keep_heap_small
from trellis.cli.limits.limits import Limits, count_descriptors, find_most_descriptors, limits_of, raise_descriptors
from trellis.cli.limits.once_per_minute import OncePerMinute
from trellis.cli.limits.protocol import make_protocol
