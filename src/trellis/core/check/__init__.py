"""Checks the whole community for inconsistencies, and repairs them."""

from trellis.core.check.report import operations
