"""Keys with which the service signs what it has to recognise later: random, made once, and never shown."""

from trellis.store.signing.keys import FACTORS, PLANS, find_key

__all__ = ["FACTORS", "PLANS", "find_key"]
