"""The check of the whole community: what is not as it should be, and its repair."""

from trellis.core.check.report import operations

__all__ = ["operations"]
