"""What these tests ask for beside the database, the gate and the community."""

from tests.doors import api, caller, serve, service, witness

__all__ = ["api", "caller", "serve", "service", "witness"]
