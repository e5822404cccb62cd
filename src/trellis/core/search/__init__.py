"""Search: one operation that looks through all records that an administrator may want to find."""

from trellis.core.search.find import FIND, TEXT, operations
