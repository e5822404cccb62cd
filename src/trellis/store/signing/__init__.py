"""Keys with which the service signs data that it must recognise later. They are random, created once, and never shown."""

from trellis.store.signing.keys import FACTORS, PLANS, find_key

__all__ = ["FACTORS", "PLANS", "find_key"]
