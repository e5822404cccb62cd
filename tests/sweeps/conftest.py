"""What these tests ask for beside the database, the gate and the community."""

from tests.api_fixtures import api, database, make_api, serve, service

__all__ = ["api", "database", "make_api", "serve", "service"]
