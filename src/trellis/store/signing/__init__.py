"""Keys with which the service signs what it has to recognise later: random, made once, and never shown."""

from trellis.store.signing.keys import PLANS, find_key

__all__ = ["PLANS", "find_key"]
