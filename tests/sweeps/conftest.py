"""What these tests ask for beside the database, the gate and the community."""

from tests.api_fixtures import api, make_api, serve, service

__all__ = ["api", "make_api", "serve", "service"]
