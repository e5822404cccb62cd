"""A caller whose key has the dialect of Invision Community."""

import pytest

from tests.api_client import ApiClient
from tests.api_fixtures import MakeApiClient
from tests.fixture_types import MakeKey


@pytest.fixture
def invision(make_api: MakeApiClient, key: MakeKey) -> ApiClient:
    """The API for a key with the dialect that may do everything."""
    return make_api(key("*", name="An old client", dialect="invision"))
