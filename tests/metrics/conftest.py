"""The API in this process."""

from tests.api_fixtures import api, make_api

__all__ = ["api", "make_api"]
