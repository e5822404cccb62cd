"""What the tests of the MCP endpoint may ask for beside the database, the gate and the sample community."""

import pytest

from tests.agent_client import AgentClient
from tests.api_client import ApiClient
from tests.api_fixtures import api, make_api, serve, service

__all__ = ["agent", "api", "make_api", "serve", "service"]


@pytest.fixture
def agent(api: ApiClient) -> AgentClient:
    """An agent with a key that may do everything."""
    return AgentClient(api)
