"""The store that these tests share."""

from collections.abc import Iterator

import pytest

from trellis.settings import Settings
from trellis.store.engine import Store


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """A store over a new database."""
    store = Store(settings)
    yield store
    store.close()
