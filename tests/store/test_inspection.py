"""A pooler that leaves no connection its own session is refused at the start."""

import pytest

from tests.pooler import Pooler
from trellis.settings import Settings
from trellis.store.condition import Condition, explain_condition, find_condition

pytestmark = pytest.mark.parametrize("engine", ["postgresql"], indirect=True)


def test_a_pooler_that_gives_each_transaction_another_session_is_refused(settings: Settings) -> None:
    assert find_condition(settings) is Condition.READY
    with Pooler(settings.database_url) as pooler:
        pooled = Settings(database_url=pooler.url)
        at = find_condition(pooled)
        assert at is Condition.POOLED
        assert "Connect to PostgreSQL directly, or through a pool in session mode." in explain_condition(pooled, at)
