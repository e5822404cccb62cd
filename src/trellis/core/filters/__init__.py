"""Saved filters of lists: each administrator's own, and those that they share."""

from trellis.core.filters.crud import LIST, LISTS, MOST, NAME, PLACES, QUERY, SHARED, operations
