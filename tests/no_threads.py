"""A system that allows no more threads for a while, as where the limit of a container has been reached."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def without_new_threads() -> Iterator[None]:
    """Let no thread start, in the words of Python."""

    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with patch.object(threading.Thread, "start", fail):
        yield
