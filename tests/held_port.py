"""A port for a program that has to be told one before it listens."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_port() -> Iterator[int]:
    """Find a free port of this machine, and keep it from everybody who asks for any, before the program takes it and afterwards.

    Nobody listens here, so that a program may bind it too, with SO_REUSEADDR, which servers set.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])
