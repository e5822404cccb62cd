"""What the tests of the REST door may ask for beside the database, the gate and the cast."""

from tests.doors import api, caller, serve, service, witness

__all__ = ["api", "caller", "serve", "service", "witness"]
