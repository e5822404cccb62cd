"""The filters of lists that administrators have saved."""

from trellis.store.filters.rows import SavedFilter, delete, find, insert, read_all, update
