"""A caller whose key has the dialect of Invision Community."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.api_client import ApiClient
from tests.api_fixtures import MakeApiClient
from tests.fixture_types import MakeKey
from trellis.compose import compose
from trellis.core.gate import Gate
from trellis.core.nodes import NodeKind
from trellis.core.verbs import DELETE, GET, LIST
from trellis.kinds import KINDS
from trellis.settings import Settings


@pytest.fixture
def invision(make_api: MakeApiClient, key: MakeKey) -> ApiClient:
    """The API for a key with the dialect that may do everything."""
    return make_api(key("*", name="An old client", dialect="invision"))
