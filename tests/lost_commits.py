"""A PostgreSQL whose acknowledgements of commits are lost: each commit is made, and the connection ends before its answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from trellis.store.engine.limited import LimitedConnection


@contextmanager
def lost_commits() -> Iterator[None]:
    """Lose the acknowledgement of each commit meanwhile."""
    execute = LimitedConnection.execute

    def lose(connection: LimitedConnection, query: str, *arguments: Any, **options: Any) -> Any:
        cursor = execute(connection, query, *arguments, **options)
        if query == "COMMIT":
            connection.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return cursor

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LimitedConnection, "execute", lose)
        yield
