"""What the tests of generated clients may ask for: a running service and a key of it."""

from tests.api_fixtures import serve, service

__all__ = ["serve", "service"]
