"""Search: one read that looks in everything an administrator may be after."""

from trellis.core.search.find import FIND, TEXT, operations

__all__ = ["FIND", "TEXT", "operations"]
