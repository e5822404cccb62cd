"""The check of the whole community for inconsistencies, and their repair."""

from trellis.core.check.report import operations

__all__ = ["operations"]
