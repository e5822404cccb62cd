"""What the tests of the REST API may ask for beside the database, the gate and the sample community."""

from tests.api_fixtures import api, database, make_api, serve, service

__all__ = ["api", "database", "make_api", "serve", "service"]
